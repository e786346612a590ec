"""Whether the confidence can be trusted: labels, thresholds and promises."""

from __future__ import annotations

import math

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.store import CatalogQuery
from grace_kp.testing import make_grace
from grace_kp.web.figures import _trust
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
    """And with what the labels say about the runs that reach them."""
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
    """For each level that so many are not enough for."""
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
    """Up to a bound, page by page, and the result says so."""
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
    """Of those that reach it; where none does, nothing is known. A fraction is a label but no error."""
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
