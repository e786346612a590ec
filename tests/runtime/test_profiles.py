"""A profile as a runtime applies it: how it is chosen, results that are checked, fallbacks, and reasons not to rely on it."""

from __future__ import annotations

import copy
import json
import math
import os

import pytest

import grace_kp as gk
from grace_kp.confidence import PROFILES, ConfidenceFactors, ConfidenceScore
from grace_kp.errors import GraceError, SettingsError
from grace_kp.runtime._choices import ProfileChoice
from grace_kp.runtime._profiles import ProfileInUse, Trust, copy_json, open_profile
from grace_kp.settings import Settings
from tests.runtime.learned import Learned

DOCUMENT = {"steps": [{"step_id": 0, "type": "thought"}], "grace": {"calls": []}}
FACTORS = ConfidenceFactors(tool_execution_count=2, tool_success_count=1, tool_success_rate=0.5)
NEVER = gk.Thresholds(math.inf, math.inf, math.inf)


def measure(profile, document=DOCUMENT, moment="end"):
    return ProfileInUse(profile, gk.Thresholds()).measure(document, FACTORS, moment)


class Liar(ConfidenceScore):
    """A score whose number cannot be trusted."""

    def __post_init__(self):
        pass


def looping():
    return looping()


@pytest.mark.parametrize(
    "answer",
    [
        ValueError("no head for this moment"), SystemExit(3), GeneratorExit(), RecursionError(), MemoryError(), AssertionError(),
        None, 7, "0.9", True, Liar(math.nan, FACTORS), Liar(1.2, FACTORS), Liar(-0.1, FACTORS), Liar(True, FACTORS),
        ConfidenceScore(0.5, FACTORS, breakdown={"tool_success": math.inf}), ConfidenceScore(0.5, FACTORS, breakdown={"x": "1"}),
        lambda _: ConfidenceScore(math.nan, FACTORS), lambda _: ConfidenceScore(1.2, FACTORS), lambda _: looping(),
    ],
)  # fmt: skip
@pytest.mark.parametrize("moment", ["end", "action"])
def test_what_a_profile_cannot_answer_is_a_marked_fallback(answer, moment):
    """Whatever it raises or returns, the score is that of the formula, and the problem names the profile."""
    measured = measure(Learned(answer), moment=moment)
    assert PROFILES["grace"].calculate(FACTORS) == measured.score
    assert "grace" == measured.profile
    assert measured.problem.startswith("the profile learned failed (")


