"""The value score of a trace (KnowledgePulse): four dimensions, weighted by domain, then corrected by the overrides. Users can register weights.

A trace may be a model, a dict, or plain values. The caller supplies the embedder; where there is none, or it fails, novelty is 0.5 and
the score states the reason.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import islice
from numbers import Real
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from grace_kp.errors import InvalidTrace, is_unit
from grace_kp.levels import StepType
from grace_kp.value._cache import VectorCache

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from grace_kp.protocols import EmbedderLike
    from grace_kp.trace import ReasoningTrace


DEFAULT_PROFILE = "default"
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class ScoringWeights:
    """The weight of each dimension: four finite numbers >= 0 that sum to 1 within 1e-6.

    Raises:
        ValueError: a weight is not such a number (the message names it), or the weights do not sum to 1.
    """

    complexity: float
    """Weight of the structural richness, C."""
    novelty: float
    """Weight of the difference from earlier traces, N."""
    tool_diversity: float
    """Weight of the variety of tools, D."""
    outcome_confidence: float
    """Weight of the confidence in the outcome, O."""

    def __post_init__(self) -> None:
        for name in _NAMES:
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 0:
                raise ValueError(f"weight {name} must be a finite number >= 0 (got {value!r})")
            object.__setattr__(self, name, float(value))
        total = math.fsum(getattr(self, name) for name in _NAMES)
        # The last term allows a binary rounding error on top of a sum that is off by exactly 1e-6.
        if abs(total - 1.0) > SUM_TOLERANCE + 1e-12:
            raise ValueError(f"weights must sum to 1 (within {SUM_TOLERANCE:g}), these sum to {total:g}: {self}")


_NAMES = tuple(field.name for field in fields(ScoringWeights))


_PROFILES = {
    DEFAULT_PROFILE: ScoringWeights(0.25, 0.35, 0.15, 0.25),
    "finance": ScoringWeights(0.20, 0.25, 0.10, 0.45),
    "code": ScoringWeights(0.20, 0.30, 0.30, 0.20),
    "medical": ScoringWeights(0.15, 0.20, 0.10, 0.55),
    "customer_service": ScoringWeights(0.20, 0.30, 0.20, 0.30),
}
WEIGHT_PROFILES: Mapping[str, ScoringWeights] = MappingProxyType(_PROFILES)
"""The weight profiles by task domain, read-only and live. Iterate over a copy if another thread may register one meanwhile."""


def register_profile(name: str, weights: ScoringWeights | Mapping[str, float]) -> None:
    """Use weights for traces whose `task_domain` is exactly `name`; replaces an earlier profile of that name.

    Args:
        name: the task domain, non-empty.
        weights: ScoringWeights, or a mapping with exactly their four fields.

    Raises:
        ValueError: the name is empty, or the weights cannot be used; nothing is registered then.
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"a profile's name must be a non-empty string (got {name!r})")
    if not isinstance(weights, ScoringWeights):
        if not isinstance(weights, Mapping):
            raise ValueError(f"weights must be ScoringWeights or a mapping (got {type(weights).__name__})")
        missing = [name for name in _NAMES if name not in weights]
        unknown = [str(name) for name in weights if name not in _NAMES]
        problems = [
            f"{word} {', '.join(names)}" for word, names in (("missing", missing), ("unknown", unknown)) if names
        ]
        if problems:
            raise ValueError(f"weights need exactly {', '.join(_NAMES)}: {'; '.join(problems)}")
        weights = ScoringWeights(**weights)
    _PROFILES[name] = weights


def profile_for(domain: str) -> tuple[str, ScoringWeights]:
    """Return name and weights of the profile for a task domain, matched exactly; an unknown domain takes `default`."""
    name = domain if domain in _PROFILES else DEFAULT_PROFILE
    return name, _PROFILES[name]


FALLBACK_NOVELTY = 0.5
_NO_EMBEDDER = "no embedder"
_FAILURE_SHARE = 0.3
_BATCH = 256
_STEP_TYPES = frozenset(kind.value for kind in StepType)
_RECOVERY = StepType.ERROR_RECOVERY.value
_LONGEST_REASON = 300
_MAX_KNOWN = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueScore:
    """The value of a trace, with its dimensions. All numbers are 0 to 1."""

    score: float
    """The weighted sum after the overrides."""
    complexity: float
    """C: variety of step types, errors recovered from, length."""
    novelty: float
    """N: 1 minus the similarity to the most similar earlier trace."""
    tool_diversity: float
    """D: number of distinct tools in relation to the number of steps."""
    outcome_confidence: float
    """O: the confidence of the outcome, times 0.3 for a failed run."""
    profile: str
    """The name of the weight profile."""
    overrides: tuple[str, ...] = ()
    """The overrides that applied, in order: `single_thought`, `error_recovery_bonus`, `low_tool_diversity`."""
    novelty_fallback: str | None = None
    """Why novelty was not measured and is 0.5; None when it was measured."""

    def to_dict(self) -> dict[str, Any]:
        """Return the score as a JSON object; `novelty_fallback` only when novelty was not measured."""
        known = {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}
        return {**known, "overrides": list(self.overrides)}


