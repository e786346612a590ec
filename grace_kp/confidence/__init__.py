"""How sure a run may be of itself: the GRACE confidence, the decision it leads to, the evidence it rests on, and who judges it.

What asks models is resolved on first use: most runs are scored without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from grace_kp.confidence._aggregate import ConfidenceAggregator
from grace_kp.confidence._calculator import ConfidenceCalculator
from grace_kp.confidence._decision import ActionDecision, Thresholds, check_thresholds, decide
from grace_kp.confidence._evaluation import FALLBACK_SCORE, Evaluation
from grace_kp.confidence._evidence import Evidence, evidence_of_calls, factors_from_trace
from grace_kp.confidence._factors import ConfidenceFactors
from grace_kp.confidence._feedback import DynamicThresholds
from grace_kp.confidence._profiles import PROFILES, Profile
from grace_kp.confidence._score import ConfidenceScore
from grace_kp.confidence._score_kinds import SCORE_KINDS, UNKNOWN, ScoreKind, Scores, Unusable, checked_scores
from grace_kp.confidence._search_results import HitReader, SearchHits, read_hits
from grace_kp.confidence._wording import part_text, penalties_text, penalty_text

if TYPE_CHECKING:
    from grace_kp.confidence._judged import could_change, with_judgements

__all__ = [
    "FALLBACK_SCORE",
    "PROFILES",
    "SCORE_KINDS",
    "UNKNOWN",
    "ActionDecision",
    "ConfidenceAggregator",
    "ConfidenceCalculator",
    "ConfidenceFactors",
    "ConfidenceScore",
    "DynamicThresholds",
    "Evaluation",
    "Evidence",
    "HitReader",
    "Profile",
    "ScoreKind",
    "Scores",
    "SearchHits",
    "Thresholds",
    "Unusable",
    "check_thresholds",
    "checked_scores",
    "could_change",
    "decide",
    "evidence_of_calls",
    "factors_from_trace",
    "part_text",
    "penalties_text",
    "penalty_text",
    "read_hits",
    "with_judgements",
]

_ELSEWHERE = {
    "could_change": "_judged",
    "with_judgements": "_judged",
}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
    globals()[name] = value
    return value
