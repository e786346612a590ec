"""The engine's way to a decision in an inbox: file the request, wait as the reviewer says, and read what was decided."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import ENTITLING, RESPONSES, ApprovalState
from grace_kp.errors import ActionCancelled, ActionNotApproved, ActionPending, ActionTimedOut
from grace_kp.gating._inquiry import Inquiry
from grace_kp.gating._outcome import CANCELLED, WAITING
from grace_kp.gating._request import InterventionResponse
from grace_kp.gating._steps import AskBeside, Await, Failed, Work
from grace_kp.trace import redacted_error

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from grace_kp.approvals import Approval
    from grace_kp.gating._case import Case
    from grace_kp.gating._decision import Decision
    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._steps import Step
    from grace_kp.gating._terms import Terms
    from grace_kp.gating.reviewers._inbox import InboxReviewer


def filed(
    case: Case, terms: Terms, request: InterventionRequest, decision: Decision, reviewer: InboxReviewer
) -> Generator[Step, Any, Inquiry]:
    """File the request and wait as the reviewer says. The approval of the result is pending no more.

    Raises:
        ActionPending: it is pending, and this gate does not wait.
        ActionNotApproved: the request could not be filed or read.
    """
    while True:
        inquiry = Inquiry(case, terms, reviewer)
        try:
            filing = Work(lambda inquiry=inquiry: inquiry.file(request, decision), writes=True)  # type: ignore[misc]
            performed(case, request, (yield filing))
        except BaseException:
            if inquiry.is_filed and reviewer.wait is True:
                yield Work(inquiry.give_up, writes=True)
            raise
        case.inquiry = inquiry
        state_approval(case, inquiry.approval, reviewer.waits)
        if inquiry.approval.state in {ApprovalState.PENDING, ApprovalState.CLAIMED}:
            yield from _wait_for_decision(case, request, reviewer, inquiry)
            state_approval(case, inquiry.approval, reviewer.waits)
        if not inquiry.must_file_again():
            return inquiry


def _wait_for_decision(
    case: Case, request: InterventionRequest, reviewer: InboxReviewer, inquiry: Inquiry
) -> Generator[Step, Any, None]:
    is_pending = inquiry.approval.state is ApprovalState.PENDING
    if reviewer.wait is not True:
        if not is_pending:
            return  # another caller runs it now
        if reviewer.wait == "hand_over":
            case.handed_over = inquiry.approval
        message = f"{case.action} has not run: it waits for the approval {inquiry.id}"
        case.entry.state(WAITING)
        raise ActionPending(message, approval=inquiry.approval, decision=request.decision, request=request)
    started = time.perf_counter()
    try:
        if reviewer.ask is not None and is_pending:
            yield AskBeside(inquiry.question(request), reviewer.ask, inquiry)
        performed(case, request, (yield Await(inquiry)))
    except BaseException:
        yield Work(inquiry.give_up, writes=True)
        raise
    finally:
        case.entry.waited((time.perf_counter() - started) * 1e3)


def performed(case: Case, request: InterventionRequest, answer: object) -> None:
    """End the call where a step failed: then there is no consent.

    Raises:
        ActionNotApproved: it failed.
    """
    if not isinstance(answer, Failed):
        return
    failed = answer.error
    case.entry.fields["error"] = redacted_error(failed)
    if isinstance(failed, ActionNotApproved):
        case.entry.state(CANCELLED)
        failed.decision, failed.request = request.decision, request
        raise failed
    message = f"{case.action} was not run, because its request cannot be kept: {case.entry.fields['error']}"
    raise case.entry.refusal(CANCELLED, ActionCancelled, message, request) from failed


def response_from(
    case: Case, request: InterventionRequest, inquiry: Inquiry
) -> Generator[Step, Any, InterventionResponse]:
    """Return the decision as the response of a reviewer.

    Raises:
        ActionTimedOut: nobody decided in time.
        ActionCancelled: the request was withdrawn, or the edited arguments cannot be read.
    """
    approval, decision = inquiry.approval, inquiry.approval.decision
    if approval.state is ApprovalState.EXPIRED:
        message = f"nobody decided in time about {case.action} ({approval.id}); it was not run"
        raise case.entry.refusal("timed_out", ActionTimedOut, message, request)
    if decision is None or approval.state not in RESPONSES:
        why = f": {decision.note}" if decision is not None and decision.note else ""
        message = f"the approval {approval.id} of {case.action} was {approval.state}{why}; it was not run"
        raise case.entry.refusal(CANCELLED, ActionCancelled, message, request)
    changes: Any = {}
    if approval.state in ENTITLING and approval.digest != approval.asked_digest:  # a released claim leaves `approved`
        changes = yield Work(inquiry.changes)
        if isinstance(changes, Failed):
            yield Work(lambda: inquiry.withdraw("the edited arguments cannot be read"))
            why = redacted_error(changes.error)
            message = f"{case.action} was not run: the edited arguments cannot be read: {why}"
            raise case.entry.refusal(CANCELLED, ActionCancelled, message, request) from changes.error
    return decided_response(approval, changes)


def decided_response(approval: Approval, changes: Mapping[str, object]) -> InterventionResponse:
    """Return the decision on an approval as the response of a reviewer."""
    decision = approval.decision
    assert decision is not None  # noqa: S101
    return InterventionResponse(
        RESPONSES[decision.state],
        user_input=decision.note or None,
        modified=changes or None,
        reviewer=decision.actor.name,
        response_time_ms=round(max(0.0, decision.at - approval.created_at) * 1e3, 3),
    )


def state_approval(case: Case, approval: Approval, waits: str) -> None:
    """State the approval in the entry of its call: its id, how the caller waits, and who decided."""
    stated: dict[str, Any] = {"id": approval.id, "state": str(approval.state), "waits": waits}
    if approval.key is not None:
        stated["key"] = approval.key
    for name in ("not_covered", "unencoded", "sealed"):
        if getattr(approval, name):
            stated[name] = list(getattr(approval, name))
    if approval.decision is not None:
        actor = approval.decision.actor
        stated["by"], stated["channel"] = actor.name, actor.channel
        stated["identity"] = "authenticated" if actor.authenticated else "stated"
    if approval.standing is not None:
        stated["standing"] = approval.standing
    case.entry.fields["approval"] = stated
