"""Which models and profiles a runtime chooses, and when."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp.gating import Policy
from grace_kp.runtime._choices import ProfileChoice, profile_name
from grace_kp.settings import Settings
from grace_kp.testing import ScriptedReviewer
from tests.runtime.learned import Learned


def gated_level(grace):
    """The level of an action after a search with a score of 0.5, when the confidence is 0.7."""

    @grace.gate
    def act():
        return "done"

    @grace.retriever
    def search():
        return [{"text": "t", "source": "s", "score": 0.5}]

    with grace.run("act") as run:
        search()
        act()
    return run.trace.grace["decisions"][0]["level"]


@pytest.mark.parametrize(
    ("environ", "level"),
    [
        ({}, "notify"),
        ({"SILENT": "0.7"}, "silent"),
        ({"SILENT": "never", "NOTIFY": "0.8"}, "confirm"),
        ({"SILENT": "never", "NOTIFY": "never", "CONFIRM": "never"}, "escalate"),
    ],
)
def test_gates_follow_the_thresholds_of_the_environment(environ, level, monkeypatch):
    for name, value in environ.items():
        monkeypatch.setenv(f"GRACE_KP_THRESHOLD_{name}", value)
    reviewer = ScriptedReviewer("proceed")
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=reviewer)
    assert level == gated_level(grace)
    assert (level in {"confirm", "escalate"}) == (reviewer.asked == 1)


def test_thresholds_that_are_passed_in_come_first(monkeypatch):
    """They replace all three of the settings."""
    monkeypatch.setenv("GRACE_KP_THRESHOLD_SILENT", "never")
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, thresholds=gk.Thresholds(silent=0.7))
    assert gk.Thresholds(0.7, 0.7, 0.4) == grace.thresholds
    assert "silent" == gated_level(grace)


def test_thresholds_out_of_order_are_an_error_where_a_runtime_is_made(monkeypatch):
    """Not when the first action is gated."""
    monkeypatch.setenv("GRACE_KP_THRESHOLD_NOTIFY", "0.95")
    with pytest.raises(
        gk.SettingsError, match=r"threshold_silent 0.9 \(default\) must not be below threshold_notify 0.95"
    ):
        gk.Grace(store="memory:")


def test_a_policy_with_infinite_thresholds_is_written_as_json():
    """Traces of gated runs hold no infinity."""
    never = gk.Thresholds(float("inf"), float("inf"))
    grace = gk.Grace(
        store="memory:", evaluator=None, embedder=None, thresholds=never, reviewer=ScriptedReviewer("proceed")
    )
    assert "confirm" == gated_level(grace)
    json.dumps(grace.store.query()[0].to_dict(), allow_nan=False)


def novelties(grace, *objectives):
    with grace.collect() as traces:
        for objective in objectives:
            with grace.run(objective):
                pass
    return [trace.grace["value"]["novelty"] for trace in traces]


def embedded(text):
    return [1.0, 0.0] if "red" in text else [0.0, 1.0]


def test_the_size_of_the_novelty_cache_is_a_setting(monkeypatch):
    """With room for one trace, only the last one is compared with."""
    monkeypatch.setenv("GRACE_KP_NOVELTY_CACHE_SIZE", "1")
    grace = gk.Grace(store="memory:", evaluator=None, embedder=embedded)
    assert [0.5, 1.0, 1.0] == novelties(grace, "red", "blue", "red")
    monkeypatch.delenv("GRACE_KP_NOVELTY_CACHE_SIZE")
    grace = gk.Grace(store="memory:", evaluator=None, embedder=embedded)
    assert [0.5, 1.0, 0.0] == novelties(grace, "red", "blue", "red")


def test_the_time_to_live_of_the_novelty_cache_is_a_setting():
    """What is older does not count; 0 keeps every trace."""
    short = gk.Grace(store="memory:", evaluator=None, embedder=embedded, novelty_cache_ttl=1e-9)
    assert [0.5, 0.5] == novelties(short, "red", "red")
    endless = gk.Grace(store="memory:", evaluator=None, embedder=embedded, novelty_cache_ttl=0)
    assert [0.5, 0.0] == novelties(endless, "red", "red")


@pytest.mark.parametrize(
    ("thresholds", "hint"),
    [
        (0.5, r"not float; pass Thresholds\(silent=0.9"),
        ({"silent": 0.8}, r"not dict; pass Thresholds.from_dict"),
        (gk.DynamicThresholds(), r"not DynamicThresholds; pass its .current"),
        (gk.Thresholds, "not type; pass"),
    ],
)
def test_thresholds_of_another_type_are_refused(thresholds, hint):
    """Where they are passed in, with what to write instead."""
    for make in (gk.Grace, gk.ConfidenceCalculator, Policy):
        with pytest.raises(TypeError, match=f"thresholds must be a Thresholds, {hint}"):
            make(thresholds=thresholds)


def test_formulas_are_opened_when_they_are_needed():
    choice = ProfileChoice(Settings(profile="strict"), None, None, None)
    assert choice.describe() is None
    assert "strict" == choice.get().main.name
    assert choice.get() is choice.get()
    origins = dict.fromkeys(("silent", "notify", "confirm"), "default")
    assert {"name": "strict", "thresholds": gk.Thresholds().to_dict(), "thresholds_from": origins} == choice.describe()


def test_a_profile_of_the_user_s_is_opened_at_once():
    profile = Learned()
    choice = ProfileChoice(Settings(), profile, "strict", None)
    described = choice.describe()
    assert ("learned", "strict") == (described["name"], described["shadow"]["name"])


@pytest.mark.parametrize(
    ("profile", "shadow", "thresholds", "error"),
    [
        (3, None, None, gk.SettingsError), (None, "best", None, gk.SettingsError),
        (None, None, (0.9, 0.7, 0.4), TypeError), (None, ("strict", (0.9, 0.7, 0.4)), None, TypeError),
        (None, ("strict",), None, gk.SettingsError),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_an_error_at_once(profile, shadow, thresholds, error):
    with pytest.raises(error):
        ProfileChoice(Settings(), profile, shadow, thresholds)


def test_a_stated_digest_opens_the_profile_at_once():
    """Of a formula, too, because it has none."""
    with pytest.raises(
        gk.SettingsError, match=r"profile_digest \(default\) is 'sha256:0', and the profile grace has no digest"
    ):
        ProfileChoice(Settings(profile_digest="sha256:0"), None, None, None)


def test_names_and_paths_are_named():
    assert ("strict", "a.json", None, None) == (
        profile_name("strict"),
        profile_name(Path("a.json")),
        profile_name(Learned()),
        profile_name(None),
    )


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # from Python 3.12
def test_a_child_process_uses_the_same_profiles():
    """What the parent has opened is there, and no lock is held by a thread that the child does not have."""
    choice = ProfileChoice(Settings(), Learned(), None, None)
    reading, writing = os.pipe()
    choice._lock.acquire()
    child = os.fork()
    if not child:
        os.write(writing, choice.get().main.name.encode())
        os._exit(0)
    choice._lock.release()
    os.waitpid(child, 0)
    assert b"learned" == os.read(reading, 100)
    os.close(reading)
    os.close(writing)
