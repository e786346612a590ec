"""Notices of actions that go ahead: a line in the log and, at a terminal, on standard error.

A notice is no question and no consent. An action does not wait for its notice, nor fail with it.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from grace_kp.pages import printable
from grace_kp.trace import cut, redact_text, redact_value, render, to_text

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


def notice_line(action: str, arguments: Mapping[str, object], reason: str) -> str:
    """Return action, arguments and reason on one line, without control characters and secrets; long values are visibly cut."""
    # What would split a secret in two is removed before secrets are looked for.
    shown = redact_value(_printable(render(dict(arguments))), identifiers=False)
    called = ", ".join(f"{name}={cut(to_text(value), MAX_ARGUMENT)}" for name, value in shown.items())
    why = redact_text(_printable(reason), identifiers=False)
    return cut(_printable(f"{action or 'an action'}({called}) goes ahead with a notice: {why}"), MAX_LINE)


def record_notice(entry: dict[str, Any], request: InterventionRequest, delivered: str | Exception) -> None:
    """Add to a gate's entry the text of the notice and where it went, or why it could not be delivered."""
    failed = isinstance(delivered, Exception)
    text = notice_line(request.action, request.arguments, request.reason)
    entry["notice"] = {"to": None if failed else delivered, "text": text}
    if failed:
        entry["notify_error"] = f"{type(delivered).__name__}: {delivered}"


def _printable(value: Any) -> Any:
    """A text or rendered value without control characters."""
    if isinstance(value, str):
        return printable(value, replace=lambda character: " " if character.isspace() else "")
    if isinstance(value, dict):
        return {_printable(name): _printable(item) for name, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list) else value
