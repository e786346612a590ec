"""What recording and gating cost per tool call inside of an agent framework, beside the framework's own tracing in the same run.

A framework's driver is named by the module of its test: `tests.integrations.strands.driver:StrandsDriver`. Each subject runs the same scripted agent
(five turns of two calls) in turns; the framework's own spans go to an exporter in memory. Needs opentelemetry-sdk, except for openai-agents.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from _measure import interleaved, machine, print_table  # noqa: E402

import grace_kp as gk  # noqa: E402
from tests.integrations.scenario import DONE, Case, Driver, calls, driver_of  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TURNS = 5
CALLS = 2 * TURNS
SCRIPT = {
    "main": (
        *(calls(*((f"{name}{turn}", "lookup", {"query": f"{name}{turn}"}) for name in "ab")) for turn in range(TURNS)),
        DONE,
    )
}
Tracing = contextlib.AbstractContextManager[Any]


@dataclass
class Quick(Case):
    """A case that keeps nothing of what its model was given."""

    def next_turn(self, agent: str, answers: Mapping[str, str]) -> Any:
        return next(turn for turn in self.turns[agent] if not turn.calls or turn.calls[0].id not in answers)


class Switched:
    """OpenTelemetry for the whole process, whose spans are recorded only while it is on."""

    def __init__(self) -> None:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider, sampling
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        switch = self

        class Sampler(sampling.Sampler):
            def should_sample(self, *_: Any, **__: Any) -> sampling.SamplingResult:
                kind = sampling.Decision.RECORD_AND_SAMPLE if switch.on else sampling.Decision.DROP
                return sampling.SamplingResult(kind)

            def get_description(self) -> str:
                return "switched"

        self.on, self.exporter = False, InMemorySpanExporter()
        self.provider = TracerProvider(sampler=Sampler())
        self.provider.add_span_processor(BatchSpanProcessor(self.exporter, max_queue_size=100_000))
        trace.set_tracer_provider(self.provider)

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        self.on = True
        try:
            yield
        finally:
            self.on = False
            self.provider.force_flush()
            if not self.exporter.get_finished_spans():
                sys.exit("the framework has recorded no span")
            self.exporter.clear()


def trace_openai_agents(driver: Driver) -> Callable[[], Tracing]:
    """Its processors get all spans; the driver switches them off for its tests."""
    import agents

    class Kept(agents.tracing.TracingProcessor):
        def __init__(self) -> None:
            self.spans: list[Any] = []

        def on_trace_start(self, trace: Any) -> None: ...
        def on_trace_end(self, trace: Any) -> None: ...
        def on_span_start(self, span: Any) -> None: ...
        def shutdown(self) -> None: ...
        def force_flush(self) -> None: ...

        def on_span_end(self, span: Any) -> None:
            self.spans.append(span.export())

    kept, module = Kept(), sys.modules[type(driver).__module__]
    agents.set_trace_processors([kept])

    @contextlib.contextmanager
    def tracing() -> Iterator[None]:
        quiet, module.QUIET = module.QUIET, agents.RunConfig()  # type: ignore[attr-defined]
        try:
            yield
        finally:
            module.QUIET = quiet  # type: ignore[attr-defined]
            assert kept.spans, "the framework has recorded no span"
            kept.spans.clear()

    return tracing


def trace_pydantic_ai(_driver: Driver) -> Callable[[], Tracing]:
    """Its agents are instrumented while it is on."""
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings

    switched = Switched()

    @contextlib.contextmanager
    def tracing() -> Iterator[None]:
        Agent.instrument_all(InstrumentationSettings(tracer_provider=switched.provider))
        try:
            with switched.tracing():
                yield
        finally:
            Agent.instrument_all(False)

    return tracing


def own_tracing(driver: Driver) -> Callable[[], Tracing]:
    if driver.framework == "openai-agents":
        return trace_openai_agents(driver)
    return trace_pydantic_ai(driver) if driver.framework == "pydantic-ai" else Switched().tracing


def measured(
    driver: Driver,
    folder: Path,
    runs: int,
    grace: gk.Grace | None,
    gates: dict[str, Any],
    around: Callable[[], Tracing],
) -> float:
    """Microseconds per tool call."""
    spent = 0.0
    with around():
        for number in range(runs):
            session = f"s{perf_counter()}-{number}"
            case = Quick(folder, SCRIPT, session)
            start = perf_counter()
            ran = driver.run(case, grace, gates, None, stream=False)
            spent += perf_counter() - start
            assert ran.text == "done", ran
    if grace is not None:
        grace.flush()
        assert grace.store.count() >= runs
        grace.store.clear()
    return spent / runs / CALLS * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("driver", help="MODULE:CLASS")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    driver = driver_of(arguments.driver)
    tracing, grace = own_tracing(driver), gk.Grace(store="memory:", evaluator=None, embedder=None)
    silent = {"lookup": gk.Policy(floor="silent", unmeasured="silent")}
    plain = contextlib.nullcontext
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def subject(
            grace: gk.Grace | None, gates: dict[str, Any], around: Callable[[], Tracing]
        ) -> Callable[[], float]:
            return lambda: measured(driver, folder, arguments.runs, grace, gates, around)

        subjects = {
            "the framework alone": subject(None, {}, plain),
            "with its own tracing": subject(None, {}, tracing),
            "with grace_kp, recorded": subject(grace, {}, plain),
            "with grace_kp, recorded and gated": subject(grace, silent, plain),
        }
        interleaved(subjects, 1)
        seen = {name: statistics.median(values) for name, values in interleaved(subjects, arguments.rounds).items()}
    base = seen["the framework alone"]
    own = seen["with its own tracing"] - base
    rows = [(name, value, value - base, (value - base) / own) for name, value in seen.items()]
    print(f"{machine()}, {driver.framework}")
    print_table("a tool call", ("", "µs", "added µs", "to its own tracing"), rows)
    grace.close()


if __name__ == "__main__":
    main()
