"""Decisions become actions: requests, policies, the consent flow, the gated call, reviewers. It fails closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.gating._action import GatedAction, check_key, gate
from grace_kp.gating._call import (
    JsonCoverage,
    Place,
    StandingCall,
    edit_problem,
    editable_schema,
    json_copy,
    json_signature,
    removes_argument,
)
from grace_kp.gating._case import (
    Consent,
    Coverage,
    GatedCall,
    HeldRefusal,
    Identifier,
    ProgramAnswer,
    Terms,
    Unknown,
    problem_with,
    resumable,
)
from grace_kp.gating._decision import FACTS, Basis, Decision, Rules, RunConfidence, ShadowAssessment, audit_probability
from grace_kp.gating._digest import NotCheckable, digest_of
from grace_kp.gating._drivers import Await, EngineStep, Failed, InterventionHandler, Work, attempt, drive, drive_async
from grace_kp.gating._engine import Execution, consent_to, execution
from grace_kp.gating._inquiry import state_approval
from grace_kp.gating._ledger import EarlierRun, InMemory, Ledger, LedgerEntry, idempotency_key
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
from grace_kp.gating._policy import Policy, PolicySet
from grace_kp.gating._request import (
    ConfirmationFlow,
    InterventionRequest,
    InterventionResponse,
    Reviewer,
    alarm_sentences,
    approval_alarms,
    approval_places,
    read_alarms,
)
from grace_kp.gating._verdict import Claim, Verdict, decide_all
from grace_kp.gating._view import changed_arguments, flat, plain, unshown_arguments, view
from grace_kp.gating.reviewers import ConsoleReviewer, InboxReviewer

if TYPE_CHECKING:
    from grace_kp.gating._drivers import Steps as Steps

__all__ = [
    "APPROVED", "CANCELLED", "FACTS", "WAITING", "Await", "Basis", "Claim", "ConfirmationFlow", "Consent",
    "ConsoleReviewer", "Coverage", "Decision", "EarlierRun", "EngineStep", "Execution", "Failed", "GateEntry",
    "GatedAction", "GatedCall", "HeldRefusal", "Identifier", "InMemory", "InboxReviewer", "InterventionHandler",
    "InterventionRequest", "InterventionResponse", "JsonCoverage", "Ledger", "LedgerEntry", "NotCheckable", "NotRun",
    "NotStarted", "Outcome", "PausedInquiry", "PendingAnswer", "Place", "Policy", "PolicySet", "ProgramAnswer",
    "Questions", "Raised", "RanBefore", "Returned", "Reviewer", "Rules", "RunConfidence", "ShadowAssessment",
    "StandingCall", "Terms", "Unknown", "Verdict", "Work", "alarm_sentences", "approval_alarms", "approval_places",
    "attempt", "audit_probability", "changed_arguments", "check_key", "consent_to", "decide_all", "digest_of",
    "drive", "drive_async", "edit_problem", "editable_schema", "execution", "flat", "gate", "idempotency_key",
    "json_copy", "json_signature", "plain", "problem_with", "raise_or_return", "read_alarms", "recorded_arguments",
    "removes_argument", "resumable", "state_approval", "unshown_arguments", "view",
]  # fmt: skip
