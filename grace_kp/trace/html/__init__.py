"""A run as HTML: its head, its steps as a timeline, its nested runs as a tree, its durations as a waterfall, and all of it in a file.

Everything works on the document of a trace, which another program may have written: no field is taken for granted.
"""

from grace_kp.trace.html._document import (
    HasDocument,
    Links,
    as_json,
    decisions_by_place,
    document_of,
    items,
    mapping,
    number,
    share,
    text,
)
from grace_kp.trace.html._head import (
    agent_name,
    confidence_of,
    labels_of,
    run_details,
    run_head,
    run_summary,
    run_title,
    strictest,
)
from grace_kp.trace.html._page import run_excerpt, run_page, steps_excerpt
from grace_kp.trace.html._timeline import arguments_of, run_timeline
from grace_kp.trace.html._tree import run_tree
from grace_kp.trace.html._waterfall import run_waterfall

__all__ = [
    "HasDocument", "Links", "agent_name", "arguments_of", "as_json", "confidence_of", "decisions_by_place", "document_of", "items", "labels_of", "mapping", "number",
    "run_details", "run_excerpt", "run_head", "run_page", "run_summary", "run_timeline", "run_title", "run_tree", "run_waterfall", "share", "steps_excerpt", "strictest", "text",
]  # fmt: skip
