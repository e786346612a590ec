"""How fast what follows a run is: value score, confidence, the scan for novelty, redaction.

None of it runs on the agent's thread; together it bounds how many runs a process can finish per second.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from _measure import machine, median_seconds, print_table

import grace_kp as gk


def recorded(calls: int) -> gk.ReasoningTrace:
    """A trace as recording gives it: so many tool calls, of four tools, one of which failed once."""
    grace = gk.Grace(store="memory:", embedder=None)
    tools = [grace.tool(name=f"tool {number}")(lambda query: f"result of {query}") for number in range(4)]

    @grace.tool
    def flaky() -> None:
        raise LookupError("not there")

    with grace.run("Compare the offers and say which is the best", domain="finance") as run:
        grace.thought("First look at all of them.")
        for number in range(calls):
            tools[number % 4](f"question {number}")
        try:
            flaky()
        except LookupError:
            grace.thought("Then without it.")
    trace: gk.ReasoningTrace = run.trace
    grace.close()
    return trace


def decided(calls: int) -> gk.ReasoningTrace:
    """A trace of so many gated calls, each of which ran without a question."""
    with gk.Grace(store="memory:", embedder=None, reviewer=None) as grace, grace.run("Send the offers") as run:
        send = grace.gate(unmeasured="silent")(grace.tool(name="send")(lambda offer: offer))
        for number in range(calls):
            send(number)
    return run.trace


def score_rows() -> list[tuple[str, float, float]]:
    """Value scores and confidences: microseconds each, and per second."""
    rows = []
    scorer = gk.ValueScorer()
    for calls in (3, 10, 100):
        trace = recorded(calls)
        document = trace.to_dict()
        steps = len(trace.steps)
        rows.append((f"value score, model, {steps} steps", median_seconds(lambda trace=trace: scorer.score(trace))))
        rows.append((f"value score, dict, {steps} steps", median_seconds(lambda given=document: scorer.score(given))))
    calculator = gk.ConfidenceCalculator()
    strict = gk.ConfidenceCalculator(profile="strict")
    search = gk.ConfidenceFactors(
        search_result_count=5, search_avg_score=0.6, search_max_score=0.8, is_search_step=True
    )
    mixed = gk.ConfidenceFactors(
        tool_execution_count=5, tool_success_count=4, tool_success_rate=0.8, source_count=3, source_agreement=0.7,
        llm_self_confidence=0.9, query_coverage=0.8,
    )  # fmt: skip
    rows += [
        ("confidence, search step", median_seconds(lambda: calculator.calculate(search))),
        ("confidence, other step", median_seconds(lambda: calculator.calculate(mixed))),
        ("confidence, other step, strict", median_seconds(lambda: strict.calculate(mixed))),
    ]
    score = calculator.calculate(mixed)
    rows.append(("decision from a confidence", median_seconds(lambda: calculator.decide_action(score))))
    return [(name, seconds * 1e6, 1 / seconds) for name, seconds in rows]


def cache_rows() -> list[tuple[str, float, float]]:
    """The scan of a full cache, and taking a vector in."""
    import numpy as np

    random = np.random.default_rng(7)
    rows = []
    for elements in (100, 1_000):
        cache = gk.VectorCache(max_elements=elements, dimensions=384)
        for vector in random.normal(size=(elements, 384)).astype(np.float32):
            cache.add(vector)
        query = random.normal(size=384).astype(np.float32)
        rows.append(
            (
                f"VectorCache scan, {elements:,} x 384",
                median_seconds(lambda c=cache, q=query: c.max_cosine_similarity(q)),
            )
        )
        rows.append((f"VectorCache add to a full one, {elements:,}", median_seconds(lambda c=cache, q=query: c.add(q))))
    return [(name, seconds * 1e6, 1 / seconds) for name, seconds in rows]


TEXTS = {
    "prose without anything to remove": "The agent looked at three offers and chose the second, because it was cheaper. ",
    "JSON without anything to remove": '{"city": "Lyon", "nights": 3, "price": 240.5, "refundable": true}, ',
    "log with secrets and identifiers": (
        "2026-01-02 GET /v1/users?api_key=sk-proj-abcdefghijklmnopqrstuvwx from 203.0.113.7 by ana@example.com, "
        '{"password": "correct horse battery"} '
    ),
    "Japanese text": "エージェントは三つの見積もりを比べ、二番目のものを選びました。理由は価格です。",
}


def redaction_rows() -> list[tuple[str, float, float, float]]:
    """Microseconds per kilobyte of text (UTF-8)."""
    rows = []
    for name, text in TEXTS.items():
        long = text * (16_384 // len(text) + 1)
        kilobytes = len(long.encode()) / 1_024
        secrets = median_seconds(lambda given=long: gk.redact(given, "private")) * 1e6 / kilobytes
        both = median_seconds(lambda given=long: gk.redact(given, "aggregated")) * 1e6 / kilobytes
        short = median_seconds(lambda given=text: gk.redact(given, "private")) * 1e6
        rows.append((name, secrets, both, short))
    return rows


def trace_rows() -> list[tuple[str, float, float]]:
    """The model: reading, writing."""
    trace = recorded(10)
    document, text = trace.to_dict(), trace.to_json()
    gated = decided(5)
    decisions = json.dumps(gated.grace["decisions"])
    work: dict[str, Any] = {
        "ReasoningTrace from a dict": lambda: gk.ReasoningTrace.model_validate(document),
        "ReasoningTrace from JSON": lambda: gk.ReasoningTrace.model_validate_json(text),
        "ReasoningTrace to a dict": trace.to_dict,
        "ReasoningTrace to JSON": trace.to_json,
        "for comparison: json.loads": lambda: json.loads(text),
    }
    timed = {f"{name}, {len(trace.steps)} steps": median_seconds(one) for name, one in work.items()}
    timed["five decisions of a trace"] = median_seconds(lambda: gated.decisions)
    timed["for comparison: json.loads of them"] = median_seconds(lambda: json.loads(decisions))
    return [(name, seconds * 1e6, 1 / seconds) for name, seconds in timed.items()]


def main(arguments: list[str] | None = None) -> None:
    """Three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    print(f"\n## Scoring\n\n{machine()}")
    print_table("figures of a trace", ("what", "µs each", "per second"), [*score_rows(), *cache_rows()])
    print_table(
        "redaction", ("text of 16 KB", "secrets, µs per KB", "and identifiers", "one sentence, µs"), redaction_rows()
    )
    print_table("the model of a trace", ("what", "µs each", "per second"), trace_rows())


if __name__ == "__main__":
    main()
