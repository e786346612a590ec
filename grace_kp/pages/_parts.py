"""The parts of a page: its frame and style, safe texts, badges, bars from 0 to 1, labelled facts, tables, links, and texts that fold. All texts are plain text."""

from __future__ import annotations

import html
import math
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from grace_kp.pages._words import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever a page should hold by mistake, a browser runs no script of it and loads nothing for it."""


def style() -> str:
    """Return the style sheet of reports, notebooks and the web pages."""
    return files("grace_kp.pages").joinpath("look.css").read_text(encoding="utf-8")


def page(title: str, body: str) -> str:
    """Return a whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<title>{safe(title)}</title><style>{style()}</style></head><body class="report"><main><h1>{safe(title)}</h1>{body}</main></body></html>\n'
    )


def safe(text: str, *, lines: bool = False) -> str:
    """Return a text for HTML, also within an attribute: no markup, and characters that are obeyed or hidden as their code."""
    return html.escape(visible(text, lines=lines))


MAX_SHOWN = 20_000
"""Characters of a text on a page; the JSON of the record holds the rest."""
FOLDED = 600
"""Characters of a text above which it is folded."""
FOLDED_LINES = 12
"""Lines of a text above which it is folded."""
SUMMARY = 160
"""Characters of the summary of a folded text."""
_LINK = re.compile(r"https?://[!#$%&'()*+,\-./0-9:;=?@A-Z_a-z~\[\]]{3,2000}")
_AFTER = ".,;:!?'"
"""Characters that end a sentence rather than an address."""
_BADGES = {
    "silent": "silent", "notify": "notify", "confirm": "confirm", "escalate": "escalate",
    "completed": "good", "executed": "good", "executed_modified": "good", "executed_before": "good", "approved": "good", "succeeded": "good",
    "failed": "bad", "error": "bad", "denied": "bad", "not_approved": "bad", "rejected": "bad", "interrupted": "bad", "unknown": "bad", "ungated": "bad",
    "cancelled": "warn", "suspended": "warn", "pending": "warn", "waiting": "warn", "timed_out": "warn", "expired": "warn", "escalated": "warn",
}  # fmt: skip


def badge(word: str, kind: str | None = None) -> str:
    """Return a word as a badge."""
    name = _BADGES.get(word.lower(), "") if kind is None else kind
    return f'<span class="badge{" " + name if name else ""}">{safe(word.replace("_", " "))}</span>'


def meter(value: float, kind: str = "") -> str:
    """Return a horizontal bar from 0 to 1; decoration beside the number, which the caller writes.

    Args:
        value: 0 to 1; a value outside is drawn at the nearer end, and NaN as an empty bar.
    """
    share = min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0
    fill = f"fill {kind}" if kind else "fill"
    return (
        # Sizes and colours for a notebook that removes the style.
        '<svg class="meter" viewBox="0 0 100 8" width="160" height="8" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        f'<rect class="track" width="100" height="8" rx="2" fill="#aab3be"/><rect class="{fill}" width="{100 * share:.4g}" height="8" rx="2" fill="#2f74c8"/></svg>'
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return labelled facts as a list; empty without any."""
    rows = "".join(f"<dt>{safe(label)}</dt><dd>{fact}</dd>" for label, fact in pairs)
    return f'<dl class="facts">{rows}</dl>' if rows else ""


def linked(text: str, *, lines: bool = True) -> str:
    """Return a text for HTML in which addresses of http and https are links; nothing else becomes one."""
    parts, end = [], 0
    for match in _LINK.finditer(text):
        address = match[0].rstrip(_AFTER)
        if address.endswith(")") and "(" not in address:
            address = address.rstrip(")" + _AFTER)
        parts.append(safe(text[end : match.start()], lines=lines))
        parts.append(f'<a href="{safe(address)}" rel="noreferrer noopener">{safe(address)}</a>')
        end = match.start() + len(address)
    parts.append(safe(text[end:], lines=lines))
    return "".join(parts)


def fold(text: str, *, code: bool = False, label: str = "") -> str:
    """Return a text, folded if it is long.

    Args:
        text: any text; beyond 20,000 characters a note gives the number of those left out.
    """
    tag = '<pre tabindex="0">' if code and len(text) > FOLDED else "<pre>" if code else '<p class="text">'
    end = tag[1:].split(" ")[0].rstrip(">")
    shown = f"{tag}{linked(text[:MAX_SHOWN])}</{end}>"
    if len(text) > MAX_SHOWN:
        shown += f'<p class="note small">{len(text) - MAX_SHOWN:,} more characters are not shown here; the JSON of the record has them.</p>'
    before = f'<span class="kind">{safe(label)}</span> ' if label else ""
    if len(text) <= FOLDED and text.count("\n") < FOLDED_LINES:
        return f"<div>{before}{shown}</div>" if before else shown
    start = safe(" ".join(text[: 2 * SUMMARY].split())[:SUMMARY])
    return f'<details><summary>{before}{start}… <span class="soft">{len(text):,} characters</span></summary>{shown}</details>'


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
    """Return a table. All texts are plain text."""
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
