"""The same kills and the same two deciders with LangGraph's own interrupt and LangChain's own middleware, both with SqliteSaver.

The program does what their documentation shows: the process that has the person's answer resumes the thread. After a kill it is started again,
reads the state of the thread, and carries on what is unfinished.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sqlite3
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, TypedDict

from fault_suite.forks import answers, start

from approval_suite.journal import Journal, facts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COLUMNS = ("scenario", "cases", "actions", "claimed twice", "not carried out", "still open")
MOMENTS = ("before its effect", "after its effect", "after the action, before the checkpoint")
KINDS = ("LangGraph interrupt", "LangChain HumanInTheLoopMiddleware")


def installed() -> bool:
    """Return whether both packages and the checkpointer are there."""
    return all(importlib.util.find_spec(name) for name in ("langgraph", "langchain")) and (
        importlib.util.find_spec("langgraph.checkpoint.sqlite") is not None
    )


def kill_here() -> None:
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


class State(TypedDict):
    """The state of the graph."""

    invoice: str
    result: str


def program(kind: str, folder: Path, inside: Callable[[str], object]) -> tuple[Any, Callable[[str], Any], Any]:
    """Return the graph, a function from an invoice to the first input, and the answer that approves."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    saver = SqliteSaver(sqlite3.connect(folder / "checkpoints.db", check_same_thread=False, timeout=30))
    journal = Journal(folder / "effects")

    def effect(invoice: str) -> str:
        inside(MOMENTS[0])
        journal.note(invoice=invoice)
        inside(MOMENTS[1])
        return "refunded"

    if kind == KINDS[0]:
        from langgraph.graph import END, START, StateGraph
        from langgraph.types import interrupt

        def refund(state: State) -> dict[str, str]:
            if interrupt({"refund": state["invoice"]}) != "approve":
                return {"result": "refused"}
            return {"result": effect(state["invoice"])}

        graph = StateGraph(State).add_node("refund", refund).add_edge(START, "refund").add_edge("refund", END)
        return graph.compile(checkpointer=saver), lambda invoice: {"invoice": invoice, "result": ""}, "approve"
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Model(GenericFakeChatModel):
        def bind_tools(self, *_args: Any, **_kwargs: Any) -> Any:
            return self

        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            asked = messages[-1].type == "human"
            calls = (
                [{"name": "refund_invoice", "args": {"invoice": messages[-1].content}, "id": "call"}] if asked else []
            )
            self.messages = iter([AIMessage(content="" if asked else "done", tool_calls=calls)])
            return super()._generate(messages, *args, **kwargs)

    def refund_invoice(invoice: str) -> str:
        """Refund an invoice."""
        return effect(invoice)

    middleware: Any = HumanInTheLoopMiddleware(interrupt_on={"refund_invoice": True})
    agent: Any = create_agent(
        Model(messages=iter([])), tools=[refund_invoice], middleware=[middleware], checkpointer=saver
    )
    approve = {"decisions": [{"type": "approve"}]}
    return agent, lambda invoice: {"messages": [{"role": "user", "content": invoice}]}, approve


def name(number: int) -> str:
    """Return the name of an invoice."""
    return f"invoice {number}"


def config(invoice: str) -> dict[str, Any]:
    """Return the thread of an invoice."""
    return {"configurable": {"thread_id": invoice}}


def carry_on(graph: Any, invoice: str, answer: Any) -> None:
    """Resume what waits for an answer; carry on what had one and did not end."""
    from langgraph.types import Command

    state = graph.get_state(config(invoice))
    if state.next or state.tasks:  # `next` is empty where a step has ended and its checkpoint is missing
        graph.invoke(Command(resume=answer) if state.interrupts else None, config(invoice))


def killed_in(folder: Path, kind: str, moment: str, count: int) -> dict[str, Any]:
    """Kill the process that resumes, once per invoice, and start it again."""
    place = folder / f"{kind}-{moment}".replace(" ", "-").replace(",", "")
    place.mkdir()
    errors = folder / "errors"

    def ask() -> None:
        graph, first, _ = program(kind, place, lambda _moment: None)
        for number in range(count):
            graph.invoke(first(name(number)), config(name(number)))

    def resume(invoice: str, *, killed: bool) -> None:
        def inside(now: str) -> None:
            if killed and now == moment:
                kill_here()

        graph, _, answer = program(kind, place, inside)
        if killed and moment == MOMENTS[2]:
            saver = graph.checkpointer
            put, writes = saver.put, saver.put_writes

            def done() -> bool:
                return any(fact["invoice"] == invoice for fact in facts(place / "effects"))

            saver.put = lambda *args, **kwargs: kill_here() if done() else put(*args, **kwargs)
            saver.put_writes = lambda *args, **kwargs: kill_here() if done() else writes(*args, **kwargs)
        carry_on(graph, invoice, answer)

    answers([ask], errors)
    killed = 0
    for number in range(count):
        pid = start(lambda number=number: resume(name(number), killed=True), errors)  # type: ignore[misc]
        killed += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    answers([lambda: [resume(name(number), killed=False) for number in range(count)]], errors)
    return counted(place, kind, count, killed, errors)


def decided_twice(folder: Path, kind: str, count: int) -> dict[str, Any]:
    """Two processes approve the same interrupt at the same moment."""
    place = folder / f"{kind}-two".replace(" ", "-")
    place.mkdir()
    errors = folder / "errors"

    def ask() -> None:
        graph, first, _ = program(kind, place, lambda _moment: None)
        for number in range(count):
            graph.invoke(first(name(number)), config(name(number)))

    answers([ask], errors)
    begins = time.monotonic() + 1.0

    def decide() -> None:
        graph, _, answer = program(kind, place, lambda _moment: None)
        for number in range(count):
            time.sleep(max(0.0, begins + number * 0.05 - time.monotonic()))
            carry_on(graph, name(number), answer)

    for pid in [start(decide, errors), start(decide, errors)]:
        os.waitpid(pid, 0)
    return counted(place, kind, count, count, errors)


def counted(place: Path, kind: str, count: int, cases: int, errors: Path) -> dict[str, Any]:
    """Compare the journal of effects with the threads."""

    def still_open() -> int:
        graph, _, _ = program(kind, place, lambda _moment: None)
        return sum(bool(graph.get_state(config(name(number))).tasks) for number in range(count))

    effects = Counter(fact["invoice"] for fact in facts(place / "effects"))
    return {
        "cases": cases,
        "actions": sum(effects.values()),
        "twice": sum(number - 1 for number in effects.values()),
        "lost": count - len(effects),
        "open": answers([still_open], errors)[0],
    }


def rows(folder: Path, count: int) -> list[tuple[Any, ...]]:
    """Return the rows of the table."""
    found = []
    for kind in KINDS:
        scenarios = {
            **{
                f"{kind}: SIGKILL {moment}": lambda kind=kind, moment=moment: killed_in(folder, kind, moment, count)
                for moment in MOMENTS
            },
            f"{kind}: two processes approve": lambda kind=kind: decided_twice(folder, kind, count),
        }
        for name, row in zip(scenarios, answers([*scenarios.values()], folder / "errors"), strict=True):
            found.append((name, *row.values()))
    return found


def warm() -> None:
    """Import the packages, so that forks begin at once."""
    for module in ("langchain.agents.middleware", "langchain_core.language_models.fake_chat_models"):
        importlib.import_module(module)
    for module in ("langgraph.checkpoint.sqlite", "langgraph.graph"):
        importlib.import_module(module)
