"""Evaluation of a file of cases in one process. The tests of `grace-kp eval` cover several processes, each in a fresh interpreter."""

from __future__ import annotations

import json

import pytest

from grace_kp import scorers as sc

OPERATION = {"type": "update", "target_block_id": "a"}


def case(number, target="a"):
    expected = {"operations": [{**OPERATION, "target_block_id": target}]}
    return {"id": f"case {number}", "actual": {"operations": [OPERATION]}, "expected": expected}


@pytest.fixture
def write(tmp_path):
    """Writes cases to a file."""

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
    """They may be large."""
    ((_, report),) = sc.evaluate_cases(accuracy(), write(case(1)), details=False)
    assert "details" not in report["results"][0]


def test_progress_sees_every_row(write):
    """It wraps the rows while they are computed, and knows their number."""
    seen = []

    def progress(rows, total):
        for row in rows:
            seen.append((row[0], total))
            yield row

    sc.evaluate_cases(accuracy(), write(case(1), case(2)), progress=progress)
    assert seen == [("case 1", 2), ("case 2", 2)]


def test_a_file_without_cases_is_an_error(write):
    """A suite over nothing would pass."""
    with pytest.raises(sc.CaseError, match=r"cases\.jsonl: the file has no cases"):
        sc.evaluate_cases(accuracy(), write())
