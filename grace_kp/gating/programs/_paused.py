"""The engine's way to a decision about a call in a program that pauses to ask: in the inbox, or by an answer to the program."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import ApprovalState
from grace_kp.gating._digest import NotCheckable
from grace_kp.gating._filed import performed, state_approval
from grace_kp.gating._hidden import for_reviewer
from grace_kp.gating._ledger import LedgerEntry
from grace_kp.gating._modification import modified
from grace_kp.gating._steps import Ask, Work
from grace_kp.gating.programs._paused_inquiry import PausedInquiry
from grace_kp.gating.programs._questions import Questions
from grace_kp.record import HOST

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from grace_kp.gating._case import Case, Resumable
    from grace_kp.gating._decision import Decision
    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._steps import Step
    from grace_kp.gating._terms import Terms
    from grace_kp.gating.reviewers._inbox import InboxReviewer


def paused(
    case: Case, terms: Terms, request: InterventionRequest, decision: Decision, reviewer: InboxReviewer
) -> Generator[Step, Any, PausedInquiry]:
    """File the request, and pause the program until it is decided. The approval of the result is pending no more.

    Raises:
        ActionNotApproved: the request could not be filed, read or decided.
    """
    program = case.program
    assert program is not None  # noqa: S101
    again = 0
    while True:
        inquiry = inquiry_of(case, terms, reviewer, program, f"{request.attempt}.{again}")
        performed(case, request, (yield Work(functools.partial(inquiry.file, request, decision))))
        case.inquiry = inquiry
        state_approval(case, inquiry.approval, inquiry.waits)
        yield from _decided(case, request, inquiry, program)
        state_approval(case, inquiry.approval, inquiry.waits)
        if inquiry.approval.state is not ApprovalState.NOT_DONE:
            return inquiry
        again += 1  # it has been established that nothing happened, so that it may ask again


def inquiry_of(case: Case, terms: Terms, reviewer: InboxReviewer, program: Resumable, turn: str) -> PausedInquiry:
    """Return the request of one question about a call in a program.

    Args:
        case: the call.
        terms: how it is kept.
        reviewer: the inbox.
        program: the program around.
        turn: number of the question, and how often it was asked again, such as `1.0`.
    """
    call_key = program.ledger_key(case.action)
    entry_key = call_key if turn.endswith(".0") else f"{call_key}|{turn}"
    return PausedInquiry(
        case,
        terms,
        reviewer,
        program,
        entry=LedgerEntry(lambda: case.scope.ledger, entry_key),
        questions=Questions(lambda: case.scope.ledger, f"{call_key}|questions {turn}"),
        identity=call_key,
    )


def _decided(
    case: Case, request: InterventionRequest, inquiry: PausedInquiry, program: Resumable
) -> Generator[Step, Any, None]:
    number, problem = 0, ""
    while True:
        asking = yield from _done(case, request, Work(functools.partial(inquiry.must_ask, number)))
        if asking is None:
            return
        question = yield from _done(case, request, Work(functools.partial(inquiry.shown, request, problem)))
        asker = program.asking(inquiry.id)
        question = for_reviewer(question, asker)
        keep = inquiry.questions.ask
        try:
            answer = yield Ask(question, asker)
        except Exception as error:
            if asking.is_new and HOST.pauses(error):
                yield Work(functools.partial(keep, number, [asking.digest]))
            raise
        performed(case, request, answer)
        problem = ""
        if asking.is_new:
            yield from _done(case, request, Work(functools.partial(keep, number, [])))
        elif asking.digest:
            take = functools.partial(
                inquiry.take, question, asking.digest, answer, functools.partial(_problem_with, case)
            )
            problem = yield from _done(case, request, Work(take))
        number += 1


def _done(case: Case, request: InterventionRequest, step: Work) -> Generator[Step, Any, Any]:
    """Return what a step gave; end the call where it failed."""
    answer = yield step
    performed(case, request, answer)
    return answer


def _problem_with(case: Case, changes: Mapping[str, Any]) -> str:
    bound, problem = modified(case, changes)
    if bound is None:
        return problem
    try:
        case.digest(bound)
    except NotCheckable as error:
        return str(error)
    return ""
