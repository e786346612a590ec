"""Redaction: secrets and identifiers out of texts and JSON values, before anything is written or leaves the machine.

Secrets are removed at every level, identifiers at `aggregated` and `federated`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from grace_kp.levels import PrivacyLevel
from grace_kp.trace._redact_text import clean
from grace_kp.trace._redact_value import redact_value

__all__ = ["Redaction", "redact", "redact_text", "redact_value"]


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text after redaction, and the number of removed places by type (types without any are absent)."""

    text: str
    counts: dict[str, int]


def redact(text: str, level: str | PrivacyLevel = PrivacyLevel.AGGREGATED) -> Redaction:
    """Replace secrets, and from `aggregated` on identifiers too, by `[REDACTED:<type>]`.

    Types of secrets: connection_string, bearer_token, api_key, password (any secret that its name gives away). Types of
    identifiers: email, phone, ip, filepath (below a home folder), card, iban, ssn. The type `unscanned` stands for the rest of a
    text that exceeds the budget. Redacting a redacted text changes nothing.

    Args:
        text: any text.
        level: `private` removes secrets; `aggregated` and `federated` remove identifiers too.

    Raises:
        ValueError: an unknown level.
        TypeError: not a text.
    """
    if not isinstance(text, str):
        raise TypeError(f"redact takes a text, not {type(text).__name__}")
    identifiers = PrivacyLevel(level).hides_identifiers
    counts: Counter[str] = Counter()
    return Redaction(clean(text, identifiers, counts), dict(counts))


def redact_text(text: str, *, identifiers: bool, counts: Counter[str] | None = None) -> str:
    """Return the text without secrets, and without identifiers if asked; the same object where there were none.

    `counts` is increased by what was removed, by type.
    """
    return clean(text, identifiers, counts)
