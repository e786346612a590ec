"""The GRACE confidence of a run: the evidence it rests on, the factors, the score, and the decision it leads to.

Pure computation: no I/O, no threads, no models. Models are asked in `grace_kp.judge`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from grace_kp.confidence import _wording as wording
    from grace_kp.confidence._action_history import (
        ACTION_FEATURES,
        FREE,
        LOW_WORDS,
        LOWERING,
        ActionFeatures,
        ActionHistory,
        RecordedRun,
        RunReader,
        history_of_document,
        model_of,
    )
    from grace_kp.confidence._argument_values import leaves_of, normal_form, words_of
    from grace_kp.confidence._provenance import ALARMS, ActionAlarm, ProvenanceIndex, ValuePlaces

__all__ = [
    "ACTION_FEATURES", "ALARMS", "BEFORE", "FOR_ENDED_RUNS", "FREE", "LOWERING", "LOW_WORDS", "NOT_EVALUATED",
    "PARTLY_READ", "PER_STEP", "PROFILES", "SCORE_KINDS", "STILL_OPEN", "UNKNOWN", "ActionAlarm", "ActionDecision", "ActionFeatures",
    "ActionHistory", "ConfidenceAggregator", "ConfidenceCalculator", "ConfidenceFactors", "ConfidenceScore",
    "DynamicThresholds", "Evaluation", "LearnedProfile", "Profile", "ProvenanceIndex", "RecordedEvidence", "RecordedRun",
    "ResultReader", "RunEvidence", "RunReader", "Scores", "SearchResults", "Thresholds", "ValuePlaces",
    "check_thresholds", "checked_scores", "could_change", "decide", "evidence_of_calls", "factors_from_trace",
    "history_of_document", "leaves_of", "model_of", "normal_form", "part_text", "penalties_text", "promise_gaps",
    "read_results", "with_agreement", "with_judgements", "wording", "words_of",
]  # fmt: skip

# Compiling their patterns takes longer than importing the rest, and only gates on actions of a model need them.
_MODULES = {
    **dict.fromkeys(("ACTION_FEATURES", "FREE", "LOWERING", "ActionFeatures", "ActionHistory"), "_action_history"),
    **dict.fromkeys(("LOW_WORDS", "RecordedRun", "RunReader", "history_of_document", "model_of"), "_action_history"),
    "wording": "_wording",
    **dict.fromkeys(("leaves_of", "normal_form", "words_of"), "_argument_values"),
    **dict.fromkeys(("ALARMS", "ActionAlarm", "ProvenanceIndex", "ValuePlaces"), "_provenance"),
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    value: object = getattr(module, name, module)
    globals()[name] = value
    return value
