"""Tables of a page: figures right-aligned, and on a narrow page a row's cells below each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from grace_kp.pages._page import safe

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

WIDE = 4
"""Tables with more columns show their cells below each other on a narrow page."""
_NUMBER = re.compile(r"(?:[-+−<×] ?)?\d[\d.,]*(?: ?%)?(?: (?:to|of) [-+−]?[\d.,]+)?(?: ?%)?(?: \([\d.]+ to [\d.]+\))?")


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    name: int = 0,
    words: Collection[str] = (),
    caption: str = "",
) -> str:
    """Return a table. All texts are plain text.

    Args:
        header: names of the columns.
        rows: their values. A column that holds a number is right-aligned.
        name: the column that names its row.
        words: columns that hold words, also where one looks like a number.
        caption: what the table shows.
    """
    numbers = {
        place
        for place in range(1, len(header))
        if header[place] not in words and any(_NUMBER.fullmatch(str(row[place])) for row in rows)
    }

    def cell(place: int, value: object, *, head: bool) -> str:
        figure = ' class="n"' if place in numbers else ""
        if head:
            return f'<th role="columnheader" scope="col"{figure}>{safe(str(value))}</th>'
        label = f' data-label="{safe(header[place])}"' if len(header) > WIDE and place != name else ""
        tag, scope = ("th", ' role="rowheader" scope="row"') if place == name else ("td", ' role="cell"')
        return f"<{tag}{scope}{figure}{label}>{safe(str(value))}</{tag}>"

    def line(values: Sequence[object], *, head: bool = False) -> str:
        return f'<tr role="row">{"".join(cell(place, value, head=head) for place, value in enumerate(values))}</tr>'

    body = "".join(map(line, rows))
    wide = ' class="wide"' if len(header) > WIDE else ""
    above = f"<caption>{safe(caption)}</caption>" if caption else ""
    head = line(header, head=True)
    return f'<table role="table"{wide}>{above}<thead role="rowgroup">{head}</thead><tbody role="rowgroup">{body}</tbody></table>'
