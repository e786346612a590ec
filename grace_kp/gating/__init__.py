"""Decisions become actions: requests, policies, the consent flow, the gated call, reviewers. It fails closed."""

from grace_kp.gating._action import GatedAction, check_key, gate
from grace_kp.gating._case import Case, Consent, GateScope, HeldRefusal, ProgramAnswer, Resumable, Terms, resumable
from grace_kp.gating._decision import FACTS, Assessment, Basis, Decision, Rules, ShadowAssessment, audit_probability
from grace_kp.gating._digest import Coverage, Identifier, NotCheckable, Unknown, digest_of
from grace_kp.gating._drivers import attempt, drive, drive_async
from grace_kp.gating._engine import consent_to
from grace_kp.gating._execution import Execution, execution
from grace_kp.gating._handler import InterventionHandler
from grace_kp.gating._hidden import changed_arguments, recorded_arguments, unshown_arguments
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
)
from grace_kp.gating._policy import Policy, PolicySet, strictest_level
from grace_kp.gating._request import InterventionRequest, InterventionResponse, frozen
from grace_kp.gating._reviewer import ConfirmationFlow, Reviewer
from grace_kp.gating._steps import Failed, Step, Work
from grace_kp.gating._view import flat, plain, view
from grace_kp.gating.reviewers import CallbackReviewer, ConsoleReviewer, InboxReviewer

__all__ = [
    "APPROVED",
    "CANCELLED",
    "FACTS",
    "WAITING",
    "Assessment",
    "Basis",
    "CallbackReviewer",
    "Case",
    "ConfirmationFlow",
    "Consent",
    "ConsoleReviewer",
    "Coverage",
    "Decision",
    "EarlierRun",
    "Execution",
    "Failed",
    "GateEntry",
    "GateScope",
    "GatedAction",
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
    "PendingAnswer",
    "Policy",
    "PolicySet",
    "ProgramAnswer",
    "Raised",
    "RanBefore",
    "Resumable",
    "Returned",
    "Reviewer",
    "Rules",
    "ShadowAssessment",
    "Step",
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
    "frozen",
    "gate",
    "idempotency_key",
    "plain",
    "problem_with",
    "raise_or_return",
    "recorded_arguments",
    "resumable",
    "strictest_level",
    "unshown_arguments",
    "view",
]
