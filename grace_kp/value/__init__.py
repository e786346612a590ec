"""What a trace is worth: the KnowledgePulse value score, its weights by domain, and the memory behind novelty."""

from grace_kp.value._cache import VectorCache
from grace_kp.value._score import ValueScore, ValueScorer, embedded_text, evaluate_value
from grace_kp.value._weights import WEIGHT_PROFILES, ScoringWeights, profile_for, register_profile

__all__ = [
    "WEIGHT_PROFILES",
    "ScoringWeights",
    "ValueScore",
    "ValueScorer",
    "VectorCache",
    "embedded_text",
    "evaluate_value",
    "profile_for",
    "register_profile",
]
