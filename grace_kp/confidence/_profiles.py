"""From factors to a confidence and from a confidence to a decision: the thresholds, the profiles, and the named profiles.

`grace` follows the GRACE confidence design exactly, quirks included; `strict` follows it without its optimism. Any object with `name`
and `calculate` is a profile too; it need not be in the table. A learned profile reads whole runs instead of their factors.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, cast, runtime_checkable

from grace_kp.confidence._score import ConfidenceScore, penalties_text
from grace_kp.errors import check_unit
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.confidence._score import ConfidenceFactors


NEVER = "never"
"""An infinite threshold in JSON and in settings."""
_NAMES = ("silent", "notify", "confirm")
WINDOW = 10
MOST_TOLERATED = 3
STEP = 0.05
CAPS = (0.95, 0.85, 0.6)
FLOORS = (0.8, 0.6, 0.3)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Lowest confidence at which an action proceeds silently, with a notice, or after approval; below `confirm`, a person must help.

    Each is a number from 0 to 1, or `math.inf`: no confidence reaches that level. JSON and settings write infinity as `"never"`.

    Raises:
        ValueError: silent >= notify >= confirm does not hold, or a value is neither from 0 to 1 nor infinite.
    """

    silent: float = 0.9
    notify: float = 0.7
    confirm: float = 0.4

    def __post_init__(self) -> None:
        for name in _NAMES:
            value = getattr(self, name)
            if value != math.inf or not isinstance(value, float):
                check_unit(name, value, 'or math.inf, which means "never"')
        if not self.silent >= self.notify >= self.confirm:
            values = ", ".join(f"{name}={_json_value(getattr(self, name))}" for name in _NAMES)
            raise ValueError(f"thresholds must satisfy silent >= notify >= confirm (got {values})")

    def to_dict(self) -> dict[str, float | str]:
        """Return the JSON form: the three thresholds, an infinite one as `"never"`."""
        return {name: _json_value(getattr(self, name)) for name in _NAMES}

    @classmethod
    def from_dict(cls, values: Mapping[str, float | str]) -> Self:
        """Read the JSON form. A threshold that is left out keeps its default.

        Raises:
            ValueError: a name is unknown, or a value is not a threshold.
        """
        unknown = [name for name in values if name not in _NAMES]
        if unknown:
            raise ValueError(f"unknown threshold {str(unknown[0])[:60]!r}; known are {', '.join(_NAMES)}")
        return cls(**{name: math.inf if value == NEVER else cast("float", value) for name, value in values.items()})


def check_thresholds(value: object) -> None:
    """Refuse thresholds of another type."""
    if isinstance(value, Thresholds):
        return
    hint = "Thresholds(silent=0.9, notify=0.7, confirm=0.4)"
    if isinstance(value, dict):
        hint = "Thresholds.from_dict(...)"
    elif isinstance(getattr(value, "current", None), Thresholds):
        hint = "its .current"
    raise TypeError(f"thresholds must be a Thresholds, not {type(value).__name__}; pass {hint}")


class DynamicThresholds:
    """Thresholds that learn. Safe to share between threads.

    From the tenth sample on, the last ten count. When more than three were confident (above `notify`) and wrong, all three
    thresholds rise by 0.05, up to 0.95 / 0.85 / 0.6. Else when more than three were unconfident (below `confirm`) and right, they
    fall by 0.05, down to 0.8 / 0.6 / 0.3. A threshold that started beyond such a limit, or is infinite, stays.

    Each step is rounded to nine decimals. In plain floating-point arithmetic 0.4 - 0.05 is 0.35000000000000003, and a confidence of
    0.35 would miss a threshold that reads 0.35.

    Args:
        initial: the first thresholds; None takes the defaults.
    """

    __slots__ = ("_current", "_lock", "_samples")

    def __init__(self, initial: Thresholds | None = None) -> None:
        self._current = Thresholds() if initial is None else initial
        self._samples: deque[tuple[float, bool]] = deque(maxlen=WINDOW)
        self._lock = Lock()

    @property
    def current(self) -> Thresholds:
        """The current thresholds."""
        return self._current

    def record_feedback(self, confidence: float, was_correct: bool) -> None:
        """Record whether a run of this confidence, 0 to 1, was correct.

        Raises:
            ValueError: the confidence is not a number from 0 to 1, or `was_correct` is not a bool.
        """
        check_unit("confidence", confidence)
        if not isinstance(was_correct, bool):
            raise ValueError(f"was_correct must be true or false (got {type(was_correct).__name__})")
        with self._lock:
            self._samples.append((confidence, was_correct))
            if len(self._samples) == WINDOW:
                self._current = self._adjust()

    def _adjust(self) -> Thresholds:
        now = self._current
        overconfident = sum(confidence > now.notify and not right for confidence, right in self._samples)
        underconfident = sum(confidence < now.confirm and right for confidence, right in self._samples)
        before = (now.silent, now.notify, now.confirm)
        # Rounded: 0.8 + 0.05 must be 0.85, because a confidence of exactly 0.85 is compared with it.
        if overconfident > MOST_TOLERATED:
            return Thresholds(*(max(v, min(cap, round(v + STEP, 9))) for v, cap in zip(before, CAPS, strict=True)))
        if underconfident > MOST_TOLERATED:
            return Thresholds(*(min(v, max(low, round(v - STEP, 9))) for v, low in zip(before, FLOORS, strict=True)))
        return now


