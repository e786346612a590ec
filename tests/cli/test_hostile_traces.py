"""Traces from elsewhere: whatever stands under `grace` and in texts, every command that reads traces survives and the terminal is safe."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import grace_kp as gk
from grace_kp.cli._app import main
from grace_kp.cli._score import assessed, assessor
from grace_kp.cli._trace_page import Sheet
from grace_kp.confidence import factors_from_trace
from grace_kp.runtime._pipeline import record_of
from grace_kp.scorers import html_report, junit_report, result_from_trace
from grace_kp.store import open_store

CONTROLS = "\x1b[2J\x1b]0;title\x07\x9b31m\x08\x7f\u202e\u2066\r\n\t"

NAMES = [
    "status",
    "name",
    "duration_ms",
    "calls",
    "model_calls",
    "usage",
    "children",
    "parent",
    "decisions",
    "dropped_steps",
    "own_success",
    "error",
    "langchain",
    "confidence",
    "value",
    "evaluation",
    "scores",
    "unscored",
    "resumed",
    "repeated",
    "repeats",
    "tags",
    "user",
    "session",
    "metadata",
    "dropped_tags",
]
INNER = [
    "score",
    "level",
    "profile",
    "reason",
    "breakdown",
    "penalties",
    "not_evaluated",
    "own",
    "complexity",
    "novelty",
    "tool_diversity",
    "overrides",
    "novelty_fallback",
    "call_id",
    "tool_call",
    "observation",
    "status",
    "latency_ms",
    "search",
    "count",
    "scores",
    "sources",
    "child",
    "trace_id",
    "action",
    "outcome",
    "response",
    "reviewer",
    "modified",
    "arguments",
    "id",
    "model",
    "step",
    "input_tokens",
    "output_tokens",
    "type",
    "message",
    "name",
    "passed",
    "suite",
    "details",
    "diagnosis",
    "error",
    "skipped",
    "thread_id",
    "fallback",
    "unusable_scores",
]
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["", "completed", CONTROLS, "[red]", "kp:trace:x"])  # fmt: skip
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER), inner, max_size=6), max_leaves=12)  # fmt: skip
GRACE = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8)


def document(grace, text="text", name="x"):
    made = {
        "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": f"kp:trace:{name}",
        "metadata": {"created_at": "2026-01-01T00:00:00.000Z", "task_domain": text, "success": False, "quality_score": 0.5, "agent_id": f"kp:agent:{text}"},
        "task": {"objective": text},
        "steps": [
            {"step_id": 0, "type": "tool_call", "tool": {"name": text}, "input": {text: text}},
            {"step_id": 1, "type": "observation", "content": text},
        ],
        "outcome": {"result_summary": text, "confidence": 0.5},
    }  # fmt: skip
    return made if grace is None else {**made, "grace": grace}


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code, out.getvalue(), err.getvalue()


@given(GRACE)
def test_what_commands_call_survives_any_grace_part(grace):
    """Scores, records of the store, typed properties, operations for scorers, evidence, the page."""
    trace = gk.ReasoningTrace.model_validate(document(grace))
    assessed(trace, assessor("grace"))
    record_of(trace.to_dict())
    assert trace.to_dict() == document(grace) | {"metadata": trace.to_dict()["metadata"]}
    for name in ("confidence", "value", "decisions"):
        getattr(trace, name)
    result_from_trace(trace)
    factors_from_trace(trace.to_dict())
    Sheet(Console(file=io.StringIO(), width=80), full=True, nested=True).print(trace)


COMMANDS = (
    ("traces", "list"), ("traces", "show", "last"), ("traces", "show", "last", "--full", "--nested"), ("traces", "list", "--json"),
    ("traces", "show", "last", "--json"),
)  # fmt: skip


@given(GRACE | st.none())
@settings(max_examples=8)
def test_commands_survive_any_grace_part(grace):
    """Exit 0, and nothing that went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/t.db"
        store = open_store(url)
        store.put([record_of(document(grace))])
        for command in COMMANDS:
            code, out, err = run(*command, "--store", url)
            assert (0, "") == (code, err), (command, err)
            assert not set(out) & set("\x1b\x07\x9b\x08\x7f\u202e\u2066") or "--json" in command
        file = Path(folder) / "t.jsonl"
        assert 0 == run("traces", "export", str(file), "--store", url)[0]
        code, _, err = run("score", str(file))
        assert 0 == code, err
        assert 0 == run("traces", "import", str(file), "--store", url)[0]
        report = store.delete(older_than="0s")
        assert 1 == report
        store.close()


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_no_control_character_reaches_the_terminal(tmp_path, monkeypatch, width):
    """From ids, names, statuses, levels, decisions, parents, children, tags, texts and keys; not on stderr either."""
    monkeypatch.setenv("COLUMNS", width)
    url = f"sqlite:///{tmp_path}/t.db"
    evil = f"a{CONTROLS}b"
    grace = {
        "status": evil, "name": evil, "parent": {"trace_id": evil}, "children": [evil, "kp:trace:" + evil], "tags": [evil], "user": evil,
        "session": evil, "metadata": {evil: [evil, {evil: evil}]}, "error": {"type": evil, "message": evil},
        "confidence": {"score": 0.5, "level": evil, "reason": evil, "breakdown": {evil: 0.5}, "penalties": [evil], "not_evaluated": [evil]},
        "value": {"profile": evil, "overrides": [evil], "complexity": 0.5}, "scores": [{"name": evil, "score": 0.5, "diagnosis": [evil]}],
        "decisions": [{"id": evil, "action": evil, "level": evil, "outcome": evil, "arguments": {evil: evil}, "response": {"action": evil, "reviewer": evil}, evil: evil}],
        "calls": [{"tool_call": 0, "status": evil, "name": evil}], "model_calls": [{"step": 1, "model": evil, "input_tokens": 3}],
    }  # fmt: skip
    open_store(url).put([record_of(document(grace, text=evil, name=evil))])
    outputs = [run(*command, "--store", url) for command in COMMANDS]
    outputs += [run("traces", "show", evil, "--store", url), run("traces", "delete", evil, "--yes", "--store", url)]
    outputs += [
        run("traces", "show", f"nothing{evil}", "--store", url),
        run("traces", "list", "--status", evil, "--store", url),
    ]
    for _, out, err in outputs:
        assert {"\n"} >= {sign for sign in out + err if not sign.isprintable()}


def test_no_control_character_reaches_a_page():
    """HTML and XML cannot hold most of them; the page shows a replacement."""
    report = gk.scorers.Suite([gk.scorers.Entry(gk.scorers.OperationAccuracy())], name=CONTROLS).evaluate(
        [gk.scorers.Operation(CONTROLS, CONTROLS)], [gk.scorers.Operation("edit", f"a{CONTROLS}")]
    )
    rows = [(f"case{CONTROLS}", report.to_dict())]
    for page in (html_report, junit_report):
        assert {"\n", "\t"} >= {sign for sign in page(rows, f"title{CONTROLS}") if not sign.isprintable()}
