"""The request for approval of one call: its arguments encoded, digested and sealed, and what a reviewer decides on beside them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import (
    ApprovalRequest,
    PolicyNow,
    SealNeeded,
    digest,
    encode,
    new_approval_id,
    sealed_arguments,
)
from grace_kp.errors import ActionCancelled

if TYPE_CHECKING:
    import inspect
    from collections.abc import Mapping

    from grace_kp.approvals import Inbox
    from grace_kp.gating._case import Case
    from grace_kp.gating._decision import Decision
    from grace_kp.gating._policy import Policy
    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._terms import Terms
    from grace_kp.gating.reviewers._inbox import InboxReviewer


UNIDENTIFIED = "is the object whose method is called; name what identifies it with @grace.gate(identity=...)"


def encode_call(
    case: Case, terms: Terms, bound: inspect.BoundArguments | None
) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Return the arguments of a call as approvals keep them, by parameter name.

    Returns:
        The encodings; why the other parameters have none; and what the digest covers: the encodings, and for the others the digest that their gate
        compares, which holds in this process alone.

    Raises:
        NotCheckable: a change of an argument without an encoding would go unnoticed.
    """
    shown = terms.covered(case.shown(bound))
    arguments, problems = encode(shown)
    lasting = case.program is not None  # it makes the objects anew each time it runs
    digests = {name: case.coverage.digest({name: shown[name]}, lasting=lasting) for name in problems}
    if (owner := case.coverage.owner((bound or case.bound).arguments)) is not None:
        # With the same arguments, the method of another object is another action.
        kept, unkept = encode({} if owner.identity is None else {owner.name: owner.identity})
        arguments = {**arguments, **kept}
        if not kept:
            problems = {**problems, owner.name: unkept.get(owner.name, UNIDENTIFIED)}
            digests[owner.name] = owner.digest(lasting=lasting)
    return arguments, problems, {**arguments, **{name: {"$unencoded": local} for name, local in digests.items()}}


def new_request(
    case: Case,
    terms: Terms,
    reviewer: InboxReviewer,
    inbox: Inbox,
    *,
    request: InterventionRequest,
    decision: Decision,
) -> tuple[ApprovalRequest, dict[str, Any]]:
    """Return the request about a call, and its encoded arguments before sealing.

    Raises:
        ActionCancelled: it has arguments that cannot be kept.
    """
    arguments, problems, covered = encode_call(case, terms, case.bound)
    unkept = problems
    if case.program is not None:  # it makes its objects anew, but a key is found by other programs, too
        unkept = {name: why for name, why in unkept.items() if why == UNIDENTIFIED and terms.key is not None}
    if unkept and (reviewer.wait is not True or case.program is not None):
        raise ActionCancelled(_unencoded_message(case.action, unkept))
    version, approval_id = terms.version, new_approval_id()
    bound_digest = digest(case.action, version, covered, secret=inbox.secret)
    try:
        kept, sealed = sealed_arguments(
            arguments, terms.sealed, inbox.secret, approval_id=approval_id, digest=bound_digest
        )
    except SealNeeded as error:
        raise ActionCancelled(f"{case.action} was not run, because its request cannot be kept: {error}") from error
    scope, confidence, now = case.scope, decision.confidence, policy_now(case.policy, reviewer)
    own = case.policy.timeout if case.policy.timeout is not None else scope.own_timeout
    # The inbox removes secrets, and the texts of sealed arguments, from everything else.
    new = ApprovalRequest(
        id=approval_id,
        action=case.action,
        version=version,
        domain=inbox.domain,
        digest=bound_digest,
        encoded=kept,
        sealed=sealed,
        schema=case.schema(),
        not_covered=terms.not_covered,
        unencoded=tuple(problems),
        key=None if terms.key is None else terms.key.key(inbox.domain, case.action, case.shown()),
        key_fields=() if terms.key is None else terms.key.fields,
        level=str(request.level),
        score=None if confidence is None else confidence.score,
        breakdown={} if confidence is None else dict(confidence.evaluated),
        penalties=() if confidence is None else tuple(confidence.penalties_applied),
        reason=request.reason,
        gaps=tuple(decision.gaps),
        facts=dict(decision.facts),
        policy=_policy_facts(case, now),
        run_id=scope.run_id,
        objective=scope.objective,
        user=scope.user,
        run=scope.document(),
        deadline_seconds=reviewer.deadline if own is None else own,
        use_within_seconds=reviewer.use_within,
        on_deadline=reviewer.on_deadline,
        groups=now.groups,
        quorum=now.quorum,
        identity=reviewer.identity,
        waits=reviewer.waits,
        note={"function": terms.place},
    )
    return new, arguments


def policy_now(policy: Policy, reviewer: InboxReviewer) -> PolicyNow:
    """Return what a policy requires, completed by its reviewer."""
    return PolicyNow(
        denies=policy.denies,
        floor=None if policy.denies else policy.floor,
        groups=policy.groups or reviewer.groups,
        quorum=policy.quorum or reviewer.quorum,
        identity=reviewer.identity,
        version=policy.version,
    )


def _policy_facts(case: Case, now: PolicyNow) -> dict[str, Any]:
    thresholds = case.policy.thresholds or case.scope.thresholds
    facts = {
        "version": now.version,
        "floor": now.floor,
        "groups": list(now.groups),
        "quorum": now.quorum,
        # As texts: a threshold may be infinite, which JSON cannot hold.
        "thresholds": {field.name: str(getattr(thresholds, field.name)) for field in dataclasses.fields(thresholds)},
    }
    return {name: value for name, value in facts.items() if value not in (None, [])}


def _unencoded_message(action: str, problems: Mapping[str, str]) -> str:
    named = "; ".join(f"{name}: {why}" for name, why in problems.items())
    return (
        f"{action} was not run, because its request cannot be kept: these arguments have no encoding: {named}. Pass plain data, name "
        "parameters that carry no meaning with @grace.gate(ignore=...), or use an InboxReviewer with wait=True"
    )