def _json_value(threshold: float) -> float | str:
    return NEVER if threshold == math.inf else threshold


@dataclass(frozen=True, slots=True)
class ActionDecision:
    """How an action may proceed. `level` may be a string, and `suggested_action` follows from it when left out.

    Raises:
        ValueError: the level is unknown, or the confidence is not a number from 0 to 1.
    """

    level: InterventionLevel
    confidence_score: float
    """The confidence that the decision rests on, 0 to 1."""
    reason: str = ""
    """One sentence: which threshold the confidence reached or missed."""
    suggested_action: str = ""
    """`proceed`, `proceed_with_status`, `ask_confirmation` or `request_clarification`."""

    def __post_init__(self) -> None:
        check_unit("confidence_score", self.confidence_score)
        level = InterventionLevel(self.level)
        object.__setattr__(self, "level", level)
        if not self.suggested_action:
            object.__setattr__(self, "suggested_action", _SUGGESTED[level])

    @property
    def should_proceed(self) -> bool:
        """Whether the action proceeds without asking: SILENT and NOTIFY."""
        return not self.level.asks

    @property
    def needs_confirmation(self) -> bool:
        """Whether a person must agree first: CONFIRM."""
        return self.level is InterventionLevel.CONFIRM

    @property
    def needs_user_input(self) -> bool:
        """Whether a person must help: ESCALATE."""
        return self.level is InterventionLevel.ESCALATE


_SUGGESTED = {
    InterventionLevel.SILENT: "proceed",
    InterventionLevel.NOTIFY: "proceed_with_status",
    InterventionLevel.CONFIRM: "ask_confirmation",
    InterventionLevel.ESCALATE: "request_clarification",
}


def decide(score: float, thresholds: Thresholds) -> ActionDecision:
    """Return the decision for a confidence. A confidence equal to a threshold reaches it."""
    check_unit("score", score)
    if score >= thresholds.silent:
        level, reason = InterventionLevel.SILENT, f"reaches the silent threshold {thresholds.silent}"
    elif score >= thresholds.notify:
        level, reason = InterventionLevel.NOTIFY, f"reaches the notify threshold {thresholds.notify}"
    elif score >= thresholds.confirm:
        level, reason = InterventionLevel.CONFIRM, _explain_miss("notify", thresholds.notify)
    else:
        level, reason = InterventionLevel.ESCALATE, _explain_miss("confirm", thresholds.confirm)
    return ActionDecision(level, score, f"Confidence {score} {reason}.", _SUGGESTED[level])


def _explain_miss(name: str, threshold: float) -> str:
    if threshold == math.inf:
        return f"cannot reach the {name} threshold, which is set to never"
    return f"is below the {name} threshold {threshold}"


