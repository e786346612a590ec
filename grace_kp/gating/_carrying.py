"""An approved action that is carried out where nobody waits for it: its arguments as they were kept, and the claim under which it runs."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import ENTITLING, ApprovalState, decode, opened_arguments, unopened
from grace_kp.errors import ActionPending, AlreadyDecided, ApprovalError
from grace_kp.gating._case import Consent
from grace_kp.gating._digest import OWN, NotCheckable
from grace_kp.gating._execution import FunctionCall, execution
from grace_kp.gating._inquiry import Inquiry, decided_response, state_approval
from grace_kp.gating._modification import problem_with
from grace_kp.gating.reviewers._inbox import InboxReviewer

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from grace_kp.approvals import Approval, Secret
    from grace_kp.gating._case import Case, Terms
    from grace_kp.gating._outcome import Outcome
    from grace_kp.gating._steps import Step


def check_executable(approval: Approval) -> None:
    """Refuse an approval that nobody but its own process can carry out, or that entitles to nothing."""
    if approval.state is ApprovalState.PENDING:
        raise ActionPending(
            f"{approval.action} has not run: it waits for the approval {approval.id}", approval=approval
        )
    if approval.state not in ENTITLING and not approval.state.may_have_run:
        decision = approval.decision
        by, at = ("", 0.0) if decision is None else (decision.actor.name, decision.at)
        message = f"{approval.id} was {approval.state}{f' by {by}' if by else ''}, so that {approval.action} cannot be carried out"
        raise AlreadyDecided(message, approval_id=approval.id, state=str(approval.state), by=by, at=at)
    problem = ""
    if approval.origin != "gate":
        problem = f"it is an interrupt of {approval.origin}; resume the program that was interrupted"
    elif approval.unencoded:
        problem = f"only the process that asked holds {', '.join(approval.unencoded)}"
    elif approval.deleted:
        problem = "its contents were deleted by retention"
    elif approval.waits == "wait" and approval.is_awaited and approval.state in ENTITLING:
        problem = "a live process waits for it and carries it out itself"
    if problem:
        raise ApprovalError(f"{approval.id} cannot be carried out here: {problem}", approval_id=approval.id)


def kept_call(
    terms: Terms, types: Mapping[str, Any], approval: Approval, secret: Secret | None, arguments: Mapping[str, object]
) -> inspect.BoundArguments:
    """Return the arguments that were approved, with those of parameters that the gate ignores."""

    def refuse(problem: str) -> ApprovalError:
        return ApprovalError(f"{approval.id} cannot be carried out here: {problem}", approval_id=approval.id)

    if terms.hidden is not None:
        raise refuse(
            f"{approval.action} is a method, and its object exists only in the program that called it; call it again there"
        )
    if unknown := sorted({*arguments} - {*terms.ignore}):
        raise refuse(
            f"{unknown[0]!r} is not among the ignored parameters ({', '.join(terms.ignore) or 'none'}); the others are those that were approved"
        )
    try:
        opened = opened_arguments(approval.encoded, secret, approval_id=approval.id, digest=approval.digest)
        if sealed := unopened(opened):
            raise refuse(f"{', '.join(sealed)} is sealed with a key that is not here; set GRACE_KP_KEY")
        kept = decode(opened, types)
        if OWN not in terms.signature.parameters:
            kept.pop(OWN, None)  # the object of a bound method is no argument; the claim compares what identifies it
    except ValueError as error:
        raise refuse(str(error)) from error
    for name, value in kept.items():
        parameter = terms.signature.parameters.get(name)
        single = parameter is not None and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
        is_default = parameter is not None and value is None and parameter.default is None
        if single and not is_default and name in types and (problem := problem_with(value, types[name])):
            raise refuse(f"{name} does not fit {approval.action}: {problem}")
    values = {**kept, **arguments}
    ordered = {name: values[name] for name in terms.signature.parameters if name in values}
    if sorted(ordered) != sorted(values):
        raise refuse(f"{approval.action} has no parameter {min({*values} - {*ordered})!r}")
    whole = inspect.BoundArguments(terms.signature, ordered)
    try:
        return terms.signature.bind(*whole.args, **whole.kwargs)
    except TypeError as error:
        hint = f"; pass ignored parameters with arguments={{...}}: {', '.join(terms.ignore)}" if terms.ignore else ""
        raise refuse(f"{error}{hint}") from error


def carry_out(case: Case, terms: Terms, approval: Approval) -> Generator[Step, Any, Outcome]:
    """Run an approved action under its claim, at most once."""
    reviewer = case.reviewer if isinstance(case.reviewer, InboxReviewer) else InboxReviewer()
    inquiry = Inquiry(case, terms, reviewer, approval)
    case.inquiry = case.ledger_entry = inquiry
    case.scope.record(case.entry.fields)
    case.entry.fields.update(level=approval.level, score=approval.score, reason=approval.reason)
    state_approval(case, approval, approval.waits)
    if approval.decision is not None and approval.state in ENTITLING:
        case.entry.answered(decided_response(approval, {}))
    try:
        digest = case.digest()
    except NotCheckable:
        digest = ""  # a default that cannot be checked; the claim compares the arguments by their own digest
    return (yield from execution(FunctionCall(case, Consent(case.bound, digest))))
