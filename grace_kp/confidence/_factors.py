"""The factors of a confidence: twelve figures about a step or a run, and flags for those that were measured.

A record with its checks. `_profiles` calculates the score; `_evidence` gathers the figures from a run.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from numbers import Real
from typing import Any


class _Default:
    """A default that differs from the same value passed by a caller, and prints as that value."""

    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def _default(value: float) -> Any:
    return _Default(value)


@dataclass(frozen=True, slots=True, init=False)
class ConfidenceFactors:
    """The factors of a GRACE confidence. Rates, scores and agreements are 0 to 1, counts are integers >= 0.

    The four flags (`search_made` and the three that end in `_evaluated`) say which figures were measured. A flag that is left out is
    true if a figure of its kind was passed. Pass False for a fallback, such as the 0.5 of an evaluation that failed. The profile
    `strict` leaves out what was not measured. `dataclasses.replace` keeps the flags.

    Raises:
        ValueError: a figure is not finite, out of range or of another type; the message names the field.
    """

    search_result_count: int = 0
    """Number of results of the searches."""
    search_avg_score: float = 0.0
    """Mean score of the results, 0 to 1."""
    search_max_score: float = 0.0
    """Best score of the results, 0 to 1."""
    search_score_variance: float = 1.0
    """Population variance of the scores, >= 0."""
    source_agreement: float = 0.0
    """How far the sources agree, 0 to 1."""
    source_count: int = 0
    """Number of distinct sources."""
    llm_self_confidence: float = 0.5
    """A model's judgement of the answer, 0 to 1."""
    tool_success_rate: float = 1.0
    """Share of tool calls that succeeded, 0 to 1."""
    tool_execution_count: int = 0
    """Number of tool calls that were executed."""
    tool_success_count: int = 0
    """Number of them that succeeded; at most `tool_execution_count`."""
    query_coverage: float = 0.0
    """How much of the query the answer covers, 0 to 1."""
    is_search_step: bool = False
    """Whether the step is a search, which is scored by its results alone."""
    search_made: bool | None = None
    """Whether there was a search whose results can be scored. Always true for a search step."""
    self_evaluated: bool | None = None
    """Whether `llm_self_confidence` is a judgement, not a fallback."""
    agreement_evaluated: bool | None = None
    """Whether `source_agreement` was measured."""
    coverage_evaluated: bool | None = None
    """Whether `query_coverage` was measured."""
    search_avg_with_unusable: float | None = None
    """Mean score with 0 for each score that cannot be used; `strict` takes it. None where every score can be used."""
    search_variance_with_unusable: float | None = None
    """Variance of the same scores."""

    def __init__(
        self,
        search_result_count: int = _default(0),
        search_avg_score: float = _default(0.0),
        search_max_score: float = _default(0.0),
        search_score_variance: float = _default(1.0),
        source_agreement: float = _default(0.0),
        source_count: int = _default(0),
        llm_self_confidence: float = _default(0.5),
        tool_success_rate: float = _default(1.0),
        tool_execution_count: int = _default(0),
        tool_success_count: int = _default(0),
        query_coverage: float = _default(0.0),
        is_search_step: bool = False,
        search_made: bool | None = None,
        self_evaluated: bool | None = None,
        agreement_evaluated: bool | None = None,
        coverage_evaluated: bool | None = None,
        search_avg_with_unusable: float | None = None,
        search_variance_with_unusable: float | None = None,
    ) -> None:
        put = object.__setattr__
        is_search = _flag("is_search_step", is_search_step)
        figures: tuple[Any, ...] = (search_result_count, search_avg_score, search_max_score, search_score_variance)
        searched = is_search or set(map(type, figures)) != {_Default}
        executed = _count("tool_execution_count", tool_execution_count)
        succeeded = _count("tool_success_count", tool_success_count)
        if succeeded > executed:
            raise ValueError(
                f"tool_success_count must not exceed tool_execution_count (got {succeeded} of {executed} executed)"
            )
        put(self, "search_result_count", _count("search_result_count", search_result_count))
        put(self, "search_avg_score", _unit("search_avg_score", search_avg_score))
        put(self, "search_max_score", _unit("search_max_score", search_max_score))
        put(self, "search_score_variance", _variance("search_score_variance", search_score_variance))
        put(self, "source_agreement", _unit("source_agreement", source_agreement))
        put(self, "source_count", _count("source_count", source_count))
        put(self, "llm_self_confidence", _unit("llm_self_confidence", llm_self_confidence))
        put(self, "tool_success_rate", _unit("tool_success_rate", tool_success_rate))
        put(self, "tool_execution_count", executed)
        put(self, "tool_success_count", succeeded)
        put(self, "query_coverage", _unit("query_coverage", query_coverage))
        put(self, "is_search_step", is_search)
        put(self, "search_made", _flag_or("search_made", search_made, searched))
        put(self, "self_evaluated", _flag_or("self_evaluated", self_evaluated, _is_passed(llm_self_confidence)))
        put(
            self,
            "agreement_evaluated",
            _flag_or("agreement_evaluated", agreement_evaluated, _is_passed(source_agreement)),
        )
        put(self, "coverage_evaluated", _flag_or("coverage_evaluated", coverage_evaluated, _is_passed(query_coverage)))
        average, variance = search_avg_with_unusable, search_variance_with_unusable
        put(self, "search_avg_with_unusable", None if average is None else _unit("search_avg_with_unusable", average))
        name = "search_variance_with_unusable"
        put(self, name, None if variance is None else _variance(name, variance))

    @property
    def search_unusable(self) -> bool:
        """Whether all scores that a search returned are unusable. The variance of usable ones is below 1."""
        return (
            self.search_avg_with_unusable is not None and self.search_score_variance == 1 and not self.search_max_score
        )

    @property
    def search_not_scored(self) -> bool:
        """Whether a search was made and not scored: there are results, and `search_made` is false."""
        return not self.search_made and self.search_result_count > 0


