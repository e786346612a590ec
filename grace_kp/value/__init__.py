"""The KnowledgePulse value score of a trace, its weights by domain, and the cache of vectors behind novelty. Pure computation."""

from grace_kp.value._cache import VectorCache
from grace_kp.value._score import (
    WEIGHT_PROFILES,
    ScoringWeights,
    ValueScore,
    ValueScorer,
    embedded_text,
    evaluate_value,
    profile_for,
    register_profile,
)

__all__ = [
    "WEIGHT_PROFILES", "ScoringWeights", "ValueScore", "ValueScorer", "VectorCache", "embedded_text", "evaluate_value",
    "profile_for", "register_profile",
]  # fmt: skip
