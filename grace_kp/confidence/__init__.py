"""The GRACE confidence of a run: the evidence it rests on, the factors, the score, and the decision it leads to.

Pure computation: no I/O, no threads, no models. Models are asked in `grace_kp.judge`.
"""

from __future__ import annotations

from grace_kp.confidence._evidence import (
    BEFORE,
    PARTLY_READ,
    PER_STEP,
    STILL_OPEN,
    RecordedEvidence,
    RunEvidence,
    evidence_of_calls,
    factors_from_trace,
)
from grace_kp.confidence._judgements import Evaluation, could_change, with_agreement, with_judgements
from grace_kp.confidence._profiles import (
    FOR_ENDED_RUNS,
    PROFILES,
    ActionDecision,
    ConfidenceCalculator,
    DynamicThresholds,
    LearnedProfile,
    Profile,
    Thresholds,
    check_thresholds,
    decide,
    promise_gaps,
)
from grace_kp.confidence._score import (
    NOT_EVALUATED,
    ConfidenceAggregator,
    ConfidenceFactors,
    ConfidenceScore,
    part_text,
    penalties_text,
)
from grace_kp.confidence._score_kinds import SCORE_KINDS, UNKNOWN, Scores, checked_scores
from grace_kp.confidence._search_results import ResultReader, SearchResults, read_results

__all__ = [
    "BEFORE",
    "FOR_ENDED_RUNS",
    "NOT_EVALUATED",
    "PARTLY_READ",
    "PER_STEP",
    "PROFILES",
    "SCORE_KINDS",
    "STILL_OPEN",
    "UNKNOWN",
    "ActionDecision",
    "ConfidenceAggregator",
    "ConfidenceCalculator",
    "ConfidenceFactors",
    "ConfidenceScore",
    "DynamicThresholds",
    "Evaluation",
    "LearnedProfile",
    "Profile",
    "RecordedEvidence",
    "ResultReader",
    "RunEvidence",
    "Scores",
    "SearchResults",
    "Thresholds",
    "check_thresholds",
    "checked_scores",
    "could_change",
    "decide",
    "evidence_of_calls",
    "factors_from_trace",
    "part_text",
    "penalties_text",
    "promise_gaps",
    "read_results",
    "with_agreement",
    "with_judgements",
]