def test_an_interrupt_by_the_user_stays_one():
    with pytest.raises(KeyboardInterrupt):
        measure(Learned(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        ProfileInUse(Learned(mismatches=KeyboardInterrupt()), gk.Thresholds()).mismatches(DOCUMENT)


def test_only_messages_of_our_own_are_repeated():
    assert "the profile learned failed (ValueError)" == measure(Learned(ValueError("secret of the run"))).problem
    assert "the profile learned failed (GraceError: no head)" == measure(Learned(GraceError("no head"))).problem


def test_a_profile_gets_a_copy():
    """What it does to a document changes no trace."""
    before = copy.deepcopy(DOCUMENT)

    def spoil(document):
        document["steps"][0]["type"] = "observation"
        document["grace"].clear()
        return 0.5

    measure(Learned(spoil))
    assert before == DOCUMENT
    assert {"a": [1, {"b": None}], "c": (1,)} == copy_json({"a": [1, {"b": None}], "c": (1,)})


def test_what_a_trace_could_not_hold_is_replaced():
    """Half surrogate pairs, endless reasons and contributions without a weight do not reach the record."""
    score = ConfidenceScore(0.5, FACTORS, reason="x\ud800" * 1_000, contributions={"\ud800": 1.0, "none": 0.00001})
    measured = measure(Learned(score))
    json.dumps(measured.score.reason, ensure_ascii=False).encode()
    assert 500 == len(measured.score.reason)
    assert {"?": 1.0} == measured.score.contributions


def test_a_profile_of_factors_alone_is_asked_for_them():

    class Plain:
        name = "plain"

        def calculate(self, factors):
            return ConfidenceScore(0.25, factors)

    assert 0.25 == measure(Plain(), document=None).score.score
    Plain.calculate = lambda self, factors: 1 / 0
    assert "the profile plain failed (ZeroDivisionError)" == measure(Plain(), document=None).problem


class TestMismatches:
    @pytest.mark.parametrize("failure", [ValueError("x"), SystemExit(1), 7])
    def test_that_cannot_be_found_are_one(self, failure):
        """A profile that cannot say whether it fits may not fit."""
        (found,) = ProfileInUse(Learned(mismatches=failure), gk.Thresholds()).mismatches(DOCUMENT)
        assert found.startswith("whether the profile learned fits this run could not be checked (")

    @pytest.mark.parametrize(("fitted_on", "count"), [({}, 1), (None, 0), ({"agents": ["a"]}, 0)])
    def test_of_a_profile_that_compares_nothing(self, fitted_on, count):
        """It is relied on, unless it says itself that it was fitted on nothing."""
        learned = Learned(fitted_on=fitted_on)
        learned.mismatches = None
        assert count == len(ProfileInUse(learned, gk.Thresholds()).mismatches(DOCUMENT))

    def test_are_about_the_action_too(self):
        """It stands in the document as the last decision, and the caller's document stays as it was."""

        class Comparing(Learned):
            def mismatches(self, document):
                return [entry["action"] for entry in document["grace"].get("decisions", ())]

        use = ProfileInUse(Comparing(), gk.Thresholds())
        assert ((), ("pay",)) == (use.mismatches(DOCUMENT), use.mismatches(DOCUMENT, "pay"))
        assert {"calls": []} == DOCUMENT["grace"]

    def test_are_bounded(self):
        found = ProfileInUse(Learned(mismatches=["x" * 9_999] * 99), gk.Thresholds()).mismatches(DOCUMENT)
        assert (10, 500) == (len(found), len(found[0]))


class TestOpening:
    @pytest.mark.parametrize(
        ("profile", "problem"),
        [
            (3, "a profile, not 3"), (Learned, "a profile, not"), ("best", "not 'best'"),
            (type("Nameless", (), {"calculate": print})(), "needs a `name`"),
            (Learned(thresholds=(0.9, 0.7, 0.4)), "its thresholds must be a Thresholds"),
        ],
    )  # fmt: skip
    def test_refuses_what_is_no_profile(self, profile, problem):
        with pytest.raises(SettingsError, match="shadow: ") as raised:
            open_profile(profile, "shadow")
        assert problem in str(raised.value)


@pytest.mark.parametrize("failure", [ValueError("x"), SystemExit(1)])
def test_a_doubt_that_fails_is_one(failure):
    """A promise that cannot be checked is not relied on."""

    def fails(action, level):
        raise failure

    trust = Trust()
    trust.checks.append(fails)
    kind = type(failure).__name__
    assert (f"whether its promise still holds could not be checked ({kind})",) == trust.gaps("pay", [])
    trust.checks[:] = [lambda *_: None]
    assert ("whether its promise still holds could not be checked (TypeError)",) == trust.gaps("pay", [])


def test_an_interrupt_while_a_promise_is_checked_stays_one():
    def interrupted(action, level):
        raise KeyboardInterrupt

    trust = Trust()
    trust.checks.append(interrupted)
    with pytest.raises(KeyboardInterrupt):
        trust.gaps("pay", [])


def test_each_mismatch_is_logged_once(caplog):
    """The log names no secret; the status keeps every difference, up to a bound."""
    trust = Trust()
    for _ in range(3):
        trust.add_mismatches(["the model is now b", "the tool is now 'password=hunter22'"])
    messages = [record.getMessage() for record in caplog.records]
    assert 2 == len(messages)
    assert "the promise of the confidence profile does not hold: the model is now b" == messages[0]
    assert "hunter22" not in messages[1]
    for number in range(200):
        trust.add_mismatches([f"the model is now {number}"])
    described = trust.describe()
    assert ("tighten", 50) == (described["on_mismatch"], len(described["mismatches"]))


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


@pytest.mark.parametrize(
    ("settings", "objectives", "novelties"),
    [
        ({}, "red blue red", [0.5, 1.0, 0.0]),
        ({"novelty_cache_size": 1}, "red blue red", [0.5, 1.0, 1.0]),
        ({"novelty_cache_ttl": 1e-9}, "red red", [0.5, 0.5]),
        ({"novelty_cache_ttl": 0}, "red red", [0.5, 0.0]),
    ],
)
def test_the_novelty_cache_has_settings(settings, objectives, novelties):
    """A run is compared with as many earlier ones as fit, none of them older; 0 keeps every run."""
    embedder = lambda text: [1.0, 0.0] if "red" in text else [0.0, 1.0]  # noqa: E731
    grace = gk.Grace(store="memory:", evaluator=None, embedder=embedder, **settings)
    with grace.collect() as traces:
        for objective in objectives.split():
            with grace.run(objective):
                pass
    assert novelties == [trace.grace["value"]["novelty"] for trace in traces]
