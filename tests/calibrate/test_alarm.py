"""What an alarm of the monitor says."""

from __future__ import annotations

from grace_kp import calibrate as cal

FIELDS = {
    "level": "silent",
    "action": "*",
    "risk": 0.05,
    "n": 1_260,
    "errors": 160,
    "rate": 0.127,
    "low": 0.06,
    "high": 0.225,
    "wealth": 108.0,
    "since": "2026-W47",
    "at": "2026-11-22T12:00:00+00:00",
}


def test_an_alarm_reads_as_a_sentence():
    """It names the actions, the level, the counts, the interval and the promise."""
    assert (
        "all actions, silent: 160 of 1,260 labels since 2026-W47 are wrong (12.7%, plausible are 6.0% to 22.5%); "
        "promised was at most 5.0%" == str(cal.Alarm(**FIELDS))
    )
    assert str(cal.Alarm(**{**FIELDS, "action": "refund"})).startswith("action 'refund', silent: ")
