"""What people learn of an action that goes ahead with a notice: one line in the log and, at a terminal, on standard error.

It is no question and no consent. A notice that cannot be delivered holds nothing up.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from grace_kp.trace import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.gating._request import InterventionRequest

LOGGER = "grace_kp.gate"
MAX_ARGUMENT = 120
MAX_LINE = 1_000


def deliver(request: InterventionRequest) -> str:
    """Log the notice, and print it where standard error is a terminal.

    Returns:
        Where it went: `terminal` or `log`.
    """
    line = notice_line(request.action, request.arguments, request.reason)
    logging.getLogger(LOGGER).info("%s", line)
    stream = sys.stderr
    if stream is None or not stream.isatty():
        return "log"
    stream.write(f"grace-kp: {line}\n")
    stream.flush()
    return "terminal"


def notice_line(action: str, arguments: Mapping[str, Any], reason: str) -> str:
    """Action, arguments and reason in one line, without control characters and secrets; long values are cut, the cut made visible."""
    from grace_kp.trace import cut, redact_text, redact_value, render, to_text

    # What would split a secret in two is removed before secrets are looked for.
    shown = redact_value(_plain(render(dict(arguments))), identifiers=False)
    called = ", ".join(f"{name}={cut(to_text(value), MAX_ARGUMENT)}" for name, value in shown.items())
    why = redact_text(_printable(reason), identifiers=False)
    return cut(_printable(f"{action or 'an action'}({called}) goes ahead with a notice: {why}"), MAX_LINE)


def record_notice(entry: dict[str, Any], request: InterventionRequest, delivered: str | Exception) -> None:
    """Keep in a gate's entry what the notice said and where it went; or why it could not be delivered."""
    text = notice_line(request.action, request.arguments, request.reason)
    if isinstance(delivered, Exception):
        entry["notice"] = {"to": None, "text": text}
        entry["notify_error"] = f"{type(delivered).__name__}: {delivered}"
    else:
        entry["notice"] = {"to": delivered, "text": text}


def _plain(value: Any) -> Any:
    """A rendered value with printable texts only."""
    if isinstance(value, str):
        return _printable(value)
    if isinstance(value, dict):
        return {_printable(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _printable(text: str) -> str:
    return printable(text, replace=lambda character: " " if character.isspace() else "")
