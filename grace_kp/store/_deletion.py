"""Selections of runs to delete, the report of a deletion, and what a deletion takes out of the ledger, for every store."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from grace_kp.store._query import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REMOVED = "Removed with its run."


class Deleted(int):
    """The number of deleted runs, nested runs included. Its attributes hold the rest of the report."""

    actions: int
    """Number of ledger entries and approvals that lost their contents. They still state that their action ran, so that none runs twice."""
    open: tuple[str, ...]
    """Runs that match and are still open, or have an open approval. They are not deleted; delete them when both have ended."""
    remains: str
    """Why a file of the store may still hold deleted contents, and what to do; empty if none does."""

    def __new__(cls, runs: int, *, actions: int = 0, open: Iterable[str] = (), remains: str = "") -> Self:  # noqa: A002
        """Report `runs` deleted runs."""
        report = super().__new__(cls, runs)
        report.actions, report.open, report.remains = actions, tuple(open), remains
        return report

    @property
    def clean(self) -> bool:
        """Whether no file of the store holds deleted contents any more."""
        return not self.remains

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "deleted": int(self),
            "actions": self.actions,
            "open": list(self.open),
            "clean": self.clean,
            "remains": self.remains,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which runs to delete: those that meet every condition. At least one is needed.

    Raises:
        ValueError: there is no condition, or one cannot be used; the message names it.
    """

    id: str | None = None
    session: str | None = None
    user: str | None = None
    older_than: datetime | timedelta | str | None = None
    query: Query = field(init=False)

    def __post_init__(self) -> None:
        for name in ("id", "session", "user"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise ValueError(f"{name} must be a non-empty text, not {value!r:.60}")
        if all(value is None for value in (self.id, self.session, self.user, self.older_than)):
            raise ValueError(
                "delete needs a condition: id, session, user or older_than; use clear() to delete everything"
            )
        until = _began_before(self.older_than)
        try:
            query = Query(session=self.session, user=self.user, until=until, limit=None)
        except ValueError as error:
            raise ValueError(str(error).replace("until", "older_than", 1)) from None
        object.__setattr__(self, "query", query)

    def matches(self, run_id: str, created_at: str, attributes: Iterable[tuple[str, str, str]]) -> bool:
        """Return whether a run meets every condition."""
        known = set(attributes)
        return (
            self.id in {None, run_id}
            and (self.query.until is None or created_at <= str(self.query.until))
            and all(condition in known for condition in self.query.attributes)
        )


def _began_before(age: datetime | timedelta | str | None) -> datetime | str | None:
    if not isinstance(age, timedelta):
        return age
    try:
        return datetime.now(UTC) - age
    except OverflowError:  # before the first year or after the last
        return "0001-01-01" if age > timedelta(0) else "9999-12-31"


def still_awaited(run: str, approval: str) -> str:
    """Return why a run with an open approval is not deleted."""
    return f"the approval {approval} of the run {run} is still open; decide or withdraw it, then delete the run"


def nested_in(document: dict[str, Any]) -> Iterator[str]:
    """Yield the ids of the nested runs that a trace names."""
    children = (document.get("grace") or {}).get("children")
    for child in children if isinstance(children, list) else ():
        if isinstance(child, str):
            yield child


def decisions_in(document: dict[str, Any]) -> Iterator[str]:
    """Yield the ids of the gate decisions in a trace; none for an imported one, whose actions are in no ledger here."""
    grace = document.get("grace") or {}
    decisions = None if grace.get("imported") else grace.get("decisions")
    for entry in decisions if isinstance(decisions, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            yield entry["id"]


def belongs_to(ledger_key: str, decisions: set[str]) -> bool:
    """Return whether one of these decisions was about an action of the ledger: its id is part of the key, or a digest of it."""
    return hashlib.sha256(ledger_key.encode()).hexdigest()[:16] in decisions or not decisions.isdisjoint(
        ledger_key.split("|")
    )


def forgotten(ledger_key: str) -> str:
    """Return the key of an action whose contents were removed. It can be looked up, and names no conversation."""
    return "sha256:" + hashlib.sha256(ledger_key.encode()).hexdigest()


def without_contents(entry: bytes) -> bytes:
    """Return a ledger entry without the result of the action and without the reason of the decision."""
    try:
        contents = json.loads(entry)
    except ValueError:
        return entry
    if not isinstance(contents, dict):
        return entry
    contents.pop("result", None)
    if isinstance(contents.get("decision"), dict) and "reason" in contents["decision"]:
        contents["decision"] = {**contents["decision"], "reason": REMOVED}
    return json.dumps(contents).encode()
