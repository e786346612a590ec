"""A run as HTML: its head, its steps as a timeline, its nested runs as a tree, its durations as a waterfall, and all of it in a file.

Everything works on the document of a trace, which another program may have written: no field is taken for granted.
"""

from grace_kp.trace._rules import number_of as number
from grace_kp.trace.html._document import (
    Links,
    as_json,
    confidence_of,
    decisions_by_place,
    document_of,
    items,
    labels_of,
    mapping,
    run_details,
    run_head,
    run_summary,
    run_title,
    share,
    text,
)
from grace_kp.trace.html._views import (
    arguments_line,
    run_excerpt,
    run_page,
    run_timeline,
    run_tree,
    run_waterfall,
    steps_excerpt,
)

__all__ = [
    "Links", "arguments_line", "as_json", "confidence_of", "decisions_by_place", "document_of", "items", "labels_of", "mapping", "number",
    "run_details", "run_excerpt", "run_head", "run_page", "run_summary", "run_timeline", "run_title", "run_tree", "run_waterfall", "share", "steps_excerpt", "text",
]  # fmt: skip
