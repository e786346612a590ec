"""Shares, risk-coverage curves and differences between policies, against independent calculations."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import grace_kp as gk
from grace_kp import calibrate as cal
from tests.calibrate.gated import decision, document

ROWS = st.lists(st.tuples(st.sampled_from([0.1, 0.45, 0.5, 0.72, 0.9, 1.0]), st.booleans()), min_size=1, max_size=40)


def labelled(rows):
    return [document(number, decision(score), correct=right) for number, (score, right) in enumerate(rows)]


@given(ROWS)
def test_intervals_are_exact(rows):
    """Clopper-Pearson, as scipy computes it."""
    share = cal.replay(labelled(rows), gk.Thresholds()).actions.a.asked
    expected = stats.binomtest(share.count, share.of).proportion_ci(0.95, method="exact")
    assert np.allclose((expected.low, expected.high), share.interval, atol=1e-9)
    assert {
        "count": share.count,
        "of": share.of,
        "share": share.share,
        "low": share.interval[0],
        "high": share.interval[1],
    } == share.to_dict()


@given(ROWS)
def test_the_risk_at_each_score_is_that_of_all_at_least_as_confident(rows):
    """Counted decision by decision."""
    curve = cal.replay(labelled(rows), gk.Thresholds()).actions.a.curve
    assert sorted({score for score, _ in rows}, reverse=True) == list(curve.scores)
    for score, coverage, risk in zip(curve.scores, curve.coverage, curve.risk, strict=True):
        accepted = [right for value, right in rows if value >= score]
        assert (len(accepted) / len(rows), 1 - sum(accepted) / len(accepted)) == (
            coverage,
            np.float64(risk).round(15),
        ) or np.isclose(risk, 1 - sum(accepted) / len(accepted))


def test_a_long_curve_is_thinned_to_its_ends():
    """A thousand and one points, the first and the last among them."""
    scores = np.linspace(0, 1, 5_000)
    curve = cal.replay(labelled([(float(score), True) for score in scores]), gk.Thresholds()).actions.a.curve
    assert (1_001, 1.0, 0.0, 1.0) == (len(curve.scores), curve.scores[0], curve.scores[-1], curve.coverage[-1])
    assert 1_001 == len(curve.to_dict()["risk"])


def test_the_bootstrap_resamples_runs():
    """The same interval as drawing whole runs by hand; with all decisions of a run alike it is wider than over decisions."""
    generator = np.random.default_rng(4)
    groups = [[decision(0.8 if generator.random() < 0.3 else 0.95)] * int(generator.integers(1, 6)) for _ in range(60)]
    traces = [document(number, *group) for number, group in enumerate(groups)]
    found = cal.replay(traces, gk.Thresholds(0.9, 0.9, 0.4), gk.Thresholds()).actions.differences["asked"]
    sizes = np.array([len(group) for group in groups])
    asked = np.array([len(group) * (group[0]["score"] == 0.8) for group in groups])
    drawn = generator.integers(0, 60, size=(20_000, 60))
    low, high = np.quantile(asked[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [0.025, 0.975])
    assert np.isclose(asked.sum() / sizes.sum(), found.value)
    assert np.allclose((low, high), (found.low, found.high), atol=0.02)
    naive = stats.binomtest(int(asked.sum()), int(sizes.sum())).proportion_ci()
    assert found.high - found.low > naive.high - naive.low
    again = cal.replay(traces, gk.Thresholds(0.9, 0.9, 0.4), gk.Thresholds()).actions.differences["asked"]
    assert (
        found
        == again
        != cal.replay(traces, gk.Thresholds(0.9, 0.9, 0.4), gk.Thresholds(), seed=1).actions.differences["asked"]
    )
