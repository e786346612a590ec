"""Thresholds and profiles: `grace` to the letter, `strict` without its optimism, and the level that a score leads to."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grace_kp.confidence import (
    PROFILES,
    ActionDecision,
    ConfidenceCalculator,
    ConfidenceFactors,
    ConfidenceScore,
    DynamicThresholds,
    LearnedProfile,
    Thresholds,
    decide,
)
from grace_kp.levels import InterventionLevel
from grace_kp.pages import penalty_text
from tests.exhaustive import examples

units = st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.59, 0.6, 0.61, 0.8, 1.0])
counts = st.integers(0, 5)
FLAGS = ("search_made", "self_evaluated", "agreement_evaluated", "coverage_evaluated")


@st.composite
def factors(draw):
    executed = draw(counts)
    return ConfidenceFactors(
        search_result_count=draw(counts),
        search_avg_score=draw(units),
        search_max_score=draw(units),
        search_score_variance=draw(st.floats(0, 2)),
        source_agreement=draw(units),
        source_count=draw(counts),
        llm_self_confidence=draw(units),
        tool_success_rate=draw(units),
        tool_execution_count=executed,
        tool_success_count=draw(st.integers(0, executed)),
        query_coverage=draw(units),
        is_search_step=draw(st.booleans()),
        **{flag: draw(st.booleans() | st.none()) for flag in FLAGS},
        search_avg_with_unusable=draw(units | st.none()),
        search_variance_with_unusable=draw(st.floats(0, 2) | st.none()),
    )


def score(given, profile="strict"):
    return ConfidenceCalculator(profile).calculate(given).score


def test_golden_confidences(vectors):
    calculator = ConfidenceCalculator()
    for number, vector in enumerate(vectors("confidence")):
        expected = vector["expected"]
        result = calculator.calculate(ConfidenceFactors(**vector["factors"]))
        assert expected["score"] == pytest.approx(result.score, abs=1e-9), number
        assert expected["breakdown"] == pytest.approx(dict(result.breakdown), abs=1e-9), number
        assert expected["penalties"] == list(result.penalties_applied), number
        assert expected["level_word"] == result.level, number
        decision = calculator.decide_action(result)
        assert {name: expected[name] for name in DECIDED} == {
            "decision": str(decision.level),
            "suggested_action": decision.suggested_action,
            "should_proceed": decision.should_proceed,
            "needs_confirmation": decision.needs_confirmation,
            "needs_user_input": decision.needs_user_input,
        }, number
        assert result.score == decision.confidence_score


DECIDED = ("decision", "suggested_action", "should_proceed", "needs_confirmation", "needs_user_input")


@pytest.mark.parametrize("profile", ["grace", "strict"])
@given(given=factors())
def test_bounds(profile, given):
    """Every score lies in 0 to 1, has three decimals, parts from 0 to 1, and a reason that names its penalties."""
    result = ConfidenceCalculator(profile).calculate(given)
    assert 0.0 <= result.score <= 1.0
    assert round(result.score, 3) == result.score
    assert 5 == len(result.breakdown)
    assert all(0.0 <= part <= 1.0 for part in result.breakdown.values())
    assert given == result.factors
    assert result.reason.endswith(".")
    assert all(penalty_text(penalty) in result.reason for penalty in result.penalties_applied)


def test_nothing_known():
    """Without any evidence `grace` lets an action go ahead with a notice, `strict` says 0.5 and why."""
    nothing = ConfidenceFactors()
    grace = ConfidenceCalculator().calculate(nothing)
    assert (0.7, ["no_sources"]) == (grace.score, grace.penalties_applied)
    strict = ConfidenceCalculator("strict").calculate(nothing)
    assert (0.5, []) == (strict.score, strict.penalties_applied)
    assert strict.reason.startswith("No evidence")
    assert set(strict.breakdown) == set(strict.not_evaluated)


def test_fallbacks_are_no_evidence_in_strict():
    """Evaluations that failed are flagged, and the score is what it would be without them."""
    fallbacks = ConfidenceFactors(
        llm_self_confidence=0.5,
        self_evaluated=False,
        source_agreement=0.5,
        agreement_evaluated=False,
        query_coverage=0.5,
        coverage_evaluated=False,
        source_count=2,
        tool_execution_count=1,
        tool_success_count=1,
    )
    result = ConfidenceCalculator("strict").calculate(fallbacks)
    assert 1.0 == result.score
    assert ("search_quality", "source_agreement", "llm_self_eval", "query_coverage") == result.not_evaluated


def test_what_was_made_counts_in_strict_however_badly_it_went():
    tool = {"tool_execution_count": 1, "tool_success_count": 1, "source_count": 2}
    assert round((0.4 + 0.3 * 0.2) / 0.7, 3) == score(ConfidenceFactors(**tool, llm_self_confidence=0.2))
    assert round((0.4 + 0.1 * 0.05) / 0.5, 3) == score(ConfidenceFactors(**tool, query_coverage=0.05))
    assert round(0.4 / 1.0, 3) == score(ConfidenceFactors(**tool, search_result_count=0))
    assert round((0.4 + 0.2 * 0.3) / 0.6, 3) == score(ConfidenceFactors(**tool, source_agreement=0.3))
    tool["source_count"] = 1
    assert 1.0 == score(ConfidenceFactors(**tool, llm_self_confidence=0.2, query_coverage=0.05), "grace")


def test_tools_count_in_strict_only_if_one_ran():
    own = {"llm_self_confidence": 0.9}
    assert 0.9 == score(ConfidenceFactors(**own))
    assert 0.9 == score(ConfidenceFactors(**own, tool_success_rate=0.2))
    assert 0.9 > score(ConfidenceFactors(**own, tool_execution_count=1))


def test_grace_keeps_its_quirk_of_the_self_evaluation():
    """In `grace` a self-evaluation that rises from 0.60 to 0.61 lowers the score: below, it is not looked at."""
    low, high = (ConfidenceFactors(llm_self_confidence=own, source_count=1) for own in (0.60, 0.61))
    assert score(low, "grace") > score(high, "grace")
    assert score(low) < score(high)


def worse_versions(before):
    for name in ("search_avg_score", "search_max_score", "source_agreement", "llm_self_confidence"):
        yield name, getattr(before, name)
    for name in ("tool_success_rate", "query_coverage"):
        yield name, getattr(before, name)
    if before.search_avg_with_unusable is not None:
        yield "search_avg_with_unusable", before.search_avg_with_unusable


@examples(400)
@given(factors(), st.data())
def test_strict_is_monotone_in_every_rate(before, data):
    for name, value in worse_versions(before):
        worse = data.draw(st.floats(0, value) | st.sampled_from([0.0, value, math.nextafter(value, 0)]), label=name)
        assert score(dataclasses.replace(before, **{name: worse})) <= score(before), name


@examples(400)
@given(factors(), st.floats(0, 2))
def test_strict_is_monotone_in_the_variance(before, more):
    after = dataclasses.replace(before, search_score_variance=before.search_score_variance + more)
    assert score(after) <= score(before)


@examples(400)
@given(factors())
@example(ConfidenceFactors(source_count=2, source_agreement=0.1, llm_self_confidence=0.9))
@example(ConfidenceFactors(search_result_count=1, search_max_score=0.1, llm_self_confidence=0.9))
def test_strict_is_monotone_in_every_count(before):
    for name in ("search_result_count", "source_count", "tool_success_count"):
        for fewer in range(getattr(before, name)):
            assert score(dataclasses.replace(before, **{name: fewer})) <= score(before), name
    one_more_failure = dataclasses.replace(before, tool_execution_count=before.tool_execution_count + 1)
    assert score(one_more_failure) <= score(before)


@examples(300)
@given(st.floats(0.55, 0.65), st.floats(0, 1), st.floats(0, 0.5), st.booleans())
def test_strict_is_monotone_where_the_search_turns_good(best, average, variance, is_search):
    """Around a best result of 0.6, where the formula changes, the confidence never falls as the result gets better."""
    scores = [
        score(ConfidenceFactors(3, average, value, variance, source_count=1, is_search_step=is_search))
        for value in sorted([best, 0.6, math.nextafter(0.6, 0), math.nextafter(0.6, 1)])
    ]
    assert sorted(scores) == scores


@given(factors())
def test_grace_does_not_ask_what_was_made(given):
    flipped = dataclasses.replace(given, **{flag: not getattr(given, flag) for flag in FLAGS})
    assert score(given, "grace") == score(flipped, "grace")


def test_a_search_step_is_judged_by_its_search():
    """On a search step the other factors play no part, and the evaluations are shown as 0."""
    step = ConfidenceFactors(4, 0.5, 0.8, 0.1, llm_self_confidence=0.9, query_coverage=0.9, is_search_step=True)
    for profile in ("grace", "strict"):
        result = ConfidenceCalculator(profile).calculate(step)
        assert 0.8 == result.score
        assert (0.0, 0.0) == (result.breakdown["llm_self_eval"], result.breakdown["query_coverage"])
        assert "Search quality 0.80." == result.reason


def test_a_reason_tells_what_counted_and_what_lowered():
    given = ConfidenceFactors(
        tool_execution_count=2, tool_success_count=1, tool_success_rate=0.5, llm_self_confidence=0.7
    )
    reason = ConfidenceCalculator().calculate(given).reason
    assert (
        "Weighted mean of tool success 0.50, self-evaluation 0.70, lowered (tools succeeded: 50 %, no sources)."
        == reason
    )


@pytest.mark.parametrize("profile", ["grace", "strict"])
@given(given=factors())
def test_a_reason_mentions_no_tools_that_were_not_called(profile, given):
    """Tools appear in a reason only where one was executed, or a success rate below 1 was passed."""
    idle = dataclasses.replace(given, tool_execution_count=0, tool_success_count=0, tool_success_rate=1.0)
    assert "tool" not in ConfidenceCalculator(profile).calculate(idle).reason


def test_a_reason_without_evidence_says_so():
    assert (
        "No evidence: nothing was searched, executed or evaluated; the formula starts at 1.00, lowered (no sources)."
        == ConfidenceCalculator().calculate(ConfidenceFactors()).reason
    )
    searched = ConfidenceFactors(2, 0.7, 0.8, 0.01, source_count=1)
    assert (
        "Weighted mean of search quality 0.80 and a default of 1.00."
        == ConfidenceCalculator().calculate(searched).reason
    )


def test_a_reason_marks_what_was_assumed():
    assumed = ConfidenceFactors(
        tool_execution_count=1,
        tool_success_count=1,
        source_count=2,
        source_agreement=0.5,
        agreement_evaluated=False,
        query_coverage=0.5,
        coverage_evaluated=False,
    )
    expected = "Weighted mean of tool success 1.00, source agreement (fallback 0.5), query coverage (fallback 0.5)"
    found, strict = (ConfidenceCalculator(profile).calculate(assumed) for profile in ("grace", "strict"))
    assert found.reason.startswith(expected)
    assert ({"source_agreement": 0.5, "query_coverage": 0.5}, {}) == (found.fallbacks, strict.fallbacks)


def test_a_learned_profile_reads_runs():
    class Learned:
        name = "mine"

        def calculate(self, factors):
            return ConfidenceScore(0.5, factors)

        def confidence(self, document, *, moment):
            return ConfidenceScore(0.25, ConfidenceFactors())

    assert isinstance(Learned(), LearnedProfile)
    assert not any(isinstance(profile, LearnedProfile) for profile in PROFILES.values())
    assert 0.5 == ConfidenceCalculator(Learned()).calculate(ConfidenceFactors()).score


def test_a_search_with_unusable_scores_only_was_not_evaluated():
    """`grace` leaves it out, and `strict` counts the 0 that stands for it; a usable score of 0 was evaluated."""
    unusable = ConfidenceFactors(2, tool_execution_count=1, tool_success_count=1, search_avg_with_unusable=0.0)
    zero = dataclasses.replace(unusable, search_score_variance=0.0)
    for profile, fallbacks in (("grace", {}), ("strict", {"search_quality": 0.0})):
        found, usable = (ConfidenceCalculator(profile).calculate(each) for each in (unusable, zero))
        assert ("search_quality" in found.not_evaluated, "search_quality" in usable.not_evaluated) == (True, False)
        assert (found.score, 0.0, fallbacks) == (usable.score, found.breakdown["search_quality"], found.fallbacks)


@pytest.mark.parametrize("bad", [(0.7, 0.9, 0.4), (0.9, 0.4, 0.7), (0.3, 0.7, 0.4), (0.9, math.inf, 0.4)])
def test_thresholds_out_of_order_are_refused(bad):
    with pytest.raises(ValueError, match="silent >= notify >= confirm"):
        Thresholds(*bad)


@pytest.mark.parametrize("name", ["silent", "notify", "confirm"])
@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, -math.inf, None, "0.5", "never", True])
def test_bad_thresholds_are_refused_by_name(name, bad):
    with pytest.raises(ValueError, match=f"^{name} must be a number from 0 to 1, or math.inf"):
        Thresholds(**{name: bad})


limits_of_any_kind = st.lists(st.floats(0, 1) | st.just(math.inf), min_size=3, max_size=3).map(
    lambda parts: Thresholds(*sorted(parts)[::-1])
)


@given(limits_of_any_kind)
def test_thresholds_in_json(limits):
    """The JSON form reads back to the same thresholds; infinity is the word never, because JSON has no infinity."""
    text = json.dumps(limits.to_dict(), allow_nan=False)
    assert limits == Thresholds.from_dict(json.loads(text))


def test_a_threshold_that_json_leaves_out_is_the_default():
    assert Thresholds(silent=math.inf) == Thresholds.from_dict({"silent": "never"})
    with pytest.raises(ValueError, match="unknown threshold 'confrim'; known are silent, notify, confirm"):
        Thresholds.from_dict({"confrim": 0.5})
    with pytest.raises(ValueError, match=r"silent must be a number .*'always'"):
        Thresholds.from_dict({"silent": "always"})


def told(*samples, initial=None):
    dynamic = DynamicThresholds() if initial is None else DynamicThresholds(initial)
    for confidence, right in samples:
        dynamic.record_feedback(confidence, right)
    return dynamic.current


def test_golden_thresholds(vectors):
    for number, vector in enumerate(vectors("thresholds")):
        dynamic = DynamicThresholds()
        for event in vector["events"]:
            dynamic.record_feedback(event["confidence"], event["was_correct"])
            now = dynamic.current
            assert event["expected"] == pytest.approx(
                {"silent": now.silent, "notify": now.notify, "confirm": now.confirm}, abs=1e-9
            ), number


RIGHT, WRONG = True, False
HIGH, LOW = (0.99, 0.9, 0.8), (0.5, 0.4, 0.1)


@pytest.mark.parametrize(
    ("initial", "samples", "expected"),
    [
        pytest.param((), [(0.95, WRONG)] * 9, (), id="nine samples are too few"),
        pytest.param((), [(0.95, WRONG)] * 10, (0.95, 0.75, 0.45), id="ten are enough"),
        pytest.param((), [(0.95, WRONG)] * 4 + [(0.5, RIGHT)] * 6, (0.95, 0.75, 0.45), id="four of ten raise"),
        pytest.param(
            (), [(0.1, RIGHT)] * 5 + [(0.95, WRONG)] * 5, (0.95, 0.75, 0.45), id="where both happen they rise"
        ),
        pytest.param((), [(0.7, WRONG)] * 10, (), id="at the threshold is not above"),
        pytest.param((), [(0.4, RIGHT)] * 10, (), id="at the threshold is not below"),
        pytest.param(
            (0.9, 0.8, 0.5),
            [(0.81, WRONG)] * 10 + [(0.85, WRONG)] * 10,
            (0.95, 0.85, 0.55),
            id="at a threshold that steps add up to",
        ),
        pytest.param((), [(1.0, WRONG)] * 40, (0.95, 0.85, 0.6), id="up to the caps"),
        pytest.param((), [(0.0, RIGHT)] * 40, (0.8, 0.6, 0.3), id="down to the floors"),
        pytest.param(HIGH, [(1.0, WRONG)] * 10, HIGH, id="a rise never lowers"),
        pytest.param(LOW, [(0.0, RIGHT)] * 10, LOW, id="a fall never raises"),
        pytest.param((math.inf, math.inf), [(0.3, RIGHT)] * 10, (math.inf, math.inf, 0.35), id="never stays never"),
    ],
)
def test_feedback_moves_thresholds(initial, samples, expected):
    """Four wrong and confident samples among the last ten raise all thresholds by a step, four right and unconfident ones lower them."""
    assert Thresholds(*expected) == told(*samples, initial=Thresholds(*initial))


feedback = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60)


ordered = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(lambda parts: Thresholds(*sorted(parts)[::-1]))


@given(ordered, feedback)
def test_thresholds_stay_in_order(initial, samples):
    now = told(*samples, initial=initial)
    assert 1 >= now.silent >= now.notify >= now.confirm >= 0


@given(feedback)
def test_only_the_last_ten_count(samples):
    dynamic = DynamicThresholds()
    for confidence, right in [*samples, *[(0.65, True)] * 9]:
        dynamic.record_feedback(confidence, right)
    settled = dynamic.current
    for _ in range(5):
        dynamic.record_feedback(0.65, True)
    assert settled == dynamic.current


@pytest.mark.parametrize(
    ("confidence", "right"), [(math.nan, True), (1.1, True), ("1", True), (0.5, None), (0.5, "no")]
)
def test_bad_feedback_is_refused(confidence, right):
    dynamic = DynamicThresholds()
    for _ in range(20):
        with pytest.raises(ValueError, match="must be"):
            dynamic.record_feedback(confidence, right)
    assert Thresholds() == dynamic.current


@pytest.mark.parametrize(
    ("score", "level", "action"),
    [
        (0.9, "silent", "proceed"),
        (0.899, "notify", "proceed_with_status"),
        (0.7, "notify", "proceed_with_status"),
        (0.699, "confirm", "ask_confirmation"),
        (0.4, "confirm", "ask_confirmation"),
        (0.399, "escalate", "request_clarification"),
        (0, "escalate", "request_clarification"),
    ],
)
def test_levels_at_the_default_thresholds(score, level, action):
    decision = decide(score, Thresholds())
    assert (level, action, score) == (decision.level, decision.suggested_action, decision.confidence_score)
    assert str(score) in decision.reason
    assert decision == ConfidenceCalculator().decide_action(score)
    assert decision == ConfidenceCalculator().decide_action(ConfidenceScore(score, ConfidenceFactors()))


@given(ordered, st.floats(0, 1), st.floats(0, 1))
def test_more_confidence_is_never_gated_harder(limits, one, other):
    low, high = sorted([one, other])
    assert decide(high, limits).level.severity <= decide(low, limits).level.severity


@pytest.mark.parametrize(
    ("limits", "level", "reason"),
    [
        (Thresholds(silent=math.inf), "notify", "reaches the notify threshold 0.7"),
        (Thresholds(math.inf, math.inf), "confirm", "cannot reach the notify threshold, which is set to never"),
        (Thresholds(math.inf, math.inf, math.inf), "escalate", "cannot reach the confirm threshold"),
    ],
)
def test_an_infinite_threshold_is_never_reached(limits, level, reason):
    decision = decide(1.0, limits)
    assert level == decision.level
    assert reason in decision.reason


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, "0.5", None, True])
def test_no_decision_without_a_confidence(bad):
    with pytest.raises(ValueError, match="score must be a number"):
        decide(bad, Thresholds())
    with pytest.raises(ValueError, match="score must be a number"):
        ActionDecision(InterventionLevel.SILENT, bad)


def test_an_unknown_level_is_refused():
    with pytest.raises(ValueError, match="maybe"):
        ActionDecision("maybe", 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["lenient", "", "Grace", None, 3, object()])
def test_unknown_profiles_are_refused(bad):
    with pytest.raises(ValueError, match="profile"):
        ConfidenceCalculator(bad)


def test_a_profile_of_ones_own():
    class Constant:
        name = "constant"

        def calculate(self, factors):
            return ConfidenceScore(0.25, factors)

    calculator = ConfidenceCalculator(Constant(), Thresholds(0.2, 0.1, 0.0))
    assert "constant" == calculator.profile
    assert "silent" == calculator.decide_action(calculator.calculate(ConfidenceFactors())).level


def test_only_the_named_profiles_are_known():
    class Own:
        name = "grace"

        def calculate(self, factors):
            return ConfidenceScore(1.0, factors)

    assert all(ConfidenceCalculator(name).is_known for name in PROFILES)
    assert not ConfidenceCalculator(Own()).is_known


@pytest.mark.parametrize(
    ("thresholds", "hint"),
    [
        (None, "pass Thresholds(silent=0.9, notify=0.7, confirm=0.4)"),
        ({"silent": 0.9}, "pass Thresholds.from_dict(...)"),
        (DynamicThresholds(), "pass its .current"),
    ],
)
def test_thresholds_of_another_type_are_refused(thresholds, hint):
    with pytest.raises(TypeError) as caught:
        ConfidenceCalculator(thresholds=thresholds)
    assert f"thresholds must be a Thresholds, not {type(thresholds).__name__}; {hint}" == str(caught.value)
