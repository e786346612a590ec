"""A model's overall judgement of one step, given its factors, purpose and output (`llm_calculate`)."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from grace_kp.judge._asking import Asker

if TYPE_CHECKING:
    from grace_kp.confidence import ConfidenceFactors, Evaluation

SURE_SEARCH = 0.9
"""A best search result above this is not talked down by the model."""


class StepJudge(Asker):
    """Judges a step as a whole. Arguments and failures are those of `LLMSelfEvaluator`."""

    def llm_calculate(
        self, factors: ConfidenceFactors, purpose: str, output: Any, *, run: str | None = None
    ) -> Evaluation:
        """The model's score and reason for a step; on a search step a best result above 0.9 wins over a lower score.

        Args:
            factors: what was measured.
            purpose: what the step is for.
            output: what came of it; anything but a text is rendered.
            run: whose spending this is, for limits per run.
        """
        prompt = self.prompt("step", _texts(factors, purpose, output), question=purpose)
        return _at_least_the_search(self.ask(prompt, ("score",), run)["score"], factors)

    async def allm_calculate(
        self, factors: ConfidenceFactors, purpose: str, output: Any, *, run: str | None = None
    ) -> Evaluation:
        """As `llm_calculate`, without blocking the event loop."""
        prompt = self.prompt("step", _texts(factors, purpose, output), question=purpose)
        return _at_least_the_search((await self.aask(prompt, ("score",), run))["score"], factors)


def _texts(factors: ConfidenceFactors, purpose: str, output: Any) -> list[tuple[str, Any]]:
    figures = {item.name: getattr(factors, item.name) for item in fields(factors)}
    return [("purpose", purpose), ("factors", json.dumps(figures)), ("output", output)]


def _at_least_the_search(judged: Evaluation, factors: ConfidenceFactors) -> Evaluation:
    best = factors.search_max_score
    if factors.is_search_step and best > SURE_SEARCH and best > judged.score:
        # Measured, not judged; so it also stands where the judgement failed, and the record still says that it did.
        return replace(judged, score=best, reason=f"best search result {best:.2f}; {judged.reason}".rstrip("; "))
    return judged
