"""Cases in JSON lines: read with their names, and a line that cannot be read is one error with its place."""

from __future__ import annotations

import json

import pytest

from grace_kp import scorers as sc

OPERATION = {"type": "update", "target_block_id": "a"}
CASE = {"id": "first", "actual": {"operations": [OPERATION]}, "expected": {"operations": [OPERATION]}}


@pytest.fixture
def read(tmp_path):
    """Reads lines, texts or objects, as a file of cases."""

    def call(*lines):
        path = tmp_path / "cases.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts) + "\n", "utf-8")
        return list(sc.read_cases(path))

    return call


def test_a_case_holds_a_result_and_an_expectation(read):
    """Blank lines are passed over, and a case without an id is named after its line."""
    nameless = {name: value for name, value in CASE.items() if name != "id"}
    first, third = read(CASE, "", nameless)
    operations = (sc.Operation("update", "a"),)
    assert first == sc.Case("first", sc.EditResult(operations), sc.EditExpectation(operations))
    assert third.id == "3"


def test_a_trace_stands_for_a_result(read):
    """`inputs` names the tool arguments that hold the target."""
    step = {"step_id": 0, "type": "tool_call", "tool": {"name": "update"}, "input": {"file": "a"}}
    trace = {
        "id": "kp:trace:1", "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace",
        "metadata": {"created_at": "2026-01-01T00:00:00.000Z", "task_domain": "default", "success": True, "quality_score": 0.5},
        "task": {"objective": "x"}, "steps": [step], "outcome": {"result_summary": "done", "confidence": 0.5},
    }  # fmt: skip
    (case,) = read({"trace": trace, "inputs": {"target": "file"}, "expected": {"operations": [OPERATION]}})
    assert (case.actual.operations, case.actual.pages) == (case.expected.operations, {"result": "done"})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "Expecting property name"),
        ("3", "the case must be an object, not 3"),
        ('{"id": 1, "id": 2}', "duplicate key 'id'"),
        ({**CASE, "more": 1}, "the case has an unknown field 'more'; known are actual, expected, id, inputs, trace"),
        ({**CASE, "trace": {}}, "a case has either actual or trace, not both"),
        ({"actual": {"operations": 3}, "expected": {}}, "actual.operations must be a list, not 3"),
        ({"actual": {"operations": [OPERATION, {"kind": "x"}]}, "expected": {}}, "actual.operations[1]: it has an"),
        ({"actual": {}, "expected": {"operations": [{}]}}, "expected.operations[0]: "),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_cannot_be_read(read, tmp_path, line, problem):
    """The message names the file, the line and the field."""
    with pytest.raises(sc.CaseError) as caught:
        read(CASE, line)
    assert str(caught.value).startswith(f"{tmp_path / 'cases.jsonl'}:2: {problem}")
