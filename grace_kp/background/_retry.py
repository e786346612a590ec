"""When a remote service wants to be asked again."""

from __future__ import annotations

import math
import time

LONGEST_SECONDS = 1e9
"""Stands for any longer time, so that it can be added to a clock."""


def retry_after(header: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for, as a number or as a date; None where it holds neither."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        from datetime import UTC
        from email.utils import parsedate_to_datetime

        try:
            moment = parsedate_to_datetime(header)
            seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return None if math.isnan(seconds) else min(LONGEST_SECONDS, max(0.0, seconds))
