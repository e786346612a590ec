"""A call in a program that pauses to ask: people decide its request in the inbox, or the program gets an answer.

The approval entitles to run. The gate claims the entry in the ledger with it, so that a process without the inbox cannot run the action, too.
`Questions` keeps the questions, so that each run of the program asks the same ones.
"""

from __future__ import annotations

import copy
import functools
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import RESPONSES, Actor, ApprovalState
from grace_kp.errors import AlreadyDecided, ApprovalError, StoreError
from grace_kp.gating._call import StandingCall
from grace_kp.gating._case import ProgramAnswer, consent_to_changes
from grace_kp.gating._digest import NotCheckable, digest_of
from grace_kp.gating._drivers import Ask, Work
from grace_kp.gating._inquiry import FORBIDDEN, Inquiry, perform, state_approval, wait_for_decision
from grace_kp.gating._ledger import DECIDED, EarlierRun, LedgerEntry, SharedEntry
from grace_kp.gating._request import for_reviewer, unseen_problem
from grace_kp.gating._view import plain, view
from grace_kp.levels import InterventionAction
from grace_kp.record import HOST

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Mapping

    from grace_kp.approvals import Approval, ApprovalRequest
    from grace_kp.gating._case import GatedCall
    from grace_kp.gating._decision import Decision
    from grace_kp.gating._drivers import Steps
    from grace_kp.gating._request import InterventionRequest, InterventionResponse


INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True)
class Asking:
    """One question on its way to an answer."""

    digest: str
    """Digest of its arguments; empty where its answer is void."""
    is_new: bool
    """Whether it was not asked before, so that any answer is to another question."""


class PausedInquiry(Inquiry):
    """The request of one call in a program that may run again."""

    def __init__(self, case: GatedCall, *, entry: LedgerEntry, questions: Questions, identity: str) -> None:
        super().__init__(case)
        assert case.program is not None  # noqa: S101
        self.waits = INTERRUPT
        self.questions = questions
        self.program, self._entry, self._identity = case.program, entry, identity

    def file(self, request: InterventionRequest, decision: Decision) -> None:
        """File the request; where the program runs again, read the one that was filed."""
        known = self.questions.approval()
        if known is None:
            self.program.remember(self._inbox)
            super().file(request, decision)
            known = self.questions.file(self.id)
        if self._approval is None or known != self.id:
            self._read_again(known)

    def find(self) -> bool:
        """Read the approval that was filed for the call; return whether there is one."""
        known = self.questions.approval()
        if known is not None:
            self._read_again(known)
        return known is not None

    def forbid(self) -> None:
        """Cancel what was asked about the call, because its policy forbids the action now."""
        if self.find():
            self.withdraw(FORBIDDEN)

    def _read_again(self, approval: str) -> None:
        self._asked = self.encode(self._case.bound)[0]
        self.joined = True
        self.read(approval)

    def read(self, approval: str | None = None) -> Approval:
        """Read the approval as it is now."""
        self._approval = found = self._inbox.requests.get(approval or self.id)
        return found

    def _new(self, request: InterventionRequest, decision: Decision) -> tuple[ApprovalRequest, dict[str, Any]]:
        new, unsealed = super()._new(request, decision)
        # A key of the program is part of the identity of a framework's call, and must not join calls of different conversations.
        joins = new.key is not None and self.program.interrupts
        own = new.key if joins else json.dumps([self._inbox.domain, self._identity])
        note = {**new.note, **self.program.whereabouts()}
        return replace(new, key=own, origin=self.program.origin, note=note), unsealed

    # Asking

    def must_ask(self, number: int) -> Asking | None:
        """Return the question with this number; None where the program goes on without it."""
        asked = self.questions.asked_digests(number)
        if asked is not None:
            return Asking(asked[0] if asked else "", is_new=False)
        return Asking(self.approval.digest, is_new=True) if self.read().state is ApprovalState.PENDING else None

    def question_now(self, request: InterventionRequest, problem: str = "") -> InterventionRequest:
        """Return the question with the arguments that are decided on now."""
        changes = self.changes() if self.approval.asked is not None else {}
        return replace(request, id=self.id, problem=problem, arguments={**request.arguments, **changes})

    def take(self, question: InterventionRequest, digest: str, answer: ProgramAnswer) -> str:
        """Apply an answer to the question; return why the question must be repeated, empty where it need not be."""
        if self.read().state is not ApprovalState.PENDING:
            self._state_ignored(answer)
            return ""
        if answer.looks or answer.problem:
            return answer.problem
        changes: dict[str, Any] = {}
        problem = unseen_problem(question, answer)
        if not problem and answer.action is InterventionAction.MODIFY:
            shown = question.arguments
            changes = {
                name: value
                for name, value in (answer.modified or {}).items()
                if name not in shown or _is_other(value, shown[name])
            }
            problem = self.problem_with(changes)
        return problem or self._decide(answer, digest, changes)

    def problem_with(self, changes: Mapping[str, Any]) -> str:
        """Return why changes of the arguments cannot be used; empty where they can."""
        consent = consent_to_changes(self._case, changes, "")
        return consent if isinstance(consent, str) else ""

    def _decide(self, answer: ProgramAnswer, digest: str, changes: dict[str, Any]) -> str:
        requests, words = self._inbox.requests, answer.user_input or ""
        try:
            actor = Actor.here(answer.reviewer or self.program.origin, channel=self.program.origin)
            if answer.action is InterventionAction.INPUT:
                self._approval = requests.respond(self.id, words, by=actor)
            elif answer.action is InterventionAction.CANCEL:
                self._approval = requests.reject(self.id, by=actor, reason=words)
            elif changes:
                policy = self.requirements(self._case.policy)
                self._approval = requests.edit(self.id, changes, by=actor, digest=digest, policy=policy)
            else:
                self._approval = requests.approve(self.id, by=actor, digest=digest)
        except AlreadyDecided:
            self.read()
            self._state_ignored(answer)
        except (ApprovalError, ValueError) as error:
            return str(error)
        return "" if self.approval.state is not ApprovalState.PENDING else _votes(self.approval)

    def _state_ignored(self, answer: ProgramAnswer) -> None:
        """State an answer that came after another decision."""
        decision = self.approval.decision
        earlier = None if decision is None else RESPONSES.get(decision.state)
        lets_run = {InterventionAction.PROCEED, InterventionAction.MODIFY}
        if answer.looks or answer.problem or earlier is answer.action or {earlier, answer.action} == lets_run:
            return
        self._case.entry.fields["ignored_answer"] = {
            "action": str(answer.action),
            "by": answer.reviewer or self.program.origin,
            "because": str(self.approval.state if decision is None else decision.state),
        }

    # Running

    def claim(self, *, again_after_failure: bool = False) -> EarlierRun | None:
        """Take the right to run the action once, in the inbox and in the ledger."""
        earlier = super().claim(again_after_failure=again_after_failure)
        if earlier is not None:
            return earlier
        ran = self._entry.claim(again_after_failure=again_after_failure)
        if ran is not None:  # a process without the inbox has run the action
            super().record(ran.state, ran.result, keep=ran.has_result, error=ran.error)
        return ran

    def record(self, state: str, result: object = None, *, keep: bool = False, error: str = "") -> None:
        """Record the end of the action in the ledger, too. There its release comes first, because the approval is claimed first."""
        if state == DECIDED:
            self._entry.record(state)
        super().record(state, result, keep=keep, error=error)
        if state != DECIDED:
            self._entry.record(state, result, keep=keep and not self._terms.sealed, error=error)  # it is not encrypted


