"""What judging costs besides the model: prompts, replies, and the agent's own thread; and how many calls `when_needed` saves.

    python benchmarks/judging.py [--data FOLDER]

FOLDER holds recorded runs (agent_runs.jsonl.gz, tau_bench_airline_gpt4o.jsonl.gz); without it that table is left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import statistics
import time
from pathlib import Path
from time import perf_counter
from typing import Any

from _measure import machine, median_seconds, print_table

import grace_kp as gk
from grace_kp.confidence import ConfidenceCalculator, Evaluation, could_change, factors_from_trace, with_judgements
from grace_kp.judge import build_prompt, parse_reply

REPLY = '{"score": 0.8, "reason": "borne out by the first source", "coverage": 0.6, "coverage_reason": "one of two"}'


def pieces() -> None:
    """Microseconds of the parts around a call."""
    text = "The fare from Lisbon to Rome is 120 euros, as the table of 2 March says. " * 20
    texts = [("question", "What is the fare?"), ("answer", text), *(("source", text) for _ in range(5))]
    evaluator = gk.LLMSelfEvaluator(lambda prompt: REPLY, combined=True)
    number = iter(range(10**9))
    rows = [
        ("read a structured reply", median_seconds(lambda: parse_reply(REPLY)) * 1e6),
        ("read a plain reply", median_seconds(lambda: parse_reply("Score: 0.8\nReason: fine")) * 1e6),
        ("build a prompt of 10 KB", median_seconds(lambda: build_prompt("both", "en", texts)) * 1e6),
        (
            "a whole judgement, without the model",
            median_seconds(lambda: evaluator.evaluate_both(f"q {next(number)}", text)) * 1e6,
        ),
        ("a judgement from the cache", median_seconds(lambda: evaluator.evaluate_both("q", text)) * 1e6),
        (
            "whether one is needed",
            median_seconds(lambda: could_change(ConfidenceCalculator(), gk.ConfidenceFactors())) * 1e6,
        ),
    ]
    print_table("around the call of a judge", ("what", "µs"), rows)


def agent_rows(runs: int) -> None:
    """The agent's loop with and without a judge that takes 20 ms."""

    def judge(prompt: str) -> str:
        time.sleep(0.02)
        return REPLY

    rows = []
    for name, model in (("no judge", None), ("a judge that takes 20 ms", judge)):
        grace = gk.Grace(store="memory:", evaluator=model, embedder=None, reviewer=None, judge_calls_per_minute=0)

        @grace.agent
        def agent(question: str) -> str:
            return "an answer"

        agent("warm")
        grace.flush(60)
        times = []
        for number in range(runs):
            start = perf_counter()
            agent(f"question {number}")
            times.append(perf_counter() - start)
            time.sleep(0.01)  # what an agent would be doing
        grace.flush(120)
        judged = sum(bool(trace.grace["evaluation"].get("calls")) for trace in grace.store.query(limit=None))
        rows.append((name, statistics.median(times) * 1e6, sorted(times)[int(runs * 0.99)] * 1e6, judged))
        grace.close()
    print_table(
        f"the agent's thread, {runs} runs, 10 ms apart", ("runtime", "median µs a run", "99 % µs", "judged"), rows
    )


def recorded(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Recorded runs as traces in dict form, with their source."""
    found: list[tuple[str, dict[str, Any]]] = []
    for name in ("agent_runs.jsonl.gz", "tau_bench_airline_gpt4o.jsonl.gz"):
        with gzip.open(folder / name, "rt", encoding="utf-8") as file:
            for line in file:
                run = json.loads(line)
                messages = run.get("messages") or run.get("traj")
                found.append((run.get("source", "tau-bench airline"), gk.from_openai_messages(messages).to_dict()))
    return found


def stated(folder: Path) -> list[float]:
    """Confidences that models have really stated of their answers."""
    with gzip.open(folder / "self_confidence.jsonl.gz", "rt", encoding="utf-8") as file:
        found = [json.loads(line)["stated_confidence"] for line in file]
    return [float(value) for value in found if isinstance(value, int | float) and 0 <= value <= 1]


def saved(folder: Path) -> None:
    """Calls saved by `when_needed`, and whether any level came out otherwise for judgements of any size."""
    runs = [(source, factors_from_trace(trace)) for source, trace in recorded(folder)]
    confidences, draw = stated(folder), random.Random(1)
    rows = []
    for profile in ("grace", "strict"):
        calculator = ConfidenceCalculator(profile)
        for floor in (None, "notify", "confirm"):
            one_call = two_calls = changed = 0

            def level_of(known: Any, floor: Any = floor, calculator: Any = calculator) -> gk.InterventionLevel:
                found = calculator.decide_action(calculator.calculate(known)).level
                return found if floor is None else found.at_least(gk.InterventionLevel(floor))

            for _, factors in runs:
                needed = could_change(calculator, factors, level_of=level_of)
                one_call += needed
                own = Evaluation(score=draw.choice(confidences))
                judged = with_judgements(factors, own, None)
                second = needed and could_change(calculator, judged, own_is_known=True, level_of=level_of)
                two_calls += needed + second
                for first, known in ((True, factors), (False, judged)):
                    if needed if first else second or not needed:
                        continue
                    for _ in range(10):
                        any_own, coverage = (Evaluation(score=round(draw.random(), 2)) for _ in range(2))
                        seen = with_judgements(known, any_own if first else None, coverage)
                        changed += level_of(seen) != level_of(known)
            shares = (100 * (1 - one_call / len(runs)), 100 * (1 - two_calls / 2 / len(runs)))
            rows.append((profile, floor or "none", len(runs), *shares, changed))
    columns = (
        "profile",
        "floor of the gate",
        "runs",
        "combined call: saved, %",
        "two calls: saved, %",
        "levels changed",
    )
    print_table("judge calls that `when_needed` saves on recorded runs, default thresholds", columns, rows)


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("GRACE_KP_DATA"))
    parser.add_argument("--runs", type=int, default=300)
    given = parser.parse_args()
    os.environ.pop("GRACE_KP_DATA", None)
    print(f"\n## Judging\n\n{machine()}")
    pieces()
    agent_rows(given.runs)
    if given.data:
        saved(Path(given.data))


if __name__ == "__main__":
    main()
