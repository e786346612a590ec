"""Files of labelled runs: native traces, chat runs with a field, results of benchmarks; what is wrong with a line is said."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.errors import InvalidRecord
from tests.calibrate.examples import run

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order": 1}'}}
CHAT = [
    {"role": "user", "content": "Send order 1"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "Error: no such order"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "Error: no such order"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
]
"""Call ids repeat, contents are null, and the run ends on a call without an observation."""


def written(tmp_path, *documents, name="runs.jsonl"):
    path = tmp_path / name
    path.write_text("".join(f"{document if isinstance(document, str) else json.dumps(document)}\n" for document in documents))  # fmt: skip
    return path


def read(path, **options):
    return list(cal.read_labelled(path, **options))


def stated(path, **options):
    """Label and source of each run, or the problem."""
    return [
        str(item).rpartition("/")[2]
        if isinstance(item, InvalidRecord)
        else (item.label.correct, item.label.source)
        if item.label
        else item.reason
        for item in read(path, **options)
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reward": 1.0}, (True, "field:reward")),
        ({"reward": 0.9999999}, (True, "field:reward")),
        ({"reward": 0.67, "correct": True}, (0.67, "field:reward")),
        ({"reward": None, "correct": False, "success": True}, (False, "field:correct")),
        ({"success": 0}, (False, "field:success")),
        ({"label": "passed"}, (True, "field:label")),
        ({"label": "Wrong"}, (False, "field:label")),
        ({"label": "0.25"}, (0.25, "field:label")),
        ({"label": {"success": False, "reward": 0.5}}, (False, "field:label.success")),
        ({"label": {"kind": "x", "reward": 0.5}}, (0.5, "field:label.reward")),
        ({"reward": {"reward": 1}}, (True, "field:reward.reward")),
        ({"reward_info": {"reward": 0.0}}, (False, "field:reward_info.reward")),
        ({"resolved": True}, (True, "field:resolved")),
        ({"evaluation": {"passed": False}}, (False, "field:evaluation.passed")),
        ({}, "no label"),
        ({"reward": None, "label": {}}, "no label"),
    ],
)
def test_usual_fields_are_found(tmp_path, fields, expected):
    """The first that is not null states the label."""
    assert [expected] == stated(written(tmp_path, {"messages": CHAT, **fields}))


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("quality", (0.5, "field:quality")),
        ("a.b", (True, "field:a.b")),
        ("c.d.e", (False, "field:c.d.e")),
        ("scores.1.value", (True, "field:scores.1.value")),
        ("scores.7.value", "no label in the field scores.7.value"),
        ("scores.x", "no label in the field scores.x"),
        ("nothing", "no label in the field nothing"),
        ("quality.more", "no label in the field quality.more"),
    ],
)
def test_a_field_may_be_named(tmp_path, field, expected):
    document = {
        "messages": CHAT, "reward": 1.0, "quality": 0.5, "a": {"b": False}, "a.b": True, "c": {"d": {"e": 0}}, "scores": [{"value": 0}, {"value": 1}],
    }  # fmt: skip
    assert [expected] == stated(written(tmp_path, document), label=field)


def test_what_is_no_label_is_reported_with_its_place(tmp_path):
    path = written(
        tmp_path,
        {"messages": CHAT, "reward": 2.5},
        "{broken",
        {"messages": CHAT, "reward": 1},
        {"messages": CHAT, "correct": "A"},
        {"simulations": [{"messages": CHAT, "reward_info": {"reward": "high"}}]},
    )
    problem = "is not a label: it must be true, false, a number from 0 to 1, or a word such as 'passed' (got {})"
    assert [
        f"runs.jsonl:1: reward: {problem.format(2.5)}",
        "runs.jsonl:2: is not JSON: expecting property name enclosed in double quotes (column 2)",
        (True, "field:reward"),
        f"runs.jsonl:4: correct: {problem.format(repr('A'))}",
        f"runs.jsonl:5: simulations[0].reward_info.reward: {problem.format(repr('high'))}",
    ] == stated(path)


def test_native_traces_are_labelled_by_their_feedback(tmp_path):
    feedback = [{"correct": False, "source": "test"}, {"correct": True, "source": "approval"}]
    path = written(tmp_path, run([], feedback=feedback), run([]), {**run([], own_success=False), "label": 0.5})
    assert [(False, "test"), "no label", (0.5, "field:label")] == stated(path)
    assert [(True, "approval"), "no label", "no label"] == stated(path, sources="approval")
    assert ["label of another source", "no label", (False, "own")] == stated(path, sources="own")
    assert [(True, "field:metadata.success")] * 3 == stated(path, label="metadata.success")


def test_an_approval_alone_is_no_label_even_where_a_field_is(tmp_path):
    feedback = [{"correct": True, "source": "approval"}]
    assert ["label of another source"] == stated(written(tmp_path, {**run([], feedback=feedback), "label": True}))


@pytest.mark.parametrize("options", [{"label": ""}, {"label": 3}, {"sources": []}, {"label": "a", "sources": "user"}])
def test_options_that_cannot_be_used(tmp_path, options):
    with pytest.raises(ValueError, match=r"label|sources"):
        cal.read_labelled(written(tmp_path), **options)


def test_results_of_tau_bench_work_as_they_are(tmp_path):
    """A JSON list of runs for tau-bench, `simulations` with `reward_info` for tau2-bench; the groups are the tasks."""
    tau = [{"task_id": n // 2, "trial": n % 2, "reward": float(n % 2), "traj": CHAT, "info": {"task": {"reward": 7}}} for n in range(4)]  # fmt: skip
    tau2 = {
        "info": {"environment_info": {}}, "tasks": [{"id": "0"}],
        "simulations": [{"id": "a", "task_id": "0", "trial": 0, "messages": CHAT, "reward_info": {"reward": 1.0, "db_check": {}}}],
    }  # fmt: skip
    for name, document, indent in (("a.json", tau, None), ("b.json", tau, 2), ("c.json", tau2, 2)):
        path = tmp_path / name
        path.write_text(json.dumps(document, indent=indent))
    expected = [(False, "field:reward"), (True, "field:reward")] * 2
    assert expected == stated(tmp_path / "a.json") == stated(tmp_path / "b.json")
    assert ["task_id=0", "task_id=0", "task_id=1", "task_id=1"] == cal.labels(tmp_path / "a.json").groups
    assert [(True, "field:reward_info.reward")] == stated(tmp_path / "c.json")


def test_no_step_depends_on_the_label(tmp_path):
    path = written(tmp_path, {"messages": CHAT, "reward": 1.0}, {"messages": CHAT, "reward": 0.0})
    solved, failed = (item.trace.to_dict() for item in read(path))
    ids = [trace.pop("id") for trace in (solved, failed)]
    for trace in (solved, failed):
        trace["grace"].pop("source")
    assert solved == failed
    assert ids == [trace.id for trace in gk.read_traces(path)]


SCALARS = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(max_size=6)  # fmt: skip
VALUES = SCALARS | st.dictionaries(st.sampled_from(["success", "reward", "correct", "value", "x"]), SCALARS, max_size=3) | st.lists(SCALARS, max_size=2)  # fmt: skip
LABELS = st.fixed_dictionaries({}, optional=dict.fromkeys(("reward", "correct", "success", "label", "reward_info", "info"), VALUES))  # fmt: skip


@given(st.lists(LABELS, min_size=1, max_size=5))
def test_any_field_gives_a_label_a_reason_or_a_problem(documents):
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), *({"messages": CHAT, **document} for document in documents))
        items = read(path)
    assert len(documents) == len(items)
    for number, item in enumerate(items, 1):
        if isinstance(item, InvalidRecord):
            assert number == item.line
        elif item.label is None:
            assert item.reason
        else:
            assert isinstance(item.label.correct, bool) or 0 < item.label.correct < 1
