"""The parts of a page: frame, style, escaped strings, badges, bars from 0 to 1, facts, tables, links and folded strings. All escape their arguments."""

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
"""Even if a page contained foreign markup by mistake, a browser would not run scripts or load resources."""


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
    """Escape a string for HTML and attributes, and write control and invisible characters as codes."""
    return html.escape(visible(text, lines=lines))


MAX_SHOWN = 20_000
"""Characters of a string on a page; the JSON of the record has the rest."""
FOLDED, FOLDED_LINES = 600, 12
"""Characters and lines above which a string is folded."""
SUMMARY = 160
"""Characters of the summary of a folded string."""
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
    """Return a bar from 0 to 1, as decoration of a number that the caller writes. Other values are clipped; NaN gives an empty bar."""
    share = min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0
    fill = f"fill {kind}" if kind else "fill"
    return (
        # The attributes give sizes and colours in a notebook that removes the style.
        '<svg class="meter" viewBox="0 0 100 8" width="160" height="8" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        f'<rect class="track" width="100" height="8" rx="2" fill="#aab3be"/><rect class="{fill}" width="{100 * share:.4g}" height="8" rx="2" fill="#2f74c8"/></svg>'
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return labelled facts as a list; empty without any."""
    rows = "".join(f"<dt>{safe(label)}</dt><dd>{fact}</dd>" for label, fact in pairs)
    return f'<dl class="facts">{rows}</dl>' if rows else ""


def linked(text: str, *, lines: bool = True) -> str:
    """Escape a string for HTML and turn its http and https addresses into links."""
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
    """Return a string as HTML, folded if it is long. Beyond 20,000 characters, a note gives the number of omitted ones."""
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
"""Tables with more columns stack their cells on a narrow page."""
_NUMBER = re.compile(r"(?:[-+−<×] ?)?\d[\d.,]*(?: ?%)?(?: (?:to|of) [-+−]?[\d.,]+)?(?: ?%)?(?: \([\d.]+ to [\d.]+\))?")


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    name: int = 0,
    words: Collection[str] = (),
    caption: str = "",
) -> str:
    """Return a table as HTML. Every string is escaped."""
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
