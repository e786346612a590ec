"""Durations as people write them in settings and arguments: seconds, or a text such as `90s`, `30m`, `4h`, `2d`, `1w`."""

from __future__ import annotations

import math
import re

LONGEST = 366 * 86_400 * 10
"""Seconds in ten years, the longest duration."""
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+", re.ASCII)


def seconds_of(name: str, value: object) -> float:
    """Return a duration in seconds.

    Args:
        name: what the message calls the value.
        value: seconds, or a text of numbers with the units s, m, h, d or w, from the largest to the smallest: `1h30m`.

    Raises:
        ValueError: it is neither, is not above 0, or is longer than ten years.
    """
    seconds = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value) if abs(value) < LONGEST * 2 else math.inf
    elif isinstance(value, str) and _WHOLE.fullmatch(value):
        parts = _PART.findall(value)
        sizes = [_UNITS[unit] for _, unit in parts]
        if sizes == sorted(set(sizes), reverse=True):
            seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 < seconds <= LONGEST:
        raise ValueError(
            f"{name} must be a number of seconds above 0, or a text such as 90s, 30m, 4h or 1h30m, of at most ten years; not {value!r:.60}"
        )
    return seconds
