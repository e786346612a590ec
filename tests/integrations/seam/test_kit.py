"""The adapter that `docs/frameworks.md` shows passes the kit, so what an adapter needs is what the page says."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from grace_kp.errors import MissingExtra
from tests.integrations.scenario import AGENTS, HELPER, Case, Conformance, Ran

PAGE = Path(__file__).resolve().parents[3] / "docs" / "frameworks.md"
MONEY = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}, "memo": {"type": "string"}},
    "required": ["to", "amount"],
}


def page() -> dict[str, Any]:
    """The names that the page defines, without the program at its end."""
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")[1:3]
    names: dict[str, Any] = {"__name__": __name__}
    program = "from __future__ import annotations\n" + "\n".join(block.partition("```")[0] for block in blocks)
    exec(compile(program, str(PAGE), "exec"), names)
    return names


class Toy:
    framework = "toy"
    lacks = frozenset({"stream"})

    def run(self, case: Case, grace, gates, saved, *, stream):
        names = page()

        def agent(name):
            def model(messages):
                answers = {message["id"]: message["text"] for message in messages if message["role"] == "tool"}
                turn = case.next_turn(name, answers)
                return {"text": turn.text, "calls": [vars(call) for call in turn.calls]}

            tools = {tool.__name__: tool for tool in case.tools_of(name)}
            nested = {HELPER: "helper"} if name == "main" else {}
            return names["Agent"](model, tools, nested, {tool: MONEY for tool in tools if tool in {"pay", "refund"}})

        agents = {name: agent(name) for name in AGENTS}
        loop = names["Framework"](agents) if grace is None else names["Adapter"](agents, grace, gates)
        state = json.loads(saved) if saved else names["new_state"]("main", case.prompt, case.session)
        text = loop.run(state)
        return Ran(text, waiting=text is None, saved=json.dumps(state) if text is None else None)


class TestKit(Conformance):
    driver = Toy()


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("adk", "google.adk", "google-adk"),
        ("strands", "strands", "strands"),
    ],
)
def test_an_adapter_without_its_framework_names_the_extra(monkeypatch, adapter, package, extra):
    """And the command that installs it."""
    for name in [*sys.modules]:
        if name.startswith((f"grace_kp.integrations.{adapter}", f"{package}.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=re.escape(f"pip install 'grace-kp[{extra}]'")):
        importlib.import_module(f"grace_kp.integrations.{adapter}")
