"""The factors of a confidence, and the score with its sub-scores, its penalties, their wording for people, and the combination of several.

Records with their checks. `_profiles` calculates the score; `_evidence` gathers the figures from a run.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.errors import brief, check_unit
from grace_kp.pages import penalty_text, spaced, table, with_fallbacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def _flag(name: str, value: object) -> bool:
    if value is True or value is False:
        return value
    raise ValueError(f"{name} must be true or false (got {_show(value)})")


def _count(name: str, value: Any) -> int:
    if type(value) is int and value >= 0:
        return value
    try:
        # The integers of numpy are not instances of int.
        count = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = -1
    if count >= 0:
        return count
    raise ValueError(f"{name} must be an integer >= 0 (got {_show(value)})")


def _unit(name: str, value: Any) -> float:
    if type(value) is float and 0 <= value <= 1:
        return value
    if _is_real(value) and 0 <= value <= 1:
        return float(value)
    raise ValueError(f"{name} must be a number from 0 to 1 (got {_show(value)})")


def _variance(name: str, value: Any) -> float:
    if _is_real(value) and value >= 0:
        try:
            variance = float(value)
        except OverflowError:
            variance = math.inf
        if math.isfinite(variance):
            return variance
    raise ValueError(f"{name} must be a finite number >= 0 (got {_show(value)})")


def _is_real(value: object) -> bool:
    # A bool is a number to Python, but not here.
    return type(value) is float or (not isinstance(value, bool) and isinstance(value, Real))


def _show(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:40])
    # No repr of other types: a message must neither run foreign code nor print an integer of a million digits.
    is_plain = isinstance(value, float | bool | None) or (type(value) is int and value.bit_length() < 200)
    return repr(value) if is_plain else type(value).__name__


class _Default:
    """A default that differs from the same value passed by a caller, and prints as that value; with the check of values that are passed."""

    __slots__ = ("check", "value")

    def __init__(self, value: float, check: Callable[[str, Any], float]) -> None:
        self.value, self.check = value, check

    def __repr__(self) -> str:
        return repr(self.value)


_default: Any = _Default  # a field has the type of its value


@dataclass(frozen=True, slots=True)
class ConfidenceFactors:
    """The factors of a GRACE confidence. Rates, scores and agreements are 0 to 1, counts are integers >= 0.

    The four flags (`search_made` and the three that end in `_evaluated`) say which figures were measured. A flag that is left out is
    true if a figure of its kind was passed. Pass False for a fallback, such as the 0.5 of an evaluation that failed. The profile
    `strict` leaves out what was not measured. `dataclasses.replace` keeps the flags.

    Raises:
        ValueError: a figure is not finite, out of range or of another type; the message names the field.
    """

    search_result_count: int = _default(0, _count)
    """Number of results of the searches."""
    search_avg_score: float = _default(0.0, _unit)
    """Mean score of the results, 0 to 1."""
    search_max_score: float = _default(0.0, _unit)
    """Best score of the results, 0 to 1."""
    search_score_variance: float = _default(1.0, _variance)
    """Population variance of the scores, >= 0."""
    source_agreement: float = _default(0.0, _unit)
    """How far the sources agree, 0 to 1."""
    source_count: int = _default(0, _count)
    """Number of distinct sources."""
    llm_self_confidence: float = _default(0.5, _unit)
    """A model's judgement of the answer, 0 to 1."""
    tool_success_rate: float = _default(1.0, _unit)
    """Share of tool calls that succeeded, 0 to 1."""
    tool_execution_count: int = _default(0, _count)
    """Number of tool calls that were executed."""
    tool_success_count: int = _default(0, _count)
    """Number of them that succeeded; at most `tool_execution_count`."""
    query_coverage: float = _default(0.0, _unit)
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

    def __post_init__(self) -> None:
        passed: set[str] = set()
        # This runs at each gate, so fields that are right already are left alone.
        for name, check in _CHECKS.items():
            value = getattr(self, name)
            if type(value) is _Default:
                object.__setattr__(self, name, value.value)
                continue
            passed.add(name)
            if (checked := check(name, value)) is not value:
                object.__setattr__(self, name, checked)
        if self.tool_success_count > self.tool_execution_count:
            raise ValueError(
                "tool_success_count must not exceed tool_execution_count "
                f"(got {self.tool_success_count} of {self.tool_execution_count} executed)"
            )
        _flag("is_search_step", self.is_search_step)
        for name, figures in _MEASURED.items():
            if (flag := getattr(self, name)) is None:
                flag = not passed.isdisjoint(figures) or (self.is_search_step and name == "search_made")
                object.__setattr__(self, name, flag)
            _flag(name, flag)
        for name, check in (("search_avg_with_unusable", _unit), ("search_variance_with_unusable", _variance)):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, check(name, value))

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


