"""The catalog of a store: an index for pages, kept in a file beside the store by the process that serves them, never by a recorder.

It follows the store: what was recorded, completed or deleted by any process is indexed in the background. Everything in it can be derived from the
store, so it may be deleted at any time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogQuery:
    """Conditions on runs; None or empty means any."""

    agent: str | None = None
    """Name of the agent or run (`trace.name`); without one, its `metadata.agent_id`; else empty."""
    domain: str | None = None
    status: str | None = None
    level: str | None = None
    """Strictest level of the gates of the run: `silent`, `notify`, `confirm`, `escalate`; `none` for runs without a gate."""
    min_score: float | None = None
    max_score: float | None = None
    min_confidence: float | None = None
    max_confidence: float | None = None
    scorer: str | None = None
    scorer_passed: bool | None = None
    tags: Sequence[str] = ()
    user: str | None = None
    session: str | None = None
    since: str | None = None
    until: str | None = None
    """Times as `Query` takes them."""
    text: str | None = None
    """A text that the run contains, whatever its case; any number of characters from 1."""
    feedback: bool | None = None
    roots: bool = False
    """Only runs that are nested in no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run in a list."""

    position: int
    """Its place in the order by time; a cursor for `Catalog.find`."""
    id: str
    created_at: str
    """When it began, ISO 8601 in UTC."""
    agent: str
    domain: str
    status: str
    success: bool
    score: float
    confidence: float | None
    """The effective confidence, 0 to 1; None where none was computed or stated."""
    level: str | None
    objective: str
    """The first 300 characters."""
    duration_ms: float | None
    steps: int
    gates: int
    tokens: int
    user: str | None
    session: str | None
    tags: tuple[str, ...]
    parent: str | None
    awaits: bool
    """Whether a judgement or a score is still to be added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A page of a list."""

    rows: tuple[RunRow, ...]
    newer: int | None
    """`after=` for the page of newer runs; None if there are none."""
    older: int | None
    """`before=` for the page of older runs; None if there are none."""
    searched_to: str | None = None
    """How far back (ISO 8601) the search got before its time was up; None if it was complete. `older` then goes on from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How much of the store is indexed."""

    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Sums over runs of one agent or one day."""

    name: str
    """The agent, or the day as `2026-11-25`."""
    runs: int = 0
    failed: int = 0
    """Runs without success."""
    score: float = 0.0
    """Sum of the value scores."""
    confidence: float = 0.0
    """Sum over the runs that have a confidence."""
    with_confidence: int = 0
    tokens: int = 0
    judge_calls: int = 0
    judge_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """Figures of the runs of a period."""

    total: Group
    agents: tuple[Group, ...] = ()
    """By number of runs, largest first; at most 50, the rest under the name `…`."""
    days: tuple[Group, ...] = ()
    """In order; days without runs are included."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    confidence: tuple[int, ...] = ()
    """Numbers of runs in 20 equal bins of the confidence, from 0 to 1."""
    scores: tuple[int, ...] = ()
    """The same for the value score."""
    levels: Mapping[str, int] = field(default_factory=dict)
    """Number of gate decisions at each level."""
    models: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """By judge model: calls, tokens, fallbacks."""


class Catalog:
    """The index of a store. Several threads may use it."""

    def find(
        self,
        query: CatalogQuery,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        seconds: float = 0.15,
    ) -> RunPage:
        """Return a page of the runs that meet a query, newest first.

        Args:
            query: the conditions.
            before: only runs older than this position.
            after: only runs newer than this position: those that are nearest to it.
            limit: rows of the page.
            seconds: how long to search at most.
        """
        raise NotImplementedError

    def names(self, kind: str, limit: int = 200) -> list[str]:
        """Return the values of `agent`, `domain`, `status`, `tag` or `scorer` that occur, most frequent first."""
        raise NotImplementedError

    def figures(self, since: str, until: str, *, agent: str | None = None) -> RunFigures:
        """Return the figures of the runs that began on these days (`2026-11-01`, both included; UTC)."""
        raise NotImplementedError

    def progress(self) -> Progress:
        """Return how much of the store is indexed."""
        raise NotImplementedError

    def refresh(self, seconds: float | None = None) -> Progress:
        """Index what is new, for at most this long, and return the progress."""
        raise NotImplementedError

    def follow(self) -> None:
        """Keep the index up to date in the background until `close`."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop following, and release files."""
        raise NotImplementedError


def open_catalog(store: Any) -> Catalog:
    """Return the catalog of a store.

    Raises:
        StoreError: the store offers nothing that a catalog can follow.
    """
    raise NotImplementedError
