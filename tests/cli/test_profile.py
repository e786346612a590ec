"""`grace-kp doctor` shows the confidence profile: its thresholds, what it was fitted on, and whether it fits recent runs."""

from __future__ import annotations

import json
import math

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from tests.calibrate.examples import drawn_runs
from tests.cli.program import CHAT


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """A fitted profile that the environment names, with a promise."""
    runs, labels = drawn_runs(120, seed=3)
    promise = {"kind": "selective", "risks": {"notify": 0.15}, "delta": 0.1, "moment": "action", "n": 120, "notes": []}
    path = tmp_path / "mine.json"
    cal.fit(runs, labels).with_thresholds(gk.Thresholds(math.inf, 0.8, 0.4), promise).save(path)
    monkeypatch.setenv("GRACE_KP_PROFILE", str(path))
    return path


@pytest.fixture
def used(url, monkeypatch):
    """Records a run of an agent with a tool, in the store that the environment names."""
    monkeypatch.setenv("GRACE_KP_STORE", url)

    def record(agent, tool):
        with gk.Grace(store=url, profile="grace", evaluator=None, embedder=None, reviewer=None) as grace:
            work = grace.tool(lambda: "x", name=tool)
            with grace.run("Send order 1", name=agent):
                work()

    return record


def examined(command):
    ran = command("doctor", "--json")
    return ran.returncode, json.loads(ran.stdout)


def test_a_formula_has_thresholds_only(command):
    code, report = examined(command)
    thresholds = {"silent": 0.9, "notify": 0.7, "confirm": 0.4}
    origins = dict.fromkeys(thresholds, "default")
    assert (0, {"name": "grace", "thresholds": thresholds, "thresholds_from": origins}) == (code, report["profile"])
    assert "profile         grace; thresholds silent 0.9, notify 0.7, confirm 0.4" in command("doctor").stdout


def test_a_learned_profile_states_its_promise(command, profile):
    """An infinite threshold is written as a word, also in JSON."""
    code, report = examined(command)
    found = report["profile"]
    assert (0, "calibrated", str(profile), "never", 0, []) == (
        code, found["name"], found["file"], found["thresholds"]["silent"], found["compared_runs"], found["mismatches"],
    )  # fmt: skip
    assert ("selective", 120) == (found["promise"]["kind"], found["fitted_on"]["runs"])
    shown = command("doctor", columns=100).stdout
    assert "calibrated; thresholds silent never, notify 0.8, confirm 0.4" in shown
    assert "fitted on 120 runs, at " in shown
    assert f"digest {cal.CalibratedProfile.load(profile).digest}" in shown
    assert "promise: selective, risks notify 0.15, delta 0.1" in shown
    assert "Infinity" not in json.dumps(report)


def test_recent_runs_are_compared_with_those_it_was_fitted_on(command, profile, used):
    """A run of another agent is named; a run like those it was fitted on is not."""
    used("clerk", "find")
    assert "it fits the latest 1 runs" in command("doctor", columns=100).stdout
    used("robber", "steal")
    code, report = examined(command)
    assert (0, 2) == (code, report["profile"]["compared_runs"])
    assert ["the agent is now 'kp:agent:robber'; the profile was fitted on 'kp:agent:clerk'"] == report["profile"][
        "mismatches"
    ][:1]
    assert "the promise does not hold: the tool is now 'steal'" in command("doctor", columns=200).stdout


def test_a_file_that_cannot_be_used_is_broken(command, profile):
    profile.write_text("{}")
    code, report = examined(command)
    assert (1, None) == (code, report["profile"])
    assert any("profile (environment variable GRACE_KP_PROFILE)" in problem for problem in report["problems"])


def test_score_takes_the_file_of_a_profile(command, profile, tmp_path):
    """Runs without a confidence get that of the profile; a file that is missing is an error with its name."""
    runs = tmp_path / "runs.jsonl"
    runs.write_text(json.dumps(CHAT) + "\n")
    assert 0 == command("score", runs, "--json", "--profile", profile).returncode
    ran = command("score", runs, "--profile", "missing.json")
    assert 0 != ran.returncode
    assert "missing.json" in ran.stderr
