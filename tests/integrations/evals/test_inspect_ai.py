"""Our suites inside of the real Inspect AI, with its own mock model."""

from __future__ import annotations

import math

import pytest

from grace_kp import scorers as sc

pytest.importorskip("inspect_ai", reason="needs the extra inspect-ai")

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ModelOutput
from inspect_ai.solver import solver
from inspect_ai.tool import ToolCall, ToolCallError

from grace_kp.integrations.inspect_ai import inspect_scorer, result_from_state

# What Inspect and its own dependencies warn of is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")

EXPECTED = {"operations": [{"type": "update", "target_block_id": "a.md"}], "patterns": {"result": ["done"]}}


@solver
def said(*paths, answer="all done"):
    """An agent that has updated these files; the one that is called locked could not be."""

    async def solve(state, generate):
        for number, path in enumerate(paths):
            call = ToolCall(id=f"c{number}", function="update", arguments={"path": path}, type="function")
            state.messages.append(ChatMessageAssistant(content="", tool_calls=[call]))
            error = ToolCallError("unknown", "it is locked") if path == "locked" else None
            state.messages.append(ChatMessageTool(content="ok", tool_call_id=call.id, function="update", error=error))
        state.output = ModelOutput.from_content("mockllm/model", answer)
        return state

    return solve


def ran(tmp_path, scorer, solver, sample=None):
    sample = sample or Sample(input="edit", target="x", metadata={"expected": EXPECTED})
    task = Task(dataset=[sample], solver=solver, scorer=scorer)
    (log,) = evaluate(task, model="mockllm/model", log_dir=str(tmp_path), display="none")
    return log


def scored(tmp_path, scorer, solver=None, sample=None):
    log = ran(tmp_path, scorer, solver or said("a.md"), sample)
    assert log.status == "success", log.error
    return log


def only(log):
    (score,) = log.samples[0].scores.values()
    return score


def no_number(value):
    """NaN; older versions read it back from the log as None."""
    return value is None or math.isnan(value)


def metrics(log):
    return {one.name: one.metrics["mean"].value for one in log.results.scores}


def test_a_sample_that_passes(tmp_path):
    log = scored(tmp_path, inspect_scorer(sc.Suite.preset("standard")))
    assert {
        "overall": 1.0,
        "passed": 1.0,
        "operation-accuracy": 1.0,
        "target-block-precision": 1.0,
        "content-quality": 1.0,
    } == only(log).value
    assert only(log).explanation == "every score reaches its threshold"
    assert only(log).answer == "all done"
    assert metrics(log)["overall"] == 1.0
    assert list(log.samples[0].scores) == ["grace_kp_standard"]


def test_tool_calls_are_operations(tmp_path):
    log = scored(tmp_path, inspect_scorer(sc.OperationAccuracy()), said("b.md"))
    score = only(log)
    assert (0.0, 0.0) == (score.value["operation-accuracy"], score.value["passed"])
    assert "target mismatch" in score.explanation
    assert score.metadata["results"][0]["details"]["total_expected_operations"] == 1
    assert {"overall": 0.0, "passed": 0.0, "operation-accuracy": 0.0} == metrics(log)


def test_a_tool_that_failed_was_not_applied(tmp_path):
    seen = []

    def looked(state):
        seen.append(result_from_state(state))
        return seen[0]

    log = scored(tmp_path, inspect_scorer(sc.OperationResult(), result=looked), said("locked", "a.md"))
    assert (False, True) == seen[0].applied
    assert 0.6 * 0.5 + 0.4 == pytest.approx(only(log).value["operation-result"])


def test_other_inputs_of_tools(tmp_path):
    wanted = sc.EditExpectation([sc.Operation("update", None, content="a.md")])
    scorer = inspect_scorer(sc.OperationAccuracy(), target="id", content="path", expected=lambda state, target: wanted)
    assert only(scored(tmp_path, scorer)).value["operation-accuracy"] == 1.0


def test_the_target_is_expected_where_nothing_else_is(tmp_path):
    solver = said(answer="it costs 4 (net)")
    log = scored(tmp_path, inspect_scorer(sc.ContentQuality()), solver, Sample(input="?", target=["4 (net)", "5"]))
    assert only(log).value["content-quality"] == 0.5


def test_what_could_not_be_scored_is_no_score(tmp_path):
    suite = sc.Suite([sc.Entry(sc.ResponseTime(10)), sc.Entry(sc.OperationAccuracy())])
    score = only(scored(tmp_path, inspect_scorer(suite)))
    assert no_number(score.value["response-time"])
    assert no_number(score.value["overall"])
    assert no_number(score.value["passed"])
    assert score.value["operation-accuracy"] == 1.0
    assert "duration_ms is None" in score.explanation


class Named:
    """A scorer of the user's that says the same of everything, under a name that others have too."""

    threshold = 0.5

    def __init__(self, kind, answer):
        self.type, self.answer = kind, answer

    def score(self, actual, expected):
        return self.answer

    def details(self, actual, expected):
        return {"note": "password: hunter2secret99"}


def test_scorers_of_the_same_name_are_all_there(tmp_path):
    suite = sc.Suite([sc.Entry(Named(name, score)) for name, score in (("mine", 0.1), ("mine", 0.9), ("overall", 0.3))])
    score = only(scored(tmp_path, inspect_scorer(suite)))
    assert {"mine": 0.1, "mine-2": 0.9, "overall-2": 0.3, "passed": 0.0} == {
        name: value for name, value in score.value.items() if name != "overall"
    }


def test_a_secret_does_not_reach_the_log(tmp_path):
    score = only(scored(tmp_path, inspect_scorer(sc.Suite([sc.Entry(Named("mine", 1.0))]))))
    assert "hunter2" not in str(score)


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({}, "states what is expected"),
        ({"expected": 3}, "must be an EditExpectation or an object with its fields, not 3"),
        ({"expected": {"goal": 1}}, "unknown field 'goal'"),
    ],
)
def test_nothing_usable_expected_is_an_error(tmp_path, metadata, problem):
    log = ran(
        tmp_path, inspect_scorer(sc.OperationAccuracy()), said("a"), Sample(input="edit", target="", metadata=metadata)
    )
    assert log.status == "error"
    assert problem in log.error.message
