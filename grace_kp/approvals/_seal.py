"""Secret arguments on their way to the store and back. A parameter is sealed as a whole, bound to its approval, its digest and its name.

Sealed are the parameters that a gate names, and those in which redaction recognises a secret: by its form, by the name of the parameter or of a key
around it, or because another argument says that it is one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._canonical import SEALED, canonical
from grace_kp.approvals._plain import plain_json, tag_of
from grace_kp.approvals._secret import VARIABLE
from grace_kp.trace import redact_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from grace_kp.approvals._secret import Secret

MIN_LENGTH = 3
"""Characters from which a text with a digit, such as a PIN, is looked for as a word outside of its sealed argument."""
_PART = 6
"""Characters from which any text is looked for, also inside of words."""
_BLOCK = 64
"""Bytes to a multiple of which contents are padded, so that the length of a short secret does not show."""


class SealNeeded(ValueError):
    """An argument must not reach the disk in the clear, and there is no key to seal it with.

    Attributes:
        parameter: the parameter.
    """

    def __init__(self, parameter: str, why: str) -> None:
        self.parameter = parameter
        super().__init__(
            f"the argument {parameter!r} {why}, and there is no key to seal it with; set {VARIABLE} to a key "
            '(`python -c "import secrets; print(secrets.token_urlsafe(32))"`), or keep one in the keyring as `key` of `grace_kp`'
        )


def secret_parameters(encoded: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters in which redaction recognises a secret."""
    shown = {name: plain_json(value) for name, value in encoded.items()}
    cleaned = redact_value(shown, identifiers=False)
    if cleaned is shown:
        return ()
    pairs = zip(shown.items(), cleaned.items(), strict=True)
    return tuple(name for (name, value), (clean_name, clean) in pairs if name != clean_name or value != clean)


def sealed_arguments(
    encoded: Mapping[str, Any], names: Collection[str], secret: Secret | None, *, approval_id: str, digest: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Seal what must not be stored in the clear.

    Args:
        encoded: the encoded arguments.
        names: parameters that the gate seals.
        secret: the key of the installation; None without one.
        approval_id: the approval that the arguments belong to.
        digest: their digest.

    Returns:
        The arguments as they may be stored, in the same order, and the names of those that are sealed.

    Raises:
        SealNeeded: something must be sealed, and there is no key.
    """
    recognised = secret_parameters(encoded)
    sealed = tuple(name for name in encoded if name in names or name in recognised)
    if sealed and secret is None:
        raise SealNeeded(sealed[0], "is to be sealed" if sealed[0] in names else "holds a secret")
    stored = dict(encoded)
    if secret is not None:
        for name in sealed:
            data = canonical(encoded[name])
            padded = data + b" " * (-len(data) % _BLOCK)
            stored[name] = secret.seal(padded, _bound(approval_id, digest, name))
    return stored, sealed


def opened_arguments(
    stored: Mapping[str, Any], secret: Secret | None, *, approval_id: str, digest: str
) -> dict[str, Any]:
    """Return stored arguments with those opened that this installation has the key for. The others stay sealed; `decode` makes `SEALED` of them.

    Raises:
        ValueError: a sealed argument was changed, or belongs to another approval, digest or parameter; the message names it.
    """
    encoded = dict(stored)
    for name, value in stored.items():
        if tag_of(value) != "$sealed" or secret is None or not secret.has_key(value.get("key")):
            continue
        try:
            encoded[name] = json.loads(secret.open(value, _bound(approval_id, digest, name)))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return encoded


def unopened(encoded: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters that are still sealed."""
    return tuple(name for name, value in encoded.items() if tag_of(value) == "$sealed")


def sealed_texts(encoded: Mapping[str, Any], sealed: Collection[str]) -> list[str]:
    """Return the texts and numbers inside of sealed arguments, longest first, so that nothing else repeats them in the clear.

    Short ones without a digit are left out, and names of fields: they may be any word.
    """
    found: set[str] = set()
    stack = [plain_json(encoded[name]) for name in sealed if name in encoded]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += [*(name for name in value if not name.isidentifier()), *value.values()]
        elif isinstance(value, list):
            stack += value
        elif (
            not isinstance(value, bool) and isinstance(value, str | int | float) and _is_told_apart(text := str(value))
        ):
            found.add(text)
    return sorted(found, key=len, reverse=True)


def _is_told_apart(text: str) -> bool:
    return len(text) >= _PART or (len(text) >= MIN_LENGTH and any(map(str.isdigit, text)))


def without_texts(value: Any, texts: Sequence[str]) -> Any:
    """Return a JSON value with `[SEALED]` in place of these texts, also in keys; the same object if there are none."""
    if not texts:
        return value
    if isinstance(value, str):
        for text in texts:
            if text in value:
                whole = re.escape(text) if len(text) >= _PART else rf"(?<!\w){re.escape(text)}(?!\w)"
                value = re.sub(whole, str(SEALED), value)
        return value
    if isinstance(value, dict):
        return {without_texts(name, texts): without_texts(item, texts) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_texts(item, texts) for item in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(SEALED) if is_number and str(value) in texts else value


def _bound(approval_id: str, digest: str, name: str) -> bytes:
    return canonical(["grace_kp approvals 1", approval_id, digest, name])
