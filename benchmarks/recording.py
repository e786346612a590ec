"""What recording costs: microseconds per recorded child call, sync and async, beside the bare floor and the peers.

One root call makes ten child calls with a text of 200 characters in and out. All subjects take turns in one process; the
figure is the median of the rounds, the ratio is to the OpenTelemetry SDK in the same run. Three modes: in short rounds each
turn is brief and what the subject does in the background is waited for outside of the clock; in sustained rounds a turn is
long (300 runs and more) without a flush in between, so that background work competes with the agent inside the clock; the
flushed mode takes the same turns, and the clock runs until everything recorded is exported or stored. It leaves out subjects
without a flush.
Nobody reaches a network: exporters are in memory, a dead end, or off. Peers that are not installed are left out, and named.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import inspect
import logging
import os
import statistics
import tempfile
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import TYPE_CHECKING, Any

from _measure import interleaved, machine, print_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHILDREN = 10
GIVEN, BACK = "x" * 200, "y" * 200


def same(function: Any) -> Any:
    return function


def nothing() -> None:
    return None


@dataclass
class Subject:
    """A way to record: how a child and a root are decorated, what stands around a root call, and what follows a turn.

    `flush` waits until everything recorded is exported or stored; `clear` then empties the place where it is kept.
    """

    child: Callable[[Any], Any] = same
    root: Callable[[Any], Any] = same
    around: Callable[[], Any] = nullcontext
    flush: Callable[[], Any] = nothing
    clear: Callable[[], Any] = nothing
    losses: Callable[[], str] = lambda: ""


def around_each_call(span: Callable[[str, Any], Any]) -> Callable[[Any], Any]:
    """A decorator from a context manager `span(name, argument)` that takes the result by being called with it."""

    def decorate(function: Any) -> Any:
        name = function.__name__

        async def recorded_async(argument: Any) -> Any:
            with span(name, argument) as done:
                result = await function(argument)
                done(result)
                return result

        def recorded(argument: Any) -> Any:
            with span(name, argument) as done:
                result = function(argument)
                done(result)
                return result

        return recorded_async if inspect.iscoroutinefunction(function) else recorded

    return decorate


def plain() -> Subject:
    """No recording: the price of the calls themselves."""
    return Subject()


def floor() -> Subject:
    """The least that CPython takes to record a call: set and reset a context variable, two clock reads, an object, an append."""
    current: ContextVar[Any] = ContextVar("current", default=None)
    kept: list[Any] = []

    class Step:
        __slots__ = ("end", "given", "result", "start")

    def child(function: Any) -> Any:
        async def recorded_async(argument: Any) -> Any:
            step = Step()
            step.given, step.start = argument, perf_counter_ns()
            token = current.set(step)
            try:
                step.result = await function(argument)
            finally:
                current.reset(token)
                step.end = perf_counter_ns()
                kept.append(step)
            return step.result

        def recorded(argument: Any) -> Any:
            step = Step()
            step.given, step.start = argument, perf_counter_ns()
            token = current.set(step)
            try:
                step.result = function(argument)
            finally:
                current.reset(token)
                step.end = perf_counter_ns()
                kept.append(step)
            return step.result

        return recorded_async if inspect.iscoroutinefunction(function) else recorded

    return Subject(child=child, clear=kept.clear)


def opentelemetry_provider() -> tuple[Any, Any]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=200_000))
    return provider, exporter


def spans_of(tracer: Any) -> Callable[[Any], Any]:
    """A decorator that makes a span of each call, with argument and result as attributes."""

    def decorate(function: Any) -> Any:
        name = function.__name__

        async def recorded_async(argument: Any) -> Any:
            with tracer.start_as_current_span(name) as span:
                span.set_attribute("input", argument)
                result = await function(argument)
                span.set_attribute("output", result)
                return result

        def recorded(argument: Any) -> Any:
            with tracer.start_as_current_span(name) as span:
                span.set_attribute("input", argument)
                result = function(argument)
                span.set_attribute("output", result)
                return result

        return recorded_async if inspect.iscoroutinefunction(function) else recorded

    return decorate


def opentelemetry() -> Subject:
    """The SDK with a batch processor and an exporter in memory; argument and result as attributes."""
    provider, exporter = opentelemetry_provider()
    decorate = spans_of(provider.get_tracer("benchmark"))
    return Subject(child=decorate, root=decorate, flush=provider.force_flush, clear=exporter.clear)


def openai_agents() -> Subject:
    """The tracing of the OpenAI Agents SDK, into a processor that keeps the spans."""
    from agents import tracing

    kept: list[Any] = []

    class Keep(tracing.TracingProcessor):
        def on_trace_start(self, trace: Any) -> None: ...

        def on_trace_end(self, trace: Any) -> None: ...

        def on_span_start(self, span: Any) -> None: ...

        def on_span_end(self, span: Any) -> None:
            kept.append(span)

        def shutdown(self) -> None: ...

        def force_flush(self) -> None: ...

    tracing.set_trace_processors([Keep()])

    @contextmanager
    def span(name: str, argument: Any) -> Iterator[Callable[[Any], None]]:
        with tracing.function_span(name, input=argument) as made:

            def done(result: Any) -> None:
                made.span_data.output = result

            yield done

    return Subject(child=around_each_call(span), around=lambda: tracing.trace("root"), clear=kept.clear)


def langsmith() -> Subject:
    """LangSmith's `traceable`, kept local."""
    from langsmith import traceable
    from langsmith.run_helpers import tracing_context

    return Subject(child=traceable, root=traceable, around=lambda: tracing_context(enabled="local"))


