"""A run for a cell of a notebook: its figures and so many of its steps that the notebook stays small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.pages import count_text, safe
from grace_kp.trace.html._document import document_of, items
from grace_kp.trace.html._head import run_details, run_summary, run_title
from grace_kp.trace.html._timeline import run_timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.trace.html._document import HasDocument

MAX_PART = 150_000
"""Characters of HTML that the figures may have, and the steps."""
_LIMITS = (100, 40, 12, 4)
"""Steps that are shown; the first number whose HTML is small enough counts."""
_OPEN = 12
"""Steps up to which they are unfolded."""
WHOLE = "`trace.to_html(path)` writes the whole run."


def run_excerpt(run: HasDocument | Mapping[str, Any]) -> str:
    """Return a run for a notebook as HTML of at most 500,000 characters.

    Args:
        run: a trace, or its document, which another program may have written.
    """
    document = document_of(run)
    count = len(items(document.get("steps")))
    # No headings: a notebook puts those of its outputs into its table of contents.
    details = run_details(document).replace("<h2>", '<p class="name">').replace("</h2>", "</p>")
    return (
        f'<p class="name">{safe(run_title(document))}</p>{_bounded(run_summary(document), "key figures")}'
        f"<details><summary>confidence, score and facts</summary>{_bounded(details, 'figures')}</details>"
        f"<details{' open' if count <= _OPEN else ''}><summary>{count_text(count, 'step')}</summary>{steps_excerpt(document)}</details>"
    )


def steps_excerpt(document: Mapping[str, Any], *, whole: str = WHOLE) -> str:
    """Return so many steps of a run that a notebook stays small.

    Args:
        document: the document of a trace, which another program may have written.
        whole: a sentence that says where all steps are.
    """
    count = len(items(document.get("steps")))
    for limit in _LIMITS:
        found = run_timeline(document, limit=limit)
        if len(found) <= MAX_PART:
            return found + (f'<p class="note small">{safe(whole)}</p>' if count > limit else "")
    return f'<p class="note">The steps are too long for a notebook. {safe(whole)}</p>'


def _bounded(part: str, words: str) -> str:
    if len(part) <= MAX_PART:
        return part
    return f'<p class="note">The {words} are too long for a notebook. {safe(WHOLE)}</p>'
