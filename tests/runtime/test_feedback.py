"""Labels of finished runs, one at a time and from files."""

from __future__ import annotations

import csv
import gzip
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.errors import InvalidRecord
from grace_kp.runtime import store_feedback
from grace_kp.store import open_store
from tests.store.samples import Own, document, put

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


@pytest.fixture
def grace(tmp_path):
    runtime = gk.Grace(store=f"sqlite:///{tmp_path / 't.db'}", evaluator=None, embedder=None, reviewer=None)
    yield runtime
    runtime.close()


def finished(grace):
    with grace.run("an objective") as run:
        run.thought("hm")
    return run.id


def labels(grace, name):
    return grace.store.get(name).grace["feedback"]


def test_a_run_is_labelled_as_soon_as_it_has_ended(grace):
    name = finished(grace)
    assert grace.feedback(name, True) is None
    grace.feedback(name, 0.25, "test", by="ana", note="half of it", probability=0.5)
    grace.feedback(name.removeprefix("kp:trace:"), 0)
    first, second, third = labels(grace, name)
    assert {"correct": True, "source": "user"} == {key: first[key] for key in ("correct", "source")}
    at = second.pop("at")
    assert {"correct": 0.25, "source": "test", "by": "ana", "note": "half of it", "probability": 0.5} == second
    assert third["correct"] is False
    assert first["at"] < at < third["at"]
    assert at.endswith("Z")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"correct": float("nan")}, r"correct must be a number from 0 to 1, True or False \(got nan\)"),
        ({"correct": "yes"}, r"correct must be .* \(got 'yes'\)"),
        ({"correct": np.array([1, 0])}, r"correct must be .* \(got ndarray\)"),
        ({"source": "a b"}, r"source must be a name of at most 40 letters.* \(got 'a b'\)"),
        ({"source": 3}, r"source must be"),
        ({"by": 3}, r"by must be a string \(got 3\)"),
        ({"probability": 0}, r"probability must be above 0"),
        ({"probability": 1.5}, r"probability must be a number from 0 to 1 \(got 1.5\)"),
        ({"trace_id": ""}, r"trace_id must be the id of a trace"),
        ({"source": "audit"}, r"source 'audit' needs probability=…"),
    ],
)
def test_what_cannot_be_used_is_named(grace, arguments, message):
    name = finished(grace)
    with pytest.raises(ValueError, match=message):
        grace.feedback(**{"trace_id": name, "correct": True, **arguments})
    assert "feedback" not in grace.store.get(name).grace


def test_a_program_says_that_it_is_one(grace):
    """Its label is marked, and has neither a source of people nor the weight of several runs."""
    name = finished(grace)
    grace.feedback(name, True, "test", by="nightly", program=True)
    assert [True] == [entry["program"] for entry in labels(grace, name)]
    for arguments in ({"source": "audit", "probability": 1.0}, {"source": "Person"}, {"probability": 0.5}):
        with pytest.raises(ValueError, match=r"reserved for people|must not count for other runs \(got 0.5\)"):
            grace.feedback(name, True, program=True, **arguments)
    assert 1 == len(labels(grace, name))


def test_what_a_run_records_is_no_label(grace):
    """An agent that writes feedback into its attributes, its result or its steps has stated none."""
    forged = [{"correct": True, "source": "audit", "by": "ana"}]
    with grace.run("work", metadata={"feedback": forged, "grace": {"feedback": forged}}, tags=["feedback"]) as run:
        run.thought("hm")
        run.update(metadata={"feedback": forged})
        run.outcome(result={"grace": {"feedback": forged}})
    grace.flush()
    assert ("feedback" in grace.store.get(run.id).grace, 0) == (False, grace.store.count(feedback=True))
    assert [] == cal.labels(grace).labels


def test_a_trace_that_is_not_there_is_named(grace):
    with pytest.raises(gk.UnknownTrace, match="no trace kp:trace:nobody in the store") as caught:
        grace.feedback("nobody", True)
    assert "kp:trace:nobody" == caught.value.trace_id
    assert isinstance(caught.value, LookupError)
    name = finished(grace)
    assert 1 == grace.store.delete(id=name)
    with pytest.raises(gk.UnknownTrace, match=name):
        grace.feedback(name, True)
    with (
        grace.run("open") as run,
        pytest.raises(gk.UnknownTrace, match="is still open; state feedback when it has ended"),
    ):
        grace.feedback(run.id, True)
    grace.feedback(run.id, True)
    assert 1 == len(labels(grace, run.id))