class ValueScorer:
    """Scores traces one after the other, and compares each with those before it. Safe to share between threads.

    Args:
        embedder: an `Embedder`, or a callable from a string to a vector. None: novelty is always 0.5.
        cache: holds the embeddings of earlier traces. None: a `VectorCache` is created with the first embedding.
        max_elements: number of traces in that cache. Has no effect with a `cache`.
        ttl_seconds: how long a trace stays in it; None for no limit. Has no effect with a `cache`.
    """

    __slots__ = ("_cache", "_embedder", "_known_scores", "_lock", "_max_elements", "_ttl_seconds")

    def __init__(
        self,
        embedder: EmbedderLike | None = None,
        cache: VectorCache | None = None,
        *,
        max_elements: int = 1_000,
        ttl_seconds: float | None = None,
    ) -> None:
        if embedder is not None and not callable(embedder) and not callable(getattr(embedder, "embed", None)):
            raise TypeError(f"an embedder has `embed` or is callable (got {type(embedder).__name__})")
        self._embedder: Any = embedder
        self._cache = cache
        self._max_elements = max_elements
        self._ttl_seconds = ttl_seconds
        self._lock = Lock()
        self._known_scores: dict[tuple[Any, ...], tuple[ScoringWeights, ValueScore]] = {}

    @property
    def cache(self) -> VectorCache | None:
        """The embeddings of earlier traces; None before the first embedding."""
        return self._cache

    def score(self, trace: ReasoningTrace | Mapping[str, Any]) -> ValueScore:
        """Score a trace, as model or in its dict form, and keep its embedding.

        A dict may lack fields that the score does not need, and may have no steps. A failing embedder is not an error: novelty is then
        0.5, and `novelty_fallback` states the reason.

        Raises:
            InvalidTrace: a field that the score needs is missing or out of range; the message names it.
        """
        if type(trace) is dict or isinstance(trace, Mapping):
            kinds, tools, metadata, confidence = _read_document(trace)
            success: Any = metadata.get("success")
            domain: Any = metadata.get("task_domain", DEFAULT_PROFILE)
        else:
            try:
                kinds = [step.type for step in trace.steps]
                tools = [step.tool.name for step in trace.steps if step.tool is not None]
                success, domain = trace.metadata.success, trace.metadata.task_domain
                confidence = trace.outcome.confidence
            except AttributeError as error:
                raise InvalidTrace(f"a {type(trace).__name__} cannot be read as a trace") from error
        # Checked before the embedding, so that a trace that cannot be scored is not kept.
        _check(kinds, success, confidence, domain)
        if self._embedder is None:
            return self._known_or_new(kinds, tools, success, confidence, domain)
        return _calculate(kinds, tools, success, confidence, domain, *self._novelty_of_text(embedded_text(trace)))

    def _known_or_new(
        self, kinds: Sequence[str], tools: Sequence[str], success: bool, confidence: float, domain: str
    ) -> ValueScore:
        """Return the score of a run whose novelty is not measured: most such runs have one of a few shapes."""
        types, weights = frozenset(kinds), profile_for(domain)[1]
        recoveries = kinds.count(_RECOVERY) if _RECOVERY in types else 0
        shape = (len(kinds), types, recoveries, bool(tools), len(set(tools)), success, confidence, domain)
        known = self._known_scores.get(shape)
        if known is None or known[0] is not weights or type(confidence) is not float or not confidence:
            if len(self._known_scores) >= _MAX_KNOWN:
                self._known_scores.clear()
            known = weights, _calculate(kinds, tools, success, confidence, domain, FALLBACK_NOVELTY, _NO_EMBEDDER)
            self._known_scores[shape] = known
        return known[1]

    def score_all(self, traces: Iterable[ReasoningTrace | Mapping[str, Any]]) -> Iterator[ValueScore]:
        """Score traces one after the other as `score` does, but embed them in batches, which is faster.

        Raises:
            InvalidTrace: as `score` does, when the turn of that trace comes.
        """
        rest = iter(traces)
        embed = getattr(self._embedder, "embed", None)
        while batch := list(islice(rest, _BATCH)):
            if callable(embed):
                # This fills the memory of the embedder. A failure occurs again below, where it is reported for its trace.
                with contextlib.suppress(Exception):
                    embed([embedded_text(trace) for trace in batch])
            for trace in batch:
                yield self.score(trace)

    def score_parts(
        self,
        *,
        step_types: Sequence[str],
        tool_names: Sequence[str],
        success: bool,
        confidence: float,
        domain: str = "default",
        text: str | None = None,
        embedding: Sequence[float] | npt.NDArray[Any] | None = None,
        novelty: float | None = None,
    ) -> ValueScore:
        """Score a run from plain values, by the formula of `score`.

        Args:
            step_types: the type of every step.
            tool_names: the tool of every step that has a tool, repeats included.
            success: whether the run succeeded.
            confidence: the confidence in its outcome, 0 to 1.
            domain: the task domain.
            text: the text for the embedder, see `embedded_text`.
            embedding: the embedding of the run, if known; takes precedence over `text`, and is kept.
            novelty: the novelty of the run, 0 to 1, if known; takes precedence over both, and nothing is kept.

        Raises:
            InvalidTrace: a value is out of range; the message names the field.
        """
        _check(step_types, success, confidence, domain)
        measured: float = FALLBACK_NOVELTY
        fallback: str | None = _NO_EMBEDDER
        if novelty is not None:
            if not is_unit(novelty):
                _refuse("novelty", "must be a number from 0 to 1", novelty)
            measured, fallback = float(novelty), None
        elif embedding is not None:
            measured, fallback = self._novelty_of_vector(embedding)
        elif self._embedder is not None:
            measured, fallback = self._novelty_of_text(text) if text is not None else (FALLBACK_NOVELTY, "no text")
        return _calculate(step_types, tool_names, success, confidence, domain, measured, fallback)

    def _novelty_of_text(self, text: str) -> tuple[float, str | None]:
        try:
            vector = _embed(self._embedder, text)
        except Exception as error:  # noqa: BLE001 — a failing embedder must not affect the run
            return FALLBACK_NOVELTY, f"embedder failed: {_describe(error)}"
        return self._novelty_of_vector(vector)

    def _novelty_of_vector(self, vector: Sequence[float] | npt.NDArray[Any]) -> tuple[float, str | None]:
        try:
            similarity = self._cache_for(vector).compare_and_add(vector)
        except Exception as error:  # noqa: BLE001 — a vector that cannot be used is a failed embedding too
            return FALLBACK_NOVELTY, f"embedding not usable: {_describe(error)}"
        if similarity is None:
            return FALLBACK_NOVELTY, "nothing to compare with yet"
        return min(1.0, max(0.0, 1.0 - similarity)), None

    def _cache_for(self, vector: Sequence[float] | npt.NDArray[Any]) -> VectorCache:
        if self._cache is None:
            with self._lock:
                if self._cache is None:
                    dimensions = getattr(self._embedder, "dimensions", None)
                    length = len(vector) if dimensions is None else dimensions
                    self._cache = VectorCache(self._max_elements, length, self._ttl_seconds)
        return self._cache


