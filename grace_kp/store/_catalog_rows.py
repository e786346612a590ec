"""Runs as a list shows them, the pages of such a list, and how much of a store is indexed."""

from __future__ import annotations

import json
from dataclasses import dataclass


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
    labelled: bool = False
    """Whether somebody has stated whether the run was right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A page of a list."""

    rows: tuple[RunRow, ...]
    newer: int | None
    """`after=` for the page of newer runs; None if there are none."""
    older: int | None
    """`before=` for the page of older runs; None if there are none."""
    searched_to: str | None = None
    """How far back (ISO 8601) the search got before its time was up; None if it was complete. `older` then goes on from there, or `newer`
    where the page was asked for with `after`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How much of the store is indexed."""

    done: int
    total: int
    unreadable: int = 0
    """Indexed runs whose document is not the JSON of a trace. They are found by their columns only."""


SHOWN = (
    "created_at", "agent", "domain", "status", "success", "score", "confidence", "level", "objective", "duration_ms", "steps", "gates",
    "tokens", "user", "session", "tags", "parent", "awaits",
)  # fmt: skip
"""The fields that the index keeps in one JSON list, in this order, before what only figures need."""


def row_of(position: int, name: str, facts: str, labelled: int) -> RunRow:
    """Return a row of the index as a run."""
    fields = dict(zip(SHOWN, json.loads(facts), strict=False))
    fields["tags"] = tuple(fields["tags"])
    return RunRow(position=position, id=name, labelled=bool(labelled), **fields)
