"""The verbs on the requests of one store, and the inbox in which the gates of a runtime file theirs.

`RequestVerbs` are those of people, for `grace.approvals` and for programs. A `RequestStore` adds those of gates: file, claim, report.

Each verb is one transaction, which holds the row, its entry in the chain and the use of a standing approval. Before a verb, the same transaction
writes what is due: a deadline or use-by time that has passed, a claimant that is gone. That stays written even if the verb then fails. A verb that
fails has changed nothing else.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._chain import append_view, was_viewed
from grace_kp.approvals._decide import approve, conclude, edit, withdraw
from grace_kp.approvals._execution import Claim, claim, reconcile, release, restored, settle
from grace_kp.approvals._filing import check_new, digest_of_key, file_request
from grace_kp.approvals._lists import past_records, pending_records
from grace_kp.approvals._people import Actor
from grace_kp.approvals._record import WAITER, read_record
from grace_kp.approvals._request import ENTITLING, ApprovalState
from grace_kp.approvals._rights import Rights
from grace_kp.approvals._standing import all_standing
from grace_kp.approvals._standing_use import end_by_id, grant
from grace_kp.approvals._tables import RowQuery
from grace_kp.approvals._transaction import Transactions, check_actor, is_due, write_due
from grace_kp.approvals._webhooks import Delivery
from grace_kp.errors import AlreadyDecided, ApprovalError, brief
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from grace_kp.approvals._execution import PolicyNow
    from grace_kp.approvals._record import Approval, RequestRecord
    from grace_kp.approvals._request import ApprovalRequest
    from grace_kp.approvals._seal import Secret
    from grace_kp.approvals._standing import Standing
    from grace_kp.approvals._tables import Link, Tables
    from grace_kp.approvals._transaction import Transaction
    from grace_kp.approvals._watch import Watcher
    from grace_kp.approvals._webhooks import Webhook


VERBS = ("approve", "reject", "respond", "skip", "retry", "withdraw")
"""The verbs that `decide_all` applies."""


class RequestVerbs(ABC):
    """What people do with the requests of a store.

    `by` is the person who decides: a name, which is only *stated*, or the `Actor` that a login has established. Each verb is idempotent: repeated
    by the same person it changes nothing. Verbs raise `UnknownApproval` for an unknown id, `AlreadyDecided` if another decision or the end of
    the request came first, `NotEntitled` if this person may not decide it, `ChangedSinceShown` if `digest` is not that of the arguments now, and
    ValueError for a name that cannot be used.
    """

    @property
    @abstractmethod
    def _transactions(self) -> Transactions:
        """Run the verbs on the store."""

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
            action: only of actions that match this name or glob.
            limit: at most this many.
            offset: how many of those that match to leave out at the beginning.
            group: only those that members of this group may decide.
            level: only those at this level, such as `escalate`.
            decider: only those that this person may decide and has not consented to.

        Raises:
            ValueError: there is no such level.
        """
        transactions = self._transactions
        transactions.expire()
        tables = transactions.tables
        records = pending_records(
            tables,
            action,
            group,
            limit,
            offset=offset,
            level=None if level is None else InterventionLevel(level).severity,
            is_wanted=None if decider is None else lambda record: transactions.rights.awaits(tables, record, decider),
        )
        return [transactions.show(tables, record) for record in records]

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
        """Return what is no longer pending, by last change, newest first.

        Args:
            action: only of actions that match this name or glob.
            by: only what this person has decided, voted for or closed.
            since: only what changed at or after this time, in seconds since the epoch.
            states: only in these states; all but `pending` where it is empty.
            limit: at most this many.
            offset: how many of those that match to leave out at the beginning.
        """
        self.sweep()
        tables = self._transactions.tables
        records = past_records(tables, action, since, by, limit, offset=offset, states=states)
        return [self._transactions.show(tables, record) for record in records]

    def get(self, approval_id: str, *, by: str | Actor | None = None) -> Approval:
        """Return an approval, after writing what is due to it.

        Args:
            approval_id: its id.
            by: who is shown it; one entry of the chain per person and revision records that.
        """
        viewer, transactions = None if by is None else Actor.of(by), self._transactions
        tables = transactions.tables
        record = read_record(tables, approval_id)
        has_seen = viewer is None or was_viewed(tables, record.id, record.row.revision, viewer)
        if has_seen and not is_due(record, transactions.clock(), tables):
            return transactions.show(tables, record)
        return transactions.change(_record_view, approval_id, viewer)

    def approve(self, approval_id: str, *, by: str | Actor, note: str = "", digest: str | None = None) -> Approval:
        """Consent to the action with its arguments; with a quorum, this is one vote.

        Args:
            approval_id: the approval.
            by: who consents.
            note: kept with the decision.
            digest: the digest of the arguments that the person was shown. Without it, the arguments must be as the program asked, or this person
                must have viewed or made the edit.
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
            policy: the policy now in force, where the caller knows it; the stricter of it and the recorded one holds from now on.
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
        """Cancel a request, or a decision that nobody has claimed. Anybody may, because it only prevents."""
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
        outcomes: dict[str, Approval | ApprovalError] = {}
        for each in dict.fromkeys(ids):
            digest = (digests or {}).get(each)
            try:
                if verb == "approve":
                    outcomes[each] = self.approve(each, by=actor, note=note, digest=digest)
                elif verb == "withdraw":
                    outcomes[each] = self.withdraw(each, by=actor, reason=note)
                else:
                    outcomes[each] = self._conclude(each, verb, actor, note, digest)
            except ApprovalError as error:
                outcomes[each] = error
        return outcomes

    def reconcile(
        self, approval_id: str, *, happened: bool, by: str | Actor, note: str = "", revision: int | None = None
    ) -> Approval:
        """State whether an action whose outcome is unknown has happened; a new call may then ask again.

        `happened=False` is refused while its claimant runs. Where nobody can know whether it runs, its lease must have expired. A process
        that was only paused can still cause the effect afterwards. `revision` is what the person was shown: the digest does not tell two
        executions of one action apart.

        Raises:
            AlreadyDecided: the outcome is known, nobody has started the action, or the claimant runs.
            ChangedSinceShown: it has another revision.
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
        """End a standing approval, and cancel what it approved and nobody has claimed."""
        return self._transactions.run(end_by_id, approval_id, Actor.of(by), reason)

    def sweep(self) -> int:
        """Write what is due: expiry, escalation, executions whose process is gone; return the number of changes."""
        return self._transactions.expire() + self._transactions.lose()

    def restored(self, *, by: str | Actor) -> int:
        """After the store was restored from a backup: mark everything approved or claimed as unknown, and end standing approvals.

        Return the number of approvals that were marked.
        """
        return self._transactions.run(restored, Actor.of(by))

    def _conclude(self, approval_id: str, verb: str, by: str | Actor, note: str, digest: str | None) -> Approval:
        return self._transactions.change(conclude, approval_id, verb, actor=Actor.of(by), note=note, digest=digest)


