"""The features of a run, and that they show nothing from after the decision."""

from __future__ import annotations

import contextlib
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import ConfidenceFactors, ConfidenceScore, Grace, ReasoningTrace, from_openai_messages
from grace_kp import calibrate as cal
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
    """The features before step k are those of the trace that ends there, whatever `grace.calls` says about later steps."""
    truncated = {**trace, "steps": trace["steps"][:upto]}
    assert cal.features(truncated, moment=moment) == cal.features(trace, moment=moment, upto=upto)


@given(traces(), json_values, st.sampled_from(cal.MOMENTS), st.booleans())
def test_labels_change_nothing(trace, value, moment, is_success):
    """Success, scores, confidences, feedback and decisions are not read, whatever stands there."""
    labelled = copy.deepcopy(trace)
    labelled["metadata"] |= {"success": is_success, "quality_score": value, "validated_by": value}
    labelled["outcome"]["confidence"] = value
    labelled["grace"] |= dict.fromkeys(
        (
            "status",
            "error",
            "own_success",
            "scores",
            "value",
            "confidence",
            "feedback",
            "decisions",
            "source",
            "label",
            "reward",
        ),
        value,
    )
    assert cal.features(trace, moment=moment) == cal.features(labelled, moment=moment)


@pytest.mark.parametrize("moment", cal.MOMENTS)
def test_a_reader_that_knows_the_label_gives_nothing_away(moment):
    """A chat that ends with an error has the same features, whether its run is said to have succeeded or failed."""
    chat = [
        {"role": "user", "content": "Send it"},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "send", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "Error: closed"},
    ]
    right, wrong, unknown = (from_openai_messages(chat, success=success) for success in (True, False, None))
    assert len(right.steps) == len(wrong.steps) + 1
    assert (
        cal.features(right, moment=moment) == cal.features(wrong, moment=moment) == cal.features(unknown, moment=moment)
    )
    assert 1.0 == cal.features(wrong, moment=moment).as_dict()["error_at_end"]


@given(traces())
def test_a_trace_and_its_dict_form_have_the_same_features(trace):
    """Models are accepted, too."""
    assert cal.features(trace) == cal.features(ReasoningTrace.model_validate(trace))


@given(json_values, st.sampled_from(cal.MOMENTS))
def test_a_document_of_any_form_has_features(value, moment):
    """Foreign documents give finite numbers or None, never an error."""
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
    """Features of the answer and judgements of it are missing then, not average."""
    trace = run(
        [("thought", "x")], evaluation={"self_evaluation": {"score": 0.8}, "coverage": {"score": 0.5, "fallback": True}}
    )
    end, action = cal.features(trace).as_dict(), cal.features(trace, moment="action").as_dict()
    assert (0.8, None) == (end["self_evaluation"], end["coverage"])
    assert {None} == {action[name] for name in ("answer_length", "hedging", "grounding", "self_evaluation", "stated")}


def test_counts_and_rates():
    """A small run, counted by hand."""
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
    """Quality and number of sources come from the recorded results, once they are there."""
    search = {"count": 2, "scores": [0.4, 0.9], "sources": ["p", "q"]}
    calls = [{"name": "find", "tool_call": 0, "observation": 1, "status": "ok", "search": search}]
    trace = run([("tool_call", ("find", {})), ("observation", "…")], calls=calls)
    assert (0.9, pytest.approx(0.65)) == tuple(
        cal.features(trace).as_dict()[name] for name in ("search_quality", "search_average")
    )
    assert cal.features(trace, upto=1).as_dict()["search_quality"] is None


@pytest.mark.parametrize(("how", "problem"), [({"moment": "later"}, "moment must be"), ({"upto": -1}, "upto must be")])
def test_an_unknown_moment_is_refused(how, problem):
    """So is a negative number of steps."""
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
    """A gate sees what the recorded steps before its decision show, so a profile decides on what it was fitted on."""
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
