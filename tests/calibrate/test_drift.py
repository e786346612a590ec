"""Whether runs still look like those that a profile was fitted on."""

from __future__ import annotations

import pytest
from scipy import stats

from grace_kp import calibrate as cal
from tests.calibrate.examples import drawn_runs


@pytest.fixture(scope="module")
def profile():
    """A profile fitted on 300 runs of 150 tasks."""
    return cal.fit(*drawn_runs(300, seed=1, tasks=150))


def test_the_same_runs_show_no_drift(profile):
    report = cal.drift(profile, drawn_runs(100, seed=2, tasks=150)[0])
    assert (False, (), 100, 300) == (report.drifted, report.shifted, report.n, report.fitted_runs)
    assert str(report).endswith(f"No new name, and none of {len(report.features)} features shifted.")


def test_false_reports_are_rare(profile):
    """Among 40 sets of runs of the same kind, no more show a shift than the level of the test and chance explain."""
    shifted = sum(bool(cal.drift(profile, drawn_runs(60, seed=seed, tasks=150)[0]).shifted) for seed in range(100, 140))
    assert stats.binomtest(shifted, 40, 0.05, alternative="greater").pvalue > 1e-3


def test_a_shift_is_reported_with_its_direction(profile):
    report = cal.drift(profile, drawn_runs(100, seed=3, share=0.0, tasks=150)[0])
    names = {feature.name: feature for feature in report.shifted}
    assert names["error_rate"].shift > 0.2
    assert names["error_rate"].mean > names["error_rate"].fitted_mean
    shifts = [abs(feature.shift) for feature in report.shifted]
    assert sorted(shifts, reverse=True) == shifts
    assert "error_rate is higher by " in str(report)
    assert "only labels of a random sample" in str(report)


def test_repeated_tasks_are_fewer_runs(profile):
    shifted = 0
    for seed in range(200, 220):
        repeated = drawn_runs(10, seed=seed, tasks=150)[0] * 10
        shifted += bool(cal.drift(profile, repeated).shifted)
    assert shifted <= 4


def test_new_names_are_counted(profile):
    """Agents, models and tools that the profile does not know, with the number of runs that have them."""
    runs, _ = drawn_runs(40, seed=4, tasks=150)
    for number, document in enumerate(runs):
        document["metadata"]["agent_id"] = "kp:agent:clerk" if number % 4 else "kp:agent:novice"
    runs[0]["steps"].append({"step_id": 99, "type": "tool_call", "tool": {"name": "refund"}, "input": {}})
    report = cal.drift(profile, runs)
    assert {"agents": {"kp:agent:novice": 10}, "models": {}, "tools": {"refund": 1}} == report.new
    assert report.drifted
    assert "New agent 'kp:agent:novice' in 10 runs (25%)." in str(report)


def test_few_runs_are_refused(profile):
    """With fewer than 30 runs nothing could be said."""
    with pytest.raises(ValueError, match=r"at least 30 runs.*\(got 29\)"):
        cal.drift(profile, drawn_runs(29)[0])
    with pytest.raises(ValueError, match="moment"):
        cal.drift(profile, drawn_runs(30)[0], moment="middle")
