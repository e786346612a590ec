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
    Sample,
    Verdict,
    needed_labels,
    promise_words,
    reliability_plot,
    risk_plot,
    sources_words,
    threshold_rows,
    verdict_of,
    watched_promises,
    wealth_words,
    wrong_at_thresholds,
)
from tests.pages.drawing import cells
from tests.runtime.learned import Learned


def verdict(rows, weights=None):
    samples = tuple(
        Sample(confidence=confidence, correct=correct, weight=weight, group=str(number))
        for number, ((confidence, correct), weight) in enumerate(zip(rows, weights or [1.0] * len(rows), strict=True))
    )
    columns = [row[0] for row in rows], [row[1] for row in rows]
    return Verdict(samples=samples, assessment=cal.assess(*columns), curve=cal.risk_curve(*columns))


ROWS = [(0.95, True)] * 9 + [(0.95, False)] + [(0.35, True), (0.35, False)]


def test_reliability_is_drawn_bin_by_bin():
    """With the number of runs, and an interval where each label counts once."""
    low, high = cells(reliability_plot(verdict(ROWS)))
    assert (["0.35", "0.5"], "2") == (low[:2], low[3])
    assert (["0.95", "0.9"], "10") == (high[:2], high[3])
    assert "0.555 to 0.997" == high[2]
    weighted = reliability_plot(verdict(ROWS, [1.0] * 11 + [20.0]))
    assert "95 % interval" not in weighted
    assert 3 == len(cells(weighted)[0])


def test_risk_is_drawn_against_coverage():
    """With the threshold of each point."""
    strict, mild = cells(risk_plot(verdict(ROWS)))
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
    ] == [tuple(row.values()) for row in threshold_rows(grace, found)]


def test_a_profile_states_its_promise():
    """As calibration does; a formula promises nothing, and what cannot be read is none."""

    def words(promise):
        profile = Learned(thresholds=gk.Thresholds(math.inf, 0.8, 0.5))
        profile.promise = promise
        grace = make_grace(profile=profile)
        assert grace.thresholds
        return promise_words(grace)

    stated = {"risks": {"notify": 0.15}, "delta": 0.1, "kind": "selective", "moment": "action", "approximate": True}
    assert cal.Promise(risks={"notify": 0.15}).in_words + " The promise is approximate." == words(stated)
    assert "" == words({"risks": {"notify": 7}})
    assert "" == words(None)
    assert "" == promise_words(make_grace())


def test_promises_are_read_from_the_store(office, caplog):
    """With every level; the log names a state that cannot be read."""
    assert ([], "") == watched_promises(office.grace.store)
    office.grace.store.update_state("monitor:x:y", lambda _: "{}")
    found, problem = watched_promises(office.grace.store)
    assert [] == found
    assert "Watched promises cannot be read: the store cannot be read or written at the moment." == problem
    assert "cannot be read as a monitor" in caplog.text


@pytest.mark.parametrize(
    ("wealth", "words"),
    [
        (0.2, "the labels speak for the promise"),
        (1.0, "the labels say nothing against it"),
        (5, "some doubt"),
        (50, "strong doubt"),
        (1e9, "almost impossible if the promise holds"),
    ],
)
def test_wealth_is_put_into_words(wealth, words):
    """The bettor against the promise began with 1."""
    assert words == wealth_words(wealth)


def test_missing_labels_are_counted():
    """For each level that so many are not enough for."""
    assert ("silent at 5 % needs at least 67 labels without an error, and there are 60",) == needed_labels(60)
    assert 3 == len(needed_labels(0))
    assert () == needed_labels(67)
    assert "3 test, 1 label of another source" == sources_words({"test": 3, "label of another source": 1})


LABELLED = CatalogQuery(feedback=True)


def read_verdict(office, query=LABELLED):
    return verdict_of(office.visit().app.state.site, query)


def test_without_labels_nothing_is_assessed(office):
    """Runs without feedback are not read."""
    office.run()
    found = read_verdict(office)
    assert ((), None, ()) == (found.samples, found.assessment, tuple(found.curve))
    assert {} == dict(found.left_out)


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
    assert [point.risk for point in points] == [point.risk for point in found.curve]


def test_runs_of_one_agent_are_assessed_alone(office):
    """And those of a period."""
    office.run("a", label=True)
    office.run("b", label=False)
    office.run("a", label=False, days=9)
    assert 2 == len(read_verdict(office, CatalogQuery(agent="a", feedback=True)).samples)
    recent = CatalogQuery(agent="a", feedback=True, since="3d")
    assert 3 == len(read_verdict(office).samples)
    assert [True] == [sample.correct for sample in read_verdict(office, recent).samples]


def test_the_newest_labels_are_read(office, monkeypatch):
    """Up to a bound, page by page, and the result says so."""
    monkeypatch.setattr(_trust, "AT_MOST_READ", 5)
    monkeypatch.setattr(_trust, "PAGE", 2)
    for number in range(7):
        office.run(days=7 - number, label=number % 2 == 0, confidence=number / 10)
    found = read_verdict(office)
    assert [0.6, 0.5, 0.4, 0.3, 0.2] == [sample.confidence for sample in found.samples]
    assert found.is_cut
    monkeypatch.setattr(_trust, "AT_MOST_READ", 7)
    assert not read_verdict(office).is_cut


def test_a_threshold_has_a_share_of_wrong_runs(office):
    """Of those that reach it; where none does, nothing is known."""
    for confidence, right in ((0.9, True), (0.8, False), (0.8, True), (0.2, False)):
        office.run(confidence=confidence, label=right)
    found = read_verdict(office)
    assert pytest.approx(1 / 3) == found.above(0.8).risk
    assert 0.0 == found.above(0.85).risk
    assert 0.5 == found.above(0.0).risk
    assert found.above(0.95) is None


def test_a_fraction_is_a_label_but_no_error(office):
    """It counts in the assessment, and no curve is drawn of fractions alone."""
    office.run(label=0.5)
    found = read_verdict(office)
    assert 0.5 == found.assessment.accuracy
    assert () == tuple(found.curve)
    assert found.above(0.1) is None
