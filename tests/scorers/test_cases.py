"""Cases in JSON lines: read with their names, and a line that cannot be read is one error with its place."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from grace_kp import scorers as sc
from tests.scorers.records import BAD, GOOD, NEEDS_REGEX

OPERATION = {"type": "update", "target_block_id": "a"}
CASE = {"id": "first", "actual": {"operations": [OPERATION]}, "expected": {"operations": [OPERATION]}}


@pytest.fixture
def read(tmp_path):

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


def case(number, target="a"):
    expected = {"operations": [{**OPERATION, "target_block_id": target}]}
    return {"id": f"case {number}", "actual": {"operations": [OPERATION]}, "expected": expected}


@pytest.fixture
def write(tmp_path):

    def call(*cases):
        path = tmp_path / "cases.jsonl"
        path.write_text("".join(json.dumps(item) + "\n" for item in cases), "utf-8")
        return path

    return call


def accuracy():
    return sc.Suite([sc.Entry(sc.OperationAccuracy())])


def test_rows_are_in_the_order_of_the_file(write):
    """Each holds the id and the report as plain data."""
    rows = sc.evaluate_cases(accuracy(), write(case(1), case(2, "b")))
    assert [("case 1", True, 1.0), ("case 2", False, 0.0)] == [
        (name, report["passed"], report["overall"]) for name, report in rows
    ]
    assert json.loads(json.dumps(rows)) == [list(row) for row in rows]


def test_details_are_left_out_on_request(write):
    ((_, report),) = sc.evaluate_cases(accuracy(), write(case(1)), details=False)
    assert "details" not in report["results"][0]


def test_a_file_without_cases_is_an_error(write):
    """A suite over nothing would pass."""
    with pytest.raises(sc.CaseError, match=r"cases\.jsonl: the file has no cases"):
        sc.evaluate_cases(accuracy(), write())


def rows():
    suite = sc.Suite([sc.Entry(sc.OperationAccuracy()), sc.Entry(sc.ContentQuality())])
    return [(name, suite.evaluate(*case).to_dict()) for name, case in (("good <1>", GOOD), ("bad", BAD))]


@NEEDS_REGEX
def test_a_page_shows_totals_scorers_and_the_diagnosis_of_failed_cases():
    """Names are text, not markup."""
    page = sc.html_report(rows(), "a suite")
    assert "<h1>a suite</h1><p>1 of 2 cases pass; overall 0.500 on average.</p>" in page
    assert "good &lt;1&gt;" in page
    assert "operation-accuracy: 0.00, and 0.80 is needed" in page
    assert page.count("<summary>why</summary>") == 1


@NEEDS_REGEX
def test_junit_has_a_test_case_for_each_case():
    root = ElementTree.fromstring(sc.junit_report(rows(), "a suite").partition("\n")[2])
    assert (root.get("name"), root.get("tests"), root.get("failures")) == ("a suite", "2", "1")
    good, bad = root.findall("testcase")
    assert (good.get("name"), good.find("failure")) == ("good <1>", None)
    assert bad.find("failure").get("message") == "overall 0.000"
    assert "operation-accuracy: 0.00" in bad.find("failure").text
