"""The calculator: which profiles and thresholds it takes, and the two questions it answers."""

import pytest

from grace_kp.confidence import (
    PROFILES,
    ConfidenceCalculator,
    ConfidenceFactors,
    ConfidenceScore,
    DynamicThresholds,
    Thresholds,
)


@pytest.mark.parametrize("bad", ["lenient", "", "Grace", None, 3, object()])
def test_unknown_profiles_are_refused(bad):
    """A profile that does not exist is a ValueError that says which do."""
    with pytest.raises(ValueError, match="profile"):
        ConfidenceCalculator(bad)


def test_a_profile_of_ones_own():
    """Any object with a name and a calculation serves as a profile."""

    class Constant:
        name = "constant"

        def calculate(self, factors):
            return ConfidenceScore(0.25, factors)

    calculator = ConfidenceCalculator(Constant(), Thresholds(0.2, 0.1, 0.0))
    assert "constant" == calculator.profile
    assert "silent" == calculator.decide_action(calculator.calculate(ConfidenceFactors())).level


def test_only_the_named_profiles_are_known():
    """An object that carries the name of a profile is not that profile."""

    class Grace:
        name = "grace"

        def calculate(self, factors):
            return ConfidenceScore(1.0, factors)

    assert [True, True] == [ConfidenceCalculator(name).is_known for name in PROFILES]
    assert not ConfidenceCalculator(Grace()).is_known


@pytest.mark.parametrize(
    ("thresholds", "hint"),
    [
        (None, "pass Thresholds(silent=0.9, notify=0.7, confirm=0.4)"),
        ({"silent": 0.9}, "pass Thresholds.from_dict(...)"),
        (DynamicThresholds(), "pass its .current"),
    ],
)
def test_thresholds_of_another_type_are_refused(thresholds, hint):
    """The message names the type and what to write instead."""
    with pytest.raises(TypeError) as caught:
        ConfidenceCalculator(thresholds=thresholds)
    assert f"thresholds must be a Thresholds, not {type(thresholds).__name__}; {hint}" == str(caught.value)


def test_a_calculator_shows_what_it_holds():
    """The profile's name and the thresholds."""
    expected = "ConfidenceCalculator(profile='strict', thresholds=Thresholds(silent=0.9, notify=0.7, confirm=0.4))"
    assert expected == repr(ConfidenceCalculator("strict"))


@pytest.mark.parametrize("bad", [-0.1, 1.1, "0.5", True])
def test_no_decision_without_a_confidence(bad):
    """A number from 0 to 1, or a score that holds one."""
    with pytest.raises((ValueError, AttributeError)):
        ConfidenceCalculator().decide_action(bad)