def evaluate_value(trace: ReasoningTrace | Mapping[str, Any], scorer: ValueScorer | None = None) -> float:
    """Return the value score of a trace, 0 to 1. Without a scorer, novelty is 0.5.

    Raises:
        InvalidTrace: a field that the score needs is missing or out of range; the message names it.
    """
    return (ValueScorer() if scorer is None else scorer).score(trace).score


def embedded_text(trace: ReasoningTrace | Mapping[str, Any]) -> str:
    """Return the text that is embedded for a trace: its objective and the content of every step."""
    contents: list[str | None]
    if isinstance(trace, Mapping):
        objective = (trace.get("task") or {}).get("objective") or ""
        contents = [step.get("content") for step in trace["steps"]]
        for index, content in enumerate(contents):
            if content is not None and not isinstance(content, str):
                _refuse(f"steps[{index}].content", "must be a string", content)
    else:
        objective = trace.task.objective
        contents = [step.content for step in trace.steps]
    return f"{objective} {' '.join([content or '' for content in contents])}"


def _calculate(
    kinds: Sequence[str],
    tools: Sequence[str],
    success: bool,
    confidence: float,
    domain: str,
    novelty: float,
    fallback: str | None,
) -> ValueScore:
    steps, types, recoveries, unique_tools = len(kinds), set(kinds), kinds.count(_RECOVERY), len(set(tools))
    profile, weights = profile_for(domain)
    complexity = min(1.0, len(types) / 4 * 0.5 + (0.3 if recoveries > 0 else 0.0) + steps / 20 * 0.2)
    diversity = min(1.0, unique_tools / max(1, steps) * 3)
    outcome = confidence * (1.0 if success else _FAILURE_SHARE)
    score = (
        complexity * weights.complexity
        + novelty * weights.novelty
        + diversity * weights.tool_diversity
        + outcome * weights.outcome_confidence
    )
    score = min(1.0, score)  # the weights may sum to slightly more than 1
    overrides: list[str] = []
    if steps == 1 and "thought" in types:
        overrides.append("single_thought")
        score = 0.1
    # The text of the source says "two or more recoveries", but its code says more than two. The code counts.
    if recoveries > 2 and success:
        overrides.append("error_recovery_bonus")
        score = min(1.0, score + 0.1)
    if tools and unique_tools <= 1:
        overrides.append("low_tool_diversity")
        score = max(0.0, score - 0.1)
    return ValueScore(
        score=score,
        complexity=complexity,
        novelty=novelty,
        tool_diversity=diversity,
        outcome_confidence=outcome,
        profile=profile,
        overrides=tuple(overrides),
        novelty_fallback=fallback,
    )


