"""Foreign formats, one file each: runs that were recorded by something else, read as traces."""

from grace_kp.trace.formats._openai_messages import from_openai_messages, read_run

__all__ = ["from_openai_messages", "read_run"]
