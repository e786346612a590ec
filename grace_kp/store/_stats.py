"""What the writer says of itself, for monitoring and for `grace-kp doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WriterStats:
    """What became of what was submitted."""

    settled: int
    written: int
    dropped: int
    pending: int
    pending_bytes: int
    errors: int
    last_error: str | None
    helped: int
