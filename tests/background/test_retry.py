"""What a Retry-After header asks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from grace_kp.background import retry_after


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0),
        ("7", 7),
        ("0.25", 0.25),
        ("-5", 0),
        ("1e400", 1e9),
        ("nan", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 -0000", 0),
        ("Thu, 99 Jan 1970 00:00:00 GMT", None),
    ],
)
def test_seconds_of_a_header(header, seconds):
    """A number or a date gives seconds that can be added to a clock; anything else gives None."""
    assert seconds == retry_after(header)


def test_a_date_is_seconds_from_now():
    """A date an hour ahead is about an hour."""
    asked = retry_after(format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True))
    assert 3_500 < asked <= 3_600
