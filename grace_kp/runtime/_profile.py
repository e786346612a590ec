"""A profile as a runtime applies it: loaded from its file, applied to a run, and replaced by a marked fallback where it fails.

A learned profile is code of the user's, or rests on a file of theirs. So it gets copies, its results are checked, and nothing that it
raises reaches the agent. Whether a person is asked because of a failure is decided in `gating`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.confidence import PROFILES, ConfidenceCalculator, ConfidenceScore, LearnedProfile, Thresholds
from grace_kp.errors import GraceError, SettingsError, brief, is_unit
from grace_kp.record import note
from grace_kp.settings import is_profile_path
from grace_kp.trace import describe_error, storable

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.confidence import ConfidenceFactors, Profile, RunEvidence
    from grace_kp.gating import Basis

MAX_REASON = 500
MAX_SENTENCES = 10
MAX_CONTRIBUTIONS = 200
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
    """Why the score is not that of the profile in use but a fallback; empty if it is no fallback."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an open run before an action."""

    evidence: RunEvidence
    factors: ConfidenceFactors
    """Its factors, with the judgements of a model where it was judged."""
    evaluation: Mapping[str, Any] | None = None
    """How a model judged the run before the action, if it did."""


class ProfileInUse:
    """A profile of a runtime, formula or learned. Its methods never raise, except for a KeyboardInterrupt of the user's."""

    __slots__ = ("calculator", "digest", "gaps", "is_formula", "learned", "name")

    def __init__(self, profile: str | Profile, thresholds: Thresholds, gaps: tuple[str, ...] = ()) -> None:
        """Apply a profile.

        Args:
            profile: its name, or the profile.
            thresholds: those that it is used with.
            gaps: why gates cannot rely on these thresholds.

        Raises:
            ValueError: there is no profile of that name, or the object is no profile.
        """
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
        """The thresholds that this profile is used with."""
        return self.calculator.thresholds

    @property
    def fitted_at(self) -> str | None:
        """When a learned profile was fitted, if it says so."""
        fitted_on = getattr(self.learned, "fitted_on", None)
        moment = fitted_on.get("fitted_at") if isinstance(fitted_on, Mapping) else None
        return moment if isinstance(moment, str) else None

    def measure(
        self, document: Mapping[str, Any] | None, factors: ConfidenceFactors, moment: Literal["end", "action"]
    ) -> Measured:
        """Return the confidence of a run. If the profile fails, it is that of the formula `grace`, with the problem.

        Args:
            document: the run; None if nothing is recorded of it. A learned profile gets a copy.
            factors: the factors of the run.
            moment: `end` for a run that has ended, `action` for an open run before an action.
        """
        if self.is_formula:
            return Measured(self.calculator.calculate(factors), self.name)
        learned = self.learned
        if learned is not None and document is None:
            return self._fallback(factors, UNKNOWN_RUN)
        try:
            if learned is None:
                score = self.calculator.calculate(factors)
            else:
                score = learned.confidence(copied(document), moment=moment)
            return Measured(_checked(score, factors), self.name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 — also SystemExit: a profile must not end the program
            note(f"profile {self.name}", error, theirs=True)
            return self._fallback(factors, f"the profile {self.name} failed ({_named(error)})")

    def before_action(self, document: Mapping[str, Any] | None, known: Known) -> tuple[Measured, Basis]:
        """Return the confidence of an open run before an action, and what the level of the action follows from beside it.

        Args:
            document: the run; None if nothing is recorded of it.
            known: what is known of the run.
        """
        from grace_kp.gating import Basis

        measured = self.measure(document, known.factors, "action")
        is_learned = self.learned is not None and not measured.problem
        calculator = None if is_learned else self.calculator
        return measured, Basis.of(measured.score.score, known.factors, known.evidence, calculator)

    def mismatches(self, document: Mapping[str, Any] | None, action: str | None = None) -> tuple[str, ...]:
        """Return how a run differs from those that the profile was fitted on; empty if it does not, or if the profile compares no runs.

        Args:
            document: the run; None if nothing is recorded of it, which is a difference.
            action: the name of the gated action that the run is about to take.
        """
        compare: Callable[[Any], Any] | None = getattr(self.learned, "mismatches", None)
        if compare is None:
            is_unstated = getattr(self.learned, "fitted_on", None) == {}
            return ("the profile does not state what it was fitted on",) if is_unstated else ()
        if document is None:
            return (NO_RUN,)
        try:
            run = copied(document)
            if action is not None:  # no step of it stands yet
                run["grace"].setdefault("decisions", []).append({"action": action})
            found = compare(run)
            return tuple(storable(str(sentence))[:MAX_REASON] for sentence in tuple(found)[:MAX_SENTENCES])
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 — as in `measure`
            note(f"mismatches of profile {self.name}", error, theirs=True)
            return (f"whether the profile {self.name} fits this run could not be checked ({_named(error)})",)

    def _fallback(self, factors: ConfidenceFactors, problem: str) -> Measured:
        return Measured(FALLBACK.calculate(factors), FALLBACK.name, problem)


def _named(error: BaseException) -> str:
    """Return the type of an error. Only messages of our own are repeated, because others may quote the contents of the run."""
    kind = describe_error(error, MAX_REASON)[0]
    return f"{kind}: {error}"[:MAX_REASON] if isinstance(error, GraceError) else kind


def _checked(score: object, factors: ConfidenceFactors) -> ConfidenceScore:
    """Return a confidence of a profile in the form that traces hold, with the five sub-scores of the factors if it states none.

    Raises:
        ValueError: it is not a confidence.
    """
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


def copied(value: Any) -> Any:
    """Return a JSON value with dicts and lists of its own, so that whoever gets it can change nothing else."""
    if type(value) is dict:
        return {name: copied(item) for name, item in value.items()}
    return [copied(item) for item in value] if type(value) is list else value


def open_profile(profile: object, source: str) -> str | Profile:
    """Return the profile that a setting or an argument names: a name, an object, or the content of a profile's file.

    Args:
        profile: a name, the path of a `.json` file, or an object.
        source: the setting or argument, for messages.

    Raises:
        SettingsError: it is no profile, or its file cannot be used.
    """
    if isinstance(profile, os.PathLike):
        profile = os.fspath(profile)
    if isinstance(profile, str) and is_profile_path(profile):
        return _loaded(profile, source)
    if isinstance(profile, str):
        if profile in PROFILES:
            return profile
        raise SettingsError(
            f"{source}: must be {', '.join(PROFILES)}, the path of a profile's .json file or a profile, not {brief(profile)}"
        )
    if isinstance(profile, type) or not callable(getattr(profile, "calculate", None)):
        raise SettingsError(f"{source}: must be a name, a path or a profile, not {brief(profile)}")
    if not isinstance(getattr(profile, "name", None), str):
        raise SettingsError(f"{source}: a profile needs a `name` that is a text ({type(profile).__name__} has none)")
    thresholds = getattr(profile, "thresholds", None)
    if thresholds is not None and not isinstance(thresholds, Thresholds):
        raise SettingsError(f"{source}: its thresholds must be a Thresholds or None, not {brief(thresholds)}")
    return profile  # type: ignore[return-value]


def thresholds_of(profile: object) -> Thresholds | None:
    """Return the thresholds that a learned profile carries, if any."""
    found = None if isinstance(profile, str) else getattr(profile, "thresholds", None)
    return found if isinstance(found, Thresholds) else None


def _loaded(path: str, source: str) -> Profile:
    """Return the learned profile in a file.

    Raises:
        SettingsError: the file cannot be read, or is no profile.
    """
    from grace_kp.calibrate import CalibratedProfile

    try:
        return CalibratedProfile.load(path)
    except (GraceError, OSError) as error:
        raise SettingsError(f"{source}: the profile {path} cannot be used: {error}") from None
