"""Requests for approval that outlive the process: asked once, decided by anyone entitled, claimed at most once, provable afterwards."""

from grace_kp.approvals._account import ACCOUNT, DECIDING_ROLES, account_mark, reason_without_account
from grace_kp.approvals._account_check import token_mark
from grace_kp.approvals._actor import Actor, person
from grace_kp.approvals._approval import Approval
from grace_kp.approvals._approvals import Approvals
from grace_kp.approvals._canonical import SEALED, Sealed, canonical, encode
from grace_kp.approvals._chain import append, append_view, contents_of, entry_of, was_viewed
from grace_kp.approvals._changes import Change, Changes
from grace_kp.approvals._checkpoint import Checkpoint, checkpoint, parse_checkpoints, read_checkpoints, write_checkpoint
from grace_kp.approvals._checks import Problem
from grace_kp.approvals._claim import Claim
from grace_kp.approvals._decoding import decode
from grace_kp.approvals._delivery import Delivery
from grace_kp.approvals._desk import Desk
from grace_kp.approvals._digest import digest, has_digest, idempotency_key_of, same_digest, version_of
from grace_kp.approvals._duration import seconds_of
from grace_kp.approvals._export import export
from grace_kp.approvals._facts import Claimed, Decided, Earlier, Ended, Vote
from grace_kp.approvals._figures import ApprovalFigures, approval_figures
from grace_kp.approvals._fitting import fitted_edit
from grace_kp.approvals._inbox import Inbox, Notifier
from grace_kp.approvals._key import KeyTemplate
from grace_kp.approvals._new_request import NewRequest, new_approval_id
from grace_kp.approvals._policy_now import PolicyNow
from grace_kp.approvals._resumed import Resumed
from grace_kp.approvals._retention import forget, forget_approvals
from grace_kp.approvals._schema import schema_of
from grace_kp.approvals._seal import (
    SealNeeded,
    opened_arguments,
    sealed_arguments,
    sealed_texts,
    secret_parameters,
    unopened,
    without_texts,
)
from grace_kp.approvals._secret import Secret, new_key
from grace_kp.approvals._standing import Standing, check_standing
from grace_kp.approvals._states import ENTITLING, FOLLOWING, OPEN, RESPONSES, ApprovalState, may_follow
from grace_kp.approvals._tables import Link, Reads, Row, RowQuery, Tables, Writes
from grace_kp.approvals._verify import Verification, verify
from grace_kp.approvals._watcher import Waiter, Watcher
from grace_kp.approvals._webhooks import Webhook, receiver_of, webhooks_of
from grace_kp.approvals._words import (
    KEY_FIELD,
    NOT_COVERED,
    SEALED_REMARK,
    actor_text,
    consents,
    constraint_texts,
    deadline_text,
    event_text,
    fact_text,
    json_text,
    process_text,
    remarks_of,
    rule_text,
    unheld_text,
    verdict_text,
)

__all__ = [
    "ACCOUNT",
    "DECIDING_ROLES",
    "ENTITLING",
    "FOLLOWING",
    "KEY_FIELD",
    "NOT_COVERED",
    "OPEN",
    "RESPONSES",
    "SEALED",
    "SEALED_REMARK",
    "Actor",
    "Approval",
    "ApprovalFigures",
    "ApprovalState",
    "Approvals",
    "Change",
    "Changes",
    "Checkpoint",
    "Claim",
    "Claimed",
    "Decided",
    "Delivery",
    "Desk",
    "Earlier",
    "Ended",
    "Inbox",
    "KeyTemplate",
    "Link",
    "NewRequest",
    "Notifier",
    "PolicyNow",
    "Problem",
    "Reads",
    "Resumed",
    "Row",
    "RowQuery",
    "SealNeeded",
    "Sealed",
    "Secret",
    "Standing",
    "Tables",
    "Verification",
    "Vote",
    "Waiter",
    "Watcher",
    "Webhook",
    "Writes",
    "account_mark",
    "actor_text",
    "append",
    "append_view",
    "approval_figures",
    "canonical",
    "check_standing",
    "checkpoint",
    "consents",
    "constraint_texts",
    "contents_of",
    "deadline_text",
    "decode",
    "digest",
    "encode",
    "entry_of",
    "event_text",
    "export",
    "fact_text",
    "fitted_edit",
    "forget",
    "forget_approvals",
    "has_digest",
    "idempotency_key_of",
    "json_text",
    "may_follow",
    "new_approval_id",
    "new_key",
    "opened_arguments",
    "parse_checkpoints",
    "person",
    "process_text",
    "read_checkpoints",
    "reason_without_account",
    "receiver_of",
    "remarks_of",
    "rule_text",
    "same_digest",
    "schema_of",
    "sealed_arguments",
    "sealed_texts",
    "seconds_of",
    "secret_parameters",
    "token_mark",
    "unheld_text",
    "unopened",
    "verdict_text",
    "verify",
    "version_of",
    "was_viewed",
    "webhooks_of",
    "without_texts",
    "write_checkpoint",
]
