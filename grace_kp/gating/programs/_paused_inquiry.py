"""The request of a call in a program that pauses to ask. It can be decided in the inbox and by an answer to the program.

The approval is what entitles to run. The entry in the ledger is claimed with it, so that a process that does not use the inbox cannot run
the action beside it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import RESPONSES, Actor, ApprovalState
from grace_kp.errors import AlreadyDecided, ApprovalError
from grace_kp.gating._filing import encode_call, policy_now
from grace_kp.gating._hidden import unseen_problem
from grace_kp.gating._inquiry import FORBIDDEN, Inquiry
from grace_kp.gating._ledger import DONE, FAILED, EarlierRun
from grace_kp.gating._request import frozen
from grace_kp.gating._tree import plain
from grace_kp.gating._view import view
from grace_kp.levels import InterventionAction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.approvals import Approval, ApprovalRequest
    from grace_kp.gating._case import Case
    from grace_kp.gating._decision import Decision
    from grace_kp.gating._ledger import LedgerEntry
    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._resumable import ProgramAnswer, Resumable
    from grace_kp.gating._terms import Terms
    from grace_kp.gating.programs._questions import Questions
    from grace_kp.gating.reviewers._inbox import InboxReviewer

INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True)
class Asking:
    """One question on its way to an answer."""

    digest: str
    """Digest of the arguments that it shows; empty where its answer is void."""
    is_new: bool
    """Whether it has not been asked before, so that there cannot be an answer yet."""


class PausedInquiry(Inquiry):
    """The request of one call in a program that may run again."""

    def __init__(
        self,
        case: Case,
        terms: Terms,
        reviewer: InboxReviewer,
        program: Resumable,
        *,
        entry: LedgerEntry,
        questions: Questions,
        identity: str,
    ) -> None:
        """Ask about a call.

        Args:
            case: the call.
            terms: how it is kept.
            reviewer: the inbox.
            program: the program around.
            entry: its entry in the ledger.
            questions: what was asked about it before.
            identity: what identifies the call where its gate declares no key: the same each time the program runs.
        """
        super().__init__(case, terms, reviewer)
        self.waits = INTERRUPT
        self.questions = questions
        self._program, self._entry, self._identity = program, entry, identity

    def file(self, request: InterventionRequest, decision: Decision) -> None:
        """File the request; where the program runs again, read the one that was filed."""
        known = self.questions.approval()
        if known is None:
            self._program.remember(self._inbox)
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
        self._asked = encode_call(self._case, self._terms, self._case.bound)[0]
        self.joined = True
        self.read(approval)

    def read(self, approval: str | None = None) -> Approval:
        """Read the approval as it is now."""
        self._approval = found = self._inbox.requests.get(approval or self.id)
        return found

    def _completed(self, new: ApprovalRequest) -> ApprovalRequest:
        own = json.dumps([self._inbox.domain, self._identity]) if new.key is None else new.key
        note = {**new.note, **self._program.whereabouts()}
        return replace(new, key=own, origin=self._program.origin, waits=INTERRUPT, note=note)

    # Asking

    def must_ask(self, number: int) -> Asking | None:
        """Return what this question shows; None where the program goes on without it."""
        asked = self.questions.shown(number)
        if asked is not None:
            return Asking(asked[0] if asked else "", is_new=False)
        return Asking(self.approval.digest, is_new=True) if self.read().state is ApprovalState.PENDING else None

    def shown(self, request: InterventionRequest, problem: str = "") -> InterventionRequest:
        """Return the question with the arguments that are decided on now."""
        changes = self.changes() if self.approval.asked is not None else {}
        return replace(request, id=self.id, problem=problem, arguments=frozen({**request.arguments, **changes}))

    def take(
        self,
        question: InterventionRequest,
        digest: str,
        answer: ProgramAnswer,
        check: Callable[[Mapping[str, Any]], str],
    ) -> str:
        """Apply an answer to the question; return why it has to be asked again, empty where there is nothing to say about that.

        Args:
            question: what was asked.
            digest: digest of the arguments that it showed.
            answer: the answer, which may be to look into the inbox.
            check: returns what is wrong with changed arguments.
        """
        if self.read().state is not ApprovalState.PENDING:
            self._state_ignored(answer)
            return ""
        if answer.looks or answer.problem:
            return answer.problem
        changes: dict[str, Any] = {}
        problem = unseen_problem(question, answer)
        if not problem and answer.action is InterventionAction.MODIFY:
            changes = _changes(question, answer.modified or {})
            problem = check(changes)
        return problem or self._decide(answer, digest, changes)

    def _decide(self, answer: ProgramAnswer, digest: str, changes: dict[str, Any]) -> str:
        requests, words, policy = (
            self._inbox.requests,
            answer.user_input or "",
            policy_now(self._case.policy, self._reviewer),
        )
        try:
            actor = Actor.here(answer.reviewer or self._program.origin, channel=self._program.origin)
            if answer.action is InterventionAction.INPUT:
                self._approval = requests.respond(self.id, words, actor=actor)
            elif answer.action is InterventionAction.CANCEL:
                self._approval = requests.reject(self.id, actor=actor, reason=words)
            elif changes:
                self._approval = requests.edit(self.id, changes, actor=actor, digest=digest, policy=policy)
            else:
                self._approval = requests.approve(self.id, actor=actor, digest=digest)
        except AlreadyDecided:
            self.read()
            self._state_ignored(answer)
        except (ApprovalError, ValueError) as error:
            return str(error)
        return "" if self.approval.state is not ApprovalState.PENDING else _votes(self.approval)

    def _state_ignored(self, answer: ProgramAnswer) -> None:
        """State an answer that came after another decision, which holds."""
        decision = self.approval.decision
        if answer.looks or answer.problem or (decision and RESPONSES.get(decision.state) is answer.action):
            return
        if decision and {RESPONSES.get(decision.state), answer.action} == {
            InterventionAction.PROCEED,
            InterventionAction.MODIFY,
        }:
            return
        self._case.entry.fields["ignored_answer"] = {
            "action": str(answer.action),
            "by": answer.reviewer or self._program.origin,
            "because": str(self.approval.state if decision is None else decision.state),
        }

    # Running

    def claim(self, *, again_after_failure: bool = False) -> EarlierRun | None:
        """Take the right to run the action once, in the inbox and in the ledger."""
        earlier = super().claim(again_after_failure=again_after_failure)
        if earlier is not None:
            return earlier
        ran = self._entry.claim(again_after_failure=again_after_failure)
        if ran is None:
            return None
        # A process without the inbox has run it.
        if ran.state == DONE:
            super().done(ran.result, keep=ran.has_result)
        else:
            self._settle("failed" if ran.state == FAILED else "unknown", error=ran.error)
        return ran

    def release(self) -> None:
        """Record that the action did not run after all."""
        self._entry.release()
        super().release()

    def done(self, result: object = None, *, keep: bool = False) -> None:
        """Record that the action returned."""
        super().done(result, keep=keep)
        self._entry.done(result, keep=keep)

    def failed(self, error: BaseException) -> None:
        """Record that the action raised."""
        super().failed(error)
        self._entry.failed(error)


def _changes(question: InterventionRequest, modified: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that differ from those that were shown."""
    shown = question.arguments
    return {
        name: value
        for name, value in modified.items()
        if name not in shown or (value is not shown[name] and value != plain(view(shown[name]).root))
    }


def _votes(approval: Approval) -> str:
    people = {vote.actor.name for vote in approval.votes if vote.digest == approval.digest and vote.counts}
    text = f"{len(people)} of {approval.quorum} people have approved; the next states its name in the answer: by"
    if any(not vote.counts for vote in approval.votes):
        text += ". Names that are only stated do not count for this approval; approve it with a login"
    return text
