"""The key of an installation: it seals arguments and turns digests into HMACs (extra `approvals`).

It comes from `GRACE_KP_KEY` or the keyring, and is 32 random bytes. Two keys are derived from it, so that neither use helps to attack the other. Earlier
keys may follow the current one, separated by commas: they only open and verify.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
from typing import TYPE_CHECKING, Any

from grace_kp.errors import MissingExtra, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        """Return the key of this installation; None where there is none.

        Args:
            value: the key; None looks into `GRACE_KP_KEY`, then into the keyring (service `grace_kp`, name `key`).
            environ: replaces `os.environ`.

        Raises:
            SettingsError: a key is set and cannot be used, or the keyring cannot be read.
            MissingExtra: a key is set, and `cryptography` is not installed.
        """
        if value is not None:
            return cls(value)
        if text := (os.environ if environ is None else environ).get(VARIABLE):
            return cls(text, place=VARIABLE)
        kept = _from_keyring()
        return None if kept is None else cls(kept, place="the key in the keyring")

    def seal(self, data: bytes, bound: bytes) -> dict[str, str]:
        """Encrypt data by AES-256-GCM.

        Args:
            data: what to seal.
            bound: what it belongs to; `open` needs the same.
        """
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + self._keys[self.key_id].cipher.encrypt(nonce, data, bound)
        return {"$sealed": base64.b64encode(sealed).decode(), "key": self.key_id}

    def open(self, sealed: Mapping[str, Any], bound: bytes) -> bytes:
        """Return what was sealed.

        Raises:
            ValueError: the data was changed, belongs elsewhere, or was sealed with a key that is not here.
        """
        from cryptography.exceptions import InvalidTag

        key = self._key(sealed.get("key"))
        try:
            data = base64.b64decode(sealed["$sealed"], validate=True)
            return bytes(key.cipher.decrypt(data[:_NONCE], data[_NONCE:], bound))
        except (InvalidTag, KeyError, TypeError, ValueError):
            raise ValueError("sealed data was changed, or belongs to another request or parameter") from None

    def mac(self, data: bytes, *, key_id: str | None = None) -> str:
        """Return the HMAC-SHA256 of data in hexadecimal.

        Args:
            data: what to authenticate.
            key_id: an earlier key; None for the current one.

        Raises:
            ValueError: there is no such key here.
        """
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
        key = (
            bytes.fromhex(text)
            if len(text) == 2 * _BYTES
            else base64.b64decode(
                text.rstrip("=") + "=", altchars=b"-_" if {"-", "_"} & set(text) else None, validate=True
            )
        )
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
