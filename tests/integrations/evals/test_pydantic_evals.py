"""Our suites inside of the real pydantic-evals."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_evals import Case, Dataset

import grace_kp as gk
from grace_kp import scorers as sc
from grace_kp.integrations.pydantic_evals import SuiteEvaluator

pytest.importorskip("pydantic_evals", reason="needs the extra pydantic-evals")


WANTED = sc.EditExpectation([sc.Operation("update", "a")], patterns={"Invoice": ["total"]})


@pytest.fixture(autouse=True)
def _loop():
    """`evaluate_sync` takes the loop of its thread; one that it has to create itself stays open and is collected in another test."""
    with asyncio.Runner():
        yield


def edit(target):
    return sc.EditResult([sc.Operation("update", target)], pages={"Invoice": "the total"})


def evaluated(cases, evaluator, task=edit):
    return Dataset(name="editing", cases=cases, evaluators=[evaluator]).evaluate_sync(task, progress=False)


def case(name, inputs, expected=WANTED):
    return Case(name=name, inputs=inputs, expected_output=expected)


def test_scores_assertion_and_reason_of_each_case():
    report = evaluated([case("good", "a"), case("bad", "b")], SuiteEvaluator("standard"))
    assert not report.failures
    good, bad = sorted(report.cases, key=lambda one: one.name, reverse=True)
    assert {"overall", "operation-accuracy", "target-block-precision", "content-quality"} == set(good.scores)
    assert (1.0, True) == (good.scores["overall"].value, good.assertions["passed"].value)
    assert (pytest.approx(1 / 3), False) == (bad.scores["overall"].value, bad.assertions["passed"].value)
    assert "target mismatch" in bad.assertions["passed"].reason
    assert "and 0.80 is needed" in bad.scores["operation-accuracy"].reason
    assert pytest.approx(2 / 3) == report.averages().scores["overall"]


def test_expectations_as_data_and_traces_as_output():
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)

    @grace.tool
    def update(path):
        return "ok"

    def agent(path):
        with grace.run("edit") as run:
            update(path)
        return run.trace

    wanted = {"operations": [{"type": "update", "target_block_id": "a"}]}
    report = evaluated([case("one", "a", wanted)], SuiteEvaluator(sc.OperationAccuracy()), agent)
    assert 1.0 == report.cases[0].scores["operation-accuracy"].value


def test_own_ways_to_result_and_expectation():
    evaluator = SuiteEvaluator(sc.OperationAccuracy(), expected=lambda ctx: WANTED, result=lambda ctx: edit(ctx.output))
    report = evaluated([case("one", "a", None)], evaluator, lambda given: given)
    assert report.cases[0].assertions["passed"].value


def test_what_could_not_be_scored_is_no_score():
    suite = sc.Suite([sc.Entry(sc.ResponseTime(10)), sc.Entry(sc.OperationAccuracy())])
    (told,) = evaluated([case("one", "a")], SuiteEvaluator(suite)).cases
    assert {"operation-accuracy"} == set(told.scores)
    assert not told.assertions["passed"].value
    assert "duration_ms is None" in told.assertions["passed"].reason


def test_nothing_expected_is_an_error_of_the_evaluator():
    (told,) = evaluated([case("one", "a", None)], SuiteEvaluator("standard")).cases
    assert "expected_output must be an EditExpectation" in told.evaluator_failures[0].error_message


def test_a_suite_in_a_dataset_s_file(tmp_path):
    path = tmp_path / "cases.yaml"
    path.write_text(
        "name: editing\n"
        "cases:\n- name: one\n  inputs: a\n  expected_output: {operations: [{type: update, target_block_id: a}]}\n"
        "evaluators:\n- SuiteEvaluator: standard\n"
    )
    dataset = Dataset[str, dict, None].from_file(path, custom_evaluator_types=[SuiteEvaluator])
    report = dataset.evaluate_sync(edit, progress=False)
    assert report.cases[0].assertions["passed"].value


def test_an_unknown_preset():
    with pytest.raises(sc.SuiteError, match="a preset must be one of"):
        SuiteEvaluator("harsh")
