"""Figures as plots and tables: runs, decisions, what judges cost, and whether the confidence can be trusted."""

from __future__ import annotations

import math
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.store import CatalogQuery, Group, RunFigures
from grace_kp.testing import make_grace
from grace_kp.web.figures import _trust
from grace_kp.web.figures._sums import (
    MOST_BARS,
    bars_of,
    confidence_plot,
    means_of,
    money_text,
    quantile,
    run_bars,
    spending,
    spending_values,
    wait_plot,
)
from grace_kp.web.figures._trust import (
    Verdict,
    needed_labels,
    reliability_plot,
    risk_plot,
    threshold_values,
    verdict_of,
    watched_promises,
    wrong_at_thresholds,
)
from tests.pages.drawing import cells
from tests.runtime.learned import Learned


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_a_value_that_enough_do_not_exceed(values, share):
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered)
    smaller = [value for value in ordered if value < found]
    assert all(sum(value <= other for value in ordered) < share * len(ordered) for other in smaller[-1:])


def test_waits_are_shown_in_times_that_people_name():
    waits = (0.0, 9.9, 10.0, 3_599.0, 86_400.0, 604_800.0)
    rows = {row[0]: row[1] for row in cells(wait_plot(waits))}
    assert {"0 to 10s": "2", "10s to 1m": "1", "10m to 1h": "1", "1d to 7d": "2"} == {
        name: count for name, count in rows.items() if count != "0"
    }
    rows = [row[1] for row in cells(wait_plot((*waits, 10_000_000.0)))]
    assert (8, "2", 7) == (len(rows), rows[-1], sum(map(int, rows)))


GROUP = Group(name="2026-11-25", runs=4, failed=1, score=1.0, confidence=1.5, with_confidence=3)


def test_means_are_of_the_runs_that_have_a_value():
    assert {"failed": 0.25, "score": 0.25, "confidence": 0.5} == means_of(GROUP)
    assert {"failed": 0.0, "score": 0.0, "confidence": None} == means_of(Group(name="empty"))
    assert [["2026-11-25", "3", "1"]] == cells(run_bars([GROUP]))


@given(st.dates(date(1, 1, 1), date(2_100, 1, 1)), st.integers(0, 3_000))
def test_each_day_is_in_one_bar(first, count):
    """In order, and there are never too many bars for a phone."""
    days = [Group(name=(first + timedelta(days=place)).isoformat(), runs=place) for place in range(count)]
    unit, bars = bars_of(days)
    assert days == [day for _, group in bars for day in group]
    assert len(bars) <= MOST_BARS or unit == "year"
    assert all(str(begin) == group[0].name for begin, group in bars)


@pytest.mark.parametrize(
    ("count", "unit", "second"),
    [
        (30, "day", "2026-01-02"),
        (90, "week", "2026-01-05"),
        (700, "month", "2026-02-01"),
        (3_000, "year", "2027-01-01"),
    ],
)
def test_bars_are_units_of_a_calendar(count, unit, second):
    days = [Group(name=(date(2026, 1, 1) + timedelta(days=place)).isoformat()) for place in range(count)]
    found, bars = bars_of(days)
    assert (unit, ["2026-01-01", second]) == (found, [str(begin) for begin, _ in bars[:2]])


def test_reachable_thresholds_are_drawn_in_the_distribution_of_the_confidence():
    figures = RunFigures(total=GROUP, confidence=(0,) * 14 + (3,) + (0,) * 5)
    plot = confidence_plot(figures, gk.Thresholds(math.inf, 0.7, 0.4))
    assert [True, True, False] == [word in plot for word in ("notify 0.7", "confirm 0.4", "silent")]
    assert ["0.7 to 0.75", "3", "100.0%"] == cells(plot)[14]


MODELS = {"gemini-a": (10, 2_000_000, 1), "gemini-b": (1, 500_000, 0), "local": (5, 9_000_000, 0), "<b>": (3, 100, 0)}
PRICES = {"gemini-*": (0.3, "USD"), "gemini-b": (2.0, "USD"), "local": (0.0, "EUR")}


def test_money_is_tokens_times_price():
    """The most tokens stand first; an exact name comes before a glob, and what has no price has no money."""
    found = [(each.model, each.money) for each in spending(MODELS, PRICES)]
    assert [("local", 0.0), ("gemini-a", 0.6), ("gemini-b", 1.0), ("<b>", None)] == found
    shown = spending_values(MODELS, PRICES)
    assert (["0.00 EUR", "1.60 USD"], ["<b>"]) == (shown["money"], shown["unpriced"])
    assert 2 == shown["spending_table"].count(">no price set<")
    assert "&lt;b&gt;" in shown["spending_table"]
    assert "0.0004 USD" == money_text(0.0004, "USD")  # small amounts do not read as nothing


def verdict(rows, weights=None):
    return Verdict(
        confidence=[row[0] for row in rows],
        correct=[row[1] for row in rows],
        weights=weights or [1.0] * len(rows),
        groups=range(len(rows)),
    )


ROWS = [(0.95, True)] * 9 + [(0.95, False)] + [(0.35, True), (0.35, False)]


