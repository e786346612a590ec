"""What labels say of the confidence that was recorded with their runs."""

from __future__ import annotations

import pytest

from grace_kp import calibrate as cal
from grace_kp.store import CatalogQuery
from grace_kp.web.figures import _labels
from grace_kp.web.figures._labels import verdict_of

LABELLED = CatalogQuery(feedback=True)


def verdict(office, query=LABELLED):
    return verdict_of(office.visit().app.state.site, query)


def test_without_labels_nothing_is_assessed(office):
    """Runs without feedback are not read."""
    office.run()
    found = verdict(office)
    assert ((), None, ()) == (found.samples, found.assessment, tuple(found.curve))
    assert {} == dict(found.left_out)


def test_labels_are_those_of_calibration(office):
    """The same assessment as of the labels of the store with the recorded confidences; approvals are no labels."""
    for number in range(30):
        office.run(confidence=number / 32, success=True, label=number % 3 > 0, objective=f"Refund {number}")
    office.grace.feedback(office.run(), True, source="approval")
    found, labelled = verdict(office), cal.labels(office.grace)
    confidences = [trace.outcome.confidence for trace in labelled.traces]
    expected = cal.assess(confidences, labelled.labels, clusters=labelled.groups, weights=labelled.weights)
    assert expected.bins == found.assessment.bins
    assert (expected.auroc, expected.n) == (pytest.approx(found.assessment.auroc), 30)
    assert {"test": 30} == dict(found.sources)
    assert {"label of another source": 1} == dict(found.left_out)
    points = cal.risk_curve(confidences, labelled.labels, groups=labelled.groups)
    assert [point.risk for point in points] == [point.risk for point in found.curve]


def test_runs_of_one_agent_are_assessed_alone(office):
    """And those of a period."""
    office.run("a", label=True)
    office.run("b", label=False)
    office.run("a", label=False, days=9)
    assert 2 == len(verdict(office, CatalogQuery(agent="a", feedback=True)).samples)
    recent = CatalogQuery(agent="a", feedback=True, since="3d")
    assert 3 == len(verdict(office).samples)
    assert [True] == [sample.correct for sample in verdict(office, recent).samples]


def test_the_newest_labels_are_read(office, monkeypatch):
    """Up to a bound, page by page, and the result says so."""
    monkeypatch.setattr(_labels, "AT_MOST_READ", 5)
    monkeypatch.setattr(_labels, "PAGE", 2)
    for number in range(7):
        office.run(days=7 - number, label=number % 2 == 0, confidence=number / 10)
    found = verdict(office)
    assert [0.6, 0.5, 0.4, 0.3, 0.2] == [sample.confidence for sample in found.samples]
    assert found.is_cut
    monkeypatch.setattr(_labels, "AT_MOST_READ", 7)
    assert not verdict(office).is_cut


def test_a_threshold_has_a_share_of_wrong_runs(office):
    """Of those that reach it; where none does, nothing is known."""
    for confidence, right in ((0.9, True), (0.8, False), (0.8, True), (0.2, False)):
        office.run(confidence=confidence, label=right)
    found = verdict(office)
    assert pytest.approx(1 / 3) == found.above(0.8).risk
    assert 0.0 == found.above(0.85).risk
    assert 0.5 == found.above(0.0).risk
    assert found.above(0.95) is None


def test_a_fraction_is_a_label_but_no_error(office):
    """It counts in the assessment, and no curve is drawn of fractions alone."""
    office.run(label=0.5)
    found = verdict(office)
    assert 0.5 == found.assessment.accuracy
    assert () == tuple(found.curve)
    assert found.above(0.1) is None