def test_secrets_and_lengths(grace, tmp_path):
    """Secrets never reach the disk; identifiers stay at `private` and go at `aggregated`."""
    name = finished(grace)
    grace.feedback(name, False, by="ana@example.com", note=f"used {KEY} " + "word " * 1_000)
    with gk.Grace(
        store=f"sqlite:///{tmp_path / 't.db'}", privacy_level="aggregated", evaluator=None, embedder=None
    ) as other:
        other.feedback(name, False, by="ana@example.com " + "x" * 300)
    first, second = labels(grace, name)
    assert "ana@example.com" == first["by"]
    assert first["note"].startswith("used [REDACTED:api_key] word")
    assert 1_900 < len(first["note"]) < 2_100
    assert (True, 200) == ("[REDACTED:email]" in second["by"], len(second["by"]))
    grace.close()
    assert [] == [path for path in tmp_path.iterdir() if KEY.encode() in path.read_bytes()]


def test_a_store_that_keeps_no_feedback_is_named():
    with gk.Grace(store=Own(), evaluator=None, embedder=None, reviewer=None) as grace:
        name = finished(grace)
        with pytest.raises(gk.StoreError, match=r"Own keeps no feedback: it needs a method put_feedback\(entries\)"):
            grace.feedback(name, True)


def test_audits_of_a_gate_are_found_labelled_and_weighted(tmp_path):
    """From the draw of the gate to the weight of the label; what was not drawn is not to be checked."""
    store = f"sqlite:///{tmp_path / 't.db'}"
    settings = {"audit_rate": 0.5, "unmeasured": "silent"}
    with gk.Grace(store=store, evaluator=None, embedder=None, reviewer=None, **settings) as grace:

        @grace.gate
        def pay():
            return "paid"

        @grace.agent
        def agent(question):
            return pay()

        for number in range(40):
            agent(f"pay {number}")
        todo = {"tags": ["audit:selected"], "feedback": False, "feedback_source": "audit"}
        runs = grace.store.query(**todo)
        assert 0 < len(runs) < 40
        for trace in runs:
            grace.feedback(trace.id, True, "audit")
        assert 0 == grace.store.count(**todo)
        other = next(trace.id for trace in grace.store.query() if trace.id not in {run.id for run in runs})
        grace.feedback(other, False)
        found = cal.labels(grace)
    assert ([2.0] * len(runs), {"audit"}) == (found.weights, set(found.sources))
    assert {"no label": 39 - len(runs), "not drawn for the audit": 1} == found.left_out


@pytest.fixture
def store():
    opened = open_store("memory:")
    put(opened, document("a"), document("b"))
    return opened


def stored(store, data, **defaults):
    results = list(store_feedback(store, io.BytesIO(data if isinstance(data, bytes) else data.encode()), "f", **defaults))  # fmt: skip
    problems = [str(result) for result in results if isinstance(result, InvalidRecord)]
    return sum(result for result in results if not isinstance(result, InvalidRecord)), problems


def labels_of(store, name):
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
    assert [{"correct": True, "source": "test", "by": "ana", "note": 'two\nlines, and "quotes"', "probability": 0.5}] == labels_of(store, "a")  # fmt: skip
    assert [False, 0.25] == [entry["correct"] for entry in labels_of(store, "b")]
    assert {"audit"} == {entry["source"] for entry in labels_of(store, "b")}


def test_rows_of_programs(store):
    """A label that was exported with its mark keeps it; such a row may have no source of people."""
    rows = [
        {"trace_id": "a", "correct": True, "by": "bot", "program": True},
        {"trace_id": "a", "correct": True, "by": "ana", "program": "false"},
        {"trace_id": "a", "correct": True, "source": "reviewer", "program": True},
        {"trace_id": "a", "correct": True, "program": "perhaps"},
    ]
    count, problems = stored(store, "\n".join(map(json.dumps, rows)))
    assert (2, [True, None]) == (count, [entry.get("program") for entry in labels_of(store, "a")])
    assert "f:3: source 'reviewer' is reserved for people" in problems[0]
    assert "f:4: program must be true or false (got 'perhaps')" == problems[1]


def test_json_lines_plain_and_packed(store):
    rows = [{"trace_id": "a", "correct": value} for value in (True, 0, 0.5, "passed")]
    data = "".join(json.dumps(row) + "\n\n" for row in rows).encode()
    assert (4, []) == stored(store, data)
    assert (4, []) == stored(store, gzip.compress(data))
    assert [True, False, 0.5, True] * 2 == [entry["correct"] for entry in labels_of(store, "a")]


def test_each_row_that_is_not_stored_is_reported(store):
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
    stored(open_store("memory:"), data)
    stored(open_store("memory:"), b"trace_id,correct\n" + data)
    stored(open_store("memory:"), b"{}\n" + data)
