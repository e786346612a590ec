"""Secret arguments on their way to the store and back. A parameter is sealed as a whole, bound to its approval, its digest and its name.

Sealed are the parameters that a gate names, and those in which redaction recognises a secret: by its form, by the name of the parameter or of a key
around it, or because another argument says that it is one.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import math
import os
import re
import secrets
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import SEALED, canonical, plain_json, tag_of
from grace_kp.errors import ApprovalError, MissingExtra, SettingsError
from grace_kp.trace import redact_text, redact_value, storable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


VARIABLE = "GRACE_KP_KEY"
SERVICE, ENTRY = "grace_kp", "key"
_BYTES, _NONCE = 32, 12
_FEATURE = "Sealing arguments"


def new_key() -> str:
    """Return a new key for `GRACE_KP_KEY` or the keyring: 32 random bytes in base64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(_BYTES)).decode()


class Secret:
    """A key with the earlier ones. It prints without their contents.

    Raises:
        SettingsError: a text is no key.
        MissingExtra: `cryptography` is not installed.
    """

    __slots__ = ("_keys", "key_id")

    def __init__(self, text: str, *, place: str = "the key") -> None:
        parts = [part.strip() for part in text.split(",")]
        keys = [_Derived(_key_bytes(part, place)) for part in parts]
        self._keys = {key.id: key for key in reversed(keys)}
        self.key_id = keys[0].id
        """Names the current key. The key cannot be computed from it."""

    def __repr__(self) -> str:
        return f"<Secret {self.key_id}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Secret is not pickled or copied; load it where it is needed")

    @classmethod
    def load(cls, value: str | None = None, *, environ: Mapping[str, str] | None = None) -> Secret | None:
        """Return the key of this installation; None where there is none."""
        if value is not None:
            return cls(value)
        if text := (os.environ if environ is None else environ).get(VARIABLE):
            return cls(text, place=VARIABLE)
        kept = _from_keyring()
        return None if kept is None else cls(kept, place="the key in the keyring")

    def seal(self, data: bytes, bound: bytes) -> dict[str, str]:
        """Encrypt data by AES-256-GCM."""
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + self._keys[self.key_id].cipher.encrypt(nonce, data, bound)
        return {"$sealed": base64.b64encode(sealed).decode(), "key": self.key_id}

    def open(self, sealed: Mapping[str, Any], bound: bytes) -> bytes:
        """Return what was sealed."""
        from cryptography.exceptions import InvalidTag

        key = self._key(sealed.get("key"))
        try:
            data = base64.b64decode(sealed["$sealed"], validate=True)
            return bytes(key.cipher.decrypt(data[:_NONCE], data[_NONCE:], bound))
        except (InvalidTag, KeyError, TypeError, ValueError):
            raise ValueError("sealed data was changed, or belongs to another request or parameter") from None

    def mac(self, data: bytes, *, key_id: str | None = None) -> str:
        """Return the HMAC-SHA256 of data in hexadecimal."""
        return hmac.digest(self._key(key_id or self.key_id).mac, data, "sha256").hex()

    def has_key(self, key_id: object) -> bool:
        """Return whether the key with this id is among those loaded."""
        return key_id in self._keys

    def _key(self, key_id: object) -> _Derived:
        key = self._keys.get(key_id) if isinstance(key_id, str) else None
        if key is None:
            known = ", ".join(self._keys)
            raise ValueError(
                f"this needs the key {key_id!r:.40}, and the keys here are {known}; add it to {VARIABLE} after the current one, separated by a comma"
            )
        return key


class _Derived:
    """What is derived from one key."""

    __slots__ = ("cipher", "id", "mac")

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise MissingExtra(_FEATURE, "approvals") from None
        self.cipher = AESGCM(_derived(key, b"seal", 32))
        self.mac = _derived(key, b"mac", 32)
        self.id = _derived(key, b"id", 8).hex()


def _derived(key: bytes, purpose: bytes, length: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), length, salt=None, info=b"grace_kp approvals 1 " + purpose).derive(key)


def _key_bytes(text: str, place: str) -> bytes:
    try:
        if len(text) == 2 * _BYTES:
            key = bytes.fromhex(text)
        else:
            altchars = b"-_" if {"-", "_"} & set(text) else None
            key = base64.b64decode(text.rstrip("=") + "=", altchars=altchars, validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != _BYTES:
        # The text itself is not shown: it may be nearly the key.
        raise SettingsError(
            f"{place} must be {_BYTES} random bytes in base64 or hexadecimal, and this text of {len(text)} characters is not; make one with "
            '`python -c "import secrets; print(secrets.token_urlsafe(32))"`'
        )
    if len(set(key)) < 8:
        raise SettingsError(f"{place} must be random; only {len(set(key))} of its {_BYTES} bytes differ")
    return key


def _from_keyring() -> str | None:
    try:
        import keyring
        from keyring.errors import KeyringError, NoKeyringError
    except ImportError:
        return None
    try:
        return keyring.get_password(SERVICE, ENTRY)
    except NoKeyringError:
        return None
    except KeyringError as error:
        raise SettingsError(
            f"the keyring cannot be read ({type(error).__name__}: {error}); unlock it, set {VARIABLE}, or switch it off with "
            "PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring"
        ) from error


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
    """Seal what must not be stored in the clear."""
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
    """Return stored arguments with those opened that this installation has the key for. The others stay sealed; `decode` makes `SEALED` of them."""
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
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            text = str(value)
            if len(text) >= _PART or (len(text) >= MIN_LENGTH and any(map(str.isdigit, text))):
                found.add(text)
    return sorted(found, key=len, reverse=True)


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


MAX_NOTE = 10_000
"""Characters that a note may have."""
MAX_RESULT = 100_000
"""Bytes that a recorded result may have as JSON."""
_MAX_DEPTH = 100


def clean_note(text: object, approval_id: str, *, what: str = "note") -> str:
    """Return a note without secrets."""
    if not isinstance(text, str):
        raise ApprovalError(f"the {what} must be a text, not {type(text).__name__}", approval_id=approval_id)
    if len(text) > MAX_NOTE:
        raise ApprovalError(
            f"the {what} has {len(text):,} characters, and at most {MAX_NOTE:,} are kept; shorten it",
            approval_id=approval_id,
        )
    return redact_text(storable(text), identifiers=False)


def clean_json(value: object, sealed: Sequence[str] = ()) -> Any:
    """Return JSON without secrets. Values that JSON cannot hold become strings."""
    plain = json.loads(json.dumps(value, default=str, skipkeys=True), parse_constant=str)
    # Before redaction, which may change a part of such a text, so that the rest would be found no more.
    return redact_value(without_texts(plain, sealed), identifiers=False)


def kept_result(value: object) -> bool:
    """Return whether a result can be recorded and returned later: JSON, at most `MAX_RESULT` bytes, without recognised secrets."""
    if not _is_json(value, 0):
        return False
    try:
        size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):  # an integer with too many digits
        return False
    return size <= MAX_RESULT and bool(redact_value(value, identifiers=False) == value)


def _is_json(value: Any, depth: int) -> bool:
    kind = type(value)  # an instance of a subclass would come back as another type
    if value is None or kind in {bool, str, int}:
        return True
    if kind is float:
        return math.isfinite(value)
    if depth > _MAX_DEPTH:
        return False
    if kind is list:
        return all(_is_json(item, depth + 1) for item in value)
    return kind is dict and all(type(key) is str and _is_json(item, depth + 1) for key, item in value.items())
