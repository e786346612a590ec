"""What a LangChain callback handler adds: microseconds per tool call, sync and async, in short rounds and sustained.

One chain calls a tool ten times with 200 characters in and out. All handlers take turns in one process; a figure is the median of the
rounds, less the median of the chain without any; the fastest round is beside it. In short rounds what a handler does in the background
is waited for outside of the clock; in sustained ones it competes inside of it. `--clock thread` counts the agent's own processor time
alone. `--inside` adds the time inside the callbacks, without what LangChain does to call them. Nobody reaches a network. What is not
installed is left out, and named.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
from dataclasses import dataclass
from functools import partial
from time import perf_counter, perf_counter_ns, thread_time
from typing import TYPE_CHECKING, Any

from _measure import interleaved, machine, print_table
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers.base import BaseTracer

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 10
CALLBACKS = ("on_chain_start", "on_chain_end", "on_tool_start", "on_tool_end")
CLOCKS = {"wall": perf_counter, "thread": thread_time}
logging.disable(logging.WARNING)


@tool
def search(query: str) -> str:
    """Search."""
    return "y" * 200


@tool
async def search_async(query: str) -> str:
    """Search."""
    return "y" * 200


def run(_: str) -> str:
    for _ in range(CALLS):
        search.invoke({"query": "x" * 200})
    return "done"


async def run_async(_: str) -> str:
    for _ in range(CALLS):
        await search_async.ainvoke({"query": "x" * 200})
    return "done"


CHAIN, CHAIN_ASYNC = RunnableLambda(run), RunnableLambda(run_async)


def nothing() -> None:
    return None


@dataclass
class Subject:
    """Handlers, and how what they do in the background is waited for."""

    handlers: list[Any]
    flush: Callable[[], Any] = nothing


def none() -> Subject:
    return Subject([])


def no_op() -> Subject:
    """What LangChain itself takes for calling a handler."""
    return Subject([BaseCallbackHandler()])


def inline_no_op() -> Subject:
    """The same for a handler that says it never waits, which async programs call without a hop into another thread."""

    class Inline(BaseCallbackHandler):
        run_inline = True

    return Subject([Inline()])


def minimal() -> Subject:
    """The least that recording takes: name, arguments, result and times of each tool call, in a list."""

    class Minimal(BaseCallbackHandler):
        run_inline = True

        def __init__(self) -> None:
            self.open: dict[Any, list[Any]] = {}
            self.done: list[list[Any]] = []

        def on_tool_start(
            self, serialized: dict[str, Any], input_str: str, *, run_id: Any, inputs: Any = None, **kwargs: Any
        ) -> None:
            self.open[run_id] = [serialized["name"], dict(inputs), perf_counter()]

        def on_tool_end(self, output: Any, *, run_id: Any, **kwargs: Any) -> None:
            call = self.open.pop(run_id)
            call += [output, perf_counter()]
            self.done.append(call)

    handler = Minimal()
    return Subject([handler], handler.done.clear)


def base_tracer() -> Subject:
    """LangChain's own collector in memory, which its tracers rest on."""

    class Keep(BaseTracer):
        def _persist_run(self, run: Any) -> None:
            self.last = run

    return Subject([Keep()])


def langfuse() -> Subject:
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=200_000))
    Langfuse(
        public_key="pk-bench",
        secret_key="sk-bench",
        base_url="http://127.0.0.1:9",
        tracer_provider=provider,
        span_exporter=exporter,
    )

    def flush() -> None:
        provider.force_flush()
        exporter.clear()

    return Subject([CallbackHandler()], flush)


def grace_kp() -> Subject:
    import grace_kp as gk
    from grace_kp.integrations.langchain import GraceCallbackHandler

    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)

    def flush() -> None:
        grace.flush()
        assert grace.status()["writer"]["dropped"] == 0
        grace.store.clear()

    return Subject([GraceCallbackHandler(grace)], flush)


SUBJECTS = {made.__name__: made for made in (none, no_op, inline_no_op, minimal, base_tracer, langfuse, grace_kp)}


