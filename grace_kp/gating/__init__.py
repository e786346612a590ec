"""Decisions become actions: requests, policies, the consent flow, the gated call, reviewers. It fails closed."""

from grace_kp.gating._action import GatedAction, check_key, gate
from grace_kp.gating._case import (
    Consent,
    Coverage,
    GatedCall,
    HeldRefusal,
    Identifier,
    ProgramAnswer,
    Terms,
    Unknown,
    resumable,
)
from grace_kp.gating._decision import FACTS, Basis, Decision, Rules, RunConfidence, ShadowAssessment, audit_probability
from grace_kp.gating._digest import NotCheckable, digest_of
from grace_kp.gating._drivers import EngineStep, Failed, InterventionHandler, Work, attempt, drive, drive_async
from grace_kp.gating._engine import Execution, consent_to, execution
from grace_kp.gating._inquiry import state_approval
from grace_kp.gating._ledger import EarlierRun, InMemory, Ledger, LedgerEntry, idempotency_key
from grace_kp.gating._modification import problem_with
from grace_kp.gating._outcome import (
    APPROVED,
    CANCELLED,
    WAITING,
    GateEntry,
    NotRun,
    NotStarted,
    Outcome,
    PendingAnswer,
    Raised,
    RanBefore,
    Returned,
    raise_or_return,
    recorded_arguments,
)
from grace_kp.gating._paused import PausedInquiry, Questions
from grace_kp.gating._policy import Policy, PolicySet, strictest_level
from grace_kp.gating._request import ConfirmationFlow, InterventionRequest, InterventionResponse, Reviewer
from grace_kp.gating._view import changed_arguments, flat, plain, unshown_arguments, view
from grace_kp.gating.reviewers import CallbackReviewer, ConsoleReviewer, InboxReviewer

__all__ = [
    "APPROVED",
    "CANCELLED",
    "FACTS",
    "WAITING",
    "Basis",
    "CallbackReviewer",
    "ConfirmationFlow",
    "Consent",
    "ConsoleReviewer",
    "Coverage",
    "Decision",
    "EarlierRun",
    "EngineStep",
    "Execution",
    "Failed",
    "GateEntry",
    "GatedAction",
    "GatedCall",
    "HeldRefusal",
    "Identifier",
    "InMemory",
    "InboxReviewer",
    "InterventionHandler",
    "InterventionRequest",
    "InterventionResponse",
    "Ledger",
    "LedgerEntry",
    "NotCheckable",
    "NotRun",
    "NotStarted",
    "Outcome",
    "PausedInquiry",
    "PendingAnswer",
    "Policy",
    "PolicySet",
    "ProgramAnswer",
    "Questions",
    "Raised",
    "RanBefore",
    "Returned",
    "Reviewer",
    "Rules",
    "RunConfidence",
    "ShadowAssessment",
    "Terms",
    "Unknown",
    "Work",
    "attempt",
    "audit_probability",
    "changed_arguments",
    "check_key",
    "consent_to",
    "digest_of",
    "drive",
    "drive_async",
    "execution",
    "flat",
    "gate",
    "idempotency_key",
    "plain",
    "problem_with",
    "raise_or_return",
    "recorded_arguments",
    "resumable",
    "state_approval",
    "strictest_level",
    "unshown_arguments",
    "view",
]
