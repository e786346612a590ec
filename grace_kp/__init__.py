"""Record every run of an LLM agent as a scored reasoning trace with a confidence, and gate risky actions on it.

    import grace_kp as gk

    grace = gk.Grace()

    @grace.tool
    def search(query): ...

    @grace.agent
    def answer(question): ...

Names and sub-packages (`gk.calibrate`, `gk.scorers`, `gk.rubric`, `gk.integrations`, `gk.testing`, `gk.web`) are resolved on first use, so that importing
the package costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grace_kp import calibrate as calibrate
    from grace_kp import integrations as integrations
    from grace_kp import rubric as rubric
    from grace_kp import scorers as scorers
    from grace_kp import testing as testing
    from grace_kp import web as web
    from grace_kp.approvals import Approval as Approval
    from grace_kp.approvals import ApprovalState as ApprovalState
    from grace_kp.approvals import Webhook as Webhook
    from grace_kp.confidence import ActionDecision as ActionDecision
    from grace_kp.confidence import ConfidenceAggregator as ConfidenceAggregator
    from grace_kp.confidence import ConfidenceCalculator as ConfidenceCalculator
    from grace_kp.confidence import ConfidenceFactors as ConfidenceFactors
    from grace_kp.confidence import ConfidenceScore as ConfidenceScore
    from grace_kp.confidence import DynamicThresholds as DynamicThresholds
    from grace_kp.confidence import Evaluation as Evaluation
    from grace_kp.confidence import Thresholds as Thresholds
    from grace_kp.errors import ActionCancelled as ActionCancelled
    from grace_kp.errors import ActionDenied as ActionDenied
    from grace_kp.errors import ActionNotApproved as ActionNotApproved
    from grace_kp.errors import ActionOutcomeUnknown as ActionOutcomeUnknown
    from grace_kp.errors import ActionPending as ActionPending
    from grace_kp.errors import ActionRedirected as ActionRedirected
    from grace_kp.errors import ActionTimedOut as ActionTimedOut
    from grace_kp.errors import AlreadyDecided as AlreadyDecided
    from grace_kp.errors import ApprovalError as ApprovalError
    from grace_kp.errors import ChangedSinceShown as ChangedSinceShown
    from grace_kp.errors import EditRefused as EditRefused
    from grace_kp.errors import EmbedderError as EmbedderError
    from grace_kp.errors import EvaluationFailed as EvaluationFailed
    from grace_kp.errors import GateError as GateError
    from grace_kp.errors import GraceError as GraceError
    from grace_kp.errors import InvalidHistory as InvalidHistory
    from grace_kp.errors import InvalidRecord as InvalidRecord
    from grace_kp.errors import InvalidTrace as InvalidTrace
    from grace_kp.errors import JudgeError as JudgeError
    from grace_kp.errors import KeyReused as KeyReused
    from grace_kp.errors import MissingExtra as MissingExtra
    from grace_kp.errors import NotEntitled as NotEntitled
    from grace_kp.errors import SettingsError as SettingsError
    from grace_kp.errors import StoreError as StoreError
    from grace_kp.errors import UnknownApproval as UnknownApproval
    from grace_kp.errors import UnknownTrace as UnknownTrace
    from grace_kp.gating import Claim as Claim
    from grace_kp.gating import ConfirmationFlow as ConfirmationFlow
    from grace_kp.gating import ConsoleReviewer as ConsoleReviewer
    from grace_kp.gating import InboxReviewer as InboxReviewer
    from grace_kp.gating import InterventionHandler as InterventionHandler
    from grace_kp.gating import InterventionRequest as InterventionRequest
    from grace_kp.gating import InterventionResponse as InterventionResponse
    from grace_kp.gating import PendingAnswer as PendingAnswer
    from grace_kp.gating import Policy as Policy
    from grace_kp.gating import Verdict as Verdict
    from grace_kp.gating import idempotency_key as idempotency_key
    from grace_kp.judge import JudgementCache as JudgementCache
    from grace_kp.judge import LLMSelfEvaluator as LLMSelfEvaluator
    from grace_kp.judge import QueryCoverageCalculator as QueryCoverageCalculator
    from grace_kp.judge import SourceAgreementCalculator as SourceAgreementCalculator
    from grace_kp.judge import SpendingLimit as SpendingLimit
    from grace_kp.judge import StepJudge as StepJudge
    from grace_kp.levels import InterventionAction as InterventionAction
    from grace_kp.levels import InterventionLevel as InterventionLevel
    from grace_kp.models import CallableEmbedder as CallableEmbedder
    from grace_kp.models import GeminiEmbedder as GeminiEmbedder
    from grace_kp.models import GeminiJudge as GeminiJudge
    from grace_kp.models import OnnxEmbedder as OnnxEmbedder
    from grace_kp.models import SentenceTransformerEmbedder as SentenceTransformerEmbedder
    from grace_kp.protocols import Embedder as Embedder
    from grace_kp.protocols import Judge as Judge
    from grace_kp.protocols import JudgeReply as JudgeReply
    from grace_kp.record import Run as Run
    from grace_kp.record import instrument_threads as instrument_threads
    from grace_kp.record import propagate as propagate
    from grace_kp.runtime import Call as Call
    from grace_kp.runtime import Grace as Grace
    from grace_kp.runtime import agent as agent
    from grace_kp.runtime import configure as configure
    from grace_kp.runtime import default as default
    from grace_kp.runtime import feedback as feedback
    from grace_kp.runtime import gate as gate
    from grace_kp.runtime import outcome as outcome
    from grace_kp.runtime import retriever as retriever
    from grace_kp.runtime import run as run
    from grace_kp.runtime import thought as thought
    from grace_kp.runtime import tool as tool
    from grace_kp.runtime import update as update
    from grace_kp.trace import ConfidenceRecord as ConfidenceRecord
    from grace_kp.trace import DecisionRecord as DecisionRecord
    from grace_kp.trace import ReasoningTrace as ReasoningTrace
    from grace_kp.trace import Redaction as Redaction
    from grace_kp.trace import ValueRecord as ValueRecord
    from grace_kp.trace import from_openai_messages as from_openai_messages
    from grace_kp.trace import read_traces as read_traces
    from grace_kp.trace import redact as redact
    from grace_kp.trace import write_traces as write_traces
    from grace_kp.value import WEIGHT_PROFILES as WEIGHT_PROFILES
    from grace_kp.value import ScoringWeights as ScoringWeights
    from grace_kp.value import ValueScore as ValueScore
    from grace_kp.value import ValueScorer as ValueScorer
    from grace_kp.value import VectorCache as VectorCache
    from grace_kp.value import evaluate_value as evaluate_value
    from grace_kp.value import register_profile as register_profile


__version__ = "0.1.0"

_PLACES = {
    "approvals": "Approval ApprovalState Webhook",
    "confidence": (
        "ActionDecision ConfidenceAggregator ConfidenceCalculator ConfidenceFactors ConfidenceScore "
        "DynamicThresholds Evaluation Thresholds"
    ),
    "errors": (
        "ActionCancelled ActionDenied ActionNotApproved ActionOutcomeUnknown ActionPending ActionRedirected "
        "ActionTimedOut AlreadyDecided ApprovalError ChangedSinceShown EditRefused EmbedderError EvaluationFailed "
        "GateError GraceError InvalidHistory InvalidRecord InvalidTrace JudgeError KeyReused MissingExtra "
        "NotEntitled SettingsError StoreError UnknownApproval UnknownTrace"
    ),
    "gating": (
        "ConfirmationFlow ConsoleReviewer InboxReviewer InterventionHandler InterventionRequest InterventionResponse "
        "PendingAnswer Policy Verdict Claim idempotency_key"
    ),
    "judge": (
        "JudgementCache LLMSelfEvaluator QueryCoverageCalculator SourceAgreementCalculator SpendingLimit StepJudge"
    ),
    "levels": "InterventionAction InterventionLevel",
    "models": "CallableEmbedder GeminiEmbedder GeminiJudge OnnxEmbedder SentenceTransformerEmbedder",
    "protocols": "Embedder Judge JudgeReply",
    "record": "Run instrument_threads propagate",
    "runtime": "Call Grace agent configure default feedback gate outcome retriever run thought tool update",
    "trace": (
        "ConfidenceRecord DecisionRecord ReasoningTrace Redaction ValueRecord from_openai_messages read_traces redact "
        "write_traces"
    ),
    "value": "ScoringWeights ValueScore ValueScorer VectorCache WEIGHT_PROFILES evaluate_value register_profile",
}
_LAZY = {name: place for place, names in _PLACES.items() for name in names.split()}
_SUBPACKAGES = ("calibrate", "integrations", "rubric", "scorers", "testing", "web")

__all__ = [*sorted(_LAZY), "__version__"]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    place = _LAZY.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{place}"), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """This package. As soon as it can record, the integrations register what recording must know of each framework."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "record":  # the import system binds a sub-package here once that is loaded
            import grace_kp.integrations  # noqa: F401

    def __reduce__(self) -> Any:
        return importlib.import_module, (__name__,)  # cloudpickle knows plain modules only


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBPACKAGES])
