"""A run as HTML: its head, its steps as a timeline, its nested runs as a tree, its durations as a waterfall, and all of it in a file.

Everything works on the document of a trace, which another program may have written: no field is taken for granted.
"""

from grace_kp.trace.html._timeline import run_timeline

__all__ = ["run_timeline"]
