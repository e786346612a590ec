"""Arguments as Python values, from the form that they are kept in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.approvals._decoding import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def opened_with(secret: Any) -> Callable[[Mapping[str, Any], str, str], dict[str, Any]]:
    """Return a function that decodes the stored arguments of an approval with an id and a digest.

    A value that needs the declared type of its parameter, such as an instance of a data class, stays encoded.
    """

    def opened(stored: Mapping[str, Any], approval_id: str, digest: str) -> dict[str, Any]:
        return {name: _decoded(name, item) for name, item in stored.items()}

    return opened


def _decoded(name: str, encoded: object) -> object:
    try:
        return decode({name: encoded})[name]
    except ValueError:
        return encoded