class StandingInquiry(PausedInquiry):
    """The request about a call of a framework. Where an edit removed an argument, the approval holds null in its place."""

    def __init__(self, case: GatedCall, *, entry: LedgerEntry, questions: Any, identity: str) -> None:
        super().__init__(case, entry=entry, questions=questions, identity=identity)
        program: Any = case.program
        own = self.reviewer.wait if self.reviewer is case.reviewer else "raise"
        self.reviewer = copy.copy(self.reviewer)
        self.reviewer.wait = {True: True, False: "raise", None: own}[program.wait_for]
        # The program that does not wait asks again, and learns of a refusal also where it died before it kept the id of the request.
        self.waits = "wait" if self.reviewer.wait is True else "raise"

    def encode(self, bound: inspect.BoundArguments | None) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
        """Return the arguments as approvals keep them, with null for each that an edit removed."""
        arguments, problems, covered = super().encode(bound)
        if bound is not None and bound is not self._case.bound:
            gone = {name: None for name in self._case.bound.arguments if name not in bound.arguments}
            gone = {name: None for name in gone if name not in self._terms.ignore}
            arguments, covered = {**arguments, **gone}, {**covered, **gone}
        return arguments, problems, covered

    def decide_by(self, response: InterventionResponse, request: Any) -> str:
        """Decide by an answer that came through the framework; return why it cannot be used, empty where it can."""
        self.read()
        requests, origin = self._inbox.requests, self.program.origin
        verbs: Any = {InterventionAction.SKIP: requests.skip, InterventionAction.RETRY: requests.retry}
        verb = verbs.get(response.action)
        if verb is not None and self.approval.state is ApprovalState.PENDING:
            actor = Actor.here((response.reviewer or origin)[:200], channel=origin)
            self._approval = verb(self.id, by=actor, note=response.user_input or "")
            return ""
        words, changes = response.user_input, response.modified
        answer = ProgramAnswer(response.action, user_input=words, modified=changes, reviewer=response.reviewer)
        return self.take(self.question_now(request), self.approval.digest, answer)


def _is_other(value: object, shown: object) -> bool:
    """Return whether an answer changes an argument; 1 and True are different values."""
    try:
        return value is not shown and digest_of({"": value}) != digest_of({"": plain(view(shown).root)})
    except NotCheckable:
        return True


