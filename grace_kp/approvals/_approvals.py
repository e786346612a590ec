"""`grace.approvals`: what people, programs and gates do with the requests of one store.

`RequestVerbs` are the verbs of people. A `RequestStore` adds the verbs of gates: file, claim, settle.

Each verb is one transaction over the row, its entry in the chain and the use of a standing approval. The transaction first writes what is due: a
deadline or use-by time that has passed, a claimant that is gone. That stays written even if the verb then fails; otherwise a failed verb changes
nothing. Every verb of `Approvals` has an async twin with the prefix `a`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from grace_kp.approvals._chain import append, export, forget, was_viewed
from grace_kp.approvals._execution import (
    Claim,
    check_new,
    claim,
    file_request,
    hash_of,
    mark_restored,
    reconcile,
    release,
    settle,
)
from grace_kp.approvals._record import WAITER, past_records, pending_records, read_record
from grace_kp.approvals._request import ENTITLING, Actor, ApprovalState
from grace_kp.approvals._standing import Standing, all_standing, end_by_id, grant, reject
from grace_kp.approvals._tables import RowQuery
from grace_kp.approvals._transaction import (
    CLOSING,
    Transactions,
    approve,
    conclude,
    edit,
    is_due,
    vote_of,
    withdraw,
)
from grace_kp.approvals._verify import checkpoint, verify
from grace_kp.approvals._watch import Changes, Watcher
from grace_kp.approvals._webhooks import Delivery
from grace_kp.approvals._words import seconds_of
from grace_kp.background import to_thread
from grace_kp.errors import AlreadyDecided, ApprovalError, brief
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence

    from grace_kp.approvals._digest import Secret
    from grace_kp.approvals._record import Approval, RequestRecord
    from grace_kp.approvals._request import ApprovalRequest, PolicyNow
    from grace_kp.approvals._tables import Tables
    from grace_kp.approvals._transaction import Transaction
    from grace_kp.approvals._verify import Checkpoint, Verification
    from grace_kp.approvals._webhooks import Webhook

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


VERBS = ("approve", *CLOSING, "withdraw")


class RequestVerbs:
    """The verbs by which people act on the requests of a store.

    `by` is the person who decides: a name, which is only *stated*, or the `Actor` that a login has established. Each verb is idempotent: repeated
    by the same person it changes nothing. Verbs raise `UnknownApproval` for an unknown id, `AlreadyDecided` if another decision or the end of
    the request came first, `NotEntitled` if this person may not decide it, `ChangedSinceShown` if `digest` is not that of the arguments now, and
    ValueError for a name that cannot be used.
    """

    @property
    def _transactions(self) -> Transactions:
        raise NotImplementedError

    def pending(
        self,
        action: str | None = None,
        *,
        limit: int = 100,
        offset: int = 0,
        group: str | None = None,
        level: str | None = None,
        decider: Actor | None = None,
    ) -> list[Approval]:
        """Return pending requests, by deadline and level.

        Args:
            action: name or glob of the action.
            limit: maximum number of requests.
            offset: number of matching requests to skip.
            group: only requests that members of this group may decide.
            level: only requests at this level, such as `escalate`.
            decider: only requests that this person may decide and has not consented to.

        Raises:
            ValueError: the level is unknown.
        """
        severity, requests = None if level is None else InterventionLevel(level).severity, self._transactions
        tables = requests.tables

        def is_wanted(record: RequestRecord) -> bool:
            if group is not None and record.groups and group not in record.groups:
                return False
            if decider is None:
                return True
            return not (
                requests.rights.reason_against(tables, record, decider) or vote_of(tables, record, decider) is not None
            )

        requests.expire()
        query = RowQuery(action=action, limit=limit, offset=offset)
        is_every = group is None and decider is None
        records = pending_records(tables, query, severity, None if is_every else is_wanted)
        return [requests.show(record) for record in records]

    def history(
        self,
        *,
        action: str | None = None,
        by: str | None = None,
        since: float | None = None,
        states: Sequence[str] = (),
        limit: int = 100,
        offset: int = 0,
    ) -> list[Approval]:
        """Return requests that are no longer pending, by last change, newest first.

        Args:
            action: name or glob of the action.
            by: only requests that this person has decided, voted for or closed.
            since: only requests that changed at or after this time, in seconds since the epoch.
            states: only requests in these states; if empty, in all states but `pending`.
            limit: maximum number of requests.
            offset: number of matching requests to skip.
        """
        self.sweep()
        tables = self._transactions.tables
        query = RowQuery(states=states, action=action, since=since, limit=limit, offset=offset)
        return [self._transactions.show(record) for record in past_records(tables, query, by)]

    def get(self, approval_id: str, *, by: str | Actor | None = None) -> Approval:
        """Return an approval, after writing what is due. With `by`, the chain records once that this person has seen this revision."""
        viewer, requests = None if by is None else Actor.of(by), self._transactions
        tables = requests.tables
        record = read_record(tables, approval_id)
        has_seen = viewer is None or was_viewed(tables, record.id, record.row.revision, viewer)
        if has_seen and not is_due(record, requests.clock(), tables):
            return requests.show(record)

        def record_view(tx: Transaction) -> RequestRecord:
            record = tx.read_due(approval_id)
            revision = record.row.revision
            if viewer is not None and not was_viewed(tx.writes, approval_id, revision, viewer):
                append(tx.writes, "viewed", at=record.at(tx.now), approval=approval_id, revision=revision, actor=viewer)
            return record

        return requests.change(record_view)

    def approve(self, approval_id: str, *, by: str | Actor, note: str = "", digest: str | None = None) -> Approval:
        """Consent to the action with its arguments; with a quorum, this is one vote.

        Args:
            approval_id: the approval.
            by: who consents.
            note: kept with the decision.
            digest: the digest of the arguments that the person was shown. Without it, the arguments must be unedited, or this person must have
                viewed or made the edit.
        """
        return self._transactions.change(approve, approval_id, actor=Actor.of(by), note=note, digest=digest)

    def edit(
        self,
        approval_id: str,
        changes: Mapping[str, object],
        *,
        by: str | Actor,
        note: str = "",
        digest: str | None = None,
        policy: PolicyNow | None = None,
        is_encoded: bool = False,
    ) -> Approval:
        """Replace arguments and consent to the result. Votes for other arguments are dropped; the edit counts as its editor's vote.

        Args:
            approval_id: the approval.
            changes: new values by parameter name.
            by: who edits.
            note: kept with the decision.
            digest: the digest of the arguments that the person was shown.
            policy: the policy now in force. From now on the stricter of it and the recorded one applies.
            is_encoded: whether the values are encoded JSON, as in `Approval.encoded`, instead of Python values.

        Raises:
            EditRefused: the arguments do not fit, identify the operation, have no encoding, or are sealed and cannot be opened here.
        """
        return self._transactions.change(
            edit,
            approval_id,
            changes,
            actor=Actor.of(by),
            note=note,
            digest=digest,
            policy=policy,
            is_encoded=is_encoded,
        )

    def reject(self, approval_id: str, *, by: str | Actor, reason: str = "", digest: str | None = None) -> Approval:
        """Refuse the action. One rejection closes the request, and ends the standing approvals that cover it."""
        return self._conclude(approval_id, "reject", by, reason, digest)

    def respond(self, approval_id: str, words: str, *, by: str | Actor, digest: str | None = None) -> Approval:
        """Answer with instructions for the agent; the action does not run."""
        return self._conclude(approval_id, "respond", by, words, digest)

    def skip(self, approval_id: str, *, by: str | Actor, note: str = "", digest: str | None = None) -> Approval:
        """Let the agent go on without the action: its gate returns None."""
        return self._conclude(approval_id, "skip", by, note, digest)

    def retry(self, approval_id: str, *, by: str | Actor, note: str = "", digest: str | None = None) -> Approval:
        """Have the gate assess the call again."""
        return self._conclude(approval_id, "retry", by, note, digest)

    def withdraw(self, approval_id: str, *, by: str | Actor, reason: str = "") -> Approval:
        """Cancel a request, or a decision that is not claimed yet. Everyone may, because this can only prevent an action."""
        return self._transactions.change(withdraw, approval_id, actor=Actor.of(by), reason=reason)

    def decide_all(
        self,
        ids: Sequence[str],
        verb: str,
        *,
        by: str | Actor,
        note: str = "",
        digests: Mapping[str, str] | None = None,
    ) -> dict[str, Approval | ApprovalError]:
        """Apply `approve`, `reject`, `respond`, `skip`, `retry` or `withdraw` to each of these approvals, one transaction each.

        Return each approval or error, by id.
        """
        actor = Actor.of(by)
        if verb not in VERBS:
            raise ApprovalError(f"the verb must be one of {', '.join(VERBS)}, not {brief(verb)}")

        def decide(each: str) -> Approval | ApprovalError:
            digest = (digests or {}).get(each)
            try:
                if verb == "approve":
                    return self.approve(each, by=actor, note=note, digest=digest)
                if verb == "withdraw":
                    return self.withdraw(each, by=actor, reason=note)
                return self._conclude(each, verb, actor, note, digest)
            except ApprovalError as error:
                return error

        return {each: decide(each) for each in dict.fromkeys(ids)}

    def reconcile(
        self, approval_id: str, *, happened: bool, by: str | Actor, note: str = "", revision: int | None = None
    ) -> Approval:
        """State whether an action whose outcome is unknown has happened; a new call may then ask again.

        `happened=False` is refused while the claimant runs. If that cannot be known, its lease must have expired; a process that was only
        paused can still cause the effect afterwards. `revision` is the revision that the person was shown: two executions of one action
        have the same digest.

        Raises:
            AlreadyDecided: the outcome is known, the action was not started, or the claimant runs.
            ChangedSinceShown: the revision is another one.
        """
        return self._transactions.change(
            reconcile, approval_id, actor=Actor.of(by), happened=happened, note=note, revision=revision
        )

    def standing(self, *, ended: bool = False) -> list[Standing]:
        """Return the standing approvals that hold; with `ended`, the others, too."""
        now = self._transactions.clock()
        found = all_standing(self._transactions.tables)
        return [each for each in found if ended or (not each.ended and now < each.until and each.used < each.uses)]

    def end_standing(self, approval_id: str, *, by: str | Actor, reason: str = "") -> Standing:
        """End a standing approval, and cancel requests that it approved and that are not claimed yet."""
        return self._transactions.run(end_by_id, approval_id, Actor.of(by), reason)

    def sweep(self) -> int:
        """Write what is due: expiry, escalation, executions whose process is gone; return the number of changes."""
        return self._transactions.expire() + self._transactions.lose()

    def restored(self, *, by: str | Actor) -> int:
        """After a restore from a backup, mark all approved and claimed requests as unknown and end standing approvals; return how many were marked."""
        return self._transactions.run(mark_restored, Actor.of(by))

    def _conclude(self, approval_id: str, verb: str, by: str | Actor, note: str, digest: str | None) -> Approval:
        close = reject if verb == "reject" else functools.partial(conclude, verb=verb)
        return self._transactions.change(close, approval_id, actor=Actor.of(by), note=note, digest=digest)


class RequestStore(Transactions, RequestVerbs):
    """The verbs of people and gates on the requests of one store. Any number of them, in any number of processes, share a store."""

    @property
    def _transactions(self) -> Transactions:
        return self

    def file(self, new: ApprovalRequest, unsealed: Mapping[str, Any] | None = None) -> Approval:
        """Create a request, or return an earlier one that answers the call. The state of the approval decides what the gate does.

        An open request with the same key is joined; one that is done or unknown is returned. `rejected` and `skipped` apply to later calls of
        the key in the same run, `responded` to later calls with the same arguments in the same run. Otherwise a new request is created, which
        lists the previous ones in `earlier`. If the caller of a refused request did not wait (`waits="raise"`), the refusal is also returned to
        the first later call of any run. A standing approval that covers the request approves it.
        """
        check_new(new, unsealed, is_lasting=self.tables.lasting)
        return self.change(file_request, new, new.encoded if unsealed is None else unsealed)

    def reason_against(self, approval_id: str, actor: Actor) -> str:
        """Return why a person may not decide a request; empty where groups and users of the runs allow it."""
        return self.rights.reason_against(self.tables, read_record(self.tables, approval_id), actor)

    def forbid(self, key: str, *, by: Actor, reason: str) -> None:
        """Cancel the requests of a key that are not claimed yet, because the policy forbids the action now."""
        states = (ApprovalState.PENDING, *sorted(ENTITLING))
        for row in self.tables.rows(RowQuery(states=states, key=hash_of(key))):
            with contextlib.suppress(AlreadyDecided):  # it was claimed or has ended meanwhile
                self.withdraw(row.id, by=by, reason=reason)

    def claim(self, approval_id: str, *, digest: str, version: str, policy: PolicyNow, by: Actor) -> Claim:
        """Take the one right to run the action."""
        return self.run(claim, approval_id, digest=digest, version=version, policy=policy, actor=by)

    def release(self, approval_id: str, token: str) -> Approval:
        """Give a claim back before anything was done; the decision can be claimed again until its use-by time."""
        return self.change(release, approval_id, token)

    def settle(
        self,
        approval_id: str,
        token: str,
        *,
        state: str,
        result: object = None,
        has_result: bool = False,
        error: str = "",
    ) -> Approval:
        """Report the outcome of a claimed action. A repeated report changes nothing; after a reconciliation, it is recorded in the chain only."""
        return self.change(settle, approval_id, token, state=state, result=result, has_result=has_result, error=error)

    def leave(self, approval_id: str) -> None:
        """Record that this process no longer waits."""
        record, own = read_record(self.tables, approval_id), self.tables.hold()
        with self.tables.transaction() as writes:
            waiting = writes.document(WAITER, approval_id)
            if (record.row.waiter if waiting is None else waiting.decode()) == own:
                writes.put_document(WAITER, approval_id, b"")

    def grant(self, standing: Standing, *, by: Actor) -> Standing:
        """Record a standing approval and return it with its id. Repeating a grant, until the same moment, changes nothing."""
        return self.run(grant, standing, Actor.of(by))


class Inbox:
    """Where the gates of a runtime file their requests, and from where receivers are notified."""

    def __init__(
        self, tables: Tables, *, domain: str, groups: Mapping[str, Sequence[str]], secret: Secret | None
    ) -> None:
        self.tables, self.secret = tables, secret
        self.domain = domain
        """The domain of the runtime; a part of each key."""
        self.requests = RequestStore(tables, groups=groups, secret=secret, on_commit=self._wake_deliveries)
        self.clock, self.watcher = self.requests.clock, Watcher(tables)
        self.process = Actor.here("gate", channel="gate")
        """This process, as the author of claims and withdrawals."""
        self._lock = threading.Lock()
        self._deliveries: dict[str, Delivery] = {}

    def notify(self, receivers: Iterable[Webhook]) -> None:
        """Deliver new entries of the chain to these receivers, too."""
        for receiver in receivers:
            with self._lock:
                if receiver.id not in self._deliveries:
                    self._deliveries[receiver.id] = Delivery(self.tables, receiver)

    def _wake_deliveries(self) -> None:
        for delivery in list(self._deliveries.values()):
            delivery.wake()


def twin(verb: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Return a verb as a coroutine function that does not block the event loop."""

    @functools.wraps(verb)
    async def twin_of(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await to_thread(verb, self, *args, **kwargs)

    twin_of.__name__ = f"a{verb.__name__}"
    twin_of.__doc__ = f"`{verb.__name__}` without blocking the event loop."
    return twin_of


class Approvals(RequestVerbs):
    """The requests for approval in the store of a runtime.

    A `by` that is a name in Python is only *stated*; a login makes it *authenticated*.
    """

    def __init__(self, inbox: Callable[[], Inbox], carrier: Any) -> None:
        """Take a function that returns the inbox, and the object that carries out approved actions by `execute` and `resume`."""
        self._inbox, self._carrier = inbox, carrier

    @property
    def inbox(self) -> Inbox:
        """The inbox of the runtime, for programs in which a login establishes who decides."""
        return self._inbox()

    @property
    def _transactions(self) -> Transactions:
        return self._inbox().requests

    def watch(self, after: int | None = None) -> Changes:
        """Return an endless iterator of changes as they happen in any process, for `for` and `async for`.

        Args:
            after: number of the last change that is known; by default the newest.
        """
        inbox = self._inbox()
        return Changes(inbox.watcher, inbox.requests.sweep, inbox.tables.head()[0] if after is None else after)

    def execute(self, approval_id: str, arguments: Mapping[str, object] | None = None) -> Any:
        """Carry out an approved action whose process is gone or went on without it, and return its result.

        The action is found by name and version among the gates of this runtime. It runs once, as a separate run. If it has run already, the
        recorded result is returned.

        Args:
            approval_id: the approval.
            arguments: values of ignored parameters (`ignore=`), which are not stored.

        Raises:
            ActionPending: it is not decided.
            AlreadyDecided: it was not approved, or has expired.
            ActionOutcomeUnknown: it was begun before, and its result is not known.
            ApprovalError: this runtime does not define the action, or only its own process can carry it out.
        """
        return self._carrier.execute(approval_id, arguments or {})

    async def aexecute(self, approval_id: str, arguments: Mapping[str, object] | None = None) -> Any:
        """`execute` without blocking the event loop."""
        return await self._carrier.aexecute(approval_id, arguments or {})

    def resume(
        self,
        graph: Any,
        *,
        thread: str | None = None,
        limit: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> list[Resumed]:
        """Resume the threads of a graph whose interrupts wait for requests that are decided by now.

        An interrupt is resumed when all of its requests have ended: decided, expired or withdrawn. Each thread gets the configuration values
        that it was started with, except objects and secrets. An action runs once, even if another process or another answer to the graph
        arrives at the same time.

        Args:
            graph: the compiled graph or agent, with its checkpointer.
            thread: only this thread; by default all threads that wait.
            limit: maximum number of threads.
            config: additional configuration, such as `{"callbacks": [handler]}`; it overrides stored values.

        Returns:
            One entry per thread. Errors of the graph are recorded there.

        Raises:
            GraceError: `graph` is not a graph with a checkpointer.
        """
        resumed: list[Resumed] = self._carrier.resume(graph, thread=thread, limit=limit, config=config)
        return resumed

    async def aresume(
        self,
        graph: Any,
        *,
        thread: str | None = None,
        limit: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> list[Resumed]:
        """`resume` without blocking the event loop."""
        resumed: list[Resumed] = await self._carrier.aresume(graph, thread=thread, limit=limit, config=config)
        return resumed

    def grant(
        self,
        action: str,
        parameters: Mapping[str, Mapping[str, Any]],
        *,
        until: float | str,
        uses: int,
        by: str,
        note: str = "",
        version: str | None = None,
    ) -> Standing:
        """Consent in advance to calls of one action.

        Args:
            action: its name.
            parameters: a constraint for each parameter: `{"is": value}`, `{"in": [values]}`, `{"from": low, "to": high}` or `{"any": True}`.
            until: duration from now, in seconds or as a string such as `8h`.
            uses: maximum number of calls.
            by: who consents.
            note: stored with the consent.
            version: only this version of the action.
        """
        inbox = self._inbox()
        standing = Standing(
            action=action,
            domain=inbox.domain,
            parameters=parameters,
            until=inbox.clock() + seconds_of("until", until),
            uses=uses,
            note=note,
            version=version,
        )
        return inbox.requests.grant(standing, by=Actor.of(by))

    def verify(self, checkpoint: Checkpoint | None = None) -> Verification:
        """Verify the audit trail against a checkpoint that was kept elsewhere. Without a checkpoint, only accidents are found."""
        inbox = self._inbox()
        return verify(inbox.tables, at=inbox.clock(), checkpoint=checkpoint)

    def checkpoint(self) -> Checkpoint:
        """Return the head of the chain. Keep it where writers of the store cannot change it."""
        inbox = self._inbox()
        return checkpoint(inbox.tables, at=inbox.clock())

    def export(self) -> Iterator[dict[str, Any]]:
        """Yield the entries of the chain as JSON objects."""
        return export(self._inbox().tables)

    def forget(self, *, before: float, by: str) -> int:
        """Delete the contents of approvals that ended before a time, in seconds since the epoch; the chain stays verifiable."""
        inbox = self._inbox()
        return forget(inbox.tables, before=before, at=inbox.clock(), actor=Actor.here(by))

    apending = twin(RequestVerbs.pending)
    aget = twin(RequestVerbs.get)
    aapprove = twin(RequestVerbs.approve)
    aedit = twin(RequestVerbs.edit)
    areject = twin(RequestVerbs.reject)
    arespond = twin(RequestVerbs.respond)
    askip = twin(RequestVerbs.skip)
    aretry = twin(RequestVerbs.retry)
    awithdraw = twin(RequestVerbs.withdraw)
    adecide_all = twin(RequestVerbs.decide_all)
    areconcile = twin(RequestVerbs.reconcile)
    ahistory = twin(RequestVerbs.history)
    agrant = twin(grant)
    astanding = twin(RequestVerbs.standing)
    aend_standing = twin(RequestVerbs.end_standing)
    asweep = twin(RequestVerbs.sweep)
    arestored = twin(RequestVerbs.restored)
    averify = twin(verify)
    acheckpoint = twin(checkpoint)
    aforget = twin(forget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """The result of resuming one thread."""

    thread: str
    approvals: tuple[str, ...] = ()
    """Ids of the requests whose decisions the graph got."""
    state: str = "finished"
    """`finished`; `paused`, if it asks again; `raised`; or `left`, if it was not resumed."""
    problem: str = ""
    """Message of the error that the graph raised, or why the thread was left."""
    error: Exception | None = None
    output: Any = field(default=None, repr=False)
    """The return value of the graph."""
