"""Requests for approval that outlive the process: asked once, decided by anyone entitled, claimed at most once, provable afterwards."""

from grace_kp.approvals._actor import Actor
from grace_kp.approvals._approval import Approval, Claimed, Decided, Earlier, Ended, Vote
from grace_kp.approvals._states import ENTITLING, FOLLOWING, OPEN, RESPONSES, ApprovalState, may_follow
from grace_kp.approvals._tables import Link, Reads, Row, RowQuery, Tables, Writes

__all__ = [
    "ENTITLING",
    "FOLLOWING",
    "OPEN",
    "RESPONSES",
    "Actor",
    "Approval",
    "ApprovalState",
    "Claimed",
    "Decided",
    "Earlier",
    "Ended",
    "Link",
    "Reads",
    "Row",
    "RowQuery",
    "Tables",
    "Vote",
    "Writes",
    "may_follow",
]
