"""Secrets and identifiers out of text and out of JSON values, before anything is written or leaves the machine.

Secrets go at every level, identifiers at `aggregated` and `federated`. Every pattern is bounded, so that the time is linear in the
text, and a cheap look decides first whether there is anything to look for at all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.levels import PrivacyLevel
from grace_kp.trace._patterns import (
    IDENTIFIERS,
    MARK,
    SECRETS,
    is_secret_name,
    may_hold_identifier,
    may_hold_secret,
)

if TYPE_CHECKING:
    from grace_kp.trace._patterns import Rule


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without what was removed, and how many of which type that was (types without any are not there)."""

    text: str
    counts: dict[str, int]


def redact(text: str, level: str | PrivacyLevel = PrivacyLevel.AGGREGATED) -> Redaction:
    """Replace secrets, and from `aggregated` on identifiers too, by `[REDACTED:<type>]`.

    Types: connection_string, bearer_token, api_key, password (any secret that is known by the name before it), email, phone,
    ip, filepath (paths below a home folder). What is removed once is not found again: redacting twice changes nothing.

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
    return Redaction(_apply(text, identifiers, counts), dict(counts))


def redact_text(text: str, *, identifiers: bool) -> str:
    """The text without secrets, and without identifiers where asked; the same object where there was nothing."""
    return _apply(text, identifiers, None)


def _apply(text: str, identifiers: bool, counts: Counter[str] | None) -> str:
    # What was removed may have hidden the beginning of the next thing; so once more, until nothing is found.
    while True:
        before = text
        if may_hold_secret(text):
            text = _run(SECRETS, text, counts)
        if identifiers and may_hold_identifier(text):
            text = _run(IDENTIFIERS, text, counts)
        if text is before:
            return text


def _run(rules: tuple[Rule, ...], text: str, counts: Counter[str] | None) -> str:
    for rule in rules:
        if rule.may(text):
            text = rule.sub(text, counts)
    return text


def redact_value(value: Any, *, identifiers: bool) -> Any:
    """A JSON value without secrets; the same object where nothing was found.

    It knows keys: a text under a key such as `password` or `apiKey` is a secret whatever it looks like; numbers stay.
    """
    kind = type(value)
    if kind is str:
        return _apply(value, identifiers, None)
    if kind is not dict and kind is not list:
        return value
    return _walk(value, identifiers)


def _walk(root: Any, identifiers: bool) -> Any:
    """Depth first with a stack of its own, so that depth costs memory and not the interpreter's stack."""
    out: list[Any] = [None]
    # (value, where the result goes, its place there, whether a key above names a secret)
    stack: list[tuple[Any, Any, Any, bool]] = [(root, out, 0, False)]
    changed = False
    while stack:
        value, target, place, secret = stack.pop()
        kind = type(value)
        if kind is str:
            clean = _secret_text(value) if secret else _apply(value, identifiers, None)
            changed = changed or clean is not value
            target[place] = clean
        elif kind is dict:
            made: dict[str, Any] = {}
            target[place] = made
            for key, item in value.items():
                name = _apply(key, identifiers, None) if type(key) is str else key
                changed = changed or name is not key
                number = 1
                while name in made:  # two keys that read the same without what was in them
                    number += 1
                    name = f"{_apply(key, identifiers, None)} ({number})"
                made[name] = None
                stack.append((item, made, name, secret or is_secret_name(name)))
        elif kind is list:
            row: list[Any] = [None] * len(value)
            target[place] = row
            stack.extend((item, row, number, secret) for number, item in enumerate(value))
        else:
            target[place] = value
    return out[0] if changed else root


def _secret_text(value: str) -> str:
    if not value or (value.startswith("[REDACTED:") and value.endswith("]") and value.count("[") == 1):
        return value
    return MARK.format("password")
