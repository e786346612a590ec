"""The profiles of a runtime: the one that counts, a shadow that changes nothing, and what is known against relying on them.

It turns a run into what its trace and its gates state about confidence. Levels are decided in `gating`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from grace_kp.confidence import Thresholds, check_thresholds, promise_gaps
from grace_kp.errors import SettingsError, brief
from grace_kp.levels import InterventionLevel, waits
from grace_kp.record import attempt
from grace_kp.runtime._profile import Measured, ProfileInUse, copied, digest_of, open_profile, thresholds_of
from grace_kp.runtime._trust import Trust, recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.confidence import ConfidenceFactors
    from grace_kp.gating import Assessment, Rules, ShadowAssessment
    from grace_kp.runtime._profile import Known
    from grace_kp.settings import Settings

_DEFAULT = Thresholds()
_LEVELS = ("silent", "notify", "confirm")
_MILDER = ("unmeasured", "auto_proceed_on_timeout", "thresholds")
"""What a policy may state that makes gates milder."""


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
        """Return a profile without a shadow, by its name or the path of its file.

        Raises:
            SettingsError: there is no such profile, or its file cannot be used.
        """
        return cls(ProfileInUse(open_profile(profile, "profile"), thresholds))

    @classmethod
    def of_runtime(
        cls, settings: Settings, profile: object = None, shadow: object = None, thresholds: Thresholds | None = None
    ) -> ProfileSet:
        """Return the profiles of a runtime.

        Args:
            settings: name the profile, and the thresholds, where the other arguments do not.
            profile: a profile, in place of the name in the settings.
            shadow: a profile, a name or a path; or a pair of such a thing and its thresholds.
            thresholds: those of the gates; else those of the settings, else those of the profile.

        Raises:
            SettingsError: a profile or its file cannot be used, the profile does not have the digest of the settings, or their thresholds
                contradict those of the profile.
            TypeError: the thresholds of the shadow are not a `Thresholds`.
        """
        opened = open_profile(settings.profile if profile is None else profile, _source(settings, profile))
        _check_digest(settings, opened)
        if thresholds is None:
            is_stated = all(f"threshold_{level}" in settings.source for level in _LEVELS)
            main = ProfileInUse(opened, _thresholds(settings, opened), () if is_stated else _gaps(opened))
        else:
            main = ProfileInUse(opened, thresholds)
        others = _thresholds(settings, None) if thresholds is None else thresholds
        trust = Trust(tightens=settings.on_mismatch == "tighten")
        origins = {level: _origin(level, settings, opened, is_argument=thresholds is not None) for level in _LEVELS}
        known = {settings.profile: opened} if profile is None else {}
        return cls(main, _shadow(shadow, others, known), trust, settings.audit_rate, origins)

    def finished(self, document: dict[str, Any], factors: ConfidenceFactors) -> tuple[Measured, dict[str, Any]]:
        """Return the confidence of a run that has ended, or waits for a person, and what is stated beside it in `grace.confidence`."""
        moment: Any = "action" if waits(document["grace"].get("status")) else "end"
        measured = self.main.measure(document, factors, moment)
        mismatches = self._mismatches(document)
        return measured, {**self._facts(measured), **recorded(mismatches)}

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
        """Return the thresholds of a gate, raised to those that an argument or a setting states for the whole runtime.

        Defaults, and the thresholds of a learned profile, are no statement about a gate that has its own.

        Args:
            thresholds: those of the gate.
            in_code: whether arguments of the runtime count, too. They do not for its own policies, which may be an exception from them.
        """
        silent = ("default", "profile ") if in_code else ("default", "profile ", "argument ", "keyword ")
        raised, lowest = {}, 0.0
        for level in reversed(_LEVELS):
            origin = self.origins.get(level, "default")
            stated = 0.0 if origin.startswith(silent) else getattr(self.main.thresholds, level)
            raised[level] = lowest = max(getattr(thresholds, level), stated, lowest)
        return replace(thresholds, **raised)

    @property
    def reads_documents(self) -> bool:
        """Whether a profile needs the document of a run, and not only its factors."""
        return self.main.learned is not None or (self.shadow is not None and self.shadow.learned is not None)

    def before_action(
        self,
        action: str,
        known: Known,
        document: Callable[[], dict[str, Any] | None],
        rules: Rules,
    ) -> Assessment:
        """Return the confidence of an open run before an action.

        Args:
            action: the name of the action.
            known: what is known of the run so far.
            document: returns the run so far; None if nothing is recorded of it.
            rules: the rules of the action, with the gaps in the evidence of the run. Thresholds of its policy count in place of a profile's.
        """
        from grace_kp.gating import Assessment

        found = attempt("the run before an action", document) if self.reads_documents else None
        gaps, has_own_thresholds = rules.gaps, rules.policy.thresholds is not None
        if found is not None and known.evaluation is not None:
            found["grace"]["evaluation"] = copied(known.evaluation)
        measured, basis = self.main.before_action(found, known)
        shadow: ShadowAssessment | None = None
        if self.shadow is not None:
            others = gaps if has_own_thresholds else gaps + self.shadow.gaps
            shadow = self._shadow_before(self.shadow, action, found, known, others)
        mismatches: tuple[str, ...] = ()
        facts: dict[str, Any] = {}
        if not self.main.is_formula:
            mismatches = self._mismatches(found, action)
            facts = {"profile": measured.profile, **self._facts(measured), **recorded(mismatches)}
        own_gaps = () if has_own_thresholds else self.main.gaps
        if measured.problem:
            own_gaps += (f"{measured.problem}; the score is that of the formula {measured.profile}",)
        if self.trust is not None:
            own = InterventionLevel.SILENT
            if self.trust.doubts:
                own = rules.decide(measured.score.score, basis).level
            own_gaps += self.trust.gaps(action, mismatches, own)
        if own_gaps:  # which a replay under another profile leaves out
            facts["profile_gaps"] = list(own_gaps)
        return Assessment(measured.score, gaps + own_gaps, known.evaluation, facts, shadow, self.audit_rate, basis)

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
        """Return what makes gates milder than the defaults do: `setting`, `value`, and `from`, its source.

        Args:
            settings: the settings of the runtime.
            policies: those that were passed to it as an argument.
            is_watched: whether it watches a promise.
        """
        source = settings.source
        found: list[tuple[str, Any, str]] = []
        for level in _LEVELS:
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
            or any(getattr(value, level) < getattr(_DEFAULT, level) for level in _LEVELS)
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
            gaps += shadow.mismatches(document, action)
        return ShadowAssessment(shadow.name, shadow.thresholds, measured.score.score, gaps, basis=basis)

    def _mismatches(self, document: dict[str, Any] | None, action: str | None = None) -> tuple[str, ...]:
        mismatches = self.main.mismatches(document, action)
        if mismatches and self.trust is not None:
            self.trust.found(mismatches)
        return mismatches

    def _facts(self, measured: Measured) -> dict[str, Any]:
        """Return what is stated about where a score comes from; empty for a formula that was chosen."""
        if measured.problem:
            return {"fallback": True}
        facts = {"fitted_at": self.main.fitted_at, "profile_digest": self.main.digest}
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
        return Thresholds(*(getattr(settings, f"threshold_{level}") for level in _LEVELS))
    stated = [level for level in _LEVELS if f"threshold_{level}" in settings.source]
    try:
        return replace(own, **{level: getattr(settings, f"threshold_{level}") for level in stated})
    except ValueError as error:
        names = ", ".join(f"threshold_{level} ({settings.source[f'threshold_{level}']})" for level in stated)
        raise SettingsError(f"{names} beside the thresholds of the profile: {error}; set all three") from None


def _gaps(profile: object) -> tuple[str, ...]:
    """Return why gates cannot rely on the thresholds that a profile carries."""
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