def _votes(approval: Approval) -> str:
    people = {vote.actor.name for vote in approval.votes if vote.digest == approval.digest and vote.counts}
    text = f"{len(people)} of {approval.quorum} people have approved; the next states its name in the answer: by"
    if any(not vote.counts for vote in approval.votes):
        text += ". Names that are only stated do not count for this approval; approve it with a login"
    return text


ATTEMPTS = 5


class Questions(SharedEntry):
    """The questions about one call, or about the calls of one turn, as a ledger keeps them."""

    def _read(self) -> tuple[bytes | None, dict[str, Any]]:
        data, kept = super()._read()
        return data, {"approval": None, "shown": [], **kept}

    def approval(self) -> str | None:
        """Return the id of the approval; None before it is filed."""
        found: str | None = self._read()[1]["approval"]
        return found

    def file(self, approval: str) -> str:
        """Keep the id of the approval, and return the one that was kept first."""
        kept = self._change("file", lambda kept: {**kept, "approval": kept["approval"] or approval})
        return str(kept["approval"])

    def asked_digests(self, number: int) -> list[str] | None:
        """Return the digests of a question by its number from 0: none where its answer is void, None where it was not asked."""
        asked: list[list[str] | None] = self._read()[1]["shown"]
        return asked[number] if number < len(asked) else None

    def ask(self, number: int, digests: list[str]) -> list[str]:
        """Keep that a question is being asked, and return the digests that were kept first."""

        shown = self._change(
            "ask", lambda kept: kept if number < len(kept["shown"]) else {**kept, "shown": [*kept["shown"], digests]}
        )["shown"]
        return list(shown[number]) if number < len(shown) else digests

    def put(self, number: int, digests: list[str]) -> None:
        """Keep the digests of a question, and drop the questions after it."""
        self._change("ask", lambda kept: {**kept, "shown": [*[*kept["shown"], *[None] * number][:number], digests]})

    def _change(self, verb: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Apply a change. If another run has written meanwhile, apply the change to its result."""
        for _ in range(ATTEMPTS):
            data, kept = self._read()
            changed = change(kept)
            if changed == kept or self._put(changed, only_if=data):
                return changed
        raise StoreError(f"several runs {verb} the same question at once")


def file_and_wait(case: GatedCall, request: InterventionRequest, decision: Decision) -> Steps[Inquiry]:
    """File the request, and wait as the reviewer says or pause the program. The approval of the result is pending no more."""
    again, program = 0, case.program
    while True:
        inquiry = inquiry_of(case, f"{request.attempt}.{again}")
        try:
            yield from perform(case, request, Work(functools.partial(inquiry.file, request, decision), writes=True))
        except BaseException:
            if program is None and inquiry.reviewer.wait is True:
                yield Work(inquiry.give_up, writes=True)
            raise
        case.ledger_entry = inquiry
        state_approval(case, inquiry.approval, inquiry.waits)
        if isinstance(inquiry, PausedInquiry) and inquiry.program.interrupts:
            yield from _ask_until_decided(case, request, inquiry)
        elif inquiry.approval.state in {ApprovalState.PENDING, ApprovalState.CLAIMED}:
            yield from wait_for_decision(case, request, inquiry)
        state_approval(case, inquiry.approval, inquiry.waits)
        is_not_done = program is not None and inquiry.approval.state is ApprovalState.NOT_DONE
        if not (is_not_done or inquiry.must_file_again()):
            return inquiry
        again += 1  # nothing happened, or a caller that waited withdrew it, so that it may ask again


def inquiry_of(case: GatedCall, turn: str) -> Inquiry:
    if case.program is None:
        return Inquiry(case)
    call_key = case.program.ledger_key(case.action)
    entry_key = call_key if turn.endswith(".0") else f"{call_key}|{turn}"
    kind = StandingInquiry if isinstance(case.program, StandingCall) else PausedInquiry
    return kind(
        case,
        entry=LedgerEntry(lambda: case.scope.ledger, entry_key),
        questions=Questions(lambda: case.scope.ledger, f"{call_key}|questions {turn}"),
        identity=call_key,
    )


def _ask_until_decided(case: GatedCall, request: InterventionRequest, inquiry: PausedInquiry) -> Steps[None]:
    number, problem = 0, ""
    while True:
        asking = yield from perform(case, request, Work(functools.partial(inquiry.must_ask, number)))
        if asking is None:
            return
        question = yield from perform(case, request, Work(functools.partial(inquiry.question_now, request, problem)))
        asker = inquiry.program.asking(inquiry.id)
        question = for_reviewer(question, asker)
        keep = inquiry.questions.ask
        try:
            answer = yield from perform(case, request, Ask(question, asker))
        except Exception as error:
            if asking.is_new and HOST.pauses(error):
                yield Work(functools.partial(keep, number, [asking.digest]))
            raise
        problem = ""
        if asking.is_new:
            yield from perform(case, request, Work(functools.partial(keep, number, [])))
        elif asking.digest:
            take = functools.partial(inquiry.take, question, asking.digest, answer)
            problem = yield from perform(case, request, Work(take))
        number += 1
