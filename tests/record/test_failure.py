"""Failures that a result reports: which results do, what is recorded of them, and that no code of theirs runs."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

import grace_kp as gk
from grace_kp.record import reported_failure
from tests.exhaustive import product

TEXT = [{"type": "text", "text": "quota exceeded"}]


class CallToolResult(BaseModel):
    """As in the package of MCP."""

    content: list[Any]
    structuredContent: dict[str, Any] | None = None  # noqa: N815
    isError: bool = False  # noqa: N815


class AIMessage(BaseModel):
    """As in LangChain, whose own are tried in `integrations/langchain/test_results.py`."""

    content: Any


class ToolMessage(AIMessage):
    tool_call_id: str
    status: str = "success"


@dataclass(slots=True)
class Command:
    """As in LangGraph."""

    update: Any = None


class Extra(BaseModel, extra="allow"):
    content: list[Any]


@dataclass(slots=True)
class Slotted:
    is_error: bool = True
    content: list[Any] = field(default_factory=lambda: TEXT)


class Named(NamedTuple):
    content: Any = TEXT
    is_error: bool = True


class Entries(dict):
    """A dict that answers with code of its own."""

    def get(self, *_):
        raise RuntimeError("was asked")

    __getitem__ = __contains__ = get


def failed_message(**fields):
    return ToolMessage(content="quota exceeded", tool_call_id="1", status="error", **fields)


FAILURES = {
    "MCP": CallToolResult(content=[SimpleNamespace(type="text", text="quota exceeded")], isError=True),
    "MCP as dict": {"isError": True, "content": TEXT},
    "MCP as a subclass of dict": Entries(isError=True, content=TEXT),
    "MCP with one text": {"isError": True, "content": "quota exceeded"},
    "an extra field of a model": Extra(content=TEXT, isError=True),
    "fastmcp": SimpleNamespace(is_error=True, content=TEXT),
    "slots": Slotted(),
    "a named tuple": Named(),
    "a tool_result": {"type": "tool_result", "is_error": True, "content": "quota exceeded"},
    "a message": failed_message(),
    "a message as dict": failed_message().model_dump(),
    "messages": [ToolMessage(content="fine", tool_call_id="0"), failed_message()],
    "a command": Command(update={"messages": [AIMessage(content="an earlier turn"), failed_message()]}),
    "a command with pairs": Command(update=[failed_message()]),
    "commands": (Command(update={}), Command(update={"messages": [failed_message()]})),
}
OTHERS = {
    "a word": {"isError": "false", "content": TEXT},
    "a true word": {"isError": "true", "content": TEXT},
    "a number": {"isError": 1},
    "no error": CallToolResult(content=TEXT),
    "an object's own word": SimpleNamespace(isError="no", content=TEXT),
    "a record": {"is_error": True, "line": 7},
    "rows of data": [{"isError": True, "content": "a line of a log"}],
    "a message": ToolMessage(content="fine", tool_call_id="1"),
    "a status": {"status": "error", "content": "an order that failed"},
    "a conversation": [failed_message(), AIMessage(content="then it worked")],
    "a command after a failure": Command(
        update={"messages": [failed_message(), ToolMessage(content="fine", tool_call_id="2")]}
    ),
    "a state": {"messages": [failed_message()]},
    "a text": '{"isError": true}',
    "a class": CallToolResult,
    "nothing": None,
}
SHELLS = {
    "function": lambda result: lambda: result,
    "coroutine": lambda result: _coroutine(result),
    "generator": lambda result: _generator(result),
    "returning generator": lambda result: _returning(result),
    "async generator": lambda result: _async_generator(result),
    "future": lambda result: lambda: _future(result),
}


def _coroutine(result):
    async def tool():
        return result

    return tool


def _generator(result):
    def tool():
        yield "working"
        yield result

    return tool


def _returning(result):
    def tool():
        yield {"isError": True, "content": "not the last"}
        return result

    return tool


def _async_generator(result):
    async def tool():
        yield "working"
        yield result

    return tool


def _future(result):
    future = Future()
    future.set_result(result)
    return future


def recorded(grace, tool, **declared):
    async def call(tool):
        answer = tool()
        if hasattr(answer, "__aiter__"):
            return [item async for item in answer]
        return (await answer) if hasattr(answer, "__await__") else answer

    tool = grace.tool(name="tool", **declared)(tool)
    with grace.run("q") as run:
        answer = asyncio.run(call(tool))
        if hasattr(answer, "__next__"):
            list(answer)
        grace.thought("goes on")
    return run.trace


@pytest.mark.parametrize(("kind", "shell"), product(FAILURES, SHELLS))
def test_a_failure_in_the_result_is_a_failed_call(grace, kind, shell):
    """Of every kind of function: status, message, observation, recovery and success of tools are those of a raised error."""
    trace = recorded(grace, SHELLS[shell](FAILURES[kind]))
    (call,) = trace.calls
    assert ("error", "ToolError", "quota exceeded") == (call.status, call.error.type, call.error.message)
    assert ["tool_call", "observation", "error_recovery", "thought"] == [step.type for step in trace.steps]
    assert "ToolError: quota exceeded" == trace.steps[1].content
    assert "tool_failures(rate=0.00)" in trace.grace["confidence"]["penalties"]
    assert trace.metadata.success


@pytest.mark.parametrize(("kind", "shell"), product(OTHERS, ["function", "generator"]))
def test_what_is_no_boolean_or_no_result_reports_nothing(grace, kind, shell):
    """Neither do rows of data, the state of a graph and a conversation in which a tool has failed earlier."""
    (call,) = recorded(grace, SHELLS[shell](OTHERS[kind])).calls
    assert "ok" == call.status


def test_no_code_of_a_result_runs(grace):
    """A property, a `__getattr__` and a lazy attribute are not asked, and no answer of theirs counts."""
    asked = []

    class Lazy:
        content = TEXT

        def __getattr__(self, name):
            asked.append(name)
            return True

        @property
        def isError(self):
            asked.append("isError")
            return True

        @property
        def __class__(self):
            asked.append("class")
            return CallToolResult

        def __repr__(self):
            return "Lazy()"

    lazy = Lazy()
    with grace.run("q") as run:
        assert lazy is grace.tool(lambda: lazy)()
    assert "ok" == run.trace.calls[0].status
    assert [] == asked


def test_the_message_is_bounded_and_redacted(grace):
    text = "password=hunter2secret " + "x " * 20_000
    (call,) = recorded(grace, lambda: {"isError": True, "content": text}).calls
    assert "hunter2secret" not in call.error.message
    assert len(call.error.message) < 9_000


def test_what_is_not_captured_fails_without_its_message(monkeypatch):
    monkeypatch.setenv("GRACE_KP_CAPTURE_OUTPUT", "0")
    with gk.Grace(store="memory:", evaluator=None, embedder=None) as grace:
        trace = recorded(grace, lambda: FAILURES["MCP"])
    assert ("error", "[not captured]") == (trace.calls[0].status, trace.calls[0].error.message)
    assert "quota" not in str(trace.to_dict())


def test_a_gate_sees_the_failure(grace):
    tool = grace.tool(lambda: FAILURES["a message"])
    pay = grace.gate(unmeasured="silent")(lambda: "paid")
    with grace.run("q") as run:
        tool()
        with pytest.raises(gk.ActionCancelled):
            pay()
    assert run.trace.decisions[0].score < 0.4


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("answer", "message"),
    [(True, "code 7"), (1, "code 7"), ("exit code 7", "exit code 7"), (False, None), ("", None), (None, None)],
)
def test_a_program_declares_what_a_failure_is(grace, shell, answer, message):
    """A text says why. The callable is asked once, about what came last."""
    asked = []

    def failed(result):
        asked.append(result)
        return answer

    (call,) = recorded(grace, SHELLS[shell]("code 7"), failed=failed).calls
    assert ["code 7"] == asked
    assert ("ok" if message is None else "error") == call.status
    assert message == (call.error and call.error.message)


class Unprintable(Exception):
    def __str__(self):
        raise SystemExit(4)


@pytest.mark.parametrize("error", [TypeError("no"), SystemExit(3), GeneratorExit(), Unprintable()])
def test_a_declaration_that_raises_leaves_a_failed_call(grace, error):
    """The agent gets its result; whether the call succeeded is unknown, so that it counts as failed."""

    def failed(result):
        raise error

    (call,) = recorded(grace, lambda: 5, failed=failed).calls
    assert "error" == call.status
    assert "failed= raised" in call.error.message
    assert f"failed=: {type(error).__name__}" in grace.status()["troubles"]


def test_a_cancellation_leaves_a_declaration(grace):
    def failed(result):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recorded(grace, lambda: 5, failed=failed)


async def _later(_):
    return True


@pytest.mark.parametrize("failed", [_later, "error", 5])
@pytest.mark.parametrize("kind", ["tool", "retriever"])
def test_a_declaration_is_a_plain_function(grace, kind, failed):
    with pytest.raises(TypeError, match="plain function"):
        getattr(grace, kind)(failed=failed)


def test_no_code_of_a_class_of_results_runs(grace):
    asked = []

    class Meta(type):
        __hash__ = None

        @property
        def __name__(cls):
            asked.append("name")
            return "Command"

        def __eq__(cls, other):
            asked.append("eq")
            return True

    class Other:
        """A descriptor of a class that claims to be any other."""

        def __get__(self, instance, owner):
            asked.append("get")
            return {"isError": True}

    class Hostile(metaclass=Meta):
        __slots__ = ("tool_call_id",)
        status = isError = Other()  # noqa: N815

    assert None is reported_failure(Hostile())
    assert [] == asked
