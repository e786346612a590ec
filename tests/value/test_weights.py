"""Weights and their profiles."""

import math

import pytest

from grace_kp.value import WEIGHT_PROFILES, ScoringWeights, profile_for, register_profile

FIELDS = ("complexity", "novelty", "tool_diversity", "outcome_confidence")


@pytest.mark.parametrize(
    ("domain", "weights"),
    [
        ("default", (0.25, 0.35, 0.15, 0.25)),
        ("finance", (0.20, 0.25, 0.10, 0.45)),
        ("code", (0.20, 0.30, 0.30, 0.20)),
        ("medical", (0.15, 0.20, 0.10, 0.55)),
        ("customer_service", (0.20, 0.30, 0.20, 0.30)),
    ],
)
def test_built_in_profiles(domain, weights):
    """The five published profiles are there, and each is found by its exact name."""
    assert (domain, ScoringWeights(*weights)) == profile_for(domain)
    assert ScoringWeights(*weights) == WEIGHT_PROFILES[domain]


@pytest.mark.parametrize("domain", ["Finance", "CODE", "code-review", "金融", "", " default"])
def test_unknown_domain_takes_default(domain):
    """A domain is matched exactly; anything else takes the default weights and says so."""
    assert ("default", WEIGHT_PROFILES["default"]) == profile_for(domain)


def test_registering_shows_in_the_live_view():
    view = WEIGHT_PROFILES
    register_profile("test-law", {"complexity": 0.1, "novelty": 0.2, "tool_diversity": 0.3, "outcome_confidence": 0.4})
    assert ScoringWeights(0.1, 0.2, 0.3, 0.4) == view["test-law"]
    register_profile("test-law", ScoringWeights(1, 0, 0, 0))
    assert ("test-law", ScoringWeights(1, 0, 0, 0)) == profile_for("test-law")
    assert "test-law" in list(view)


def test_the_view_is_read_only():
    with pytest.raises(TypeError):
        WEIGHT_PROFILES["x"] = ScoringWeights(1, 0, 0, 0)  # type: ignore[index]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, -math.inf, "0.5", None, True])
def test_a_bad_weight_is_refused_by_name(field, bad):
    weights = dict.fromkeys(FIELDS, 0.25) | {field: bad}
    with pytest.raises(ValueError, match=field):
        ScoringWeights(**weights)


def test_weights_must_sum_to_one():
    """A sum within 1e-6 of 1 is fine, one further off is not."""
    ScoringWeights(0.25, 0.25, 0.25, 0.250001)
    ScoringWeights(0.25, 0.25, 0.25, 0.249999)
    with pytest.raises(ValueError, match="sum to 1"):
        ScoringWeights(0.25, 0.25, 0.25, 0.250002)


@pytest.mark.parametrize(
    ("name", "weights", "told"),
    [
        ("", ScoringWeights(1, 0, 0, 0), "non-empty"),
        (None, ScoringWeights(1, 0, 0, 0), "non-empty"),
        ("test-bad", {"complexity": 1.0}, "missing novelty, tool_diversity, outcome_confidence"),
        ("test-bad", {**dict.fromkeys(FIELDS, 0.25), "speed": 0.0}, "unknown speed"),
        ("test-bad", [0.25] * 4, "mapping"),
        ("test-bad", dict.fromkeys(FIELDS, 0.5), "sum to 1"),
    ],
)
def test_a_bad_registration_registers_nothing(name, weights, told):
    before = dict(WEIGHT_PROFILES)
    with pytest.raises(ValueError, match=told):
        register_profile(name, weights)
    assert before == dict(WEIGHT_PROFILES)
