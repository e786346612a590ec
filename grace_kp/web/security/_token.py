"""Secrets of logins: the token of a person, the hash that is kept of it, and what forms prove a session with."""

from __future__ import annotations

import hashlib
import hmac
import secrets

PREFIX = "gkp_"
"""Begins every token of a person, so that people and scanners recognise one."""
SECRET_BYTES = 32


def new_token() -> str:
    """Return a new token of a person: the prefix and 256 random bits in base64url."""
    return PREFIX + new_secret()


def new_secret() -> str:
    """Return 256 random bits in base64url, for sessions and one-time codes."""
    return secrets.token_urlsafe(SECRET_BYTES)


def hash_of(secret: str) -> str:
    """Return the SHA-256 of a secret in hexadecimal digits. Secrets have 256 random bits, so that no salt and no slow hash is needed."""
    return hashlib.sha256(_bytes(secret)).hexdigest()


def csrf_of(secret: str, name: str = "") -> str:
    """Return what forms of a session carry: it can be computed from the session's secret, and tells nothing about it."""
    return hmac.new(_bytes(secret), b"grace_kp csrf\0" + _bytes(name), hashlib.sha256).hexdigest()


def is_same(text: str, other: str) -> bool:
    """Return whether two texts are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(_bytes(text), _bytes(other))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
