"""What bounds a writer, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterLimits:
    """How much a writer keeps in memory, how long it takes, and what it promises."""

    journal_interval: float = 0.05
    """Seconds between two journals of open runs."""
    max_pending_bytes: int = 256 << 20
    """Memory for runs that have ended and wait for the store."""
    retention_days: float = 0.0
    """How long runs are kept; 0 for ever."""
    exit_seconds: float = 2.0
    """How long the exit of the interpreter waits for judgements, and for a store that cannot write."""
    busy_exit_seconds: float = 10.0
    """How long it waits for a store that another process keeps busy."""
    durability: str = "fast"
    """`fast`, `bounded` or `every_run`: whether a thread that ends a run waits until it is stored never, where the writer lags behind,
    or always."""
    overflow: str = "drop"
    """`drop` or `wait`: what happens to a run that memory has no room for. In an event loop it is dropped either way."""


@dataclass(frozen=True, slots=True)
class WriterStats:
    """Counts of a writer, for monitoring and for `grace-kp doctor`."""

    settled: int
    written: int
    dropped: int
    """Runs that memory had no room for."""
    lost: int
    """Runs that could not be finished, and runs that went with the file that they were stored in."""
    rescued: int
    """Runs that wait beside the store, because it could not be written when the process ended."""
    pending: int
    """Runs that have ended and wait for the store."""
    pending_bytes: int
    errors: int
    last_error: str | None
