"""Checkpoints of the chain: number and hash of its newest entry, kept where whoever can write the store cannot.

A file of checkpoints holds one JSON object per line, with the fields of `Checkpoint` and optionally `mac`, the code that a secret
of the owner's makes of the others. Each new one is appended, because a series of them locates a change more closely.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from grace_kp.approvals._chain import entry_bytes
from grace_kp.errors import ApprovalError, brief

if TYPE_CHECKING:
    from grace_kp.approvals._tables import Tables


class Authenticator(Protocol):
    """What authenticates a checkpoint: the secret that also seals arguments."""

    def mac(self, data: bytes) -> str:
        """Return the message authentication code of `data`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where a chain stood."""

    store: str
    """Id of the store."""
    seq: int
    """Number of the newest entry; 0 before the first."""
    hash: str
    """Hash of that entry; empty before the first."""
    at: float
    """When the checkpoint was taken, in seconds since the epoch."""

    def to_dict(self, secret: Authenticator | None = None) -> dict[str, Any]:
        """Return the checkpoint as JSON, with a code of the secret if there is one."""
        fields = asdict(self)
        return fields if secret is None else {**fields, "mac": secret.mac(entry_bytes(fields))}

    @classmethod
    def from_dict(cls, data: object, secret: Authenticator | None = None) -> Checkpoint:
        """Return a checkpoint from its JSON.

        Raises:
            ApprovalError: a field is missing or wrong, or the secret did not authenticate it.
        """
        fields = dict(data) if isinstance(data, dict) else {}
        code = fields.pop("mac", None)
        kinds = {name: type(value) for name, value in fields.items()}
        at = fields.get("at")
        if kinds not in ({**_KINDS, "at": int}, _KINDS) or fields["seq"] < 0 or not isinstance(at, int | float):
            raise ApprovalError(f"a checkpoint must be a JSON object with {', '.join(_KINDS)}, not {brief(data)}")
        found = cls(**fields)
        if secret is not None and not hmac.compare_digest(str(code).encode(), found.to_dict(secret)["mac"].encode()):
            problem = "has no code of a secret" if code is None else "was changed, or has the code of another secret"
            raise ApprovalError(
                f"the checkpoint of entry {found.seq} {problem}: use the file and the secret that it was written with"
            )
        return found


_KINDS = {"store": str, "seq": int, "hash": str, "at": float}


def checkpoint(tables: Tables, *, at: float) -> Checkpoint:
    """Return a checkpoint of the newest entry, unverified; `Verification.checkpoint` is one of the newest that was verified."""
    seq, digest = tables.head()
    return Checkpoint(store=tables.identity, seq=seq, hash=digest, at=at)


def write_checkpoint(path: str | Path, point: Checkpoint, *, secret: Authenticator | None = None) -> None:
    """Append a checkpoint to a file, which is created if it does not exist.

    Raises:
        OSError: the file cannot be written.
    """
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(point.to_dict(secret)) + "\n")


def read_checkpoints(path: str | Path, *, secret: Authenticator | None = None) -> list[Checkpoint]:
    """Return the checkpoints of a file.

    Args:
        path: the file.
        secret: what each must be authenticated by; None does not check it.

    Raises:
        OSError: the file cannot be read.
        ApprovalError: a line is no checkpoint, there is none, or the secret did not authenticate it. The message names the line.
    """
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    found = parse_checkpoints(text, secret=secret, place=str(path))
    if not found:
        raise ApprovalError(
            f"{path}: it holds no checkpoint; `grace-kp approvals verify --write-checkpoint` writes one"
        )
    return found


def parse_checkpoints(text: str, *, secret: Authenticator | None = None, place: str) -> list[Checkpoint]:
    """Return the checkpoints of a text, one per line; none for an empty one.

    Args:
        text: JSON lines.
        secret: what each must be authenticated by; None does not check it.
        place: where the text comes from, for messages.

    Raises:
        ApprovalError: a line is no checkpoint, or the secret did not authenticate it. The message names the line.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found.append(Checkpoint.from_dict(json.loads(line), secret))
        except (ValueError, RecursionError):
            raise ApprovalError(f"{place}, line {number}: it is no JSON: {brief(line)}") from None
        except ApprovalError as error:
            raise ApprovalError(f"{place}, line {number}: {error}") from None
    return found
