"""Secrets that only the name of an argument gives away, removed from the rest of the run's document.

A reviewer's words and the message of an error often repeat an argument. Where that stood under a name such as `password`, its text alone
shows no pattern that redaction could find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.trace import redact_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MIN_LENGTH = 6
"""Characters below which a text is too common to be removed wherever it occurs."""
REMOVED = "[REDACTED:password]"


def named_secrets(decisions: Iterable[dict[str, Any]]) -> list[str]:
    """Return the secret arguments of gated calls, longest first."""
    found: set[str] = set()
    for entry in list(decisions):
        response = entry.get("response")
        modified = response.get("modified") if isinstance(response, dict) else None
        for arguments in (entry.get("arguments"), entry.get("executed_arguments"), modified):
            if isinstance(arguments, dict):
                found.update(_removed(arguments, redact_value(arguments, identifiers=False)))
    return sorted(found, key=len, reverse=True)


def without(value: Any, secrets: list[str]) -> Any:
    """Return a JSON value with these texts removed wherever they occur; the same object where there are none to remove."""
    if not secrets:
        return value
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REMOVED)
        return value
    if isinstance(value, dict):
        return {name: without(item, secrets) for name, item in value.items()}
    return [without(item, secrets) for item in value] if isinstance(value, list) else value


def _removed(before: Any, after: Any) -> Iterator[str]:
    """Yield the texts that redaction has replaced as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for value, clean in zip(before.values(), after.values(), strict=False):
            yield from _removed(value, clean)
    elif isinstance(before, list) and isinstance(after, list):
        for value, clean in zip(before, after, strict=False):
            yield from _removed(value, clean)
    elif isinstance(before, str) and after == REMOVED and before != REMOVED and len(before) >= MIN_LENGTH:
        yield before