_CHECKS = {each.name: each.default.check for each in fields(ConfidenceFactors) if type(each.default) is _Default}
_MEASURED = {
    "search_made": ("search_result_count", "search_avg_score", "search_max_score", "search_score_variance"),
    "self_evaluated": ("llm_self_confidence",),
    "agreement_evaluated": ("source_agreement",),
    "coverage_evaluated": ("query_coverage",),
}
"""By flag, the figures that it is about."""


NOT_EVALUATED, NOT_SCORED = "not evaluated", "not scored"


@dataclass(frozen=True, slots=True)
class ConfidenceScore:
    """The GRACE confidence of a step or a run.

    Raises:
        ValueError: the score is not a number from 0 to 1, or a contribution is not a finite number.
    """

    score: float
    """0 to 1; profiles round it to three decimals."""
    factors: ConfidenceFactors
    """The factors it was calculated from."""
    breakdown: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The five sub-scores, as the formula used them: search_quality, source_agreement, llm_self_eval, tool_success,
    query_coverage. `evaluated` has None for each unmeasured one."""
    penalties_applied: list[str] = field(default_factory=list, hash=False)
    """The penalties that lowered it, in order: `no_search_results`, `tool_failures(rate=0.50)`, `no_sources`."""
    reason: str = ""
    """One sentence: the sub-scores that counted, and the penalties."""
    not_evaluated: tuple[str, ...] = ()
    """The sub-scores that were not measured; they count only where `fallbacks` names them."""
    contributions: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The log-odds that each feature of a learned profile adds, by name; empty for the formulas."""

    fallbacks: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The sub-scores among `not_evaluated` that count all the same, with their value: 0.5 in the profile `grace`, and in `strict` 0 for a
    search whose scores are all unusable."""

    def __post_init__(self) -> None:
        if type(self.score) is not float or not 0 <= self.score <= 1:
            check_unit("score", self.score)
        for name, value in self.contributions.items():
            if not isinstance(name, str):
                raise ValueError(f"a contribution must have the name of its feature, not {brief(name)}")
            if isinstance(value, bool) or not isinstance(value, float | int) or not math.isfinite(value):
                raise ValueError(f"the contribution of {brief(name)} must be a finite number, not {brief(value)}")

    @property
    def evaluated(self) -> dict[str, float | None]:
        """The five sub-scores for people and traces: None for each that was not measured."""
        missing = self.not_evaluated
        return {name: None if name in missing else value for name, value in self.breakdown.items()}

    @property
    def not_scored(self) -> tuple[str, ...]:
        """The sub-scores among `not_evaluated` of something that was made and not scored: a search without scores."""
        missing = "search_quality" in self.not_evaluated and getattr(self.factors, "search_not_scored", False)
        return ("search_quality",) if missing else ()

    @property
    def level(self) -> str:
        """The score as a word: `high` from 0.9, `medium` from 0.7, `low` from 0.4, else `very_low`."""
        if self.score >= 0.9:
            return "high"
        if self.score >= 0.7:
            return "medium"
        return "low" if self.score >= 0.4 else "very_low"

    def _repr_html_(self) -> str:
        from grace_kp.pages import confidence_html, notebook

        parts = confidence_html(
            self.score,
            breakdown=with_fallbacks(self.evaluated, self.fallbacks),
            penalties=self.penalties_applied,
            reason=self.reason,
            not_scored=self.not_scored,
            level=self.level,
        )
        return notebook(
            f'<p class="kind">confidence</p>{parts}{contributions_html(self.contributions)}{factors_html(self.factors)}'
        )


def penalties_text(penalties: Iterable[str]) -> str:
    """Return several penalties in words, separated by commas."""
    return ", ".join(penalty_text(str(penalty)) for penalty in penalties)


def part_text(value: float | str | None, *, not_scored: bool = False) -> str:
    """Return a sub-score for people: three decimals, a string as it is, or for None "not evaluated" or "not scored"."""
    if isinstance(value, str):
        return value
    return (NOT_SCORED if not_scored else NOT_EVALUATED) if value is None else f"{value:.3f}"


MAX_CONTRIBUTIONS = 60
"""Features that are shown, strongest first; a note gives the number of the others."""
MAX_NAME = 80


def contributions_html(contributions: Mapping[str, float]) -> str:
    """Return the contributions of a learned profile, strongest first; empty without any."""
    known = [(name, value) for name, value in contributions.items() if math.isfinite(value)]
    if not known:
        return ""
    known.sort(key=lambda pair: -abs(pair[1]))
    rows = [(spaced(name)[:MAX_NAME], f"{value:+.2f}".replace("-", "−")) for name, value in known[:MAX_CONTRIBUTIONS]]
    caption = "What each feature adds to the logarithm of the odds"
    left_out = len(known) - MAX_CONTRIBUTIONS
    more = f'<p class="small soft">{left_out:,} weaker ones are not shown.</p>' if left_out > 0 else ""
    whole = table(("feature", "adds"), rows, caption=caption) + more
    return f"<details><summary>contributions</summary>{whole}</details>"


def factors_html(factors: ConfidenceFactors) -> str:
    """Return the factors of a confidence as a folded table; empty for anything else."""
    # A user's profile may calculate from other factors.
    if type(factors).__name__ != "ConfidenceFactors":
        return ""
    rows = [(spaced(each.name), _text(getattr(factors, each.name))) for each in fields(factors)]
    return f"<details><summary>factors</summary>{table(('factor', 'value'), rows, words={'value'})}</details>"


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


METHODS = ("mean", "min", "weighted")
CRITICAL_SHARE = 0.7


class ConfidenceAggregator:
    """Aggregates the confidences of steps, which are numbers or ConfidenceScore objects."""

    __slots__ = ()

    def aggregate(
        self, scores: Iterable[ConfidenceScore | float], method: Literal["mean", "min", "weighted"] = "mean"
    ) -> float:
        """Return one confidence, 0 to 1, between the lowest and the highest score; 0 without scores.

        Args:
            scores: in the order of the steps.
            method: `mean`; `min`, the weakest step; or `weighted`, with weights 1, 2, …, n.

        Raises:
            ValueError: the method is unknown, or a score is not a number from 0 to 1.
        """
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)} (got {method!r})")
        values = _values(scores)
        if not values:
            return 0.0
        if method == "min":
            return min(values)
        if method == "mean":
            mean = math.fsum(values) / len(values)
        else:
            n = len(values)
            mean = math.fsum(i * value for i, value in enumerate(values, 1)) / (n * (n + 1) / 2)
        # Rounding can move the mean of equal numbers off their value.
        return min(max(values), max(min(values), mean))

    def aggregate_with_critical_check(
        self, scores: Iterable[ConfidenceScore | float], critical_threshold: float = 0.3
    ) -> tuple[float, bool]:
        """Return the mean and False; or the mean times 0.7 and True, when a score is below the threshold.

        Raises:
            ValueError: a score or the threshold is not a number from 0 to 1.
        """
        values = _values(scores)
        check_unit("critical_threshold", critical_threshold)
        mean = self.aggregate(values)
        return (mean * CRITICAL_SHARE, True) if any(value < critical_threshold for value in values) else (mean, False)


def _values(scores: Iterable[ConfidenceScore | float]) -> list[float]:
    values: list[Any] = [getattr(score, "score", score) for score in scores]
    for index, value in enumerate(values):
        check_unit(f"scores[{index}]", value)
    return [float(value) for value in values]
