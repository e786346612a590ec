"""Figures of a period as JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest


def test_the_figures_of_the_last_days(house, ana):
    """Without a period the last 30 days, today included."""
    house.record("refunds")
    house.record("search")
    house.index()
    figures = ana.get("/api/v1/figures").json()
    assert (2, 30) == (figures["total"]["runs"], len(figures["days"]))
    assert {"refunds", "search"} == {each["name"] for each in figures["agents"]}
    assert 1 == ana.get("/api/v1/figures", params={"agent": "refunds"}).json()["total"]["runs"]


def test_a_period(house, ana):
    """Both days are included."""
    house.record("refunds")
    house.index()
    today = datetime.now(UTC).date()
    period = {"since": today - timedelta(2), "until": today}
    assert 3 == len(ana.get("/api/v1/figures", params=period).json()["days"])
    assert (
        0 == ana.get("/api/v1/figures", params={"since": "2001-01-01", "until": "2001-01-02"}).json()["total"]["runs"]
    )


@pytest.mark.parametrize(
    "period",
    [{"since": "2026-01-02", "until": "2026-01-01"}, {"since": "1001-01-01", "until": "2026-01-01"}, {"since": "2h"}],
)
def test_a_period_that_cannot_be_used(ana, period):
    """One that ends before it begins, or is longer than ten years, is refused."""
    refused = ana.get("/api/v1/figures", params=period)
    assert (422, ["since"]) == (refused.status_code, list(refused.json()["fields"]))


def test_the_first_days_of_the_calendar(ana):
    """The default period does not lead before the first day that there is."""
    assert 200 == ana.get("/api/v1/figures", params={"until": "1000-01-01"}).status_code
