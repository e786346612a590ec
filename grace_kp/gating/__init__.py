"""Decisions become actions: requests, policies, the consent flow, the gated call, reviewers. It fails closed."""

from grace_kp.gating._action import gate
from grace_kp.gating._call import Unknown
from grace_kp.gating._case import Case, Consent
from grace_kp.gating._confirmation import ConfirmationFlow
from grace_kp.gating._digest import NotCheckable, digest_of
from grace_kp.gating._drive import drive, drive_async, notify, notify_async
from grace_kp.gating._flow import GateScope, Kept, consent
from grace_kp.gating._handler import InterventionHandler
from grace_kp.gating._hidden import recorded_arguments
from grace_kp.gating._identity import Coverage, Identifier
from grace_kp.gating._ledger import DONE, Entry, InMemory, Ran
from grace_kp.gating._modification import problem_with
from grace_kp.gating._notice import record_notice
from grace_kp.gating._policy import Policy, PolicySet, strictest_level
from grace_kp.gating._request import InterventionRequest, InterventionResponse
from grace_kp.gating._reviewer import Reviewer
from grace_kp.gating._tree import plain
from grace_kp.gating._view import view
from grace_kp.gating.reviewers import CallbackReviewer, ConsoleReviewer

__all__ = [
    "DONE",
    "CallbackReviewer",
    "Case",
    "ConfirmationFlow",
    "Consent",
    "ConsoleReviewer",
    "Coverage",
    "Entry",
    "GateScope",
    "Identifier",
    "InMemory",
    "InterventionHandler",
    "InterventionRequest",
    "InterventionResponse",
    "Kept",
    "NotCheckable",
    "Policy",
    "PolicySet",
    "Ran",
    "Reviewer",
    "Unknown",
    "consent",
    "digest_of",
    "drive",
    "drive_async",
    "gate",
    "notify",
    "notify_async",
    "plain",
    "problem_with",
    "record_notice",
    "recorded_arguments",
    "strictest_level",
    "view",
]
