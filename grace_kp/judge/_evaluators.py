"""The evaluators: a model's judgement of an answer, of its coverage of the query and of a step, and how far the embeddings of answers agree."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.background import to_thread
from grace_kp.confidence import Evaluation
from grace_kp.errors import EvaluationFailed
from grace_kp.judge._client import JudgeClient, elapsed_ms
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from grace_kp.confidence import ConfidenceFactors
    from grace_kp.judge._prompts import Prompt
    from grace_kp.protocols import EmbedderLike, JudgeLike

MAX_SOURCES = 40
SURE_SEARCH = 0.9
"""A search result above this score is not overruled by a lower judgement."""
_BOTH = ("score", "coverage")


class _QueryJudge(JudgeClient):
    def _query_prompt(self, kind: str, query: object, answer: object, sources: Any = None) -> Prompt:
        """Return a prompt over query, answer and sources, which may be one string or a collection of strings."""
        is_collection = isinstance(sources, Iterable) and not isinstance(sources, str | bytes)
        listed = [] if sources is None else list(sources)[:MAX_SOURCES] if is_collection else [sources]
        texts = [("question", query), ("answer", answer), *(("source", source) for source in listed)]
        return self.prompt(kind, texts, query=query)

    def cover_detailed(self, query: str, answer: str, *, run: str | None = None) -> Evaluation:
        """Return how much of the query the answer covers, with the reason, tokens and time, and whether it is a fallback and why."""
        return self.ask(self._query_prompt("coverage", query, answer), ("score",), run)["score"]

    async def acover_detailed(self, query: str, answer: str, *, run: str | None = None) -> Evaluation:
        """Judge as `cover_detailed` does, without blocking the event loop."""
        return (await self.aask(self._query_prompt("coverage", query, answer), ("score",), run))["score"]


class LLMSelfEvaluator(_QueryJudge):
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
            query: the question; answer and sources are those of `evaluate`.
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
            return own, await self.acover_detailed(query, answer, run=run)
        judgements = await self.aask(self._query_prompt("both", query, answer, sources), _BOTH, run)
        return judgements["score"], judgements["coverage"]


class QueryCoverageCalculator(_QueryJudge):
    """Judges how much of a query an answer covers, 0 to 1. Arguments and failures are as for `LLMSelfEvaluator`."""

    def calculate(self, query: str, answer: str) -> float:
        """Return the share of the query that is answered, 0 to 1; 0.5 when it cannot be judged."""
        return self.calculate_detailed(query, answer).score

    async def acalculate(self, query: str, answer: str) -> float:
        """Calculate as `calculate` does, without blocking the event loop."""
        return (await self.acalculate_detailed(query, answer)).score

    calculate_detailed = evaluate_detailed = _QueryJudge.cover_detailed
    acalculate_detailed = aevaluate_detailed = _QueryJudge.acover_detailed


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


def _step_texts(factors: ConfidenceFactors, purpose: str, output: object) -> list[tuple[str, object]]:
    figures = {item.name: getattr(factors, item.name) for item in fields(factors)}
    return [("purpose", purpose), ("factors", json.dumps(figures)), ("output", output)]


def _at_least_search(judged: Evaluation, factors: ConfidenceFactors) -> Evaluation:
    best = factors.search_max_score
    if factors.is_search_step and best > SURE_SEARCH and best > judged.score:
        # The best result was measured. So it also replaces a fallback, and the record still says that the judgement failed.
        return replace(judged, score=best, reason=f"best search result {best:.2f}; {judged.reason}".rstrip("; "))
    return judged


class SourceAgreementCalculator:
    """Measures how far answers or sources agree, 0 to 1.

    Args:
        embedder: an `Embedder`, or a callable from a string to a vector. None: 0.5, marked as a fallback.
        on_failure: `fallback`, or `raise` for an `EvaluationFailed` instead of 0.5.
    """

    def __init__(self, embedder: EmbedderLike | None, *, on_failure: Literal["fallback", "raise"] = "fallback") -> None:
        if embedder is not None and not callable(embedder) and not callable(getattr(embedder, "embed", None)):
            raise TypeError(f"an embedder has `embed` or is callable (got {type(embedder).__name__})")
        if on_failure not in {"fallback", "raise"}:
            raise ValueError(f"on_failure must be 'fallback' or 'raise' (got {on_failure!r})")
        self._embedder = embedder
        self._on_failure = on_failure

    def calculate(self, answers: Sequence[str]) -> float:
        """Return the mean cosine similarity of all pairs, clamped to 0 to 1: 1.0 for fewer than two answers, 0.5 on failure."""
        return self.calculate_detailed(answers).score

    def calculate_detailed(self, answers: Sequence[str]) -> Evaluation:
        """Return the agreement, whether it is a fallback and why, and how long it took."""
        started = time.perf_counter()
        try:
            texts = [answers] if isinstance(answers, str) else list(answers)
            if len(texts) < 2:
                return Evaluation(score=1.0, reason="fewer than two answers", attempts=0, latency_ms=0.0)
            score = None if self._embedder is None else agreement_of(_embed_all(self._embedder, texts))
        except Exception as error:  # noqa: BLE001 — whatever an embedder does, it ends in a fallback
            return self._fail(": ".join(describe_error(error, 300)), started)
        if score is None:
            return self._fail("no embedder", started)
        return Evaluation(score=score, reason=f"mean similarity of {len(texts)} texts", latency_ms=elapsed_ms(started))

    def _fail(self, problem: str, started: float) -> Evaluation:
        attempts = 0 if self._embedder is None else 1
        failed = Evaluation.failed(problem, attempts=attempts, latency_ms=elapsed_ms(started))
        if self._on_failure == "raise":
            raise EvaluationFailed(problem, evaluation=failed) from None
        return failed

    async def acalculate(self, answers: Sequence[str]) -> float:
        """Calculate as `calculate` does, without blocking the event loop."""
        return (await self.acalculate_detailed(answers)).score

    async def acalculate_detailed(self, answers: Sequence[str]) -> Evaluation:
        """Calculate as `calculate_detailed` does, without blocking the event loop."""
        return await to_thread(self.calculate_detailed, answers)


def _embed_all(embedder: EmbedderLike, texts: Sequence[str]) -> npt.NDArray[np.floating[Any]]:
    import numpy as np

    embed = getattr(embedder, "embed", None)
    rows = embed(list(texts)) if callable(embed) else [embedder(text) for text in texts]  # type: ignore[operator]
    vectors = np.asarray(rows, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
        raise ValueError(f"the embedder gave an array of shape {vectors.shape} for {len(texts)} texts")
    if not np.isfinite(vectors).all():
        raise ValueError("the embedder gave a vector that is not finite")
    return vectors


def agreement_of(vectors: npt.ArrayLike) -> float:
    """Return the mean cosine similarity of all pairs of rows, clamped to 0 to 1; a zero vector agrees with nothing.

    The sum over all pairs follows from the sum of the normalised rows, without forming the pairs: |Σv|² = Σ|v|² + 2 Σ⟨v, w⟩.
    """
    import numpy as np

    rows = np.asarray(vectors, dtype=np.float64)
    n = len(rows)
    if n < 2:
        return 1.0
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0)
    norms = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
    unit = np.divide(scaled, norms, out=np.zeros_like(scaled), where=norms > 0)
    total = unit.sum(axis=0)
    pairs = float(total @ total) - float((unit * unit).sum())
    return min(1.0, max(0.0, pairs / (n * (n - 1))))
