"""How sure a run may be of itself: the GRACE confidence, the decision it leads to, and the evidence it rests on."""

from grace_kp.confidence._aggregate import ConfidenceAggregator
from grace_kp.confidence._calculator import ConfidenceCalculator
from grace_kp.confidence._decision import ActionDecision, Thresholds, decide
from grace_kp.confidence._evaluation import FALLBACK_SCORE, Evaluation
from grace_kp.confidence._evidence import Evidence, factors_from_trace
from grace_kp.confidence._factors import ConfidenceFactors
from grace_kp.confidence._feedback import DynamicThresholds
from grace_kp.confidence._hits import SearchHits, read_hits
from grace_kp.confidence._profiles import PROFILES, Profile
from grace_kp.confidence._score import ConfidenceScore

__all__ = [
    "FALLBACK_SCORE",
    "PROFILES",
    "ActionDecision",
    "ConfidenceAggregator",
    "ConfidenceCalculator",
    "ConfidenceFactors",
    "ConfidenceScore",
    "DynamicThresholds",
    "Evaluation",
    "Evidence",
    "Profile",
    "SearchHits",
    "Thresholds",
    "decide",
    "factors_from_trace",
    "read_hits",
]
