"""A run as HTML: its head, its steps as a timeline, its nested runs as a tree, its durations as a waterfall, and all of it in a file.

Everything works on the document of a trace, which another program may have written: no field is taken for granted.
"""

from grace_kp.trace.html._document import document_of, items, mapping, number, share, text
from grace_kp.trace.html._head import agent_name, run_head, run_title
from grace_kp.trace.html._links import Links
from grace_kp.trace.html._scores import label_badge
from grace_kp.trace.html._timeline import run_timeline
from grace_kp.trace.html._tree import run_tree
from grace_kp.trace.html._waterfall import run_waterfall

__all__ = [
    "Links", "agent_name", "document_of", "items", "label_badge", "mapping", "number", "run_head", "run_timeline", "run_title", "run_tree", "run_waterfall",
    "share", "text",
]  # fmt: skip
