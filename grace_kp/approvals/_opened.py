"""Arguments as Python values, from the form that they are kept in; and the texts of sealed ones, which nothing else may repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.approvals._decoding import decode
from grace_kp.approvals._record import contents_at
from grace_kp.approvals._seal import opened_arguments, sealed_texts, unopened, without_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.approvals._record import Record
    from grace_kp.approvals._secret import Secret
    from grace_kp.approvals._tables import Reads


def opened_with(secret: Secret | None) -> Callable[[Mapping[str, Any], str, str], dict[str, Any]]:
    """Return a function that decodes the stored arguments of an approval with an id and a digest.

    A value that needs the declared type of its parameter, such as an instance of a data class, stays encoded. A sealed one that was changed
    stays sealed.
    """

    def opened(stored: Mapping[str, Any], approval_id: str, digest: str) -> dict[str, Any]:
        try:
            encoded = opened_arguments(stored, secret, approval_id=approval_id, digest=digest)
        except ValueError:
            encoded = dict(stored)
        return {name: _decoded(name, item) for name, item in encoded.items()}

    return opened


def without_sealed(reads: Reads, secret: Secret | None, record: Record, value: Any) -> Any:
    """Return a text or JSON value without what stands in sealed arguments, those before an edit included, as far as they can be opened here."""
    return without_texts(value, _texts(reads, secret, record)[0])


def repeats_sealed(reads: Reads, secret: Secret | None, record: Record, value: object) -> bool:
    """Return whether a JSON value repeats what stands in a sealed argument, or cannot be compared because there is no key here."""
    texts, are_all = _texts(reads, secret, record)
    return not are_all or without_texts(value, texts) != value


def _texts(reads: Reads, secret: Secret | None, record: Record) -> tuple[list[str], bool]:
    """Return the texts in sealed arguments, as asked and as edited, and whether all of these could be opened."""
    data = record.data
    texts: set[str] = set()
    are_all = True
    for seq, digest in {data["request"]: data["asked_digest"], data["edit"]: record.row.digest}.items():
        stored = (contents_at(reads, seq) or {}).get("arguments", {})
        sealed = unopened(stored)
        try:
            encoded = opened_arguments(stored, secret, approval_id=record.id, digest=digest) if sealed else {}
        except ValueError:
            are_all = False
            continue
        closed = unopened(encoded)
        are_all = are_all and not closed
        texts.update(sealed_texts(encoded, [name for name in sealed if name not in closed]))
    return sorted(texts, key=len, reverse=True), are_all


def _decoded(name: str, encoded: object) -> object:
    try:
        return decode({name: encoded})[name]
    except ValueError:
        return encoded
