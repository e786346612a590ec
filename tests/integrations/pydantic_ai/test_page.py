"""The program of `docs/how-to/pydantic-ai.md` waits, and goes on when it is started again."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai")

import grace_kp as gk
from tests.integrations.pydantic_ai.test_conformance import model_of
from tests.integrations.scenario import DONE, Case, calls

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "pydantic-ai.md"


@pytest.fixture
def loop():
    """The loop that `run_sync` uses; it leaves one of its own open where none is set."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("loop")
def test_the_program_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRACE_KP_STORE", f"sqlite:///{tmp_path}/traces.db")
    (program,) = re.findall(r"```py\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    case = Case(tmp_path, {"main": (calls(("p1", "pay", {"to": "ann", "amount": 5})), DONE)})
    for says in ("waits for a person", "Nobody has decided yet", "done"):
        names = {"__name__": "teller"}
        exec(compile(program.replace("openai:gpt-5", "test"), str(PAGE), "exec"), names)
        names["agent"].model = model_of(case, "main")
        names["main"]()
        assert says in capsys.readouterr().out
        for request in names["grace"].approvals.pending() if says.startswith("Nobody") else ():
            names["grace"].approvals.approve(request.id, by="ana")
        names["grace"].close()
    with gk.Grace(evaluator=None, embedder=None) as grace:
        (trace,) = grace.store.query()
        assert [("pay", "ok")] == [(call["name"], call["status"]) for call in trace.grace["calls"]]
