"""How far several answers agree: the mean cosine similarity of their embeddings, pair by pair."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.background import to_thread
from grace_kp.confidence import Evaluation
from grace_kp.errors import EvaluationFailed
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from grace_kp.protocols import EmbedderLike


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
        return Evaluation(score=score, reason=f"mean similarity of {len(texts)} texts", latency_ms=_elapsed_ms(started))

    def _fail(self, problem: str, started: float) -> Evaluation:
        attempts = 0 if self._embedder is None else 1
        failed = Evaluation.failed(problem, attempts=attempts, latency_ms=_elapsed_ms(started))
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
    """Return one row per text, from either kind of embedder."""
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


def _elapsed_ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1e3, 3)
