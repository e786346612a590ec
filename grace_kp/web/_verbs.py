"""The verbs on a request for approval, by name: pages and the API carry out a decision in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.errors import ApprovalError
from grace_kp.web._site import person_of, site_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from grace_kp.approvals import Actor, Approval, RequestStore

VERBS = ("approve", "edit", "reject", "respond", "skip", "retry", "withdraw")
"""The verbs that `perform` knows."""


def perform(
    desk: RequestStore,
    verb: str,
    approval_id: str,
    *,
    actor: Actor,
    words: str = "",
    digest: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Approval:
    """Carry out a verb and return the approval as it is then.

    Args:
        desk: the desk.
        verb: one of `VERBS`.
        approval_id: the approval.
        actor: who decides.
        words: the note, the reason, or the answer to the agent.
        digest: digest of the arguments that the person was shown; not used by `withdraw`.
        changes: for `edit`: new values by parameter name, encoded as in `Approval.encoded`.

    Raises:
        ApprovalError: as the verbs of `RequestStore` raise it; or there is no such verb.
    """
    if verb == "edit":
        return desk.edit(approval_id, changes or {}, actor=actor, note=words, digest=digest, is_encoded=True)
    outcome = desk.decide_all(
        [approval_id], verb, actor=actor, note=words, digests=None if digest is None else {approval_id: digest}
    )[approval_id]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def perform_several(
    request: Request, verb: str, digests: Mapping[str, str], *, words: str = ""
) -> dict[str, Approval | ApprovalError]:
    """Carry out a verb on several approvals for the person who sent a request, and return what came of each, by id.

    Refused ones are recorded in the audit trail, as the gatekeeper records a single one.

    Args:
        request: the request that is answered.
        verb: `approve`, `reject`, `respond`, `skip`, `retry` or `withdraw`.
        digests: by id of each approval, the digest of the arguments that the person was shown.
        words: the note, the reason, or the answer to the agent.
    """
    person = person_of(request)
    outcomes = site_of(request).desk.decide_all(list(digests), verb, actor=person.actor, note=words, digests=digests)
    for approval_id, outcome in outcomes.items():
        if isinstance(outcome, ApprovalError):
            reason = type(outcome).__name__
            request.app.state.refusals.record(person, path=request.url.path, reason=reason, approval=approval_id)
    return outcomes
