"""Plots of what labels say, thresholds with their origin, and watched promises in words."""

from __future__ import annotations

import math

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.testing import make_grace
from grace_kp.web.figures._labels import Sample, Verdict
from grace_kp.web.figures._trust import (
    needed_labels,
    promise_words,
    reliability_plot,
    risk_plot,
    sources_words,
    threshold_rows,
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
    ] == [(row.level, row.value, row.origin, row.labelled) for row in threshold_rows(grace, found)]


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
