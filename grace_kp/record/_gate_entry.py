"""A gate's entry as it is stored: redacted, with the number of characters that it does not show."""

from __future__ import annotations

from typing import Any

from grace_kp.trace._hidden import redacted_arguments
from grace_kp.trace._redact import redact_value
from grace_kp.trace._render import render

# Fields that hold arguments, rendered already, with the field that counts what they do not show.
_ARGUMENTS = {"arguments": "hidden", "executed_arguments": "executed_hidden", "modified": "hidden"}


def stored_entry(entry: dict[str, Any], *, identifiers: bool) -> dict[str, Any]:
    """Return the entry as a JSON value without secrets.

    `hidden` has the number of characters that a cut or redaction has removed from `arguments`, by name; `response["hidden"]` the same for
    arguments that a reviewer replaced. `digest` is that of the real arguments.
    """
    out: dict[str, Any] = {}
    fields = list(entry.items())  # in one step: the action may be running, and its entry filled in
    for name, value in fields:
        if name in _ARGUMENTS and isinstance(value, dict):
            out[name], removed = redacted_arguments(value, identifiers=identifiers)
            counts = {**entry.get(_ARGUMENTS[name], {})}
            for argument, count in removed.items():
                counts[argument] = counts.get(argument, 0) + count
            if counts:
                out[_ARGUMENTS[name]] = counts
        elif name == "response" and isinstance(value, dict):
            out[name] = stored_entry(value, identifiers=identifiers)
        elif name not in _ARGUMENTS.values():
            out[name] = redact_value(render(value), identifiers=identifiers)
    return out
