"""The program of `docs/how-to/openai-agents.md` waits, and goes on when it is started again."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

pytest.importorskip("agents")

from agents import set_tracing_disabled

import grace_kp as gk
from tests.integrations.openai_agents.test_conformance import Scripted
from tests.integrations.scenario import DONE, Case, calls

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "openai-agents.md"


def test_the_program_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRACE_KP_STORE", f"sqlite:///{tmp_path}/traces.db")
    set_tracing_disabled(disabled=True)
    (program,) = re.findall(r"```py\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    case = Case(tmp_path, {"main": (calls(("p1", "pay", {"to": "ann", "amount": 5})), DONE)})
    for ends, says in ((False, "waits for a person"), (True, "done")):
        names = {"__name__": "teller"}
        exec(compile(program, str(PAGE), "exec"), names)
        names["agent"].model = Scripted(case, "main")
        asyncio.run(names["main"]())
        assert says in capsys.readouterr().out
        assert ends != (tmp_path / "teller.json").exists()
        for request in names["grace"].approvals.pending():
            names["grace"].approvals.approve(request.id, by="ana")
        names["grace"].close()
    with gk.Grace(evaluator=None, embedder=None) as grace:
        (trace,) = grace.store.query()
        assert [("pay", "ok")] == [(call["name"], call["status"]) for call in trace.grace["calls"]]