def test_reliability_and_risk_are_drawn():
    """With the number of runs, an interval where each label counts once, and the threshold of each point."""
    found = verdict(ROWS)
    low, high = cells(reliability_plot(found, found.assessment))
    assert (["0.35", "0.5"], "2") == (low[:2], low[3])
    assert ["0.95", "0.9", "0.555 to 0.997", "10"] == high[:4]
    weighted = verdict(ROWS, [1.0] * 11 + [20.0])
    assert "95 % interval" not in reliability_plot(weighted, weighted.assessment)
    strict, mild = cells(risk_plot(found.curve(), found.tasks))
    assert (["0.833", "0.1"], "0.95") == (strict[:2], strict[3])
    assert (["1", "0.167"], "0.35") == (mild[:2], mild[3])


def test_thresholds_are_shown_with_their_origin():
    grace = make_grace(threshold_silent="never", threshold_confirm=0.3)
    found = wrong_at_thresholds(grace, verdict(ROWS))
    assert {"notify": "10.0% wrong (0.3% to 44.5%)", "confirm": "16.7% wrong (2.1% to 48.4%)"} == found
    assert [
        ("silent", "never", "keyword threshold_silent", "–"),
        ("notify", "0.7", "default", found["notify"]),
        ("confirm", "0.3", "keyword threshold_confirm", found["confirm"]),
    ] == [tuple(row.values()) for row in threshold_values(grace, found)["thresholds"]]


def test_a_profile_states_its_promise():
    """As calibration does; a formula promises nothing, and what cannot be read is none."""

    def words(promise):
        profile = Learned(thresholds=gk.Thresholds(math.inf, 0.8, 0.5))
        profile.promise = promise
        grace = make_grace(profile=profile)
        assert grace.thresholds
        return threshold_values(grace, {})["promise"]

    stated = {"risks": {"notify": 0.15}, "delta": 0.1, "kind": "selective", "moment": "action", "approximate": True}
    assert cal.Promise(risks={"notify": 0.15}).in_words + " The promise is approximate." == words(stated)
    assert "" == words({"risks": {"notify": 7}})
    assert "" == words(None)
    assert "" == threshold_values(make_grace(), {})["promise"]


def test_promises_are_read_from_the_store(office, caplog):
    """With every level; the log names a state that cannot be read."""
    assert ([], "") == watched_promises(office.grace.store)
    office.grace.store.update_state("monitor:x:y", lambda _: "{}")
    found, problem = watched_promises(office.grace.store)
    assert [] == found
    assert "Watched promises cannot be read: the store cannot be read or written at the moment." == problem
    assert "cannot be read as a monitor" in caplog.text


def test_missing_labels_are_counted():
    assert ("silent at 5 % needs at least 67 labels without an error, and there are 60",) == needed_labels(60)
    assert 3 == len(needed_labels(0))
    assert () == needed_labels(67)


LABELLED = CatalogQuery(feedback=True)


def read_verdict(office, query=LABELLED):
    return verdict_of(office.visit().app.state.site, query)


def test_labels_are_those_of_calibration(office):
    """The same assessment as of the labels of the store with the recorded confidences; approvals are no labels."""
    for number in range(30):
        office.run(confidence=number / 32, success=True, label=number % 3 > 0, objective=f"Refund {number}")
    office.grace.feedback(office.run(), True, source="approval")
    found, labelled = read_verdict(office), cal.labels(office.grace)
    confidences = [trace.outcome.confidence for trace in labelled.traces]
    expected = cal.assess(confidences, labelled.labels, clusters=labelled.groups, weights=labelled.weights)
    assert expected.bins == found.assessment.bins
    assert (expected.auroc, expected.n) == (pytest.approx(found.assessment.auroc), 30)
    assert {"test": 30} == dict(found.sources)
    assert {"label of another source": 1} == dict(found.left_out)
    points = cal.risk_curve(confidences, labelled.labels, groups=labelled.groups)
    assert [point.risk for point in points] == [point.risk for point in found.curve()]


def test_the_newest_labels_are_read(office, monkeypatch):
    monkeypatch.setattr(_trust, "AT_MOST_READ", 5)
    monkeypatch.setattr(_trust, "PAGE", 2)
    for number in range(7):
        office.run(days=7 - number, label=number % 2 == 0, confidence=number / 10)
    found = read_verdict(office)
    assert [0.6, 0.5, 0.4, 0.3, 0.2] == found.confidence
    assert found.is_cut
    monkeypatch.setattr(_trust, "AT_MOST_READ", 7)
    assert not read_verdict(office).is_cut


def test_a_threshold_has_a_share_of_wrong_runs(office):
    assert (None, ()) == (verdict([]).assessment, verdict([]).curve())
    office.run(confidence=0.99, label=0.5)
    found = read_verdict(office)
    assert (0.5, ()) == (found.assessment.accuracy, found.curve())
    for confidence, right in ((0.9, True), (0.8, False), (0.8, True), (0.2, False)):
        office.run(confidence=confidence, label=right)
    found = read_verdict(office)
    risks = [found.curve(threshold, points=2)[-1].risk for threshold in (0.8, 0.85, 0.0)]
    assert pytest.approx([1 / 3, 0.0, 0.5], abs=0.15) == risks
    assert () == found.curve(0.95)
