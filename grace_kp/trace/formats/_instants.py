"""When a recorded run began, from the many ways in which such times are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNKNOWN = "1970-01-01T00:00:00.000Z"
"""Stands where nothing says when a run began."""

_KEYS = (
    "created_at", "createdAt", "created", "started_at", "startedAt", "start_time", "startTime", "timestamp", "create_time",
    "creationTime", "created_time", "started", "date", "datetime", "time",
)  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR_SECONDS = 31_536_000.0  # smaller numbers are durations and counters, no instants


def instant_of(value: object) -> str | None:
    """ISO 8601 in UTC, to the millisecond; None where the value names no instant.

    Taken are ISO 8601 texts (UTC where they name no zone), datetimes, numbers of seconds, milli-, micro- or nanoseconds since
    the epoch, also as text, and objects that hold one of these under a usual name.
    """
    if isinstance(value, dict):
        return next((found for key in _KEYS if (found := _instant(value.get(key))) is not None), None)
    return _instant(value)


def _instant(value: object) -> str | None:
    if isinstance(value, str):
        text = value.strip()[:64]
        try:
            return _written(datetime.fromisoformat(text)) if not text.isdigit() else _since_epoch(float(text))
        except (ValueError, OverflowError):
            pass
        try:
            return _since_epoch(float(text))
        except (ValueError, OverflowError):
            return None
    if isinstance(value, datetime):
        return _written(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _since_epoch(value)
    return None


def _since_epoch(number: float) -> str | None:
    if not _FIRST_YEAR_SECONDS <= number < 1e20:
        return None
    seconds = float(number)
    while seconds >= 1e11:
        seconds /= 1_000
    return _written(_EPOCH + timedelta(seconds=seconds))


def _written(moment: datetime) -> str | None:
    try:
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
