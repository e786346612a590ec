"""What a store is: it keeps finished traces as JSON, finds them again, and holds the journal of runs that are still open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        for name in ("domain", "status", "text", "scorer"):
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
        )

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
