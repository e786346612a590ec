"""Requests for approval that outlive the process: asked once, decided by anyone entitled, claimed at most once, provable afterwards."""

from grace_kp.approvals._actor import Actor
from grace_kp.approvals._approval import Approval, Claimed, Decided, Earlier, Ended, Vote
from grace_kp.approvals._chain import append, append_view, contents_of, entry_of, was_viewed
from grace_kp.approvals._claim import Claim
from grace_kp.approvals._desk import Desk
from grace_kp.approvals._new_request import NewRequest, new_approval_id
from grace_kp.approvals._policy_now import PolicyNow
from grace_kp.approvals._standing import Standing
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
    "Claim",
    "Claimed",
    "Decided",
    "Desk",
    "Earlier",
    "Ended",
    "Link",
    "NewRequest",
    "PolicyNow",
    "Reads",
    "Row",
    "RowQuery",
    "Standing",
    "Tables",
    "Vote",
    "Writes",
    "append",
    "append_view",
    "contents_of",
    "entry_of",
    "may_follow",
    "new_approval_id",
    "was_viewed",
]
