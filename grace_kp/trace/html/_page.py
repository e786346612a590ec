"""A whole run in one HTML file that can be mailed: no script, no other files, readable on paper and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.pages import page, safe
from grace_kp.trace.html._document import as_json, document_of, items
from grace_kp.trace.html._head import run_head, run_title
from grace_kp.trace.html._timeline import run_timeline
from grace_kp.trace.html._tree import run_tree
from grace_kp.trace.html._waterfall import run_waterfall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.trace.html._document import HasDocument

MAX_JSON = 2_000_000
"""Characters of the JSON in the file; a note gives the number of those left out."""


def run_page(run: HasDocument | Mapping[str, Any]) -> str:
    """Return a run as a whole page: its figures, its steps, its durations, its tree and its JSON.

    Args:
        run: a trace, or its document, which another program may have written.
    """
    document = document_of(run)
    steps = len(items(document.get("steps")))
    body = (
        f"{run_head(document)}"
        f"<h2>Steps</h2>{run_timeline(document)}"
        f"<h2>Durations</h2>{run_waterfall(document)}"
        f"<h2>Tree</h2><details{'' if steps > _OPEN else ' open'}><summary>calls and what they led to</summary>{run_tree(document)}</details>"
        f"<h2>JSON</h2>{_json(document)}"
    )
    return page(run_title(document), body)


_OPEN = 60
"""Steps up to which the tree is unfolded."""


def _json(document: Mapping[str, Any]) -> str:
    text = as_json(document, 2)
    left_out = len(text) - MAX_JSON
    more = f'<p class="note small">{left_out:,} more characters are not shown here.</p>' if left_out > 0 else ""
    return (
        f'<details><summary>the document of the run, {len(text):,} characters</summary><pre tabindex="0">{safe(text[:MAX_JSON], lines=True)}</pre>'
        f"{more}</details>"
    )