def _is_passed(value: object) -> bool:
    return type(value) is not _Default


def _flag_or(name: str, flag: object, default: bool) -> bool:
    return default if flag is None else _flag(name, flag)


def _flag(name: str, value: object) -> bool:
    if value is True or value is False:
        return value
    raise ValueError(f"{name} must be true or false (got {_shown(value)})")


def _count(name: str, value: Any) -> int:
    if type(value) is _Default:
        return int(value.value)
    if type(value) is int and value >= 0:
        return value
    if not isinstance(value, bool):
        try:
            # The integers of numpy are not instances of int.
            count = operator.index(value)
        except TypeError:
            count = -1
        if count >= 0:
            return count
    raise ValueError(f"{name} must be an integer >= 0 (got {_shown(value)})")


def _unit(name: str, value: Any) -> float:
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    if type(value) is _Default:
        return value.value
    if _is_real(value) and 0 <= value <= 1:
        return float(value)
    raise ValueError(f"{name} must be a number from 0 to 1 (got {_shown(value)})")


def _variance(name: str, value: Any) -> float:
    if type(value) is _Default:
        return value.value
    if _is_real(value) and value >= 0:
        try:
            variance = float(value)
        except OverflowError:
            variance = math.inf
        if math.isfinite(variance):
            return variance
    raise ValueError(f"{name} must be a finite number >= 0 (got {_shown(value)})")


def _is_real(value: object) -> bool:
    # A bool is a number to Python, but not here.
    return type(value) is float or (not isinstance(value, bool) and isinstance(value, Real))


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:40])
    # No repr of other types: a message must neither run foreign code nor print an integer of a million digits.
    is_plain = isinstance(value, float | bool | None) or (type(value) is int and value.bit_length() < 200)
    return repr(value) if is_plain else type(value).__name__
