"""What finishing a recorded call costs: microseconds of processor time per call for each part, from the ended run to the stored row.

A run makes ten calls with a text of 200 characters in and out. Texts are new in every call (as most are), or the same in all of them
(as in `recording.py`): redaction remembers short texts that it has seen. The last row is what the writer's thread does with a run before
it stores it, from the parts in the pipeline. The floor is pydantic's JSON of the finished document. Without `--pure` orjson is used
where it is installed.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import tempfile
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any

from _measure import machine, print_table

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS, RUNS, BATCH = 10, 100, 50
PROSE = (
    "the report shows growth in every region: quarter revenue rose 4.2 %, analysts expect (again) margin while demand for chips_v2 remains "
    "strong. Supply/chain issues ease across Europe and Asia; see page 12, the user's answer and tables below"
)


def main(arguments: list[str] | None = None) -> None:
    """One table: a row for each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="rounds, of which the fastest counts (default 20)")
    parser.add_argument("--pure", action="store_true", help="without orjson")
    options = parser.parse_args(arguments)
    if options.pure:
        sys.modules["orjson"] = None  # type: ignore[assignment]
    chance, words = random.Random(1), PROSE.split()
    kinds: dict[str, Callable[[], str]] = {
        "new": lambda: " ".join(chance.choice(words) for _ in range(60))[:200],
        "repeated": lambda: "y" * 200,
    }
    measure = parts()
    fastest: dict[tuple[str, str], float] = {}
    gc.disable()
    for _ in range(options.rounds):
        for kind, text in kinds.items():
            gc.collect()
            for part, spent in measure(text).items():
                fastest[part, kind] = min(fastest.get((part, kind), spent), spent)
    gc.enable()
    print(f"\n## Finishing\n\n{machine()}{', without orjson' if options.pure else ''}")
    rows = [(part, fastest[part, "new"], fastest[part, "repeated"]) for part, kind in fastest if kind == "new"]
    new, repeated = (sum(fastest[part, kind] for part in FINISHED) for kind in kinds)
    rows.append(("finished, into memory", new, repeated))
    print_table("µs per call, fastest round", ("part", "new texts", "repeated texts"), rows)


FINISHED = ("steps, redacted", "the rest of the document", "evidence, confidence, value score", "row with JSON")


def parts() -> Callable[[Callable[[], str]], dict[str, float]]:
    """Return the function that measures one round: the processor time of each part, per call."""
    from pydantic_core import to_json as floor

    from grace_kp.confidence import factors_from_trace
    from grace_kp.record import Conversations, Documents, Listener, Recorder, to_json
    from grace_kp.runtime._assessment import Assessor
    from grace_kp.runtime._choices import ModelChoice
    from grace_kp.runtime._pipeline import Pipeline, record_of
    from grace_kp.runtime._profiles import ProfileSet
    from grace_kp.settings import Settings
    from grace_kp.store import open_store
    from grace_kp.store._sqlite import SqliteStore
    from grace_kp.value import ValueScorer

    documents_of = Documents(privacy_level="private", visibility="network", max_text=8_192)
    profiles = ProfileSet.of("grace")
    assessor = Assessor(profiles, ValueScorer)
    models = ModelChoice(
        Settings(), evaluator=None, embedder=None, calculator=lambda: profiles.main.calculator, on_judged=lambda: None
    )
    pipeline = Pipeline(
        Settings(),
        Recorder(Settings(), Listener()),
        models,
        lambda: profiles,
        None,
        Conversations(lambda: open_store("memory:"), list, list),
        put_later=lambda record: None,
        write_settled=list,
    )

    def measure(text: Callable[[], str]) -> dict[str, float]:
        spent: dict[str, float] = {}

        def timed(part: str, work: Callable[[Any], Any], items: Any) -> list[Any]:
            start = thread_time()
            results = [work(item) for item in items]
            spent[part] = (thread_time() - start) / RUNS / CALLS * 1e6
            return results

        def ended() -> list[Any]:
            runs = [captured(text()) for _ in range(RUNS)]
            for run in runs:
                for event in run.events[::2]:
                    event.args, event.result = (text(),), text()
            return runs

        runs = ended()
        timed("steps, redacted", lambda run: documents_of.builder(run).finish(), runs)
        documents = timed("the rest of the document", documents_of.build, runs)
        timed(
            "evidence, confidence, value score",
            lambda document: assessor.assess(document, factors=factors_from_trace(document)),
            documents,
        )
        records = timed("row with JSON", record_of, documents)
        timed("its JSON alone", to_json, documents)
        timed("floor: pydantic's JSON", floor, documents)
        with tempfile.TemporaryDirectory() as folder:
            store = SqliteStore(Path(folder) / "traces.db")
            timed("into SQLite", store.put, [records[start : start + BATCH] for start in range(0, RUNS, BATCH)])
            store.close()
        timed("settled by the pipeline", pipeline.settle, ended())
        return spent

    return measure


def captured(text: str) -> Any:
    """A run that has ended, as the recorder hands it over."""
    from grace_kp.record import AGENT, TOOL, Call, Listener, Recorder, Spec, open_run
    from grace_kp.settings import Settings

    def look(question: str) -> str:
        return question

    tool = Spec(look, kind=TOOL)
    run = open_run(Recorder(Settings(), Listener()), Spec(look, kind=AGENT), (text,), {})
    assert run is not None
    for _ in range(CALLS):
        Call(run, tool, None, (text,), None).close(text)
    run.close(text)
    return run


if __name__ == "__main__":
    main()