class RequestStore(RequestVerbs):
    """The verbs of people and gates on the requests of one store. Any number of them, in any number of processes, share a store.

    Args:
        tables: the tables of the store.
        groups: the groups of each person, by name.
        secret: the key that sealed parameters are opened with and digests of edits are computed with; None without one.
        clock: the wall clock, in seconds since the epoch.
        on_event: called with the approval and the entry after each change is committed. What it raises is logged and has no other effect.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        groups: Mapping[str, Sequence[str]] | None = None,
        secret: Secret | None = None,
        clock: Callable[[], float] = time.time,
        on_event: Callable[[Approval, Link], None] | None = None,
    ) -> None:
        self.tables, self.secret, self.clock = tables, secret, clock
        self.transactions = Transactions(tables, Rights(groups), secret, clock, on_event)

    @property
    def _transactions(self) -> Transactions:
        return self.transactions

    def file(self, new: ApprovalRequest, unsealed: Mapping[str, Any] | None = None) -> Approval:
        """Create a request, or return the one that answers the call already. The state of the approval decides what the gate does.

        With a key, an open request of the key is joined. One that was done, or whose outcome is unknown, is returned as it is. `rejected` and
        `skipped` hold for later calls of the key in the same run, `responded` for calls with the same arguments in the same run. After any
        other end a new request is created, which lists the earlier ones in `earlier`. A refusal of a request with `waits="raise"` is also
        returned to the first later call of any run, because nobody waited for it. A standing approval that covers the request approves it.
        """
        check_new(new, unsealed, is_lasting=self.tables.lasting)
        return self.transactions.change(file_request, new, new.encoded if unsealed is None else unsealed)

    def reason_against(self, approval_id: str, actor: Actor) -> str:
        """Return why a person may not decide a request; empty where groups and users of the runs allow it."""
        return self.transactions.rights.reason_against(self.tables, read_record(self.tables, approval_id), actor)

    def forbid(self, key: str, *, by: Actor, reason: str) -> None:
        """Cancel what was asked under a key and nobody has claimed, because the policy forbids the action now."""
        states = (ApprovalState.PENDING, *sorted(ENTITLING))
        for row in self.tables.rows(RowQuery(states=states, key=digest_of_key(key))):
            with contextlib.suppress(AlreadyDecided):  # it was claimed or has ended meanwhile
                self.withdraw(row.id, by=by, reason=reason)

    def claim(self, approval_id: str, *, digest: str, version: str, policy: PolicyNow, by: Actor) -> Claim:
        """Take the one right to run the action."""

        def take(tx: Transaction) -> Claim:
            token, record = claim(tx, approval_id, digest=digest, version=version, policy=policy, actor=by)
            return Claim(token, self.transactions.show(tx.writes, record))

        return self.transactions.run(take)

    def release(self, approval_id: str, token: str) -> Approval:
        """Give a claim back before anything was done; the decision can be claimed again until its use-by time."""
        return self.transactions.change(release, approval_id, token)

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
        """Report the outcome of a claimed action. Repeating a report changes nothing.

        Args:
            token: the token of the claim.
        A report after a reconciliation is recorded in the chain and changes nothing.
        """
        return self.transactions.change(
            settle, approval_id, token, state=state, result=result, has_result=has_result, error=error
        )

    def leave(self, approval_id: str) -> None:
        """Record that this process no longer waits."""
        record, own = read_record(self.tables, approval_id), self.tables.hold()
        with self.tables.transaction() as writes:
            waiting = writes.document(WAITER, approval_id)
            if (record.row.waiter if waiting is None else waiting.decode()) == own:
                writes.put_document(WAITER, approval_id, b"")

    def grant(self, standing: Standing, *, by: Actor) -> Standing:
        """Record a standing approval and return it with its id. Repeating a grant, until the same moment, changes nothing."""
        return self.transactions.run(grant, standing, by)


def _record_view(tx: Transaction, approval_id: str, viewer: Actor | None) -> RequestRecord:
    record = write_due(tx, tx.read(approval_id))
    if viewer is not None:
        check_actor(viewer)
        append_view(tx.writes, record.row, at=record.at(tx.now), actor=viewer)
    return record


class Notifier:
    """The deliveries to the receivers of a runtime. They work in the background; a gate only wakes them."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._lock = threading.Lock()
        self._deliveries: dict[str, Delivery] = {}

    def add(self, receivers: Iterable[Webhook]) -> None:
        """Deliver what happens from now on to these receivers, too."""
        for receiver in receivers:
            with self._lock:
                if receiver.id not in self._deliveries:
                    self._deliveries[receiver.id] = Delivery(self.tables, receiver)

    def wake(self) -> None:
        """Have what is new delivered soon."""
        for delivery in list(self._deliveries.values()):
            delivery.wake()

    def flush(self, seconds: float) -> bool:
        """Wait until everything was delivered; False after `seconds`."""
        flushed = [delivery.flush(seconds) for delivery in list(self._deliveries.values())]
        return all(flushed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """Where the gates of a runtime file their requests."""

    requests: RequestStore
    watcher: Watcher
    notifier: Notifier
    """Tells receivers what happens."""
    domain: str
    """The domain of the runtime, which keys begin with."""

    @property
    def tables(self) -> Tables:
        """The tables that hold the requests."""
        return self.requests.tables

    @property
    def secret(self) -> Secret | None:
        """Seals parameters and turns digests into HMACs; None without a key."""
        return self.requests.secret

    @property
    def clock(self) -> Callable[[], float]:
        """The wall clock, in seconds since the epoch."""
        return self.requests.clock

    @property
    def process(self) -> Actor:
        """This process, as the author of claims and withdrawals."""
        return Actor.here("gate", channel="gate")
