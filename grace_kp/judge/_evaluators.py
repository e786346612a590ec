"""The questions to a judge: a self-evaluation of an answer, its coverage of the query, and the overall judgement of a step."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from grace_kp.judge._client import JudgeClient

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grace_kp.confidence import ConfidenceFactors, Evaluation
    from grace_kp.judge._prompts import Prompt
    from grace_kp.protocols import JudgeLike

MAX_SOURCES = 40
SURE_SEARCH = 0.9
"""A search result above this score is not overruled by a lower judgement."""
_BOTH = ("score", "coverage")


class LLMSelfEvaluator(JudgeClient):
    """Judges how reliable an answer is, 0 to 1, by asking a model once, at temperature 0.

    Every failure (no judge, an error, a timeout, an unparsable reply, the spending limit) gives 0.5, and the detailed form says so.
    The texts are fenced off as data and redacted (secrets and identifiers) before the judge sees them.

    Args:
        judge: a `GeminiJudge`, or any callable from prompt to text, sync or async. None: every judgement is the fallback.
        combined: True: `evaluate_both` makes one call for both judgements instead of two.
        samples: number of judgements; the score is their mean, and their spread is reported.
        language: `en`, `ja`, or `auto`: by the script of the query.
        cache: earlier judgements; None keeps 1,000 in memory.
        limit: what judging may cost.
        on_failure: `fallback`, or `raise` for an `EvaluationFailed` instead of 0.5.
        timeout: seconds for one judgement with all its attempts; None leaves it to the judge (`GeminiJudge` has its own).
        max_chars: characters kept of each text.
    """

    def __init__(self, judge: JudgeLike | None, *, combined: bool = False, **options: Any) -> None:
        super().__init__(judge, **options)
        self.combined = combined

    def evaluate(self, query: str, answer: str, sources: Sequence[str] | None = None) -> float:
        """Return how reliable the answer is, 0 to 1; 0.5 when it cannot be judged.

        Args:
            query: the question.
            answer: the answer to it.
            sources: texts that the answer rests on.
        """
        return self.evaluate_detailed(query, answer, sources).score

    def evaluate_detailed(
        self, query: str, answer: str, sources: Sequence[str] | None = None, *, run: str | None = None
    ) -> Evaluation:
        """Return the judgement with its reason, its cost, and whether it is a fallback and why.

        Args:
            query: the question.
            answer: the answer to it.
            sources: texts that the answer rests on.
            run: id of the run that the cost counts for, where the spending limit has a bound per run.
        """
        return self.ask(self._query_prompt("self_evaluation", query, answer, sources), ("score",), run)["score"]

    async def aevaluate(self, query: str, answer: str, sources: Sequence[str] | None = None) -> float:
        """Evaluate as `evaluate` does, without blocking the event loop."""
        return (await self.aevaluate_detailed(query, answer, sources)).score

    async def aevaluate_detailed(
        self, query: str, answer: str, sources: Sequence[str] | None = None, *, run: str | None = None
    ) -> Evaluation:
        """Evaluate as `evaluate_detailed` does, without blocking the event loop."""
        prompt = self._query_prompt("self_evaluation", query, answer, sources)
        return (await self.aask(prompt, ("score",), run))["score"]

    def evaluate_both(
        self, query: str, answer: str, sources: Sequence[str] | None = None, *, run: str | None = None
    ) -> tuple[Evaluation, Evaluation]:
        """Return the judgement of the answer and its coverage of the query: by one call when `combined`, else by two."""
        if not self.combined:
            return self.evaluate_detailed(query, answer, sources, run=run), self.cover_detailed(query, answer, run=run)
        judgements = self.ask(self._query_prompt("both", query, answer, sources), _BOTH, run)
        return judgements["score"], judgements["coverage"]

    async def aevaluate_both(
        self, query: str, answer: str, sources: Sequence[str] | None = None, *, run: str | None = None
    ) -> tuple[Evaluation, Evaluation]:
        """Evaluate as `evaluate_both` does, without blocking the event loop."""
        if not self.combined:
            own = await self.aevaluate_detailed(query, answer, sources, run=run)
            coverage = await self.aask(self._query_prompt("coverage", query, answer), ("score",), run)
            return own, coverage["score"]
        judgements = await self.aask(self._query_prompt("both", query, answer, sources), _BOTH, run)
        return judgements["score"], judgements["coverage"]

    def cover_detailed(self, query: str, answer: str, *, run: str | None = None) -> Evaluation:
        """Return how much of the query the answer covers, as `QueryCoverageCalculator` does."""
        return self.ask(self._query_prompt("coverage", query, answer), ("score",), run)["score"]

    def _query_prompt(self, kind: str, query: object, answer: object, sources: object = None) -> Prompt:
        return self.prompt(kind, titled_texts(query, answer, sources), query=query)


class QueryCoverageCalculator(JudgeClient):
    """Judges how much of a query an answer covers, 0 to 1. Arguments and failures are as for `LLMSelfEvaluator`."""

    def calculate(self, query: str, answer: str) -> float:
        """Return the share of the query that is answered, 0 to 1; 0.5 when it cannot be judged."""
        return self.calculate_detailed(query, answer).score

    def calculate_detailed(self, query: str, answer: str, *, run: str | None = None) -> Evaluation:
        """Return the judgement with its reason, its cost, and whether it is a fallback and why."""
        prompt = self.prompt("coverage", titled_texts(query, answer), query=query)
        return self.ask(prompt, ("score",), run)["score"]

    async def acalculate(self, query: str, answer: str) -> float:
        """Calculate as `calculate` does, without blocking the event loop."""
        return (await self.acalculate_detailed(query, answer)).score

    async def acalculate_detailed(self, query: str, answer: str, *, run: str | None = None) -> Evaluation:
        """Calculate as `calculate_detailed` does, without blocking the event loop."""
        prompt = self.prompt("coverage", titled_texts(query, answer), query=query)
        return (await self.aask(prompt, ("score",), run))["score"]

    evaluate_detailed = calculate_detailed
    aevaluate_detailed = acalculate_detailed


class StepJudge(JudgeClient):
    """Judges a step as a whole (`llm_calculate`). Arguments and failures are as for `LLMSelfEvaluator`."""

    def llm_calculate(
        self, factors: ConfidenceFactors, purpose: str, output: object, *, run: str | None = None
    ) -> Evaluation:
        """Return the model's judgement of a step; on a search step, a best result above 0.9 wins over a lower score.

        Args:
            factors: what was measured.
            purpose: what the step is for.
            output: the result of the step; other values than strings are rendered.
            run: id of the run that the cost counts for, where the spending limit has a bound per run.
        """
        prompt = self.prompt("step", _step_texts(factors, purpose, output), query=purpose)
        return _at_least_search(self.ask(prompt, ("score",), run)["score"], factors)

    async def allm_calculate(
        self, factors: ConfidenceFactors, purpose: str, output: object, *, run: str | None = None
    ) -> Evaluation:
        """Judge as `llm_calculate` does, without blocking the event loop."""
        prompt = self.prompt("step", _step_texts(factors, purpose, output), query=purpose)
        return _at_least_search((await self.aask(prompt, ("score",), run))["score"], factors)


def titled_texts(query: object, answer: object, sources: object = None) -> list[tuple[str, object]]:
    """Return query, answer and sources as titled texts; sources may be one string or a collection of strings."""
    texts = [("question", query), ("answer", answer)]
    if sources is None:
        return texts
    listed: Iterable[object] = [sources]
    if not isinstance(sources, str | bytes) and hasattr(sources, "__iter__"):
        listed = list(sources)[:MAX_SOURCES]
    return texts + [("source", source) for source in listed]


def _step_texts(factors: ConfidenceFactors, purpose: str, output: object) -> list[tuple[str, object]]:
    figures = {item.name: getattr(factors, item.name) for item in fields(factors)}
    return [("purpose", purpose), ("factors", json.dumps(figures)), ("output", output)]


def _at_least_search(judged: Evaluation, factors: ConfidenceFactors) -> Evaluation:
    best = factors.search_max_score
    if factors.is_search_step and best > SURE_SEARCH and best > judged.score:
        # The best result was measured. So it also replaces a fallback, and the record still says that the judgement failed.
        return replace(judged, score=best, reason=f"best search result {best:.2f}; {judged.reason}".rstrip("; "))
    return judged
