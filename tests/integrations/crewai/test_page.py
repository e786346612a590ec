"""The programs of `docs/how-to/crewai.md` run in CrewAI, with a scripted model."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("crewai.hooks", reason="needs crewai")

from crewai import BaseLLM
from crewai.hooks import clear_all_tool_call_hooks

import grace_kp as gk

pytestmark = pytest.mark.filterwarnings("ignore")  # CrewAI uses what it has deprecated itself

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "crewai.md"
ANN = {"to": "ann", "amount": 5, "memo": "tea"}


class Scripted(BaseLLM):
    """Calls `pay` once, and ends with the observation."""

    model: str = "scripted"

    def call(self, messages, *args, **kwargs):
        for message in messages:
            if message["role"] == "assistant":
                observed = message["content"].rpartition("Observation:")[2].strip()
                return f"Thought: I now know the final answer\nFinal Answer: {observed}"
        return f"Thought: pay\nAction: pay\nAction Input: {json.dumps(ANN)}"

    def supports_function_calling(self):
        return False


@pytest.fixture
def program(tmp_path, monkeypatch):
    """The page's program as a module."""
    names = ["crew_gate", "crew_program"]
    for name, text in zip(names, re.findall(r"```py\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL), strict=True):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("CREWAI_TESTING", "true")
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    yield __import__("crew_program")
    clear_all_tool_call_hooks()
    for name in names:
        sys.modules.pop(name, None)


def worked(program, answer):
    """The end of the crew, what was paid, and the trace; `answer` gets the approvals and the request, in another thread."""
    inbox = gk.InboxReviewer(deadline="1h")
    with contextlib.closing(gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=inbox)) as grace:

        def person():
            changes = threading.Event()
            while not (waiting := grace.approvals.pending()):
                changes.wait(0.01)
            answer(grace.approvals, waiting[0].id)

        deciding = threading.Thread(target=person, daemon=True)
        if answer is not None:
            deciding.start()
        end = program.work(grace, Scripted(model="scripted"), "Pay Ann.")
        if answer is not None:
            deciding.join()
        (trace,) = grace.store.query()
        return end, trace


def calls_of(trace):
    return [(call["name"], call["status"]) for call in (trace.grace or {}).get("calls", ())]


def test_an_approved_call_runs_and_is_recorded(program):
    end, trace = worked(program, lambda approvals, request: approvals.approve(request, by="ana"))
    assert ("paid ann 5", "crewai", "completed") == (end, trace.metadata.framework, trace.status)
    assert ([("pay", "ok")], ["executed"]) == (calls_of(trace), [decision.outcome for decision in trace.decisions])


def test_an_edit_changes_the_arguments(program):
    end, trace = worked(
        program, lambda approvals, request: approvals.edit(request, {"amount": 4, "memo": None}, by="ana")
    )
    assert "paid ann 4" == end
    assert {"to": "ann", "amount": 4} == next(step.input for step in trace.steps if step.tool)


def test_the_reason_of_a_refusal_reaches_the_model(program):
    end, trace = worked(program, lambda approvals, request: approvals.reject(request, by="ana", reason="no customer"))
    assert ("no customer" in end, []) == (True, calls_of(trace))


def test_a_gate_that_fails_refuses(program, monkeypatch):
    def broken(*_args, **_more):
        raise RuntimeError("no store")

    monkeypatch.setattr(gk.Grace, "action", broken)
    end, _ = worked(program, None)
    assert "Not run" in end


def test_a_gate_that_is_misspelt_refuses(program):
    with gk.Grace(store="memory:", evaluator=None) as grace, grace.open_run("Pay.") as run:
        hooks = program.CrewHooks(grace, run, {"p_a_y": "confirm"})
        context = SimpleNamespace(tool_name="pay", tool_input={}, tool=None)
        assert hooks.before(context) is False
        assert "Not run" in hooks.after(context)
