"""The profiles that turn factors into a confidence, and the table of those that have a name.

`grace` follows the GRACE confidence design exactly, quirks included; `strict` follows it without its optimism. Any object with `name`
and `calculate` is a profile too; it need not be in the table. A learned profile reads whole runs instead of their factors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from grace_kp.confidence._score import ConfidenceScore, penalties_text
from grace_kp.confidence._thresholds import ActionDecision, Thresholds, check_thresholds, decide

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.confidence._factors import ConfidenceFactors


SEARCH_WEIGHT = 0.6
TOOL_WEIGHT = 0.4
AGREEMENT_WEIGHT = 0.2
SELF_WEIGHT = 0.3
COVERAGE_WEIGHT = 0.1

GOOD_SEARCH = 0.6
"""From this score on, the best result stands for the whole search."""
SURE_WITHOUT_SOURCES = 0.8
"""From this self-evaluation on, a lack of sources is no penalty."""
NO_EVIDENCE = 0.5
"""The confidence of `strict` without any evidence."""

# Reasons are assembled from templates and formatted once, because a calculation takes only microseconds.
_SEARCH = ", search quality %.2f"
_TOOLS = ", tool success %.2f"
_UNUSABLE = ", search quality (fallback %.2g)"
# By whether the part was evaluated.
_AGREEMENT = (", source agreement (fallback %.2g)", ", source agreement %.2f")
_SELF = (", self-evaluation (fallback %.2g)", ", self-evaluation %.2f")
_COVERAGE = (", query coverage (fallback %.2g)", ", query coverage %.2f")
_NOT_SCORED = "; the search results carry no score"
_NOTHING = "No evidence: nothing was searched, executed or evaluated"


class Profile(Protocol):
    """A formula from factors to a score."""

    @property
    def name(self) -> str:
        """The name of the profile in settings and traces."""
        ...

    def calculate(self, factors: ConfidenceFactors, /) -> ConfidenceScore:
        """Return the confidence of the factors."""
        ...


@runtime_checkable
class LearnedProfile(Profile, Protocol):
    """A confidence that was learned from labelled runs. It reads the document of a run, of which the factors are a summary.

    A runtime also uses these attributes where a profile has them: `thresholds` (a `Thresholds` or None), `promise` and `fitted_on`
    (mappings for people), `digest` (a string that identifies the content, recorded by gates), and `mismatches(document)`, which returns
    sentences that say how a run differs from those that the profile was learned from. Before a gated action, the last entry of
    `grace.decisions` in that document names the action. Gates rely on a profile without this method in any run,
    unless its `fitted_on` is empty.
    """

    def confidence(self, document: Mapping[str, Any], *, moment: Literal["end", "action"]) -> ConfidenceScore:
        """Return the confidence of a run."""
        ...


FOR_ENDED_RUNS = (
    "the thresholds of the profile are for runs that have ended, not for actions: calibrate at the moment of an action"
)
"""Why a gate cannot rely on the thresholds that a learned profile carries."""


def promise_gaps(profile: object) -> tuple[str, ...]:
    """Return why the promise of a profile does not hold at gates; nothing if it does, or if there is no promise."""
    promise = getattr(profile, "promise", None)
    if promise is None or (isinstance(promise, Mapping) and promise.get("moment") == "action"):
        return ()
    return (FOR_ENDED_RUNS,)


@dataclass(frozen=True, slots=True)
class Formula:
    """A profile with a fixed formula."""

    name: str
    calculate: Callable[[ConfidenceFactors], ConfidenceScore]


def _grace(factors: ConfidenceFactors) -> ConfidenceScore:
    """Calculate the confidence by the GRACE design.

    Two of its quirks are kept on purpose: a self-evaluation counts only above 0.6, and a search only if its quality is above 0. So a
    worse figure can raise the score by dropping out of the mean.
    """
    quality = _search_quality(
        factors.search_result_count, factors.search_max_score, factors.search_avg_score, factors.search_score_variance
    )
    executed = factors.tool_execution_count
    tools = factors.tool_success_count / executed if executed else factors.tool_success_rate
    agreement, own, coverage = factors.source_agreement, factors.llm_self_confidence, factors.query_coverage
    is_search = factors.is_search_step
    shown: tuple[float, ...]
    counted: tuple[str, ...] = ()
    if is_search:
        base, basis = quality * tools if tools < 1 else quality, _search_basis(quality, tools)
    else:
        total, weight = tools * TOOL_WEIGHT, TOOL_WEIGHT
        # Tool success always counts, but a reason does not mention tools that were not called.
        basis, shown = (_TOOLS, (tools,)) if executed or tools < 1 else ("", ())
        if quality > 0:
            total += quality * SEARCH_WEIGHT
            weight += SEARCH_WEIGHT
            basis, shown = _SEARCH + basis, (quality, *shown)
        if factors.source_count > 1:
            total += agreement * AGREEMENT_WEIGHT
            weight += AGREEMENT_WEIGHT
            basis += _AGREEMENT[bool(factors.agreement_evaluated)]
            shown += (agreement,)
            counted += ("source_agreement",)
        if own > 0.6:
            total += own * SELF_WEIGHT
            weight += SELF_WEIGHT
            basis += _SELF[bool(factors.self_evaluated)]
            shown += (own,)
            counted += ("llm_self_eval",)
        if coverage > 0.1:
            total += coverage * COVERAGE_WEIGHT
            weight += COVERAGE_WEIGHT
            basis += _COVERAGE[bool(factors.coverage_evaluated)]
            shown += (coverage,)
            counted += ("query_coverage",)
        base, basis = total / weight, _mean_of(basis, shown, with_default=not executed and tools == 1)
    score, penalties = _penalised(
        base, is_search, factors.search_result_count, factors.tool_success_rate, factors.source_count, own
    )
    return _result(score, factors, (quality, agreement, own, tools, coverage), penalties, basis, counted)


def _strict(factors: ConfidenceFactors) -> ConfidenceScore:
    """Calculate with the same weights and penalties, but count exactly what was measured, however good it was.

    Whether a figure counts never depends on its value, so no worse figure can raise the score.
    """
    executed = factors.tool_execution_count
    tools = factors.tool_success_count / executed if executed else factors.tool_success_rate
    quality = _strict_quality(factors)
    # A single source agrees with nothing, even where agreement was measured.
    agreement = factors.source_agreement if factors.source_count > 1 else 0.0
    own, coverage = factors.llm_self_confidence, factors.query_coverage
    is_search, unusable = factors.is_search_step, factors.search_unusable
    shown: tuple[float, ...]
    if is_search:
        base, basis = quality * tools if executed else quality, _search_basis(quality, tools if executed else 1.0)
    else:
        total = weight = 0.0
        basis, shown = "", ()
        if factors.search_made:
            total, weight, basis, shown = quality * SEARCH_WEIGHT, SEARCH_WEIGHT, _SEARCH, (quality,)
            basis = _UNUSABLE if unusable else basis
        if executed:
            total += tools * TOOL_WEIGHT
            weight += TOOL_WEIGHT
            basis += _TOOLS
            shown += (tools,)
        if factors.agreement_evaluated:
            total += agreement * AGREEMENT_WEIGHT
            weight += AGREEMENT_WEIGHT
            basis += _AGREEMENT[True]
            shown += (agreement,)
        if factors.self_evaluated:
            total += own * SELF_WEIGHT
            weight += SELF_WEIGHT
            basis += _SELF[True]
            shown += (own,)
        if factors.coverage_evaluated:
            total += coverage * COVERAGE_WEIGHT
            weight += COVERAGE_WEIGHT
            basis += _COVERAGE[True]
            shown += (coverage,)
        if not weight:
            return _result(NO_EVIDENCE, factors, (quality, agreement, own, tools, coverage), (), _NOTHING)
        base, basis = total / weight, _mean_of(basis, shown)
    score, penalties = _penalised(
        base,
        is_search,
        factors.search_result_count,
        factors.tool_success_rate if executed else 1.0,
        factors.source_count,
        own if factors.self_evaluated else 0.0,
    )
    counted = ("search_quality",) if unusable else ()
    return _result(score, factors, (quality, agreement, own, tools, coverage), penalties, basis, counted)


def _search_quality(count: int, best: float, average: float, variance: float) -> float:
    if count == 0 and best == 0:
        return 0.0
    if best >= GOOD_SEARCH:
        return best
    return max(0.0, 0.7 * best + 0.3 * average - min(0.15, 0.3 * variance))


def _strict_quality(factors: ConfidenceFactors) -> float:
    if not factors.search_result_count:
        return 0.0
    average, variance = factors.search_avg_with_unusable, factors.search_variance_with_unusable
    average = factors.search_avg_score if average is None else average
    variance = factors.search_score_variance if variance is None else variance
    return strict_quality(factors.search_max_score, average, variance)


def strict_quality(best: float, average: float, variance: float) -> float:
    """Return the search quality without optimism: in average and variance, an unusable score counts as 0."""
    # Neither the mean nor the mix of both may exceed the best score.
    return min(best, _search_quality(1, best, min(best, average), variance))


def _mean_of(basis: str, shown: tuple[float, ...], *, with_default: bool = False) -> str:
    if not shown:
        return f"{_NOTHING}; the formula starts at 1.00"
    mean = "Weighted mean of " + basis[2:] % shown
    return f"{mean} and a default of 1.00" if with_default else mean


def _search_basis(quality: float, tools: float) -> str:
    basis = f"Search quality {quality:.2f}"
    return f"{basis} times tool success {tools:.2f}" if tools < 1 else basis


def _penalised(
    score: float, is_search: bool, found: int, success_rate: float, sources: int, own: float
) -> tuple[float, tuple[str, ...]]:
    """Return the score after the penalties, and their names in order."""
    penalties: tuple[str, ...] = ()
    if is_search and not found:
        score *= 0.5
        penalties = ("no_search_results",)
    if success_rate < 1:
        score *= 0.8 + 0.2 * success_rate
        penalties += (f"tool_failures(rate={success_rate:.2f})",)
    if not sources and not (found if is_search else own >= SURE_WITHOUT_SOURCES):
        score *= 0.7
        penalties += ("no_sources",)
    return score, penalties


def _result(
    score: float,
    factors: ConfidenceFactors,
    parts: tuple[float, float, float, float, float],
    penalties: tuple[str, ...],
    basis: str,
    counted: tuple[str, ...] = (),
) -> ConfidenceScore:
    quality, agreement, own, tools, coverage = parts
    is_search = factors.is_search_step
    if factors.search_not_scored:
        basis += _NOT_SCORED
    breakdown = {
        "search_quality": quality,
        "source_agreement": agreement,
        "llm_self_eval": 0.0 if is_search else own,
        "tool_success": tools,
        "query_coverage": 0.0 if is_search else coverage,
    }
    reason = f"{basis}, lowered ({penalties_text(penalties)})." if penalties else f"{basis}."
    missing = _not_evaluated(factors)
    fallbacks = {name: breakdown[name] for name in counted if name in missing}
    return ConfidenceScore(
        round(min(1.0, score), 3), factors, breakdown, list(penalties), reason, missing, fallbacks=fallbacks
    )


def _not_evaluated(factors: ConfidenceFactors) -> tuple[str, ...]:
    missing: tuple[str, ...] = ()
    if factors.search_unusable or not (factors.search_made or factors.is_search_step):
        missing = ("search_quality",)
    if not factors.agreement_evaluated:
        missing += ("source_agreement",)
    if not factors.self_evaluated:
        missing += ("llm_self_eval",)
    if not factors.tool_execution_count:
        missing += ("tool_success",)
    if not factors.coverage_evaluated:
        missing += ("query_coverage",)
    return missing


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {"grace": Formula("grace", _grace), "strict": Formula("strict", _strict)}
)
"""The profiles that can be named."""


_DEFAULT = Thresholds()


class ConfidenceCalculator:
    """Turns factors into a confidence, and a confidence into a decision. Holds no state; share it freely.

    Args:
        profile: `grace` (the design as published), `strict` (only what was measured counts, and no worse figure ever raises the
            score), or any object with `name` and `calculate(factors) -> ConfidenceScore`.
        thresholds: the lowest confidence of each level of intervention.

    Raises:
        ValueError: there is no profile of that name.
        TypeError: the thresholds are not a `Thresholds`.
    """

    __slots__ = ("_profile", "thresholds")

    def __init__(self, profile: str | Profile = "grace", thresholds: Thresholds = _DEFAULT) -> None:
        self._profile = _profile(profile)
        check_thresholds(thresholds)
        self.thresholds = thresholds

    @property
    def profile(self) -> str:
        """The name of the profile."""
        return self._profile.name

    @property
    def is_known(self) -> bool:
        """Whether the profile is `grace` or `strict`, whose formulas are known."""
        return PROFILES.get(self._profile.name) is self._profile

    def calculate(self, factors: ConfidenceFactors) -> ConfidenceScore:
        """Return the confidence of the factors, with its sub-scores, its penalties and a reason."""
        return self._profile.calculate(factors)

    def decide_action(self, score: ConfidenceScore | float) -> ActionDecision:
        """Return how far a person must be involved in an action at this confidence.

        Raises:
            ValueError: the score is not a number from 0 to 1.
        """
        return decide(score if isinstance(score, float | int) else score.score, self.thresholds)

    def __repr__(self) -> str:
        return f"ConfidenceCalculator(profile={self.profile!r}, thresholds={self.thresholds})"


def _profile(profile: str | Profile) -> Profile:
    if isinstance(profile, str):
        if profile not in PROFILES:
            raise ValueError(f"unknown profile {profile!r}; there are {', '.join(PROFILES)}")
        return PROFILES[profile]
    if not callable(getattr(profile, "calculate", None)) or not isinstance(getattr(profile, "name", None), str):
        raise ValueError(f"a profile is a name or has `name` and `calculate` (got {type(profile).__name__})")
    return profile
