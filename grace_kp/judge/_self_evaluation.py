"""A model's judgement of an answer: accuracy against the sources, relevance, style; and the two judgements in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.judge._asking import Asker, titled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.confidence import Evaluation

_BOTH = ("score", "coverage")


class LLMSelfEvaluator(Asker):
    """Judges how far an answer can be relied on, 0 to 1, by asking a model once, at temperature 0.

    Whatever fails (no judge, an error, a timeout, an unparsable reply, the spending limit) gives 0.5, and the detailed form says so.
    The texts are fenced off as data and lose their secrets and identifiers before the judge sees them.

    Args:
        judge: a `GeminiJudge`, or any callable from prompt to text, sync or async. None: every judgement is the fallback.
        combined: `evaluate_both` makes one call for both judgements instead of two.
        samples: how many judgements are made; the score is their mean, and their spread is reported.
        language: `en`, `ja`, or `auto`: by the script of the question.
        cache: judgements that were made before; None remembers 1,000 in memory.
        limit: what judging may cost.
        on_failure: `fallback`, or `raise` for an `EvaluationFailed` instead of 0.5.
        timeout: seconds the judge may take in all; None leaves it to the judge (`GeminiJudge` has its own).
        max_chars: characters kept of each text.
    """

    def __init__(self, judge: Any, *, combined: bool = False, **options: Any) -> None:
        super().__init__(judge, **options)
        self.combined = combined

    def evaluate(self, query: str, answer: str, sources: Sequence[str] | None = None) -> float:
        """The judgement of an answer, 0 to 1; 0.5 where it cannot be had.

        Args:
            query: the question.
            answer: the answer to it.
            sources: texts that the answer rests on.
        """
        return self.evaluate_detailed(query, answer, sources).score

    def evaluate_detailed(
        self, query: str, answer: str, sources: Sequence[str] | None = None, *, run: str | None = None
    ) -> Evaluation:
        """The judgement with its reason, whether it is a fallback and why, attempts, latency, model and tokens.

        Args:
            query: the question.
            answer: the answer to it.
            sources: texts that the answer rests on.
            run: whose spending this is, for limits per run.
        """
        prompt = self.prompt("self_evaluation", titled(query, answer, sources), question=query)
        return self.ask(prompt, ("score",), run)["score"]

    async def aevaluate(self, query: str, answer: str, sources: Sequence[str] | None = None) -> float:
        """As `evaluate`, without blocking the event loop."""
        return (await self.aevaluate_detailed(query, answer, sources)).score

    async def aevaluate_detailed(
        self, query: str, answer: str, sources: Sequence[str] | None = None, *, run: str | None = None
    ) -> Evaluation:
        """As `evaluate_detailed`, without blocking the event loop."""
        prompt = self.prompt("self_evaluation", titled(query, answer, sources), question=query)
        return (await self.aask(prompt, ("score",), run))["score"]

    def evaluate_both(
        self, query: str, answer: str, sources: Sequence[str] | None = None, *, run: str | None = None
    ) -> tuple[Evaluation, Evaluation]:
        """The judgement of the answer, and how much of the question it covers: one call when `combined`, else two."""
        if self.combined:
            prompt = self.prompt("both", titled(query, answer, sources), question=query)
            made = self.ask(prompt, _BOTH, run)
            return made["score"], made["coverage"]
        return self.evaluate_detailed(query, answer, sources, run=run), self.cover_detailed(query, answer, run=run)

    def cover_detailed(self, query: str, answer: str, *, run: str | None = None) -> Evaluation:
        """How much of the question the answer covers, as `QueryCoverageCalculator` judges it."""
        prompt = self.prompt("coverage", titled(query, answer, None), question=query)
        return self.ask(prompt, ("score",), run)["score"]

    async def aevaluate_both(
        self, query: str, answer: str, sources: Sequence[str] | None = None, *, run: str | None = None
    ) -> tuple[Evaluation, Evaluation]:
        """As `evaluate_both`, without blocking the event loop."""
        if self.combined:
            prompt = self.prompt("both", titled(query, answer, sources), question=query)
            made = await self.aask(prompt, _BOTH, run)
            return made["score"], made["coverage"]
        own = await self.aevaluate_detailed(query, answer, sources, run=run)
        covered = self.prompt("coverage", titled(query, answer, None), question=query)
        return own, (await self.aask(covered, ("score",), run))["score"]
