"""A whole run in one HTML file that can be mailed, without scripts and other files, and an excerpt that keeps a notebook small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.pages import count_text, page, safe
from grace_kp.trace.html._document import as_json, document_of, items
from grace_kp.trace.html._head import run_details, run_head, run_summary, run_title
from grace_kp.trace.html._timeline import run_timeline
from grace_kp.trace.html._tree import run_tree
from grace_kp.trace.html._waterfall import run_waterfall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.trace.html._document import HasDocument


MAX_JSON = 2_000_000
"""Characters of the JSON in the file; a note gives the number of those left out."""


def run_page(run: HasDocument | Mapping[str, Any]) -> str:
    """Return a run as a whole page: its figures, its steps, its durations, its tree and its JSON."""
    document = document_of(run)
    steps = len(items(document.get("steps")))
    body = (
        f"{run_head(document)}"
        f"<h2>Steps</h2>{run_timeline(document)}"
        f"<h2>Durations</h2>{run_waterfall(document)}"
        f"<h2>Tree</h2><details{'' if steps > TREE_OPEN else ' open'}><summary>calls and what they led to</summary>{run_tree(document)}</details>"
        f"<h2>JSON</h2>{_json(document)}"
    )
    return page(run_title(document), body)


TREE_OPEN = 60
"""Steps up to which the tree is unfolded."""


def _json(document: Mapping[str, Any]) -> str:
    text = as_json(document, 2)
    left_out = len(text) - MAX_JSON
    more = f'<p class="note small">{left_out:,} more characters are not shown here.</p>' if left_out > 0 else ""
    return (
        f'<details><summary>the document of the run, {len(text):,} characters</summary><pre tabindex="0">{safe(text[:MAX_JSON], lines=True)}</pre>'
        f"{more}</details>"
    )


MAX_PART = 150_000
"""Characters of HTML that the figures may have, and the steps."""
_LIMITS = (100, 40, 12, 4)
"""Steps that are shown; the first number whose HTML is small enough counts."""
_OPEN = 12
"""Steps up to which they are unfolded."""
WHOLE = "`trace.to_html(path)` writes the whole run."


def run_excerpt(run: HasDocument | Mapping[str, Any]) -> str:
    """Return a run for a notebook as HTML of at most 500,000 characters."""
    document = document_of(run)
    count = len(items(document.get("steps")))
    # No headings: a notebook puts those of its outputs into its table of contents.
    details = run_details(document).replace("<h2>", '<p class="name">').replace("</h2>", "</p>")
    return (
        f'<p class="name">{safe(run_title(document))}</p>{_bound_part(run_summary(document), "key figures")}'
        f"<details><summary>confidence, score and facts</summary>{_bound_part(details, 'figures')}</details>"
        f"<details{' open' if count <= _OPEN else ''}><summary>{count_text(count, 'step')}</summary>{steps_excerpt(document)}</details>"
    )


def steps_excerpt(document: Mapping[str, Any], *, whole: str = WHOLE) -> str:
    """Return so many steps of a run that a notebook stays small."""
    count = len(items(document.get("steps")))
    for limit in _LIMITS:
        found = run_timeline(document, limit=limit)
        if len(found) <= MAX_PART:
            return found + (f'<p class="note small">{safe(whole)}</p>' if count > limit else "")
    return f'<p class="note">The steps are too long for a notebook. {safe(whole)}</p>'


def _bound_part(part: str, words: str) -> str:
    if len(part) <= MAX_PART:
        return part
    return f'<p class="note">The {words} are too long for a notebook. {safe(WHOLE)}</p>'