def langfuse() -> Subject:
    """Langfuse's `observe`, on an OpenTelemetry provider with an exporter in memory."""
    from langfuse import Langfuse, observe

    provider, exporter = opentelemetry_provider()
    Langfuse(
        public_key="pk-benchmark",
        secret_key="sk-benchmark",
        base_url="http://127.0.0.1:9",
        tracer_provider=provider,
        span_exporter=exporter,
    )
    return Subject(child=observe(), root=observe(), flush=provider.force_flush, clear=exporter.clear)


def logfire() -> Subject:
    """Logfire's `instrument`, sending nothing."""
    import logfire as package

    package.configure(send_to_logfire=False, console=False, inspect_arguments=False)
    decorate = package.instrument(record_return=True)
    return Subject(child=decorate, root=decorate)


def grace_kp() -> Subject:
    """This library: every run scored and stored in memory."""
    return grace_kp_with("memory:")


def grace_kp_sqlite() -> Subject:
    """This library: every run scored and stored in a SQLite file."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return grace_kp_with(f"sqlite:///{Path(folder.name) / 'traces.db'}")


def grace_kp_with(store: str) -> Subject:
    import grace_kp as gk

    grace = gk.Grace(store=store, embedder=None, evaluator=None)
    atexit.register(grace.close)

    def losses() -> str:
        status = grace.status()
        counts = [f"{count:,} {name}" for name, count in status["writer"].items() if isinstance(count, int)]
        return f"{', '.join(counts)}, {sum(status['troubles'].values())} troubles"

    return Subject(
        child=grace.tool, root=grace.agent, flush=grace.flush, clear=lambda: grace.store.clear(), losses=losses
    )


def grace_kp_disabled() -> Subject:
    """This library, decorated and switched off as with GRACE_KP_ENABLED=0."""
    import grace_kp as gk

    grace = gk.Grace(store="memory:", enabled=False)
    return Subject(child=grace.tool, root=grace.agent)


SUBJECTS = (
    plain,
    floor,
    opentelemetry,
    openai_agents,
    langsmith,
    langfuse,
    logfire,
    grace_kp,
    grace_kp_sqlite,
    grace_kp_disabled,
)
TITLES = {"short": "short", "sustained": "sustained", "flushed": "sustained, flush included"}
"""The modes with their titles."""


def turn(subject: Subject, runs: int, *, use_async: bool, flush_inside: bool) -> Callable[[], float]:
    """One turn: so many root calls; gives microseconds per child call and brings the subject to rest afterwards."""
    loop = async_loop(subject, runs) if use_async else sync_loop(subject, runs)

    def measure() -> float:
        spent = loop()
        start = perf_counter()
        subject.flush()
        if flush_inside:
            spent += perf_counter() - start
        subject.clear()
        return spent / runs / CHILDREN * 1e6

    return measure


def sync_loop(subject: Subject, runs: int) -> Callable[[], float]:
    def child(question: str) -> str:
        return BACK

    child = subject.child(child)

    def root(question: str) -> str:
        for _ in range(CHILDREN):
            child(question)
        return BACK

    root = subject.root(root)

    def loop() -> float:
        start = perf_counter()
        for _ in range(runs):
            with subject.around():
                root(GIVEN)
        return perf_counter() - start

    return loop


def async_loop(subject: Subject, runs: int) -> Callable[[], float]:
    async def child(question: str) -> str:
        return BACK

    child = subject.child(child)

    async def root(question: str) -> str:
        for _ in range(CHILDREN):
            await child(question)
        return BACK

    root = subject.root(root)

    async def loop() -> float:
        start = perf_counter()
        for _ in range(runs):
            with subject.around():
                await root(GIVEN)
        return perf_counter() - start

    return lambda: asyncio.run(loop())


def compare(names: list[str], left_out: set[str], mode: str, *, runs: int, rounds: int, use_async: bool) -> None:
    """One table: the subjects, interleaved."""
    made, turns = {}, {}
    for build in SUBJECTS:
        name = build.__name__
        if names and name not in names:
            continue
        try:
            made[name] = build()
            if mode == "flushed" and made[name].flush is nothing:
                continue
            turns[name] = turn(made[name], runs, use_async=use_async, flush_inside=mode == "flushed")
            turns[name]()
        except Exception as problem:
            turns.pop(name, None)
            if name not in left_out:
                print(f"left out: {name}: {type(problem).__name__}: {str(problem)[:100]}")
            left_out.add(name)
    seen = interleaved(turns, rounds)
    medians = {name: statistics.median(times) for name, times in seen.items()}
    peer, fastest_peer = medians.get("opentelemetry"), min(seen.get("opentelemetry", [0.0]))
    rows = [
        (
            name,
            medians[name],
            min(seen[name]),
            *(("", "") if not peer else (f"{medians[name] / peer:.3f}", f"{min(seen[name]) / fastest_peer:.3f}")),
        )
        for name in sorted(medians, key=medians.__getitem__)
    ]
    title = f"{'async' if use_async else 'sync'}, {TITLES[mode]}: {rounds} rounds of {runs} runs with {CHILDREN} child calls"
    columns = ("subject", "µs per child call", "fastest round", "x OpenTelemetry", "x its fastest round")
    print_table(title, columns, rows)
    for name in turns:
        if losses := made[name].losses():
            print(f"\n{name}: {losses}")
    for subject in made.values():
        subject.flush()
        subject.clear()


def main(arguments: list[str] | None = None) -> None:
    """Six tables: sync and async, in each mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="subjects; all when none is named")
    parser.add_argument("--rounds", type=int, default=25, help="short rounds (default 25)")
    parser.add_argument("--runs", type=int, default=40, help="root calls per short round (default 40)")
    parser.add_argument("--sustained-rounds", type=int, default=9, help="sustained and flushed rounds (default 9)")
    parser.add_argument(
        "--sustained-runs", type=int, default=1_000, help="root calls per sustained or flushed round (default 1,000)"
    )
    parser.add_argument("--only", choices=("sync", "async"), help="only one of the two")
    parser.add_argument("--mode", choices=tuple(TITLES), help="only one of the modes")
    given = parser.parse_args(arguments)
    os.environ.pop("GRACE_KP_STRICT_RECORDING", None)
    logging.disable(logging.WARNING)
    print(f"\n## Recording\n\n{machine()}")
    left_out: set[str] = set()
    for mode in TITLES:
        runs, rounds = (given.runs, given.rounds) if mode == "short" else (given.sustained_runs, given.sustained_rounds)
        for kind in ("sync", "async"):
            if given.mode in (None, mode) and given.only in (None, kind):
                compare(given.names, left_out, mode, runs=runs, rounds=rounds, use_async=kind == "async")


if __name__ == "__main__":
    main()
