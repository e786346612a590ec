"""Files of labels: which rows are stored, and what is said of the others."""

from __future__ import annotations

import csv
import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.errors import InvalidRecord
from grace_kp.runtime import store_feedback
from grace_kp.store import open_store
from tests.store.samples import document, put


@pytest.fixture
def store():
    opened = open_store("memory:")
    put(opened, document("a"), document("b"))
    return opened


def stored(store, data, **defaults):
    """How many labels were stored, and what was said of the other rows."""
    results = list(store_feedback(store, io.BytesIO(data if isinstance(data, bytes) else data.encode()), "f", **defaults))  # fmt: skip
    problems = [str(result) for result in results if isinstance(result, InvalidRecord)]
    return sum(result for result in results if not isinstance(result, InvalidRecord)), problems


def labels(store, name):
    return [
        {key: value for key, value in entry.items() if key != "at"}
        for entry in (store.get(f"kp:trace:{name}").grace).get("feedback", [])
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_rows_of_csv(store, delimiter):
    """Columns in any order, others beside them; an empty field takes the default."""
    rows = [
        ["Correct", "other", "trace_id", "source", "note", "probability"],
        ["correct", "x", "kp:trace:a", "test", 'two\nlines, and "quotes"', "0.5"],
        ["wrong", "", "b", "", "", ""],
        ["0.25", "", " b ", "", "", ""],
    ]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    assert (3, []) == stored(store, b"\xef\xbb\xbf\n" + text.getvalue().encode() + b"\r\n", source="audit", by="ana", probability=1)  # fmt: skip
    assert [{"correct": True, "source": "test", "by": "ana", "note": 'two\nlines, and "quotes"', "probability": 0.5}] == labels(store, "a")  # fmt: skip
    assert [False, 0.25] == [entry["correct"] for entry in labels(store, "b")]
    assert {"audit"} == {entry["source"] for entry in labels(store, "b")}


def test_rows_of_programs(store):
    """A label that was exported with its mark keeps it; such a row may have no source of people."""
    rows = [
        {"trace_id": "a", "correct": True, "by": "bot", "program": True},
        {"trace_id": "a", "correct": True, "by": "ana", "program": "false"},
        {"trace_id": "a", "correct": True, "source": "reviewer", "program": True},
        {"trace_id": "a", "correct": True, "program": "perhaps"},
    ]
    count, problems = stored(store, "\n".join(map(json.dumps, rows)))
    assert (2, [True, None]) == (count, [entry.get("program") for entry in labels(store, "a")])
    assert "f:3: source 'reviewer' is reserved for people" in problems[0]
    assert "f:4: program must be true or false (got 'perhaps')" == problems[1]


def test_json_lines_plain_and_packed(store):
    """Truth values, numbers and words."""
    rows = [{"trace_id": "a", "correct": value} for value in (True, 0, 0.5, "passed")]
    data = "".join(json.dumps(row) + "\n\n" for row in rows).encode()
    assert (4, []) == stored(store, data)
    assert (4, []) == stored(store, gzip.compress(data))
    assert [True, False, 0.5, True] * 2 == [entry["correct"] for entry in labels(store, "a")]


def test_each_row_that_is_not_stored_is_reported(store):
    """With its line; the others are stored."""
    rows = [
        '{"trace_id": "a", "correct": true}', "{broken", '{"trace_id": "a"}', '{"correct": 1}', '{"trace_id": "nobody", "correct": 1}',
        '{"trace_id": "a", "correct": 7}', "[1]", '{"trace_id": "a", "correct": 1, "source": "a b"}',
        '{"trace_id": "a", "correct": 1, "source": "audit"}', '{"trace_id": "a", "correct": 1, "probability": "often"}',
        '{"trace_id": 3, "correct": 1}', '{"trace_id": "b", "correct": true}',
    ]  # fmt: skip
    count, problems = stored(store, "\n".join(rows))
    assert 2 == count
    expected = [
        (2, "is not JSON"), (3, "correct: is missing"), (4, "trace_id: is missing"), (6, "correct must be a number from 0 to 1, True or False (got 7)"),
        (7, "must be an object"), (8, "source must be a name"), (9, "source 'audit' needs probability=…"), (10, "probability must be a number"),
        (11, "trace_id must be the id of a trace (got 3)"), (5, "no trace kp:trace:nobody in the store"),
    ]  # fmt: skip
    assert len(expected) == len(problems)
    for (line, text), problem in zip(expected, problems, strict=True):
        assert problem.startswith(f"f:{line}: {text}")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"id,label\na,1\n", "f:1: the header must name the columns trace_id and correct (it has 'id, label')"),
        (b"\x00\xff\xfe", "f:1: is not UTF-8"),
        (b"trace_id,correct\na,\xff\n", "f:2: is not UTF-8"),
        (gzip.compress(b"trace_id,correct\na,1\n" * 9, mtime=0)[:-9], "cannot be read any further"),
        (b'trace_id,correct\n"' + b"x" * 140_000 + b'",1\n', "f:2: is not CSV: field larger than field limit"),
    ],
)
def test_files_of_another_kind(store, data, problem):
    """One problem, and nothing is stored that is not plainly a label."""
    count, problems = stored(store, data)
    assert problem in problems[0]
    assert count <= 9
    assert (0, []) == stored(store, b"")


def test_a_bomb_is_not_unpacked(store, monkeypatch):
    """A line longer than the setting is skipped."""
    monkeypatch.setenv("GRACE_KP_MAX_DOCUMENT_MB", "0.01")
    good = '{"trace_id": "a", "correct": true}\n'
    count, (problem,) = stored(store, gzip.compress(f'{good}{{"note": "{"x" * 50_000}"}}\n{good}'.encode()))
    assert (2, True) == (count, problem.startswith("f:2: the line is longer than"))


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,atrue\n1', max_size=60).map(str.encode))
def test_any_bytes_give_labels_or_problems(data):
    """Never an exception."""
    stored(open_store("memory:"), data)
    stored(open_store("memory:"), b"trace_id,correct\n" + data)
    stored(open_store("memory:"), b"{}\n" + data)