WEIGHTS = {
    "search_quality": 0.6,
    "tool_success": 0.4,
    "source_agreement": 0.2,
    "llm_self_eval": 0.3,
    "query_coverage": 0.1,
}
_WORDS = {name: name.replace("_", " ") for name in WEIGHTS} | {"llm_self_eval": "self-evaluation"}
_MEASURED_WORDS = {name: f", {words} %.2f" for name, words in _WORDS.items()}
_FALLBACK_WORDS = {name: f", {words} (fallback %.2g)" for name, words in _WORDS.items()}
GOOD_SEARCH = 0.6
"""From this score on, the best result represents the whole search."""
SURE_WITHOUT_SOURCES = 0.8
"""From this self-evaluation on, missing sources are not penalised."""
NO_EVIDENCE = 0.5
"""The confidence of `strict` without any evidence."""

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
    sentences about how a run differs from the runs that the profile was learned from. Before a gated action, the last entry of
    `grace.decisions` in that document names the action. A profile with an `action` that is not None judges single actions at gates, by
    `action_confidence(features, factors)`; `action` has `thresholds` by tool and `mismatches(features)`. Before an action, it compares a
    document that holds only names: agent, domain, and each tool and model once. Gates rely on a profile without this method in any run,
    unless its `fitted_on` is empty.
    """

    def confidence(self, document: Mapping[str, Any], *, moment: Literal["end", "action"]) -> ConfidenceScore:
        """Return the confidence of a run."""
        ...


FOR_ENDED_RUNS = (
    "the thresholds of the profile are for runs that have ended, not for actions: calibrate at the moment of an action"
)
"""Why a gate cannot rely on the thresholds that a learned profile carries."""
FOR_OTHER_CONFIDENCE = "the thresholds of the profile are not for its confidence in single actions, or it has none: calibrate again with that confidence"
"""The same, where thresholds for runs meet a confidence in single actions, or the reverse."""


def promise_gaps(profile: object) -> tuple[str, ...]:
    """Return why the promise of a profile does not hold at gates; empty if it holds, or without a promise."""
    promise = getattr(profile, "promise", None)
    if promise is None:
        return ()
    if not isinstance(promise, Mapping) or promise.get("moment") != "action":
        return (FOR_ENDED_RUNS,)
    judges_actions = getattr(profile, "action", None) is not None
    return () if judges_actions == (promise.get("unit") == "action") else (FOR_OTHER_CONFIDENCE,)


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
    own, coverage, tools = factors.llm_self_confidence, factors.query_coverage, _tool_success(factors)
    counted: dict[str, bool] = {"search_quality": True} if quality > 0 else {}
    counted["tool_success"] = True
    if factors.source_count > 1:
        counted["source_agreement"] = bool(factors.agreement_evaluated)
    if own > 0.6:
        counted["llm_self_eval"] = bool(factors.self_evaluated)
    if coverage > 0.1:
        counted["query_coverage"] = bool(factors.coverage_evaluated)
    if factors.is_search_step:
        counted = {}  # only its results count
    figures = quality, factors.source_agreement, tools
    return _confidence(factors, figures, _find_missing(factors), counted, tools, factors.tool_success_rate, own)


def _strict(factors: ConfidenceFactors) -> ConfidenceScore:
    """Calculate with the same weights and penalties, but count exactly what was measured, however good it was.

    Whether a figure counts never depends on its value, so no worse figure can raise the score.
    """
    executed, tools = factors.tool_execution_count, _tool_success(factors)
    quality = 0.0
    if factors.search_result_count:
        average, variance = factors.search_avg_with_unusable, factors.search_variance_with_unusable
        average = factors.search_avg_score if average is None else average
        variance = factors.search_score_variance if variance is None else variance
        quality = strict_quality(factors.search_max_score, average, variance)
    # A single source agrees with nothing, even where agreement was measured.
    agreement = factors.source_agreement if factors.source_count > 1 else 0.0
    missing = _find_missing(factors)
    counted = {name: True for name in WEIGHTS if name not in missing}
    if factors.search_made and "search_quality" in missing:
        counted = {"search_quality": False, **counted}
    success, rate = (tools, factors.tool_success_rate) if executed else (1.0, 1.0)
    own = factors.llm_self_confidence if factors.self_evaluated else 0.0
    return _confidence(factors, (quality, agreement, tools), missing, counted, success, rate, own)


def _tool_success(factors: ConfidenceFactors) -> float:
    executed = factors.tool_execution_count
    return factors.tool_success_count / executed if executed else factors.tool_success_rate


def _search_quality(count: int, best: float, average: float, variance: float) -> float:
    if count == 0 and best == 0:
        return 0.0
    if best >= GOOD_SEARCH:
        return best
    return max(0.0, 0.7 * best + 0.3 * average - min(0.15, 0.3 * variance))


def strict_quality(best: float, average: float, variance: float) -> float:
    """Return the search quality without optimism: in average and variance, an unusable score counts as 0."""
    # Neither the mean nor the mix of both may exceed the best score.
    return min(best, _search_quality(1, best, min(best, average), variance))


def _find_missing(factors: ConfidenceFactors) -> tuple[str, ...]:
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


def _confidence(
    factors: ConfidenceFactors,
    figures: tuple[float, float, float],
    missing: tuple[str, ...],
    counted: dict[str, bool],
    success: float,
    rate: float,
    own: float,
) -> ConfidenceScore:
    """Return the weighted mean of the parts that count, or of a search step its quality, after the penalties.

    Args:
        figures: search quality, source agreement and tool success, as parts.
        missing: the names of the parts that were not measured.
        counted: the names of the parts that count, and whether each was measured; a default of the tool success counts as measured.
        success: the tool success by which the quality of a search step is multiplied.
        rate: the success rate that the penalty for failures uses.
        own: the self-evaluation that excuses a lack of sources.
    """
    is_search, found = factors.is_search_step, factors.search_result_count
    quality, agreement, tools = figures
    parts = {
        "search_quality": quality,
        "source_agreement": agreement,
        "llm_self_eval": 0.0 if is_search else factors.llm_self_confidence,
        "tool_success": tools,
        "query_coverage": 0.0 if is_search else factors.query_coverage,
    }
    fallbacks: dict[str, float] = {}
    penalties: list[str] = []
    if is_search:
        score, reason = quality * success, f"Search quality {quality:.2f}"
        if success < 1:
            reason += f" times tool success {success:.2f}"
    elif not counted:
        score, reason = NO_EVIDENCE, _NOTHING
    else:
        total = weight = 0.0
        words, shown = "", []
        # `grace` also counts tools that were not called, but its reason does not list them.
        is_assumed = not factors.tool_execution_count and tools == 1
        for name, was_measured in counted.items():
            part, own_weight = parts[name], WEIGHTS[name]
            total += part * own_weight
            weight += own_weight
            if not was_measured:
                fallbacks[name] = part
                words += _FALLBACK_WORDS[name]
            elif is_assumed and name == "tool_success":
                continue
            else:
                words += _MEASURED_WORDS[name]
            shown.append(part)
        score, reason = total / weight, f"Weighted mean of {words[2:]}" % tuple(shown)
        if not words:
            reason = f"{_NOTHING}; the formula starts at 1.00"
        elif "tool_success" in counted and is_assumed:
            reason += " and a default of 1.00"
    if is_search and not found:
        score *= 0.5
        penalties.append("no_search_results")
    if counted or is_search:
        if rate < 1:
            score *= 0.8 + 0.2 * rate
            penalties.append(f"tool_failures(rate={rate:.2f})")
        if not factors.source_count and not (found if is_search else own >= SURE_WITHOUT_SOURCES):
            score *= 0.7
            penalties.append("no_sources")
    if found and not factors.search_made:
        reason += "; the search results carry no score"
    if penalties:
        reason += f", lowered ({penalties_text(penalties)})"
    return ConfidenceScore(
        round(min(1.0, score), 3), factors, parts, penalties, f"{reason}.", missing, fallbacks=fallbacks
    )


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {"grace": Formula("grace", _grace), "strict": Formula("strict", _strict)}
)
"""The profiles that can be named."""


class ConfidenceCalculator:
    """Turns factors into a confidence, and a confidence into a decision. Holds no state; share it freely.

    Args:
        profile: `grace` (the design as published), `strict` (only what was measured counts, and no worse figure ever raises the
            score), or any object with `name` and `calculate(factors) -> ConfidenceScore`.
        thresholds: the lowest confidence of each level of intervention.

    Raises:
        ValueError: the profile is unknown.
        TypeError: the thresholds are not a `Thresholds`.
    """

    __slots__ = ("_profile", "thresholds")

    def __init__(self, profile: str | Profile = "grace", thresholds: Thresholds = Thresholds()) -> None:
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
