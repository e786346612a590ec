"""Requests for approval that outlive the process: asked once, decided by anyone entitled, claimed at most once, provable afterwards."""

from grace_kp.approvals._actor import Actor
from grace_kp.approvals._approval import Approval, Claimed, Decided, Earlier, Ended, Vote
from grace_kp.approvals._chain import append, append_view, contents_of, entry_of, was_viewed
from grace_kp.approvals._checkpoint import Checkpoint, checkpoint, read_checkpoints, write_checkpoint
from grace_kp.approvals._checks import Problem
from grace_kp.approvals._claim import Claim
from grace_kp.approvals._desk import Desk
from grace_kp.approvals._export import export
from grace_kp.approvals._new_request import NewRequest, new_approval_id
from grace_kp.approvals._policy_now import PolicyNow
from grace_kp.approvals._retention import forget
from grace_kp.approvals._standing import Standing
from grace_kp.approvals._states import ENTITLING, FOLLOWING, OPEN, RESPONSES, ApprovalState, may_follow
from grace_kp.approvals._tables import Link, Reads, Row, RowQuery, Tables, Writes
from grace_kp.approvals._verify import Verification, verify

__all__ = [
    "ENTITLING",
    "FOLLOWING",
    "OPEN",
    "RESPONSES",
    "Actor",
    "Approval",
    "ApprovalState",
    "Checkpoint",
    "Claim",
    "Claimed",
    "Decided",
    "Desk",
    "Earlier",
    "Ended",
    "Link",
    "NewRequest",
    "PolicyNow",
    "Problem",
    "Reads",
    "Row",
    "RowQuery",
    "Standing",
    "Tables",
    "Verification",
    "Vote",
    "Writes",
    "append",
    "append_view",
    "checkpoint",
    "contents_of",
    "entry_of",
    "export",
    "forget",
    "may_follow",
    "new_approval_id",
    "read_checkpoints",
    "verify",
    "was_viewed",
    "write_checkpoint",
]