def _read_document(trace: Mapping[str, Any]) -> tuple[list[str], list[str], Mapping[str, Any], Any]:
    try:
        steps = trace["steps"]
        kinds = [step["type"] for step in steps]
        tools = [step["tool"]["name"] for step in steps if "tool" in step and step["tool"] is not None]
        metadata = trace["metadata"]
        metadata.get("success")
        hash(tuple(tools))
        return kinds, tools, metadata, trace["outcome"]["confidence"]
    except (KeyError, TypeError, AttributeError, IndexError):
        _explain(trace)


def _explain(trace: Mapping[str, Any]) -> NoReturn:
    """Name the field that a document lacks; called only when reading it has failed."""
    for name in ("metadata", "outcome"):
        if not isinstance(trace.get(name), Mapping):
            raise InvalidTrace("must be an object", path=name)
    if "confidence" not in trace["outcome"]:
        raise InvalidTrace("is missing", path="outcome.confidence")
    steps = trace.get("steps")
    if not isinstance(steps, list | tuple):
        raise InvalidTrace("must be a list", path="steps")
    for index, step in enumerate(steps):
        if not isinstance(step, Mapping):
            raise InvalidTrace("must be an object", path=f"steps[{index}]")
        if "type" not in step:
            raise InvalidTrace("is missing", path=f"steps[{index}].type")
        tool = step.get("tool")
        if tool is not None and not (isinstance(tool, Mapping) and isinstance(tool.get("name"), str)):
            raise InvalidTrace("must be an object with a name", path=f"steps[{index}].tool")
    raise InvalidTrace("cannot be read as a trace")


def _check(kinds: Sequence[object], success: object, confidence: object, domain: object) -> None:
    try:
        known = set(kinds) <= _STEP_TYPES
    except TypeError:
        known = False
    if not known:
        index = next(i for i, kind in enumerate(kinds) if not isinstance(kind, str) or kind not in _STEP_TYPES)
        _refuse(f"steps[{index}].type", f"must be one of {', '.join(StepType)}", kinds[index])
    if success is not True and success is not False:
        _refuse("metadata.success", "must be true or false", success)
    if not is_unit(confidence):
        _refuse("outcome.confidence", "must be a number from 0 to 1", confidence)
    if not isinstance(domain, str):
        _refuse("metadata.task_domain", "must be a string", domain)


def _refuse(path: str, problem: str, value: object) -> NoReturn:
    seen = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    raise InvalidTrace(f"{problem} (got {seen[:60]})", path=path)


def _embed(embedder: Any, text: str) -> Any:
    import numpy as np

    embed = getattr(embedder, "embed", None)
    result = embed([text]) if callable(embed) else embedder(text)
    if hasattr(result, "__await__"):
        if hasattr(result, "close"):
            result.close()
        raise TypeError("it is asynchronous; a synchronous one is needed")
    vectors = np.asarray(result)
    return vectors[0] if vectors.ndim == 2 and len(vectors) == 1 else vectors


def _describe(error: Exception) -> str:
    # Imported here: failures are rare, and `trace` loads redaction.
    from grace_kp.trace import redacted_error

    return redacted_error(error, _LONGEST_REASON)
