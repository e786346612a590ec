"""What a trace holds under `grace`, as typed values; the JSON stays as it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.levels import InterventionLevel
from grace_kp.testing import ScriptedReviewer, make_grace
from grace_kp.trace import ReasoningTrace

PROPERTIES = (
    "status", "name", "confidence", "value", "decisions", "calls", "scores", "evaluation", "usage", "error", "parent_id",
    "children", "tags", "user", "session", "run_metadata",
)  # fmt: skip


def document(**more):
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": "kp:trace:1",
        "metadata": {"created_at": "2026-01-02T03:04:05.000Z", "task_domain": "default", "success": True,
                     "quality_score": 0.5, "visibility": "private", "privacy_level": "private"},
        "task": {"objective": "x"},
        "steps": [{"step_id": 0, "type": "thought"}],
        "outcome": {"result_summary": "", "confidence": 0.5},
        **more,
    }  # fmt: skip


def trace_with(grace):
    return ReasoningTrace.model_validate(document(grace=grace))


@pytest.fixture(scope="module")
def trace():
    """A run with a search, a gated call that a reviewer changed, and a tool that fails."""
    grace = make_grace(
        reviewer=ScriptedReviewer(gk.InterventionResponse("modify", modified={"euros": 5}, reviewer="ana")),
        scorers=lambda _: True,
    )

    @grace.retriever
    def search(query):
        return [{"text": "Kyoto", "score": 0.9, "source": "a.md"}]

    @grace.tool
    def fail():
        raise KeyError("gone")

    @grace.gate(floor="confirm")
    def pay(to, euros):
        return f"{to} {euros}"

    with grace.run("settle the bill", name="clerk") as run:
        search("bill")
        with pytest.raises(KeyError):
            fail()
        pay("Ana", euros=50)
    return run.trace


def test_the_confidence_and_its_parts(trace):
    """The same figures as in the JSON; a part that was not evaluated is None."""
    confidence, told = trace.confidence, trace.grace["confidence"]
    assert isinstance(confidence, gk.ConfidenceRecord)
    assert (told["score"], told["level"], told["profile"], told["reason"]) == (
        confidence.score, confidence.level, confidence.profile, confidence.reason,
    )  # fmt: skip
    assert confidence.score == trace.outcome.confidence
    assert 0.9 == confidence.breakdown["search_quality"]
    assert "llm_self_eval" in confidence.not_evaluated
    assert confidence.breakdown["llm_self_eval"] is None
    assert ("tool_failures(rate=0.50)",) == confidence.penalties
    assert (None, False) == (confidence.own, confidence.run_failed)


def test_the_value_and_its_parts(trace):
    """The score is the one in the metadata; a fallback of the novelty is marked."""
    value = trace.value
    assert isinstance(value, gk.ValueRecord)
    assert trace.metadata.quality_score == value.score
    assert trace.grace["value"]["complexity"] == value.complexity
    assert (0.5, "no embedder") == (value.novelty, value.novelty_fallback)


def test_a_decision_with_its_answer(trace):
    """Level, arguments, answer and outcome; `data` is the whole entry."""
    (decision,) = trace.decisions
    assert isinstance(decision, gk.DecisionRecord)
    assert ("pay", "executed_modified", True) == (decision.action, decision.outcome, decision.was_executed)
    assert (InterventionLevel.CONFIRM, "confirm") == (decision.level, decision.floor)
    assert {"to": "Ana", "euros": 50} == decision.arguments
    assert ("modify", "ana", {"euros": 5}) == (
        decision.response.action, decision.response.reviewer, decision.response.modified,
    )  # fmt: skip
    assert 64 == len(decision.digest) == len(decision.executed_digest)
    assert trace.grace["decisions"][0] == decision.data


def test_calls_searches_and_scores(trace):
    """In the order in which they happened; their steps are named by number."""
    search, fail = trace.calls
    assert ("search", "ok", 1, (0.9,), ("a.md",)) == (
        search.name, search.status, search.search.count, search.search.scores, search.search.sources,
    )  # fmt: skip
    assert "search" == trace.steps[search.tool_call].tool.name
    assert ("error", "KeyError") == (fail.status, fail.error.type)
    assert [(1.0, True)] == [(score.score, score.passed) for score in trace.scores]
    assert ("completed", "clerk") == (trace.status, trace.name)


def test_an_unusable_score_and_a_notice():
    """Each with what the trace says of it."""
    grace = make_grace(unmeasured="notify", on_notify=lambda request: None)

    @grace.retriever
    def search(query):
        return [("Kyoto", 0.02)]

    @grace.gate(floor="notify")
    def archive(folder):
        return folder

    with grace.run("x") as run:
        archive("2025")
        search("x")
    (score,) = run.trace.calls[-1].search.unusable
    assert ("0.02", True) == (score.value, "distance" in score.why)
    notice = run.trace.decisions[0].notice
    assert ("on_notify", True) == (notice.to, "archive" in notice.text)


def test_a_trace_without_our_part_has_none_of_it():
    """A foreign trace reads as missing, not as an error."""
    trace = ReasoningTrace.model_validate(document())
    assert (None, None, None, [], [], [], None, {}, None, None, (), ()) == (
        trace.status, trace.confidence, trace.value, trace.decisions, trace.calls, trace.scores, trace.evaluation,
        trace.usage, trace.error, trace.parent_id, trace.children, trace.awaits,
    )  # fmt: skip


@pytest.mark.parametrize(
    "part",
    [None, 3, "x", [], [3], {}, {"score": "0.5"}, {"score": True}, {"score": 2}, {"score": -1}, {"score": None}],
)
def test_a_malformed_part_counts_as_missing(part):
    """No figure is made up from it."""
    trace = trace_with({"confidence": part, "value": part, "error": part, "parent": part})
    assert (None, None, None, None) == (trace.confidence, trace.value, trace.error, trace.parent_id)


def test_malformed_entries_are_left_out_and_the_others_stay():
    """One bad entry hides no good one."""
    good = {"action": "pay", "outcome": "executed", "level": "nonsense", "score": 7, "arguments": [], "response": 3}
    trace = trace_with({"decisions": [3, {"action": "pay"}, good, {"action": 1, "outcome": "x"}]})
    (decision,) = trace.decisions
    assert ("pay", None, None, {}, None) == (
        decision.action, decision.level, decision.score, decision.arguments, decision.response,
    )  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text() | st.sampled_from(["silent", "pay", "executed"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from([
        "score", "action", "outcome", "level", "breakdown", "penalties", "response", "arguments", "search", "count", "name",
        "status", "error", "type", "scores", "trace_id", "self_evaluation", "passed", "not_evaluated", "modified",
    ]), inner, max_size=6),
    max_leaves=20,
)  # fmt: skip
GRACE = st.dictionaries(st.sampled_from([*PROPERTIES, "parent"]), JSON)


@given(GRACE)
def test_anything_under_grace_can_be_read(grace):
    """No property raises, and reading changes nothing in the JSON."""
    whole = document(grace=grace)
    before = json.dumps(whole)
    trace = ReasoningTrace.model_validate(whole)
    for name in PROPERTIES:
        getattr(trace, name)
    assert before == json.dumps(trace.to_dict())


@given(st.dictionaries(st.sampled_from(PROPERTIES), JSON, min_size=1))
def test_foreign_top_level_keys_of_these_names_are_kept(extra):
    """They stay in the JSON and in `model_extra`, and are not taken for ours."""
    whole = document(**extra)
    trace = ReasoningTrace.model_validate(whole)
    assert whole == trace.to_dict()
    assert extra == trace.model_extra
    assert (None, None, []) == (trace.confidence, trace.value, trace.decisions)
