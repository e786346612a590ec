"""Runs that were recorded elsewhere, one file per foreign format; today chat messages of OpenAI and its relatives."""

from grace_kp.trace.formats._openai_messages import from_openai_messages
from grace_kp.trace.formats._runs import is_native, read_run, runs_in
from grace_kp.trace.formats._turns import is_message

__all__ = ["from_openai_messages", "is_message", "is_native", "read_run", "runs_in"]
