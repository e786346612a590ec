"""Verification of the chain: it locates entries and contents that were changed, removed, inserted or reordered, and rows,
standing approvals and accounts that were changed without an entry.

The chain alone proves nothing against whoever can write the store, because all hashes can be computed anew. A checkpoint that is kept elsewhere
(see `_checkpoint`) does, for the entries up to its number. A notification holds a number and a hash too and serves as a checkpoint.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._account_check import AccountCheck
from grace_kp.approvals._chain import each_link
from grace_kp.approvals._checkpoint import Checkpoint
from grace_kp.approvals._checks import ChainCheck, ContentsCheck, Problems, RowsCheck
from grace_kp.approvals._standing_check import StandingCheck

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.approvals._checks import Problem
    from grace_kp.approvals._tables import Tables

NO_CHECKPOINT = (
    "No checkpoint was compared, so only accidents are found: whoever can write the store can write the whole chain anew. "
    "Keep checkpoints where they cannot be written from here."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a verification has found, and what it could not check."""

    ok: bool
    """Whether no problem was found. Without a checkpoint (`against` is `nothing`) this means that there was no accident, and no more; see `unchecked`."""
    entries: int
    """Number of entries that were read."""
    problems: Sequence[Problem]
    """The first 1,000 problems by number of the entry, those of the whole chain last."""
    problem_count: int
    against: str
    """`checkpoint`, or `nothing`: then only accidents are found."""
    deleted: int
    """Number of entries whose contents retention has deleted."""
    checkpoint: Checkpoint
    """The newest entry that was read: what to keep elsewhere for the next verification."""
    unchecked: Sequence[str]
    """What could not be checked, as sentences."""

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as JSON."""
        return asdict(self)


def verify(tables: Tables, *, at: float, checkpoint: Checkpoint | Sequence[Checkpoint] | None = None) -> Verification:
    """Verify the chain and the rows of a store, which may be written meanwhile.

    Memory: one byte per entry, one page of entries, and a record for each approval that is open at that place of the chain.

    Args:
        tables: the tables of the store.
        at: the time now, for the checkpoint in the result.
        checkpoint: where the chain stood earlier. With several, a change is located between two of them.

    Raises:
        StoreError: the tables cannot be read.
    """
    points = [checkpoint] if isinstance(checkpoint, Checkpoint) else list(checkpoint or ())
    found = Problems()
    chain, contents, rows = (
        ChainCheck(found, tables.identity, points),
        ContentsCheck(found, tables.head()[0]),
        RowsCheck(found, tables),
    )
    standing, accounts = StandingCheck(found, tables), AccountCheck(found, tables)
    for link in each_link(tables):
        entry = chain.add(link)
        if entry is not None:
            contents.add(link, entry)
            rows.add(link.seq, entry)
            standing.add(link, entry)
            accounts.add(link.seq, entry)
        else:
            rows.skip(link.approval)
    chain.end()
    contents.end()
    rows.end()
    standing.end()
    accounts.end()
    newest = Checkpoint(store=tables.identity, seq=chain.seq, hash=chain.hash, at=at)
    return Verification(
        ok=not found.count,
        entries=chain.entries,
        problems=tuple(found.kept),
        problem_count=found.count,
        against="checkpoint" if points else "nothing",
        deleted=contents.deleted,
        checkpoint=newest,
        unchecked=(
            *_beyond(points, chain.seq),
            *contents.unchecked(),
            *rows.unchecked,
            *standing.unchecked,
            *accounts.unchecked,
        ),
    )


def _beyond(points: Sequence[Checkpoint], seq: int) -> list[str]:
    if not points:
        return [NO_CHECKPOINT]
    last = max(point.seq for point in points)
    if seq <= last:
        return []
    return [
        f"Entries {last + 1:,} to {seq:,} came after the newest checkpoint: of them, and of the approvals whose last entry is among them, only accidents are found."
    ]
