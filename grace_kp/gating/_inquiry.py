"""The request of one call in the inbox: file it, wait for it, read the decision as a response, claim the execution and record its outcome.

The arguments of the call are first encoded, digested and sealed. An `Inquiry` takes the place of an entry in the ledger. Its claim covers the
arguments that are about to run, under the policy in force at that moment; nothing else entitles to run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import (
    ENTITLING,
    RESPONSES,
    Actor,
    ApprovalRequest,
    ApprovalState,
    PolicyNow,
    SealNeeded,
    canonical,
    decode,
    digest,
    encode,
    has_digest,
    kept_result,
    new_approval_id,
    opened_arguments,
    sealed_arguments,
)
from grace_kp.background import to_thread
from grace_kp.errors import (
    ActionCancelled,
    ActionNotApproved,
    ActionPending,
    ActionTimedOut,
    AlreadyDecided,
    ApprovalError,
    ChangedSinceShown,
    StoreError,
)
from grace_kp.gating._decision import Basis
from grace_kp.gating._digest import digest_of
from grace_kp.gating._drivers import AskBeside, Await, Failed, Work
from grace_kp.gating._ledger import DECIDED, DONE, FAILED, RUNNING, EarlierRun
from grace_kp.gating._outcome import CANCELLED, WAITING
from grace_kp.gating._request import InterventionResponse, unseen_problem
from grace_kp.gating.reviewers._console import ConsoleReviewer
from grace_kp.gating.reviewers._inbox import InboxReviewer
from grace_kp.levels import InterventionAction
from grace_kp.record import OPERATIONS
from grace_kp.trace import redacted_error

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Mapping

    from grace_kp.approvals import Approval, Inbox
    from grace_kp.gating._case import GatedCall
    from grace_kp.gating._decision import Decision
    from grace_kp.gating._drivers import EngineStep, Steps
    from grace_kp.gating._policy import Policy
    from grace_kp.gating._request import InterventionRequest


UNIDENTIFIED = "is the object whose method is called; name what identifies it with @grace.gate(identity=...)"


OUTAGE_SECONDS = 60.0
"""How long a store may fail before a gate that waits gives up, or an outcome is left unrecorded."""
PAUSE_SECONDS = 0.2
LOOK_AT_CLAIM_SECONDS = 1.0
"""Seconds between two checks whether the process of an execution that is waited for still runs."""
LONGEST_EXECUTION = 3_600.0
"""Seconds for which an execution elsewhere is waited for."""
FORBIDDEN = "the policy forbids the action now"
_log = logging.getLogger("grace_kp.approvals")


class Inquiry:
    """The request of one call, and the entry under which it runs."""

    blocks = True
    """Whether a claim or an outcome may wait for a disk."""

    def __init__(self, case: GatedCall, approval: Approval | None = None) -> None:
        assert case.terms is not None  # noqa: S101
        self._case, self._terms = case, case.terms
        self.reviewer = reviewer = case.reviewer if isinstance(case.reviewer, InboxReviewer) else InboxReviewer()
        self.waits = "wait" if reviewer.wait is True else str(reviewer.wait)
        """How the caller waits, as an approval states it: `wait`, `raise`, `hand_over` or `interrupt`."""
        self.joined = False
        """Whether the call has joined an earlier request."""
        self._approval = approval
        self._asked: Mapping[str, Any] = {}
        self._token: str | None = None
        self.bound: inspect.BoundArguments | None = case.bound
        """The arguments that will run."""
        self._version = case.terms.version
        self._ends: float | None = None
        self._given_up = False

    @property
    def _inbox(self) -> Inbox:
        return self._case.scope.inbox

    @property
    def approval(self) -> Approval:
        """The approval as of the last read."""
        assert self._approval is not None  # noqa: S101
        return self._approval

    @property
    def id(self) -> str:
        return self.approval.id

    @property
    def operation(self) -> str:
        return self.approval.operation

    # Filing

    def encode(self, bound: inspect.BoundArguments | None) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
        """Return the arguments of the call as approvals keep them, why some have no encoding, and what the digest covers; by parameter name."""
        case = self._case
        shown = {name: value for name, value in case.shown_arguments(bound).items() if name not in self._terms.ignore}
        arguments, problems = encode(shown)
        lasting = case.program is not None  # it makes the objects again each time it runs
        digests = {name: case.coverage.digest({name: shown[name]}, lasting=lasting) for name in problems}
        if (found := case.coverage.owner((bound or case.bound).arguments)) is not None:
            # With the same arguments, the method of another object is another action.
            name, owner = found
            kept, unkept = encode({name: owner.identity} if owner.identity else {})
            arguments = {**arguments, **kept}
            if not kept:
                problems = {**problems, name: unkept.get(name, UNIDENTIFIED)}
                digests[name] = digest_of({name: owner}, lasting=lasting)
        return arguments, problems, {**arguments, **{name: {"$unencoded": local} for name, local in digests.items()}}

    def requirements(self, policy: Policy) -> PolicyNow:
        """Return the requirements of a policy, completed by the reviewer."""
        return PolicyNow(
            denies=policy.denies,
            floor=None if policy.denies else policy.floor,
            groups=policy.groups or self.reviewer.groups,
            quorum=policy.quorum or self.reviewer.quorum,
            identity=self.reviewer.identity,
            version=policy.version,
        )

    def file(self, request: InterventionRequest, decision: Decision) -> None:
        """File the request, or join an earlier one for the call."""
        case = self._case
        new, unsealed = self._new(request, decision)
        if case.is_changed(case.bound, request.digest):
            raise ActionCancelled(f"the arguments of {case.action} were changed while they were read; it was not run")
        inbox = self._inbox
        inbox.notify(self.reviewer.notify)
        self._asked = unsealed
        self._approval = inbox.requests.file(new, unsealed)
        self.joined = self._approval.id != new.id

    def _new(self, request: InterventionRequest, decision: Decision) -> tuple[ApprovalRequest, dict[str, Any]]:
        """Return the request about the call, and its encoded arguments before sealing."""
        case, terms, inbox = self._case, self._terms, self._inbox
        arguments, problems, covered = self.encode(case.bound)
        unkept = problems
        if case.program is not None:  # it makes its objects again, but a key is found by other programs, too
            unkept = {name: why for name, why in unkept.items() if why == UNIDENTIFIED and terms.key is not None}
        if unkept and (self.reviewer.wait is not True or case.program is not None):
            named = "; ".join(f"{name}: {why}" for name, why in unkept.items())
            raise ActionCancelled(
                f"{case.action} was not run, because its request cannot be kept: these arguments have no encoding: {named}. Pass plain data, name "
                "parameters that carry no meaning with @grace.gate(ignore=...), or use an InboxReviewer with wait=True"
            )
        version, approval_id = terms.version, new_approval_id()
        bound_digest = digest(case.action, version, covered, secret=inbox.secret)
        try:
            kept, sealed = sealed_arguments(
                arguments, terms.sealed, inbox.secret, approval_id=approval_id, digest=bound_digest
            )
        except SealNeeded as error:
            raise ActionCancelled(f"{case.action} was not run, because its request cannot be kept: {error}") from error
        scope, confidence, now = case.scope, decision.confidence, self.requirements(case.policy)
        thresholds = case.policy.thresholds or scope.thresholds
        policy = {
            "version": now.version,
            "floor": now.floor,
            "groups": list(now.groups),
            "quorum": now.quorum,
            # As strings: a threshold may be infinite, which JSON cannot hold.
            "thresholds": {each.name: str(getattr(thresholds, each.name)) for each in dataclasses.fields(thresholds)},
        }
        own = case.policy.timeout if case.policy.timeout is not None else scope.own_timeout
        # The inbox removes secrets and strings of sealed arguments from the other fields.
        new = ApprovalRequest(
            id=approval_id,
            action=case.action,
            version=version,
            domain=inbox.domain,
            digest=bound_digest,
            encoded=kept,
            sealed=sealed,
            schema=case.schema(),
            not_covered=terms.ignore,
            unencoded=tuple(problems),
            key=None if terms.key is None else terms.key.key(inbox.domain, case.action, case.shown_arguments()),
            key_fields=() if terms.key is None else terms.key.fields,
            level=str(request.level),
            score=None if confidence is None else confidence.score,
            breakdown={} if confidence is None else dict(confidence.evaluated),
            penalties=() if confidence is None else tuple(confidence.penalties_applied),
            reason=request.reason,
            gaps=tuple(decision.gaps),
            facts=dict(decision.facts),
            policy={name: value for name, value in policy.items() if value not in (None, [])},
            run_id=scope.run_id,
            objective=scope.objective,
            user=scope.user,
            run=scope.document(),
            deadline_seconds=self.reviewer.deadline if own is None else own,
            use_within_seconds=self.reviewer.use_within,
            on_deadline=self.reviewer.on_deadline,
            groups=now.groups,
            quorum=now.quorum,
            identity=self.reviewer.identity,
            waits=self.waits,
            note={"function": terms.place},
        )
        return new, arguments

    # Waiting

    def is_waiting(self) -> bool:
        """Read the approval; return whether its gate must wait for a decision or for the execution of another caller."""
        try:
            self._approval = approval = self._inbox.requests.get(self.id)
        except StoreError:
            if self._ends is None:
                self._ends = time.monotonic() + OUTAGE_SECONDS
            if time.monotonic() > self._ends:
                raise
            return True
        if approval.state is ApprovalState.CLAIMED and self._token is None and self.waits == "wait":
            self._ends = self._ends or time.monotonic() + LONGEST_EXECUTION
            return time.monotonic() < self._ends and self.operation not in OPERATIONS.get()
        self._ends = None
        return approval.state is ApprovalState.PENDING

    def due(self) -> float:
        """Return when to look again without a change, in seconds since the epoch."""
        approval, now = self.approval, self._inbox.clock()
        if approval.state is ApprovalState.PENDING and self._ends is None:
            return approval.deadline or now + 3_600
        return now + LOOK_AT_CLAIM_SECONDS

    def wait(self) -> Approval:
        with self._inbox.watcher.waiting(self.id) as waiter, waiter.in_thread() as sleep:
            while self.is_waiting():
                waiter.due = self.due()
                sleep()
        return self.approval

    async def wait_async(self) -> Approval:
        with self._inbox.watcher.waiting(self.id) as waiter, waiter.on_loop() as sleep:
            while await to_thread(self.is_waiting):
                waiter.due = self.due()
                await sleep()
        return self.approval

    def answer(self, shown: InterventionRequest, response: InterventionResponse) -> None:
        """Decide the request by the answer of a second reviewer, unless the answer does not count."""
        if unseen_problem(shown, response) or (response.action is InterventionAction.MODIFY and not response.modified):
            return
        # The digest makes the inbox refuse the answer if an edit has changed the arguments since the question.
        requests, digest, words = self._inbox.requests, self.approval.asked_digest, response.user_input or ""
        channel = "console" if isinstance(self.reviewer.ask, ConsoleReviewer) else "callback"
        try:
            actor = Actor.here(str(response.reviewer)[:200], channel=channel)
            plain = {"proceed": requests.approve, "skip": requests.skip, "retry": requests.retry}
            if (decide := plain.get(str(response.action))) is not None:
                decide(self.id, by=actor, note=words, digest=digest)
            elif response.action is InterventionAction.MODIFY:
                requests.edit(self.id, response.modified or {}, by=actor, note=words, digest=digest)
            elif response.action is InterventionAction.INPUT:
                requests.respond(self.id, words, by=actor, digest=digest)
            else:
                requests.reject(self.id, by=actor, reason=words, digest=digest)
        except (ApprovalError, StoreError, ValueError) as error:
            _log.warning("the answer of %s about %s was not counted: %s", response.reviewer, self.id, error)

    def describe_end(self) -> str:
        """Return how the request was settled; empty while it is open and its gate waits. It does not read the store."""
        approval = self.approval
        if approval.state is ApprovalState.PENDING:
            return "its caller gave up" if self._given_up else ""
        decision = approval.decision
        if decision is None:
            return f"{approval.action} was {approval.state}"
        return f"{approval.action} was {decision.state} by {decision.actor.name} ({decision.actor.channel})"

    def give_up(self) -> None:
        """Withdraw the request of a caller that stopped waiting, unless other callers share it."""
        if self._approval is None:
            return
        self._given_up = True
        if self._inbox.watcher.count_waiting(self.id):
            return
        with contextlib.suppress(ApprovalError, StoreError):  # decided meanwhile; a decision without a claim expires
            if self.joined:
                self._inbox.requests.leave(self.id)
            else:
                self._inbox.requests.withdraw(self.id, by=self._inbox.process, reason="its caller gave up")

    def must_file_again(self) -> bool:
        """Return whether another caller has withdrawn the request that this caller still needs."""
        decision = self.approval.decision
        return (
            self.joined
            and self.approval.state is ApprovalState.CANCELLED
            and decision is not None
            and decision.actor.channel == self._inbox.process.channel
        )

    def withdraw(self, reason: str) -> None:
        """Withdraw a decision that cannot be carried out, unless it was claimed or has expired."""
        with contextlib.suppress(ApprovalError, StoreError):
            self._approval = self._inbox.requests.withdraw(self.id, by=self._inbox.process, reason=reason)

    def changes(self) -> dict[str, object]:
        """Return the arguments that reviewers changed, by name."""
        approval = self.approval
        opened = opened_arguments(approval.encoded, self._inbox.secret, approval_id=approval.id, digest=approval.digest)
        changed = {
            name: value
            for name, value in opened.items()
            if name not in self._asked or canonical(self._asked[name]) != canonical(value)  # 1 equals True in Python
        }
        return decode(changed, self._case.types())

    def forbid(self) -> None:
        if self._terms.key is not None:
            key = self._terms.key.key(self._inbox.domain, self._case.action, self._case.shown_arguments())
            self._inbox.requests.forbid(key, by=self._inbox.process, reason=FORBIDDEN)

    def _policy_now(self) -> PolicyNow:
        """Return the requirements of the policy in force, with the level that its thresholds give to the confidence."""
        case, score = self._case, self.approval.score
        policy = case.policy if case.lookup is None else case.lookup()
        now = self.requirements(policy)
        if score is None or policy.denies:
            return now
        basis = Basis.from_decision({}, self.approval.breakdown)
        floor = replace(case.rules(), policy=policy).raise_level(self.approval.level, score, basis)
        return replace(now, floor=str(floor))

    # The entry under which the action runs

    def claim(self, *, again_after_failure: bool = False) -> EarlierRun | None:  # noqa: ARG002 — an approval entitles to one attempt
        """Take the right to run the action once; return the earlier execution that keeps it from running."""
        if (earlier := self.earlier()) is not None:
            return earlier
        approval = self.approval
        now = self._digest_as(approval.digest, self.encode(self.bound)[2])
        try:
            claim = self._inbox.requests.claim(
                approval.id, digest=now, version=self._version, policy=self._policy_now(), by=self._inbox.process
            )
        except ChangedSinceShown:
            if self._terms.key is None:
                self.withdraw("its arguments were changed after they were shown")
            raise
        except AlreadyDecided:
            self._approval = self._inbox.requests.get(approval.id)
            if (earlier := self.earlier()) is not None:
                return earlier
            raise
        self._approval, self._token = claim.approval, claim.token
        self._inbox.watcher.hold(self)
        return None

    def _digest_as(self, expected: str, whole: Mapping[str, Any]) -> str:
        """Return the digest of the call that is about to run, by the scheme and key of the expected digest."""
        with contextlib.suppress(ValueError):  # another key; then the digests differ
            if has_digest(expected, self._case.action, self._version, whole, secret=self._inbox.secret):
                return expected
        return digest(self._case.action, self._version, whole, secret=self._inbox.secret)

    def earlier(self, *, again_after_failure: bool = False) -> EarlierRun | None:  # noqa: ARG002 — as in `claim`
        """Return the execution that this approval has led to; None before there is one."""
        approval = self.approval
        if not approval.state.may_have_run:
            return None
        outcome, claim = approval.outcome, approval.claim
        if outcome is None:
            return EarlierRun(RUNNING, 0.0 if claim is None else claim.at)
        state = {ApprovalState.DONE: DONE, ApprovalState.FAILED: FAILED}.get(approval.state, RUNNING)
        return EarlierRun(state, outcome.at, outcome.has_result, outcome.result, outcome.error)

    @property
    def may_wait(self) -> bool:
        return self.waits == "wait" and self.approval.state is ApprovalState.CLAIMED

    def record(self, state: str, result: object = None, *, keep: bool = False, error: str = "") -> None:
        requests, has_result = self._inbox.requests, keep and kept_result(result)
        outcome: Any = {"result": result if has_result else None, "has_result": has_result, "error": error}
        if state == DECIDED:
            self._report(lambda token: requests.release(self.id, token))
        else:
            ended = "unknown" if state == RUNNING else state
            self._report(lambda token: requests.settle(self.id, token, state=ended, **outcome))

    def _report(self, report: Callable[[str], Approval]) -> None:
        """Write an outcome; try again while the store is locked or full."""
        assert self._token is not None  # noqa: S101
        ends = time.monotonic() + OUTAGE_SECONDS
        try:
            while True:
                try:
                    self._approval = report(self._token)
                except StoreError:
                    if time.monotonic() > ends:
                        raise
                    time.sleep(PAUSE_SECONDS)
                else:
                    return
        finally:
            self._inbox.watcher.let_go(self)


def wait_for_decision(case: GatedCall, request: InterventionRequest, inquiry: Inquiry) -> Steps[None]:
    """Wait for a decision or for an execution elsewhere, as the reviewer says."""
    reviewer, is_pending = inquiry.reviewer, inquiry.approval.state is ApprovalState.PENDING
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
            deadline = inquiry.approval.deadline
            left = None if deadline is None else max(0.0, deadline - case.scope.inbox.clock())
            question = replace(request, id=inquiry.id, timeout=left, on_timeout=inquiry.approval.on_deadline)
            yield AskBeside(question, reviewer.ask, inquiry.answer, inquiry.describe_end)
        yield from perform(case, request, Await(inquiry.wait, inquiry.wait_async))
    except BaseException:
        yield Work(inquiry.give_up, writes=True)
        raise
    finally:
        case.entry.add_wait((time.perf_counter() - started) * 1e3)


def perform(case: GatedCall, request: InterventionRequest, step: EngineStep) -> Steps[Any]:
    """Return the result of a step. Where the step fails, the call ends without a consent."""
    answer = yield step
    if not isinstance(answer, Failed):
        return answer
    failed = answer.error
    case.entry.fields["error"] = redacted_error(failed)
    if isinstance(failed, ActionNotApproved):
        case.entry.state(CANCELLED)
        failed.decision, failed.request = request.decision, request
        raise failed
    message = f"{case.action} was not run, because its request cannot be kept: {case.entry.fields['error']}"
    raise case.entry.refusal(CANCELLED, ActionCancelled, message, request) from failed


def response_from(case: GatedCall, request: InterventionRequest, inquiry: Inquiry) -> Steps[InterventionResponse]:
    """Return the decision as the response of a reviewer."""
    approval, decision = inquiry.approval, inquiry.approval.decision
    if approval.state is ApprovalState.EXPIRED:
        message = f"no decision was made in time about {case.action} ({approval.id}); it was not run"
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


def state_approval(case: GatedCall, approval: Approval, waits: str) -> None:
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