def measured(subject: Subject, runs: int, clock: Callable[[], float], *, is_async: bool) -> float:
    """Microseconds per tool call."""
    config: Any = {"callbacks": subject.handlers}

    async def many() -> float:
        start = clock()
        for _ in range(runs):
            await CHAIN_ASYNC.ainvoke("go", config)
        return clock() - start

    if is_async:
        spent = asyncio.run(many())
    else:
        start = clock()
        for _ in range(runs):
            CHAIN.invoke("go", config)
        spent = clock() - start
    subject.flush()
    return spent / runs / CALLS * 1e6


def timed(kind: type[Any], times: dict[str, list[int]]) -> type[Any]:
    """A kind of handler that notes the nanoseconds of each callback."""

    def timing(name: str, callback: Callable[..., None]) -> Callable[..., None]:
        noted = times.setdefault(name, [])

        def called(self: Any, *args: Any, **kwargs: Any) -> None:
            start = perf_counter_ns()
            callback(self, *args, **kwargs)
            noted.append(perf_counter_ns() - start)

        return called

    return type(kind.__name__, (kind,), {name: timing(name, getattr(kind, name)) for name in CALLBACKS})


def print_inside(subjects: dict[str, Subject], rounds: int, runs: int) -> None:
    """The first quartile of each callback: other programs on the machine make the rest slower."""
    for is_async in (False, True):
        noted: dict[str, dict[str, list[int]]] = {name: {} for name in subjects}
        for _ in range(rounds):
            for name, subject in subjects.items():
                (handler,) = subject.handlers
                kind = type(handler)
                handler.__class__ = timed(kind, noted[name])
                measured(subject, runs, perf_counter, is_async=is_async)
                handler.__class__ = kind
        rows = []
        for name, times in noted.items():
            spent = [sorted(times[callback])[len(times[callback]) // 4] / 1_000 for callback in CALLBACKS]
            rows.append((name, *spent, sum(spent[:2]) / CALLS + sum(spent[2:])))
        print_table(
            f"inside the callbacks, {'ainvoke' if is_async else 'invoke'}, µs",
            ("handler", *CALLBACKS, "a tool call"),
            rows,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which ones (default all): {', '.join(SUBJECTS)}")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--runs", type=int, default=10, help="runs in a short round")
    parser.add_argument("--sustained-rounds", type=int, default=5)
    parser.add_argument("--sustained-runs", type=int, default=300, help="0 leaves the sustained rounds out")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="thread: the agent's own processor time alone")
    parser.add_argument("--inside", action="store_true", help="also the time inside the callbacks")
    given = parser.parse_args()
    clock = CLOCKS[given.clock]
    built: dict[str, Subject] = {}
    for name in dict.fromkeys(["none", *(given.names or SUBJECTS)]):
        try:
            built[name] = SUBJECTS[name]()
            measured(built[name], 2, clock, is_async=False)
        except ImportError as error:
            print(f"left out: {name}: {error}")
    print(f"\n{machine()}")
    modes = [("short rounds", given.rounds, given.runs), ("sustained", given.sustained_rounds, given.sustained_runs)]
    for title, rounds, runs in modes:
        for is_async in (False, True):
            if not runs:
                continue
            work = {name: partial(measured, one, runs, clock, is_async=is_async) for name, one in built.items()}
            times = interleaved(work, rounds)
            seen = {name: statistics.median(values) for name, values in times.items()}
            base, fastest = seen["none"], min(times["none"])
            rows = [
                (
                    name,
                    value,
                    value - base,
                    min(times[name]) - fastest,
                    "" if "base_tracer" not in seen else f"{(value - base) / (seen['base_tracer'] - base):.2f}",
                )
                for name, value in seen.items()
            ]
            world = "ainvoke" if is_async else "invoke"
            print_table(
                f"{world}, {title} of {runs} runs",
                ("handler", "µs a tool call", "added µs", "fastest round", "to BaseTracer"),
                rows,
            )
    if given.inside:
        print_inside({name: subject for name, subject in built.items() if subject.handlers}, given.rounds, given.runs)


if __name__ == "__main__":
    main()
