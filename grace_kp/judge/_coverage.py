"""How much of a question an answer covers, as a model judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.judge._asking import Asker, titled

if TYPE_CHECKING:
    from grace_kp.confidence import Evaluation


class QueryCoverageCalculator(Asker):
    """Judges how much of a question an answer covers, 0 to 1. Arguments and failures are those of `LLMSelfEvaluator`."""

    def calculate(self, query: str, answer: str) -> float:
        """The share of the question that is answered, 0 to 1; 0.5 where it cannot be had."""
        return self.calculate_detailed(query, answer).score

    def calculate_detailed(self, query: str, answer: str, *, run: str | None = None) -> Evaluation:
        """The judgement with its reason, whether it is a fallback and why, attempts, latency, model and tokens."""
        prompt = self.prompt("coverage", titled(query, answer, None), question=query)
        return self.ask(prompt, ("score",), run)["score"]

    async def acalculate(self, query: str, answer: str) -> float:
        """As `calculate`, without blocking the event loop."""
        return (await self.acalculate_detailed(query, answer)).score

    async def acalculate_detailed(self, query: str, answer: str, *, run: str | None = None) -> Evaluation:
        """As `calculate_detailed`, without blocking the event loop."""
        prompt = self.prompt("coverage", titled(query, answer, None), question=query)
        return (await self.aask(prompt, ("score",), run))["score"]

    evaluate_detailed = calculate_detailed
    aevaluate_detailed = acalculate_detailed
