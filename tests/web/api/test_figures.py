"""Figures of a period as JSON."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from grace_kp.approvals import approval_figures
from grace_kp.errors import StoreError
from grace_kp.web.api import _figures
from grace_kp.web.figures import _approvals


def test_the_figures_of_the_last_days(house, ana):
    """Without a period the last 30 days, today included."""
    house.record("refunds")
    house.record("search")
    house.index()
    figures = ana.get("/api/v1/figures").json()
    assert (2, 30) == (figures["runs"]["total"]["runs"], len(figures["runs"]["days"]))
    assert {"refunds", "search"} == {each["name"] for each in figures["runs"]["agents"]}
    assert {"silent": 0.9, "notify": 0.7, "confirm": 0.4} == figures["thresholds"]
    assert [] == figures["spending"]
    one = ana.get("/api/v1/figures", params={"agent": "refunds"}).json()
    assert ("refunds", 1) == (one["agent"], one["runs"]["total"]["runs"])


def test_a_period(house, ana):
    """Both days are included."""
    house.record("refunds")
    house.index()
    today = datetime.now(UTC).date()
    period = {"since": today - timedelta(2), "until": today}
    figures = ana.get("/api/v1/figures", params=period).json()
    assert (3, str(today)) == (len(figures["runs"]["days"]), figures["until"])
    past = ana.get("/api/v1/figures", params={"since": "2020-01-01", "until": "2020-01-02"}).json()
    assert 0 == past["runs"]["total"]["runs"]


def test_decisions_are_counted(house, ana):
    """By their state, with what still waits."""
    ana.post(f"/api/v1/approvals/{house.request().id}/reject", json={})
    house.request(arguments={"invoice": "R-2", "euros": 1})
    approvals = ana.get("/api/v1/figures").json()["approvals"]
    assert (1, {"rejected": 1}, 1) == (approvals["pending"], approvals["outcomes"], len(approvals["waits"]))


def test_decisions_are_read_once_a_minute(house, ana, monkeypatch):
    """For all who ask; what waits is counted anew."""
    read = []

    def figures(*query):
        read.append(query)
        return approval_figures(*query)

    monkeypatch.setattr(_approvals, "approval_figures", figures)
    assert 0 == ana.get("/api/v1/figures").json()["approvals"]["pending"]
    house.request()
    assert 1 == ana.get("/api/v1/figures").json()["approvals"]["pending"]
    assert 200 == ana.get("/figures").status_code
    assert 1 == len(read)


@pytest.mark.parametrize(("message", "words"), [("", "being computed"), ("locked: /secret/place.db", "cannot be read")])
def test_figures_that_are_not_there_yet(ana, monkeypatch, message, words):
    """The program asks again."""
    go = threading.Event()

    def figures(*_):
        if message:
            raise StoreError(message)
        go.wait(60)

    monkeypatch.setattr(_approvals, "approval_figures", figures)
    monkeypatch.setattr(_figures, "PATIENCE", 60 if message else 0)
    answer = ana.get("/api/v1/figures")
    go.set()
    assert (503, "unavailable") == (answer.status_code, answer.json()["code"])
    assert words in answer.json()["message"]


@pytest.mark.parametrize(
    ("period", "field"),
    [
        ({"since": "2026-01-02", "until": "2026-01-01"}, "since"),
        ({"since": "1001-01-01"}, "since"),
        ({"until": "2999-01-01"}, "until"),
        ({"since": "2h"}, "since"),
    ],
)
def test_a_period_that_cannot_be_used(ana, period, field):
    """One that ends before it begins or after today, or is longer than twenty years, is refused, with the field."""
    refused = ana.get("/api/v1/figures", params=period)
    assert (422, "invalid", [field]) == (refused.status_code, refused.json()["code"], list(refused.json()["fields"]))
    assert refused.json()["message"].replace("'", "").startswith(f"{field} must")


def test_a_preset_belongs_to_the_page(ana):
    """The API takes days."""
    assert 422 == ana.get("/api/v1/figures", params={"days": "30"}).status_code
