"""How much of recorded arguments redaction has removed, so that a record says what it does not show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from grace_kp.trace._redact import redact_value
from grace_kp.trace._render import to_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARK = re.compile(r"\[REDACTED:[^\[\]]*\]")


def redacted_arguments(arguments: Mapping[str, Any], *, identifiers: bool) -> tuple[dict[str, Any], dict[str, int]]:
    """Redact arguments, and count what was removed.

    Args:
        arguments: JSON values by parameter name. A name such as `password` makes its value a secret.
        identifiers: remove e-mail addresses and the like, too.

    Returns:
        The redacted arguments in the same order, and the number of removed characters by name, without those that lost none.
    """
    before = dict(arguments)
    after: dict[str, Any] = redact_value(before, identifiers=identifiers)
    hidden: dict[str, int] = {}
    for (name, value), clean in zip(after.items(), before.values(), strict=True):
        count = removed(clean, value)
        if count:
            hidden[name] = count
    return after, hidden


def removed(before: Any, after: Any) -> int:
    """Number of characters of a JSON value that are not in its redacted form; for structures, of their JSON text."""
    if before is after or before == after:
        return 0
    text, clean = to_text(before), to_text(after)
    return max(len(text) - (len(clean) - _marks(clean) + _marks(text)), 1)


def _marks(text: str) -> int:
    """Number of characters in marks of redaction."""
    return sum(map(len, _MARK.findall(text)))
