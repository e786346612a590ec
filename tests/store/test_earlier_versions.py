"""Stores and traces that earlier versions left are read as they were, and the same program still records the same.

The files and how they came about: `tests/vectors/earlier/program.py`.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

import pytest

import grace_kp as gk
from tests import warm

EARLIER = Path(__file__).resolve().parents[1] / "vectors" / "earlier"
VERSIONS = sorted(path.name for path in EARLIER.iterdir() if (path / "found.json").exists())
# The last one before the rooms were rebuilt: from here on recordings stay the same.
LAST = "8db7c57"
INTERRUPTED = "kp:trace:00000000-0000-4000-8000-000000000099"
# Measured with a real clock, or a sentence for people.
VARIABLE = {"waited_ms", "response_time_ms", "reason"}
# Recorded since then, and tested on their own: the number of steps before a decision, what it rests on, parts that count unevaluated, the id of a
# decision, and the times of decisions, of thoughts and of model calls.
ADDED = {"step", "measured", "unmeasured", "fallbacks", "asked_at", "decided_at"}
QUERIES = {
    "all": {"limit": 50},
    "domain": {"domain": "code", "limit": 50},
    "score": {"min_score": 0.5, "limit": 50},
    "text": {"text": "refund", "limit": 50},
    "failed": {"success": False, "limit": 50},
}
each_version = pytest.mark.parametrize("version", VERSIONS)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def comparable(value, *, judged=False):
    if isinstance(value, dict):
        return {
            key: comparable(part, judged=judged or key == "evaluation")
            for key, part in value.items()
            if key not in VARIABLE | ADDED
            and not (key == "started_ms" and "call_id" not in value)
            and not (judged and key == "latency_ms")
            and not (key == "id" and str(part).startswith("gate-"))
        }
    return [comparable(part, judged=judged) for part in value] if isinstance(value, list) else value


def numbered(folder):
    """What a program left in a folder, its trace ids replaced by their place among the traces: the order in which ids are drawn may change."""
    ids = {trace["id"]: f"trace {place}" for place, trace in enumerate(lines(folder / "traces.jsonl"))}

    def read(name):
        return re.sub("kp:trace:[0-9a-f-]{36}", lambda found: ids.get(found[0], found[0]), (folder / name).read_text())

    traces, interrupted = (
        comparable([json.loads(line) for line in read(name).splitlines()])
        for name in ("traces.jsonl", "interrupted.jsonl")
    )
    return traces, interrupted, json.loads(read("found.json"))


@pytest.fixture
def opened(tmp_path):
    graces = []

    def open_store(version):
        path = tmp_path / "store.sqlite3"
        path.write_bytes(gzip.decompress((EARLIER / version / "store.sqlite3.gz").read_bytes()))
        graces.append(gk.Grace(store=f"sqlite:///{path}", embedder=None, evaluator=None, reviewer=None))
        return graces[-1].store

    yield open_store
    for grace in graces:
        grace.close()


@each_version
def test_a_store_of_an_earlier_version_gives_the_same_traces(opened, version):
    found = [trace.to_dict() for trace in opened(version).query(limit=50) if trace.id != INTERRUPTED]
    assert lines(EARLIER / version / "traces.jsonl") == found


@each_version
def test_a_store_of_an_earlier_version_answers_alike(opened, version):
    store = opened(version)
    found = {
        name: [trace.id for trace in store.query(**query) if trace.id != INTERRUPTED] for name, query in QUERIES.items()
    }
    assert json.loads((EARLIER / version / "found.json").read_text(encoding="utf-8")) == found


@each_version
def test_a_run_that_was_open_in_an_earlier_version_is_found(opened, version):
    """Its process is gone, so it is a trace that was interrupted, with the steps that were written down."""
    (expected,) = lines(EARLIER / version / "interrupted.jsonl")
    found = opened(version).get(INTERRUPTED).to_dict()
    if version != LAST:  # a confidence says more than it did
        del expected["grace"]["confidence"], found["grace"]["confidence"]
    assert comparable(expected) == comparable(found)


@each_version
def test_traces_of_an_earlier_version_read_back_and_score_alike(version):
    scorer = gk.ValueScorer()
    for line in lines(EARLIER / version / "traces.jsonl"):
        trace = gk.ReasoningTrace.model_validate(line)
        assert line == trace.to_dict()
        assert line["grace"]["value"]["score"] == pytest.approx(scorer.score(trace).score, abs=1e-12)


def test_the_same_program_records_the_same(tmp_path):
    """Steps, calls, decisions, judgements, scores and confidence, beside measured times and the wording of reasons."""
    ran = warm.run([sys.executable, str(EARLIER / "program.py"), str(tmp_path)], text=True)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert numbered(EARLIER / LAST) == numbered(tmp_path)
