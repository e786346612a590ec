"""The profiles of a runtime: the main one, a shadow that changes nothing, and the reasons not to rely on them.

They turn a run into what its trace and its gates state about confidence. A learned profile is code of the user's, or rests on a file of
theirs. So it gets copies, its results are checked, a marked fallback replaces one that fails, and nothing that it raises reaches the agent.
Levels are decided in `gating`.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from grace_kp.confidence import (
    PROFILES,
    ConfidenceCalculator,
    ConfidenceScore,
    LearnedProfile,
    Thresholds,
    check_thresholds,
    model_of,
    promise_gaps,
)
from grace_kp.errors import GraceError, SettingsError, brief, is_unit
from grace_kp.levels import InterventionLevel, waits
from grace_kp.record import attempt, note
from grace_kp.settings import is_profile_path
from grace_kp.trace import describe_error, redact_text, storable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from grace_kp.confidence import ActionFeatures, ConfidenceFactors, Profile, RunEvidence
    from grace_kp.gating import Basis, Rules, RunConfidence, ShadowAssessment
    from grace_kp.settings import Settings


LEVELS = ("silent", "notify", "confirm")
MAX_REASON = 500
MAX_SENTENCES = 10
MAX_CONTRIBUTIONS = 200
UNKNOWN_ACTION = (
    "where the arguments of this action come from could not be read, and the profile judges single actions by that"
)
UNKNOWN_RUN = "nothing is recorded of the run before this action, and a learned profile reads recorded runs"
NO_RUN = "nothing is recorded of the run"
FALLBACK = PROFILES["grace"]


@dataclass(frozen=True, slots=True)
class Measured:
    """The confidence of a run, and where it comes from."""

    score: ConfidenceScore
    profile: str
    """The profile that computed the score."""
    problem: str = ""
    """Why the score is a fallback; empty if the profile in use computed it."""


@dataclass(frozen=True, slots=True)
class Known:
    """The evidence about an open run before an action."""

    evidence: RunEvidence
    factors: ConfidenceFactors
    """Its factors, with the judgements of a model where it was judged."""
    evaluation: Mapping[str, Any] | None = None
    """How a model judged the run before the action, if it did."""
    action: ActionFeatures | None = None
    """What is known of the action itself; None where that could not be read."""


class ProfileInUse:
    """A profile of a runtime, formula or learned. Its methods never raise, except for a KeyboardInterrupt of the user's."""

    __slots__ = ("calculator", "digest", "gaps", "is_formula", "learned", "name")

    def __init__(self, profile: str | Profile, thresholds: Thresholds, gaps: tuple[str, ...] = ()) -> None:
        self.calculator = ConfidenceCalculator(profile, thresholds)
        self.gaps = gaps
        self.name = storable(self.calculator.profile)[:MAX_REASON]
        self.is_formula = self.calculator.is_known
        self.learned: LearnedProfile | None = None
        if not isinstance(profile, str) and callable(getattr(profile, "confidence", None)):
            self.learned = profile  # type: ignore[assignment]
        self.digest = digest_of(self.learned)

    @property
    def thresholds(self) -> Thresholds:
        return self.calculator.thresholds

    @property
    def action(self) -> Any:
        """The confidence in single actions of a learned profile, if it has one."""
        can_judge = callable(getattr(self.learned, "action_confidence", None))
        return getattr(self.learned, "action", None) if can_judge else None

    def thresholds_for(self, action: str, levels: Collection[str] = LEVELS) -> Thresholds:
        """Return the thresholds of an action: at these levels those that a learned profile has for it, where it has some."""
        own = getattr(self.action, "thresholds", None) or {}
        stated, lowest = {}, 0.0
        for level in reversed(LEVELS) if action in own else ():
            found = getattr(own[action] if level in levels else self.thresholds, level)
            stated[level] = lowest = max(found, lowest)
        return replace(self.thresholds, **stated)

    @property
    def fitted_at(self) -> str | None:
        """When a learned profile was fitted, if it says so."""
        fitted_on = getattr(self.learned, "fitted_on", None)
        moment = fitted_on.get("fitted_at") if isinstance(fitted_on, Mapping) else None
        return moment if isinstance(moment, str) else None

    def measure(
        self, document: Mapping[str, Any] | None, factors: ConfidenceFactors, moment: Literal["end", "action"]
    ) -> Measured:
        """Return the confidence of a run. If the profile fails, it is that of the formula `grace`, with the problem."""
        if self.is_formula:
            return Measured(self.calculator.calculate(factors), self.name)
        learned = self.learned
        if learned is not None and document is None:
            return self._fallback(factors, UNKNOWN_RUN)
        if learned is None:
            return self._checked(factors, lambda: self.calculator.calculate(factors))
        return self._checked(factors, lambda: learned.confidence(copy_json(document), moment=moment))

    def _checked(self, factors: ConfidenceFactors, calculate: Callable[[], object]) -> Measured:
        try:
            score = calculate()
            return Measured(_check_score(score, factors), self.name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 — also SystemExit: a profile must not end the program
            note(f"profile {self.name}", error, theirs=True)
            return self._fallback(factors, f"the profile {self.name} failed ({_describe_failure(error)})")

    def before_action(self, document: Mapping[str, Any] | None, known: Known) -> tuple[Measured, Basis]:
        """Return the confidence of an open run before an action, and the basis on which the level is decided."""
        from grace_kp.gating import Basis

        learned: Any = self.learned
        if self.action is None:
            measured = self.measure(document, known.factors, "action")
        elif known.action is None:
            measured = self._fallback(known.factors, UNKNOWN_ACTION)
        else:
            measured = self._checked(known.factors, lambda: learned.action_confidence(known.action, known.factors))
            if not measured.problem:  # the sub-scores are those of the run, and the confidence is not
                measured = replace(measured, score=replace(measured.score, breakdown={}, not_evaluated=()))
        is_learned = self.learned is not None and not measured.problem
        calculator = None if is_learned else self.calculator
        return measured, Basis.of(measured.score.score, known.factors, known.evidence, calculator)

    def mismatches(
        self, document: Mapping[str, Any] | None, action: str | None = None, features: ActionFeatures | None = None
    ) -> tuple[str, ...]:
        """Return how a run, and an action in it, differ from those that the profile was fitted on; empty if they do not, or if the profile
        compares nothing."""
        compare: Callable[[Any], Any] | None = getattr(self.learned, "mismatches", None)
        if compare is None:
            is_unstated = getattr(self.learned, "fitted_on", None) == {}
            return ("the profile does not state what it was fitted on",) if is_unstated else ()
        if document is None:
            return (NO_RUN,)
        try:
            run = copy_json(document)
            if action is not None and (self.action is None or features is None):  # it has no step yet
                run["grace"].setdefault("decisions", []).append({"action": action})
            found = tuple(compare(run))
            if features is not None and self.action is not None:
                found += tuple(self.action.mismatches(features))
            return tuple(storable(str(sentence))[:MAX_REASON] for sentence in found[:MAX_SENTENCES])
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 — as in `measure`
            note(f"mismatches of profile {self.name}", error, theirs=True)
            return (f"whether the profile {self.name} fits this run could not be checked ({_describe_failure(error)})",)

    def _fallback(self, factors: ConfidenceFactors, problem: str) -> Measured:
        return Measured(FALLBACK.calculate(factors), FALLBACK.name, problem)


def _describe_failure(error: BaseException) -> str:
    """Return the type of an error. Only messages of our own are repeated, because others may quote the contents of the run."""
    kind = describe_error(error, MAX_REASON)[0]
    return f"{kind}: {error}"[:MAX_REASON] if isinstance(error, GraceError) else kind


def _check_score(score: object, factors: ConfidenceFactors) -> ConfidenceScore:
    """Return a confidence of a profile in the form that traces hold, with the five sub-scores of the factors if it states none."""
    if not isinstance(score, ConfidenceScore) or not is_unit(score.score):
        raise ValueError(f"a profile returns a ConfidenceScore, not {brief(score)}")
    parts = score if score.breakdown else FALLBACK.calculate(factors)
    return ConfidenceScore(
        float(score.score),
        factors,
        {storable(str(name)): _share(value) for name, value in list(parts.breakdown.items())[:MAX_CONTRIBUTIONS]},
        [storable(str(penalty)) for penalty in score.penalties_applied],
        storable(str(score.reason))[:MAX_REASON],
        tuple(storable(str(name)) for name in parts.not_evaluated),
        {
            storable(name): contribution
            for name, value in list(score.contributions.items())[:MAX_CONTRIBUTIONS]
            if (contribution := round(float(value), 4))
        },
    )


def _share(value: object) -> float:
    if isinstance(value, float | int) and math.isfinite(value):
        return value
    raise ValueError(f"a sub-score must be a finite number, not {brief(value)}")


def digest_of(profile: object) -> str | None:
    """Return the digest of the content of a learned profile; None if it has none, or content that cannot be written as JSON."""
    try:
        digest = getattr(profile, "digest", None)
    except (TypeError, ValueError):
        return None
    return storable(digest)[:MAX_REASON] if isinstance(digest, str) else None


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value, so that a receiver cannot change the original."""
    if type(value) is dict:
        return {name: copy_json(item) for name, item in value.items()}
    return [copy_json(item) for item in value] if type(value) is list else value


def open_profile(profile: object, source: str) -> str | Profile:
    """Return the profile that a setting or an argument names: a name, an object, or the content of a profile's file."""
    if isinstance(profile, os.PathLike):
        profile = os.fspath(profile)
    if isinstance(profile, str) and is_profile_path(profile):
        return _load_profile(profile, source)
    if isinstance(profile, str):
        if profile in PROFILES:
            return profile
        raise SettingsError(
            f"{source}: must be {', '.join(PROFILES)}, the path of a profile's .json file or a profile, not {brief(profile)}"
        )
    if isinstance(profile, type) or not callable(getattr(profile, "calculate", None)):
        raise SettingsError(f"{source}: must be a name, a path or a profile, not {brief(profile)}")
    if not isinstance(getattr(profile, "name", None), str):
        raise SettingsError(f"{source}: a profile needs a `name` that is a string ({type(profile).__name__} has none)")
    thresholds = getattr(profile, "thresholds", None)
    if thresholds is not None and not isinstance(thresholds, Thresholds):
        raise SettingsError(f"{source}: its thresholds must be a Thresholds or None, not {brief(thresholds)}")
    return profile  # type: ignore[return-value]


def thresholds_of(profile: object) -> Thresholds | None:
    """Return the thresholds that a learned profile carries, if any."""
    found = None if isinstance(profile, str) else getattr(profile, "thresholds", None)
    return found if isinstance(found, Thresholds) else None


def _load_profile(path: str, source: str) -> Profile:
    from grace_kp.calibrate import CalibratedProfile

    try:
        return CalibratedProfile.load(path)
    except (GraceError, OSError) as error:
        raise SettingsError(f"{source}: the profile {path} cannot be used: {error}") from None


MAX_KNOWN = 50

_log = logging.getLogger("grace_kp")

PromiseCheck: TypeAlias = Callable[[str, InterventionLevel], Iterable[str]]
"""Takes the name of a gated action and its level where nothing is known against the profile, and returns why the promise of the profile no longer holds for it, in a few words each."""


class Trust:
    """Reasons not to rely on a profile, shared by the threads of a runtime.

    Args:
        tightens: whether a run that differs from the runs that the profile was fitted on is a gap in the evidence.
    """

    def __init__(self, *, tightens: bool = True) -> None:
        self.tightens = tightens
        self.checks: list[PromiseCheck] = []
        """Consulted before every gated action. They must return quickly, and what they return makes the gate stricter."""
        self.mismatches: dict[str, None] = {}
        """How runs of this process differed from the runs that the profile was fitted on, without repetitions."""

    def add_mismatches(self, mismatches: Sequence[str]) -> None:
        """Add differences; each is logged once."""
        for mismatch in mismatches:
            if mismatch not in self.mismatches and len(self.mismatches) < MAX_KNOWN:
                self.mismatches[mismatch] = None
                _log.warning(
                    "the promise of the confidence profile does not hold: %s", redact_text(mismatch, identifiers=False)
                )

    def gaps(
        self, action: str, mismatches: Sequence[str], level: InterventionLevel = InterventionLevel.SILENT
    ) -> tuple[str, ...]:
        """Return why the profile cannot be relied on before an action."""
        if not (mismatches or self.checks):
            return ()
        gaps = [f"the profile was not fitted on runs like this: {item}" for item in mismatches if self.tightens]
        for check in tuple(self.checks):
            try:
                gaps += [storable(str(reason))[:MAX_REASON] for reason in tuple(check(action, level))]
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 — a promise that cannot be checked is not relied on
                note("checking a promise", error, theirs=True)
                gaps.append(f"whether its promise still holds could not be checked ({describe_error(error)[0]})")
        return tuple(gaps)

    def describe(self) -> dict[str, Any]:
        """Return what is known, for `Grace.status()`."""
        return {"on_mismatch": "tighten" if self.tightens else "report", "mismatches": list(self.mismatches)}


_DEFAULT = Thresholds()
_MILDER = ("unmeasured", "auto_proceed_on_timeout", "thresholds")
"""Entries of a policy that can make gates milder."""


@dataclass(frozen=True, slots=True)
class ProfileSet:
    """The profile of a runtime, with its shadow."""

    main: ProfileInUse
    shadow: ProfileInUse | None = None
    trust: Trust | None = None
    audit_rate: float = 0.0
    """The share of actions that run without asking and are selected for a check by a person."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where the threshold of each level is from."""

    @classmethod
    def of(cls, profile: str, thresholds: Thresholds = _DEFAULT) -> ProfileSet:
        """Return a profile without a shadow, by its name or the path of its file."""
        return cls(ProfileInUse(open_profile(profile, "profile"), thresholds))

    @classmethod
    def of_runtime(
        cls, settings: Settings, profile: object = None, shadow: object = None, thresholds: Thresholds | None = None
    ) -> ProfileSet:
        """Return the profiles of a runtime."""
        opened = open_profile(settings.profile if profile is None else profile, _source(settings, profile))
        _check_digest(settings, opened)
        if thresholds is None:
            is_stated = all(f"threshold_{level}" in settings.source for level in LEVELS)
            main = ProfileInUse(opened, _thresholds(settings, opened), () if is_stated else _gaps(opened))
        else:
            main = ProfileInUse(opened, thresholds)
        others = _thresholds(settings, None) if thresholds is None else thresholds
        trust = Trust(tightens=settings.on_mismatch == "tighten")
        origins = {level: _origin(level, settings, opened, is_argument=thresholds is not None) for level in LEVELS}
        known = {settings.profile: opened} if profile is None else {}
        return cls(main, _shadow(shadow, others, known), trust, settings.audit_rate, origins)

    def measure_finished(self, document: dict[str, Any], factors: ConfidenceFactors) -> tuple[Measured, dict[str, Any]]:
        """Return the confidence of a run that has ended, or waits for a person, and the other entries of `grace.confidence`."""
        moment: Any = "action" if waits(document["grace"].get("status")) else "end"
        measured = self.main.measure(document, factors, moment)
        return measured, self._facts(measured, self._mismatches(document))

    def shadow_of(self, document: dict[str, Any], factors: ConfidenceFactors) -> dict[str, Any] | None:
        """Return what the shadow says of a run that has ended; None without a shadow."""
        shadow = self.shadow
        if shadow is None:
            return None
        moment: Any = "action" if waits(document["grace"].get("status")) else "end"
        measured = shadow.measure(document, factors, moment)
        if measured.problem:
            return {"profile": shadow.name, "error": measured.problem}
        return {"profile": shadow.name, "score": measured.score.score, "level": measured.score.level}

    def at_least_stated(self, thresholds: Thresholds, *, in_code: bool = True) -> Thresholds:
        """Return the thresholds of a gate, raised to the thresholds that an argument or a setting states for the whole runtime.

        Defaults and the thresholds of a learned profile do not raise the thresholds of a gate.
        """
        silent = ("default", "profile ") if in_code else ("default", "profile ", "argument ", "keyword ")
        raised, lowest = {}, 0.0
        for level in reversed(LEVELS):
            origin = self.origins.get(level, "default")
            stated = 0.0 if origin.startswith(silent) else getattr(self.main.thresholds, level)
            raised[level] = lowest = max(getattr(thresholds, level), stated, lowest)
        return replace(thresholds, **raised)

    def thresholds_for(self, action: str) -> Thresholds:
        """Return the thresholds of an action. What a learned profile has for it gives way to what is stated for the whole runtime."""
        levels = [level for level in LEVELS if self.origins.get(level, "default").startswith("profile ")]
        return self.main.thresholds_for(action, levels)

    @property
    def in_use(self) -> list[ProfileInUse]:
        """The main profile and the shadow, if there is one."""
        return [self.main] if self.shadow is None else [self.main, self.shadow]

    @property
    def reads_contents(self) -> bool:
        """Whether a profile judges runs before an action, and needs more of them than the names that it compares."""
        return any(each.learned is not None and each.action is None for each in self.in_use)

    @property
    def judges_actions(self) -> bool:
        """Whether a profile judges single actions, by what the agent has seen before."""
        return any(each.action is not None for each in self.in_use)

    def before_action(
        self,
        action: str,
        known: Known,
        document: Callable[[], dict[str, Any] | None],
        rules: Rules,
        features: Callable[[], ActionFeatures | None] = lambda: None,
    ) -> RunConfidence:
        """Return the confidence of an open run before an action, or in the action itself where the profile judges single actions."""
        from grace_kp.gating import RunConfidence

        is_learned = any(each.learned is not None for each in self.in_use)
        found = attempt("the run before an action", document) if is_learned else None
        gaps, has_own_thresholds = rules.gaps, rules.policy.thresholds is not None
        if found is not None and known.evaluation is not None:
            found["grace"]["evaluation"] = copy_json(known.evaluation)
        if self.judges_actions:
            seen = None if found is None else attempt("what is known of an action", features)
            known = replace(known, action=seen and replace(seen, model=model_of(found or {})))
        measured, basis = self.main.before_action(found, known)
        shadow: ShadowAssessment | None = None
        if self.shadow is not None:
            others = gaps if has_own_thresholds else gaps + self.shadow.gaps
            shadow = self._shadow_before(self.shadow, action, found, known, others)
        mismatches: tuple[str, ...] = ()
        facts: dict[str, Any] = {}
        if not self.main.is_formula:
            mismatches = self._mismatches(found, action, known.action)
            facts = {"profile": measured.profile, **self._facts(measured, mismatches)}
        own_gaps = () if has_own_thresholds else self.main.gaps
        if measured.problem:
            own_gaps += (f"{measured.problem}; the score is that of the formula {measured.profile}",)
        if self.trust is not None:
            own = InterventionLevel.SILENT
            if self.trust.checks:
                own = rules.decide(measured.score.score, basis).level
            own_gaps += self.trust.gaps(action, mismatches, own)
        if self.main.action is not None and not measured.problem:
            stated = {
                "score": measured.score.score,
                "profile_digest": self.main.digest,
                "reason": measured.score.reason,
            }
            facts["action_confidence"] = {**stated, "contributions": dict(measured.score.contributions)}
        if own_gaps:  # which a replay under another profile leaves out
            facts["profile_gaps"] = list(own_gaps)
        return RunConfidence(measured.score, gaps + own_gaps, known.evaluation, facts, shadow, self.audit_rate, basis)

    def describe(self) -> dict[str, Any]:
        """Return the profiles and what is known against them, for `Grace.status()`."""
        described: dict[str, Any] = {"name": self.main.name, "thresholds": self.main.thresholds.to_dict()}
        described.update({"thresholds_from": dict(self.origins)} if self.origins else {})
        learned = self.main.learned
        if learned is not None:
            for name in ("promise", "fitted_on"):
                stated = getattr(learned, name, None)
                described[name] = dict(stated) if isinstance(stated, Mapping) else None
            described["digest"] = self.main.digest
            described.update({} if self.trust is None else self.trust.describe())
        if self.shadow is not None:
            described["shadow"] = {"name": self.shadow.name, "thresholds": self.shadow.thresholds.to_dict()}
        return described

    def milder(
        self, settings: Settings, policies: Mapping[str, object] = MappingProxyType({}), *, is_watched: bool = False
    ) -> list[dict[str, Any]]:
        """Return what makes gates milder than the defaults do: `setting`, `value`, and `from`, its source."""
        source = settings.source
        found: list[tuple[str, Any, str]] = []
        for level in LEVELS:
            threshold = getattr(self.main.thresholds, level)
            if threshold < getattr(_DEFAULT, level):
                found.append((f"threshold_{level}", threshold, self.origins.get(level, "default")))
        if not self.main.is_formula:
            found.append(("profile", self.main.name, source.get("profile", "argument profile")))
        is_reported = {"on_mismatch": not self.main.is_formula, "on_alarm": is_watched}
        found += [
            (name, "report", source.get(name, "default"))
            for name, counts in is_reported.items()
            if counts and getattr(settings, name) == "report"
        ]
        found.append(("unmeasured", settings.unmeasured, source.get("unmeasured", "default")))
        stated = [(source.get("policies", "default"), settings.policies), ("argument policies", policies)]
        for place, action, policy in ((place, *entry) for place, entries in stated for entry in entries.items()):
            table = policy if isinstance(policy, dict) else {name: getattr(policy, name, None) for name in _MILDER}
            found += [(f"policies.{action}.{name}", table.get(name), place) for name in _MILDER]
        return [
            {"setting": name, "value": value.to_dict() if isinstance(value, Thresholds) else value, "from": place}
            for name, value, place in found
            if value is not None and value is not False and value != "confirm"
            if not isinstance(value, Thresholds)
            or any(getattr(value, level) < getattr(_DEFAULT, level) for level in LEVELS)
        ]

    def _shadow_before(
        self,
        shadow: ProfileInUse,
        action: str,
        document: dict[str, Any] | None,
        known: Known,
        gaps: tuple[str, ...],
    ) -> ShadowAssessment:
        from grace_kp.gating import ShadowAssessment

        measured, basis = shadow.before_action(document, known)
        if measured.problem:
            return ShadowAssessment(shadow.name, shadow.thresholds, error=measured.problem)
        if self.trust is not None and self.trust.tightens:
            gaps += shadow.mismatches(document, action, known.action)
        return ShadowAssessment(shadow.name, shadow.thresholds_for(action), measured.score.score, gaps, basis=basis)

    def _mismatches(
        self, document: dict[str, Any] | None, action: str | None = None, features: ActionFeatures | None = None
    ) -> tuple[str, ...]:
        mismatches = self.main.mismatches(document, action, features)
        if mismatches and self.trust is not None:
            self.trust.add_mismatches(mismatches)
        return mismatches

    def _facts(self, measured: Measured, mismatches: Sequence[str]) -> dict[str, Any]:
        """Return what is stated about where a score comes from; empty for a formula that was chosen."""
        facts: dict[str, Any] = {"fitted_at": self.main.fitted_at, "profile_digest": self.main.digest}
        if measured.problem:
            facts = {"fallback": True}
        facts["mismatches"] = list(mismatches) or None
        return {name: value for name, value in facts.items() if value is not None}


def _source(settings: Settings, profile: object) -> str:
    return "profile" if profile is not None else f"profile ({settings.source.get('profile', 'default')})"


def _check_digest(settings: Settings, profile: object) -> None:
    """Refuse a profile that does not have the digest that the settings state."""
    digest = settings.profile_digest
    if digest is not None and digest != (found := digest_of(profile)):
        name = profile if isinstance(profile, str) else getattr(profile, "name", "")
        raise SettingsError(
            f"profile_digest ({settings.source.get('profile_digest', 'default')}) is {digest!r:.80}, and the profile {name} has "
            f"{f'the digest {found}' if found else 'no digest'}: check who changed the profile, or state its digest"
        )


def _origin(level: str, settings: Settings, profile: object, *, is_argument: bool) -> str:
    """Return where the threshold of a level is from: an argument, a setting with its place, the profile, or the default."""
    if is_argument:
        return "argument thresholds"
    place = settings.source.get(f"threshold_{level}")
    if place is not None:
        return place if place != "keyword" else f"keyword threshold_{level}"
    return f"profile {getattr(profile, 'name', '')}" if thresholds_of(profile) is not None else "default"


def _thresholds(settings: Settings, profile: object) -> Thresholds:
    """Return the thresholds of the settings, and of the profile for the levels that the settings leave open."""
    own = thresholds_of(profile)
    if own is None:
        return Thresholds(*(getattr(settings, f"threshold_{level}") for level in LEVELS))
    stated = [level for level in LEVELS if f"threshold_{level}" in settings.source]
    try:
        return replace(own, **{level: getattr(settings, f"threshold_{level}") for level in stated})
    except ValueError as error:
        names = ", ".join(f"threshold_{level} ({settings.source[f'threshold_{level}']})" for level in stated)
        raise SettingsError(f"{names} together with the thresholds of the profile: {error}; set all three") from None


def _gaps(profile: object) -> tuple[str, ...]:
    return () if thresholds_of(profile) is None else promise_gaps(profile)


def _shadow(shadow: object, thresholds: Thresholds, known: Mapping[str, object]) -> ProfileInUse | None:
    """Return a shadow with the thresholds that are paired with it, else with those it carries, else with these. `known` holds open profiles
    by path: a file is read once, because it may change between two readings."""
    if shadow is None:
        return None
    own: object = None
    if isinstance(shadow, tuple):
        if len(shadow) != 2:
            raise SettingsError(f"shadow: must be a profile, or a pair of profile and thresholds, not {brief(shadow)}")
        shadow, own = shadow
        check_thresholds(own)
    path = os.fspath(shadow) if isinstance(shadow, str | os.PathLike) else ""
    opened: Any = known.get(path) or open_profile(shadow, "shadow")
    if isinstance(own, Thresholds):
        return ProfileInUse(opened, own)
    return ProfileInUse(opened, thresholds_of(opened) or thresholds, _gaps(opened))
