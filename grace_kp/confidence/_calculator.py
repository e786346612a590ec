"""The calculator: a profile that turns factors into a confidence, and thresholds that turn it into a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.confidence._decision import ActionDecision, decide
from grace_kp.confidence._profiles import PROFILES, Profile
from grace_kp.confidence._thresholds import Thresholds, check_thresholds

if TYPE_CHECKING:
    from grace_kp.confidence._factors import ConfidenceFactors
    from grace_kp.confidence._score import ConfidenceScore

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
