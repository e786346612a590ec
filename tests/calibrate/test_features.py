"""The features of a run, and that they show nothing from after the decision."""

from __future__ import annotations

import contextlib
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import ConfidenceFactors, ConfidenceScore, Grace, from_openai_messages
from grace_kp import calibrate as cal
from grace_kp.calibrate._facts import facts_of, fitted_facts, hash_of, task_of
from grace_kp.calibrate._features import finished_calls, transcript_of
from grace_kp.confidence._wording import (
    count_phrases,
    is_empty_result,
    plain,
    shows_failure,
    shows_trouble,
    stated_confidence,
    terms_of,
)
from tests.calibrate.examples import drawn_run, run

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KINDS = ["thought", "tool_call", "observation", "error_recovery"]


@st.composite
def traces(draw):
    """Traces with steps of every order, with and without records of their calls, searches included."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=14))
    texts = st.sampled_from(["Error: gone", "", "order 7 is ready", "perhaps", "[]", "I am sorry", "確信度: 70%"])
    steps = [
        (kind, (draw(st.sampled_from("ab")), {"x": draw(st.integers(0, 1))}) if kind == "tool_call" else draw(texts))
        for kind in kinds
    ]
    calls = None
    if draw(st.booleans()):
        results = [place for place, kind in enumerate(kinds) if kind == "observation"]
        calls = []
        for place, kind in enumerate(kinds):
            if kind == "tool_call":
                later = [result for result in results if result > place]
                call = {
                    "name": "a",
                    "tool_call": place,
                    "status": draw(st.sampled_from(["ok", "error", "cancelled", "unfinished"])),
                }
                if later and draw(st.booleans()):
                    call["observation"] = draw(st.sampled_from(later))
                    results.remove(call["observation"])
                if draw(st.booleans()):
                    call["search"] = {"count": 2, "scores": [0.2, 0.9], "sources": ["p", "q"]}
                calls.append(call)
    return run(steps, answer=draw(texts), calls=calls)


@given(traces(), st.integers(0, 15), st.sampled_from(cal.MOMENTS))
def test_steps_after_the_decision_change_nothing(trace, upto, moment):
    truncated = {**trace, "steps": trace["steps"][:upto]}
    assert cal.features(truncated, moment=moment) == cal.features(trace, moment=moment, upto=upto)


@given(traces(), json_values, st.sampled_from(cal.MOMENTS), st.booleans())
def test_labels_change_nothing(trace, value, moment, is_success):
    """Success, scores, confidences, feedback and decisions are not read, whatever stands there."""
    labelled = copy.deepcopy(trace)
    labelled["metadata"] |= {"success": is_success, "quality_score": value, "validated_by": value}
    labelled["outcome"]["confidence"] = value
    names = "status error own_success scores value confidence feedback decisions source label reward"
    labelled["grace"] |= dict.fromkeys(names.split(), value)
    assert cal.features(trace, moment=moment) == cal.features(labelled, moment=moment)


@given(json_values, st.sampled_from(cal.MOMENTS))
def test_a_document_of_any_form_has_features(value, moment):
    parts = ("steps", "task", "outcome", "grace", "metadata")
    documents = [
        dict.fromkeys(parts, value),
        {"steps": [value, {"type": value, "content": value, "tool": value, "input": value}]},
    ]
    documents.append({"steps": [{"type": "tool_call"}] * 2, "grace": {"calls": value, "evaluation": value}})
    call = {"tool_call": 0, "observation": 1, "status": value, "search": value}
    steps = [{"type": "tool_call", "latency_ms": value}, {"type": "observation", "content": "x"}]
    documents.append({"steps": steps, "grace": {"calls": [call]}})
    for document in documents:
        found = cal.features(document, moment=moment)
        assert len(cal.FEATURES) == len(found.values)
        assert all(number is None or -1e9 < number < 1e9 for number in found.values)


def test_before_an_action_there_is_no_answer():
    trace = run(
        [("thought", "x")], evaluation={"self_evaluation": {"score": 0.8}, "coverage": {"score": 0.5, "fallback": True}}
    )
    end, action = cal.features(trace).as_dict(), cal.features(trace, moment="action").as_dict()
    assert (0.8, None) == (end["self_evaluation"], end["coverage"])
    assert {None} == {action[name] for name in ("answer_length", "hedging", "grounding", "self_evaluation", "stated")}


def test_counts_and_rates():
    steps = [
        ("thought", "Perhaps"), ("tool_call", ("find", {"x": 1})), ("observation", "Error: no"), ("error_recovery", "…"),
        ("tool_call", ("find", {"x": 1})), ("observation", "7 hits"), ("tool_call", ("send", {})), ("observation", "7 hits"),
    ]  # fmt: skip
    found = cal.features(run(steps, answer="7 hits, perhaps?")).as_dict()
    expected = {
        "tool_variety": 2 / 3,
        "repeated_calls": 1 / 3,
        "error_rate": 1.5 / 4,
        "error_at_end": 0.0,
        "repeated_results": 1 / 3,
        "asks": 1.0,
    }
    assert expected == {name: pytest.approx(found[name]) for name in expected}
    assert ("find", "send") == cal.features(run(steps)).tools


def test_a_search_counts_with_its_results():
    search = {"count": 2, "scores": [0.4, 0.9], "sources": ["p", "q"]}
    calls = [{"name": "find", "tool_call": 0, "observation": 1, "status": "ok", "search": search}]
    trace = run([("tool_call", ("find", {})), ("observation", "…")], calls=calls)
    assert (0.9, pytest.approx(0.65)) == tuple(
        cal.features(trace).as_dict()[name] for name in ("search_quality", "search_average")
    )
    assert cal.features(trace, upto=1).as_dict()["search_quality"] is None


@pytest.mark.parametrize(("how", "problem"), [({"moment": "later"}, "moment must be"), ({"upto": -1}, "upto must be")])
def test_an_unknown_moment_is_refused(how, problem):
    with pytest.raises(ValueError, match=problem):
        cal.features(drawn_run(1, correct=True), **how)


class Observed:
    """A learned profile that keeps the features of every run that it is asked about."""

    name = "observed"
    thresholds = None

    def __init__(self):
        self.seen = {moment: [] for moment in cal.MOMENTS}

    def calculate(self, factors):
        return ConfidenceScore(score=1.0, factors=factors)

    def confidence(self, document, *, moment):
        self.seen[moment].append(cal.features(document, moment=moment))
        return self.calculate(ConfidenceFactors())


def test_a_live_run_has_the_features_of_its_recording():
    profile = Observed()
    grace = Grace(store="memory:", profile=profile, evaluator=None, embedder=None, reviewer=None)

    @grace.tool
    def find(order):
        if order == 2:
            raise LookupError("gone")
        return f"order {order}"

    @grace.gate
    @grace.tool
    def send(order):
        return "sent"

    with grace.run("Send the orders") as run:
        grace.thought("Perhaps the first.")
        find(1)
        send(1)
        with contextlib.suppress(LookupError):
            find(2)
        send(2)
    document = run.trace.to_dict()
    grace.close()
    steps = [decision["step"] for decision in document["grace"]["decisions"]]
    assert [cal.features(document, moment="action", upto=step) for step in steps] == profile.seen["action"]
    assert cal.features(document) == profile.seen["end"][-1]


STEPS = [
    ("thought", "Look up."),
    ("tool_call", ("find", {"order": 1})),
    ("observation", "Error: gone"),
    ("error_recovery", "Recovered from find"),
    ("tool_call", ("find", {"order": 2})),
    ("observation", "order 2"),
    ("observation", "a user's message"),
]


def seen(document, **how):
    return transcript_of(document, **{"has_ended": True, "upto": None, **how})


def test_results_belong_to_calls_and_messages_to_nobody():
    transcript = seen(run(STEPS))
    assert ["Error: gone", "order 2"] == [call.result for call in transcript.calls] == transcript.results
    assert [True, False] == [call.failed for call in transcript.calls]
    assert ["a user's message"] == transcript.messages
    assert ["Look up."] == transcript.thoughts


def test_recorded_calls_say_which_result_is_whose():
    steps = [("tool_call", ("a", {})), ("tool_call", ("b", {})), ("observation", "of b"), ("observation", "of a")]
    calls = [
        {"name": "a", "tool_call": 0, "observation": 3, "status": "error"},
        {"name": "b", "tool_call": 1, "observation": 2, "status": "ok"},
    ]
    transcript = seen(run(steps, calls=calls))
    assert [("of a", True), ("of b", False)] == [(call.result, call.failed) for call in transcript.calls]
    assert [calls[1]] == finished_calls(seen(run(steps, calls=calls), upto=3))


def test_a_status_counts_once_the_result_is_there():
    calls = [{"name": "a", "tool_call": 0, "observation": 1, "status": "error"}]
    document = run([("tool_call", ("a", {})), ("observation", "x")], calls=calls)
    assert [False] == [call.failed for call in seen(document, upto=1).calls]
    assert [] == finished_calls(seen(document, upto=1))
    assert [True] == [call.failed for call in seen(document).calls]


def test_a_recovery_at_the_end_is_not_seen():
    """A reader that knows that the run was right adds this step, so it would give the label away."""
    failed = STEPS[:3]
    assert seen(run(failed)) == seen(run([*failed, ("error_recovery", "Recovered")]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Confidence: 0.8", 0.8), ("confidence = 85%", 0.85), ("I am 85 % confident in this.", 0.85), ("My confidence is 7/10.", 0.7),
        ("Confidence: 92", 0.92), ("Confidence level (0-1): .75", 0.75), ("確信度: 80%", 0.8), ("**Confidence**: 1", 1.0), ("confidence 250%", None),
        ("The flight costs 85% more.", None), ("", None), ("Confidence: 0.2 … on reflection, confidence: 0.9", 0.9), ("90% sure", 0.9),
        ("I am certain that 3 of them arrive.", None),
    ],
)  # fmt: skip
def test_a_confidence_that_a_text_states_is_read(text, expected):
    assert expected == stated_confidence(text)


@given(st.text())
def test_any_text_is_read(text):
    stated = stated_confidence(text)
    assert stated is None or 0 <= stated <= 1
    words = plain(text)
    counts = [count_phrases(words, kind) for kind in ("hedges", "refusals", "apologies", "thanks")]
    assert min(*counts, len(terms_of(words))) >= 0
    assert {bool} == {type(shows_failure(text)), type(shows_trouble(text)), type(is_empty_result(text))}


@pytest.mark.parametrize(
    ("text", "hedges", "refusals"),
    [
        ("It might be late, perhaps tomorrow.", 2, 0),
        ("I'm sorry, I can't do that.", 0, 2),
        ("Sent.", 0, 0),
        ("おそらく明日届くかもしれません。", 2, 0),
        ("申し訳ありませんが、できません。", 0, 2),
    ],
)
def test_doubt_and_refusal_are_counted_by_distinct_phrases(text, hedges, refusals):
    assert (hedges, refusals) == tuple(count_phrases(plain(text), kind) for kind in ("hedges", "refusals"))


def test_words_are_compared_without_case_and_punctuation():
    assert {"flight", "hat136", "7"} == terms_of(plain("Flight HAT136, at 7!"))
    assert {"東京", "京駅"} == terms_of(plain("東京駅"))


CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]


def test_agents_models_and_tools_are_named():
    document = run([("tool_call", ("find", {}))], model_calls=[{"model": "m-1"}, {"model": "m-1"}, 3])
    assert {"agents": ["kp:agent:clerk"], "models": ["m-1"], "tools": ["find"], "domains": ["default"]} == facts_of(
        document
    )
    assert ["m-2"] == facts_of(from_openai_messages(CHAT, extra={"model": "m-2"}))["models"]
    assert {"agents": [], "models": [], "tools": [], "domains": []} == facts_of({})


def test_gated_actions_count_as_tools():
    document = run([("tool_call", ("find", {}))], decisions=[{"action": "pay"}, {"action": "find"}, None])
    assert ["find", "pay"] == facts_of(document)["tools"]


def test_the_domain_of_a_run():
    assert [["default"], [], []] == [
        facts_of(each)["domains"] for each in (run([]), {}, {"metadata": {"task_domain": 3}})
    ]


def test_a_run_is_known_by_a_hash_of_id_and_objective():
    first = run([], objective="a")
    assert 12 == len(hash_of(first))
    assert hash_of(first) == hash_of(run([("thought", "other steps")], objective="a"))
    assert hash_of(first) != hash_of(run([], objective="b")) != hash_of({**run([], objective="b"), "id": "x"})
    assert (None, None) == (hash_of({}), hash_of({**first, "id": 7}))


def test_a_time_that_is_unknown_is_left_out():
    document = run([])
    assert ("2026-11-01T00:00:00Z",) * 2 == tuple(
        fitted_facts([document, from_openai_messages(CHAT)], 2)[k] for k in ("from", "to")
    )
    assert None is fitted_facts([from_openai_messages(CHAT)], 1)["from"]
    of_file = {**document, "grace": {"created_from": "file"}}
    assert None is fitted_facts([of_file], 1)["from"]


def test_a_task_is_its_id_or_else_its_objective():
    assert "Send the order" == task_of(run([]))
    assert "task_id=7" == task_of(from_openai_messages(CHAT, extra={"task_id": 7}))
    assert "task_id=a" == task_of(run([], metadata={"task_id": "a"}))
    assert "" == task_of({})
