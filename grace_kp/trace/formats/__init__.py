"""Runs that were recorded elsewhere: chat messages of OpenAI and related dialects."""

from grace_kp.trace.formats._messages import is_message
from grace_kp.trace.formats._openai_messages import from_openai_messages
from grace_kp.trace.formats._runs import is_native, read_run, runs_in, span_format, success_field, verdict

__all__ = ["from_openai_messages", "is_message", "is_native", "read_run", "runs_in", "span_format", "success_field", "verdict"]  # fmt: skip
