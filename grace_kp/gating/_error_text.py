"""An error as a text for entries and messages, whatever its own message is."""

from __future__ import annotations

from grace_kp.trace import describe_error

MAX_ERROR = 500
"""Characters of a message that are kept."""


def error_text(error: BaseException) -> str:
    """Return type and message of an error. It survives a message that cannot be read."""
    kind, message = describe_error(error, MAX_ERROR)
    return f"{kind}: {message}" if message else kind
