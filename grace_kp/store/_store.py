"""What a store is: it keeps finished traces as JSON, finds them again, and holds the journal of runs that are still open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from grace_kp.trace import METADATA, SESSION, TAG, USER, comparable, label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grace_kp.store._deletion import Deleted
    from grace_kp.trace import ReasoningTrace


@dataclass(frozen=True, slots=True)
class Record:
    """A finished trace as a store keeps it: what it is found by, and the whole of it as JSON."""

    id: str
    created_at: str
    domain: str
    score: float
    success: bool
    status: str
    text: str
    data: bytes
    scores: tuple[tuple[str, float | None, bool | None], ...] = ()
    """What scorers said: name, score from 0 to 1 or None, whether that was enough."""
    attributes: tuple[tuple[str, str, str], ...] = ()
    """Tags, user, session, metadata and parent, as (kind, name, value)."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One row of the journal of an open run; row 0 is its header."""

    run_id: str
    seq: int
    data: bytes


@runtime_checkable
class Store(Protocol):
    """Where finished traces go. Safe to use from several threads."""

    def put(self, records: Sequence[Record], *, ended: Sequence[str] = ()) -> None:
        """Keep these traces, replacing those with the same id, and forget the journals of the runs in `ended`."""
        ...

    def journal(self, entries: Sequence[JournalEntry]) -> None:
        """Keep what has come of runs that are still open."""
        ...

    def recover(self) -> list[list[JournalEntry]]:
        """The journals of runs whose process died, each given to one caller only."""
        ...

    def get(self, id: str) -> ReasoningTrace | None:  # noqa: A002
        """The trace of this id; None where there is none."""
        ...

    def query(self, **conditions: Any) -> list[ReasoningTrace]:
        """Traces that meet all conditions, newest first; see `Query`."""
        ...

    def count(self, **conditions: Any) -> int:
        """How many traces meet all conditions."""
        ...

    def iterate(self, **conditions: Any) -> Iterator[ReasoningTrace]:
        """Traces that meet all conditions, oldest first, one at a time."""
        ...

    def delete(
        self,
        *,
        id: str | None = None,  # noqa: A002
        session: str | None = None,
        user: str | None = None,
        older_than: datetime | timedelta | str | None = None,
    ) -> Deleted:
        """Delete the runs that meet every condition, with the runs nested in them, everywhere in the store.

        Args:
            id: one run.
            session: all runs of a session.
            user: all runs of a user.
            older_than: runs that began before: "30d", a timedelta, a datetime or ISO text.

        Returns:
            The number of runs, with what else happened as attributes.

        Raises:
            ValueError: there is no condition, or one cannot be used.
            StoreError: the run named by `id` is still open.
        """
        ...

    def clear(self) -> int:
        """Forget all traces; how many there were."""
        ...

    def close(self) -> None:
        """Give back what the store holds."""
        ...

    def describe(self) -> dict[str, Any]:
        """What kind of store this is, where, and how much is in it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Conditions on traces; None means any.

    Raises:
        ValueError: a condition cannot be used; the message names it.
    """

    domain: str | None = None
    min_score: float | None = None
    max_score: float | None = None
    success: bool | None = None
    status: str | None = None
    since: datetime | str | None = None
    until: datetime | str | None = None
    text: str | None = None
    scorer: str | None = None
    """The name of a scorer or suite that said something of the run; the next three are about what it, or any, said."""
    scorer_passed: bool | None = None
    min_scorer: float | None = None
    max_scorer: float | None = None
    tags: Sequence[str] | str | None = None
    """All of these tags."""
    user: str | None = None
    session: str | None = None
    metadata: Mapping[str, Any] | None = None
    """All of these values under these keys; compared as text, so that 3 and "3" are the same."""
    limit: int | None = 100
    offset: int = 0

    def __post_init__(self) -> None:
        for name in ("min_score", "max_score", "min_scorer", "max_scorer"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value != value):
                raise ValueError(f"{name} must be a number, not {value!r}")
            if value is not None:
                object.__setattr__(self, name, float(max(-1e300, min(1e300, value))))
        for name in ("limit", "offset"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValueError(f"{name} must be a whole number from 0, not {value!r}")
        for name in ("domain", "status", "text", "scorer", "user", "session"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{name} must be a text, not {value!r}")
        if self.scorer is not None:
            object.__setattr__(self, "scorer", scorer_name(self.scorer))
        for name in ("success", "scorer_passed"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool):
                raise ValueError(f"{name} must be true or false, not {value!r}")
        for name in ("since", "until"):
            object.__setattr__(self, name, moment(getattr(self, name), name))
        if isinstance(self.tags, str):
            object.__setattr__(self, "tags", (self.tags,))
        if self.tags is not None and not (
            isinstance(self.tags, list | tuple) and all(isinstance(tag, str) for tag in self.tags)
        ):
            raise ValueError(f"tags must be a list of texts, not {self.tags!r}")
        if self.metadata is not None and not (
            isinstance(self.metadata, dict) and all(isinstance(key, str) for key in self.metadata)
        ):
            raise ValueError(f"metadata must be a dict with texts as keys, not {self.metadata!r}")

    def matches(self, record: Record) -> bool:
        """Whether a record meets all conditions (limit and offset apart)."""
        return (
            (self.domain is None or record.domain == self.domain)
            and (self.min_score is None or record.score >= self.min_score)
            and (self.max_score is None or record.score <= self.max_score)
            and (self.success is None or record.success is self.success)
            and (self.status is None or record.status == self.status)
            and (self.since is None or record.created_at >= str(self.since))
            and (self.until is None or record.created_at <= str(self.until))
            and (self.text is None or self.text.casefold() in record.text.casefold())
            and (not self.asks_for_scores or any(map(self._meets, record.scores)))
            and all(condition in record.attributes for condition in self.attributes)
        )

    @property
    def attributes(self) -> list[tuple[str, str, str]]:
        """The attributes that a trace must have, as (kind, name, value)."""
        wanted = [(TAG, "", label(tag)) for tag in self.tags or ()]
        wanted += [
            (kind, "", label(value))
            for kind, value in ((USER, self.user), (SESSION, self.session))
            if value is not None
        ]
        wanted += [(METADATA, label(key), comparable(value)) for key, value in (self.metadata or {}).items()]
        return wanted

    @property
    def asks_for_scores(self) -> bool:
        """Whether one of the conditions is about what scorers said."""
        return any(value is not None for value in (self.scorer, self.scorer_passed, self.min_scorer, self.max_scorer))

    def _meets(self, told: tuple[str, float | None, bool | None]) -> bool:
        name, score, passed = told
        return (
            (self.scorer is None or name == self.scorer)
            and (self.scorer_passed is None or passed is self.scorer_passed)
            and (self.min_scorer is None or (score is not None and score >= self.min_scorer))
            and (self.max_scorer is None or (score is not None and score <= self.max_scorer))
        )


def scorer_name(name: str) -> str:
    """The name of a scorer as every store can hold it."""
    return name.encode("utf-8", errors="replace").decode("utf-8").replace("\0", " ")


_AGO = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|m|h|d|w)\s*")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def moment(value: datetime | str | None, name: str) -> str | None:
    """A point in time as it stands in traces (UTC, milliseconds, Z): from a datetime, ISO text, or "2h" ago."""
    if value is None:
        return None
    if isinstance(value, str):
        ago = _AGO.fullmatch(value)
        try:
            if ago:
                value = datetime.now(UTC) - timedelta(seconds=float(ago[1]) * _UNITS[ago[2]])
            else:
                value = datetime.fromisoformat(value)
        except (ValueError, OverflowError):
            raise ValueError(f"{name} must be a time like 2026-01-02T03:04:05Z or 2h, not {value!r}") from None
    if not isinstance(value, datetime):
        raise ValueError(f"{name} must be a datetime or a text, not {value!r}")
    value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1_000:03d}Z"
