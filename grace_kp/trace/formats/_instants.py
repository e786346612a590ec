"""Times of recorded runs, from the many forms in which they are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNKNOWN = "1970-01-01T00:00:00.000Z"
"""The time of a run whose document names none."""

_TIME_FIELDS = (
    "created_at", "createdAt", "created", "started_at", "startedAt", "start_time", "startTime", "timestamp", "create_time",
    "creationTime", "created_time", "started", "date", "datetime", "time",
)  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR_SECONDS = 31_536_000.0  # smaller numbers are durations or counters


def instant_of(value: object) -> str | None:
    """Return the value as ISO 8601 in UTC, to the millisecond; None if it is not an instant.

    Accepted are ISO 8601 texts (UTC without a zone), datetimes, numbers of seconds, milli-, micro- or nanoseconds since the epoch, also
    as text, and objects with one of these under a usual name.
    """
    if isinstance(value, dict):
        return next((found for name in _TIME_FIELDS if (found := _instant(value.get(name))) is not None), None)
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
