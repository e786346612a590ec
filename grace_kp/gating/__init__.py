"""Decisions become actions: requests, policies, the consent flow, the gated call, reviewers. It fails closed."""

from grace_kp.gating._action import gate
from grace_kp.gating._flow import ConfirmationFlow, GateScope
from grace_kp.gating._handler import InterventionHandler
from grace_kp.gating._policy import Policy, PolicySet
from grace_kp.gating._request import InterventionRequest, InterventionResponse
from grace_kp.gating._reviewer import Reviewer
from grace_kp.gating.reviewers import CallbackReviewer, ConsoleReviewer

__all__ = [
    "CallbackReviewer",
    "ConfirmationFlow",
    "ConsoleReviewer",
    "GateScope",
    "InterventionHandler",
    "InterventionRequest",
    "InterventionResponse",
    "Policy",
    "PolicySet",
    "Reviewer",
    "gate",
]
