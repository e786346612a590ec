"""`grace.approvals`: what people and programs do with requests for approval. Every verb has an async twin with an `a` before its name."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from grace_kp.approvals._chain import entry_of, export, forget
from grace_kp.approvals._people import Actor
from grace_kp.approvals._standing import Standing
from grace_kp.approvals._verify import checkpoint, verify
from grace_kp.approvals._words import seconds_of
from grace_kp.background import to_thread
from grace_kp.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence

    from grace_kp.approvals._inbox import Inbox
    from grace_kp.approvals._record import Approval
    from grace_kp.approvals._tables import Link
    from grace_kp.approvals._verify import Checkpoint, Verification
    from grace_kp.errors import ApprovalError


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class Carries(Protocol):
    """What carries out an approved action."""

    def execute(self, approval_id: str, arguments: Mapping[str, object]) -> Any:
        """Run the action and return its result."""
        ...

    async def aexecute(self, approval_id: str, arguments: Mapping[str, object]) -> Any:
        """`execute` without blocking the event loop."""
        ...

    def resume(
        self, graph: Any, *, thread: str | None, limit: int | None, config: Mapping[str, Any] | None
    ) -> list[Resumed]:
        """Carry on the threads of a graph."""
        ...

    async def aresume(
        self, graph: Any, *, thread: str | None, limit: int | None, config: Mapping[str, Any] | None
    ) -> list[Resumed]:
        """`resume` without blocking the event loop."""
        ...


def twin(verb: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Return a verb as a coroutine function that does not block the event loop."""

    @functools.wraps(verb)
    async def twin_of(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await to_thread(verb, self, *args, **kwargs)

    twin_of.__name__ = f"a{verb.__name__}"
    twin_of.__doc__ = f"`{verb.__name__}` without blocking the event loop."
    return twin_of


SWEEP_SECONDS = 1.0
"""How often what is due is written while somebody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One entry of the chain."""

    seq: int
    """Its number."""
    at: float
    """Seconds since the epoch."""
    kind: str
    """What happened, such as `requested`, `decided` or `settled`."""
    approval: str | None = None
    """Id of the approval; None for what concerns others, such as a standing approval."""
    actor: Actor | None = None
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, link: Link) -> Change:
        """Return an entry of the chain as a change."""
        entry = entry_of(link)
        actor = entry.get("actor")
        return cls(
            seq=link.seq,
            at=entry["at"],
            kind=entry["kind"],
            approval=link.approval,
            actor=None if actor is None else Actor.from_dict(actor),
            facts=entry.get("facts") or {},
        )


class Changes:
    """An endless iterator of changes, for `for` and `async for`.

    Args:
        inbox: the inbox.
        after: number of the change after which to begin.
    """

    def __init__(self, inbox: Inbox, after: int) -> None:
        self._inbox, self._seq = inbox, after

    def __iter__(self) -> Iterator[Change]:
        with self._inbox.watcher.waiting(None) as waiter, waiter.in_thread() as sleep:
            while True:
                for change in self._next():
                    self._seq = change.seq
                    yield change
                waiter.due = self._inbox.clock() + SWEEP_SECONDS
                sleep()

    async def __aiter__(self) -> AsyncIterator[Change]:
        with self._inbox.watcher.waiting(None) as waiter, waiter.on_loop() as sleep:
            while True:
                for change in await to_thread(self._next):
                    self._seq = change.seq
                    yield change
                waiter.due = self._inbox.clock() + SWEEP_SECONDS
                await sleep()

    def _next(self) -> list[Change]:
        """Return the changes since the last one. A store that is busy now is read again later."""
        try:
            self._inbox.requests.sweep()
            return [Change.of(link) for link in self._inbox.tables.links(after=self._seq)]
        except StoreError:
            self._inbox.tables.head()  # what cannot even be read is an error
            return []


class Approvals:
    """The requests for approval in the store of a runtime.

    `by` names the person who decides. A name in Python is only *stated*; a login makes it *authenticated*. Each verb is idempotent: repeated
    by the same person it changes nothing. Verbs raise `UnknownApproval` for an unknown id, `AlreadyDecided` if another decision or the end of
    the request came first, `NotEntitled` if this person may not decide it, `ChangedSinceShown` if `digest` is not that of the arguments now, and
    ValueError for a name that cannot be used.
    """

    def __init__(self, inbox: Callable[[], Inbox], carrier: Carries) -> None:
        """Open nothing yet.

        Args:
            inbox: returns the inbox of the runtime.
            carrier: carries out approved actions.
        """
        self._inbox, self._carrier = inbox, carrier

    @property
    def inbox(self) -> Inbox:
        """The inbox of the runtime, for programs in which a login establishes who decides."""
        return self._inbox()

    def pending(self, action: str | None = None, *, limit: int = 100, group: str | None = None) -> list[Approval]:
        """Return pending requests, by deadline and level.

        Args:
            action: only of actions that match this name or glob.
            limit: at most this many.
            group: only those that members of this group may decide.
        """
        return self._inbox().requests.pending(action, limit=limit, group=group)

    def get(self, approval_id: str, *, by: str | None = None) -> Approval:
        """Return an approval; with `by`, the chain records that this person has seen it."""
        return self._inbox().requests.get(approval_id, viewer=None if by is None else Actor.here(by))

    def approve(self, approval_id: str, *, by: str, note: str = "", digest: str | None = None) -> Approval:
        """Consent to the action with its arguments; with a quorum, this is one vote.

        Args:
            approval_id: the approval.
            by: who consents.
            note: kept with the decision.
            digest: the digest of the arguments that the person was shown. It is needed after an edit by somebody else.
        """
        return self._inbox().requests.approve(approval_id, actor=Actor.here(by), note=note, digest=digest)

    def edit(
        self, approval_id: str, changes: Mapping[str, object], *, by: str, note: str = "", digest: str | None = None
    ) -> Approval:
        """Replace arguments and consent to the result; the count of votes begins again.

        Args:
            approval_id: the approval.
            changes: new values by parameter name.
            by: who edits.
            note: kept with the decision.
            digest: the digest of the arguments that the person was shown.

        Raises:
            EditRefused: the arguments do not fit the action, or change what identifies the operation.
        """
        return self._inbox().requests.edit(approval_id, changes, actor=Actor.here(by), note=note, digest=digest)

    def reject(self, approval_id: str, *, by: str, reason: str = "", digest: str | None = None) -> Approval:
        """Refuse the action. One rejection closes the request."""
        return self._inbox().requests.reject(approval_id, actor=Actor.here(by), reason=reason, digest=digest)

    def respond(self, approval_id: str, words: str, *, by: str, digest: str | None = None) -> Approval:
        """Answer with instructions for the agent; the action does not run."""
        return self._inbox().requests.respond(approval_id, words, actor=Actor.here(by), digest=digest)

    def skip(self, approval_id: str, *, by: str, note: str = "", digest: str | None = None) -> Approval:
        """Let the agent go on without the action: its gate returns None."""
        return self._inbox().requests.skip(approval_id, actor=Actor.here(by), note=note, digest=digest)

    def retry(self, approval_id: str, *, by: str, note: str = "", digest: str | None = None) -> Approval:
        """Have the gate assess the call again."""
        return self._inbox().requests.retry(approval_id, actor=Actor.here(by), note=note, digest=digest)

    def withdraw(self, approval_id: str, *, by: str, reason: str = "") -> Approval:
        """Cancel a request, or a decision that nobody has claimed."""
        return self._inbox().requests.withdraw(approval_id, actor=Actor.here(by), reason=reason)

    def decide_all(
        self,
        ids: Sequence[str],
        verb: str,
        *,
        by: str,
        note: str = "",
        digests: Mapping[str, str] | None = None,
    ) -> dict[str, Approval | ApprovalError]:
        """Apply `approve`, `reject`, `respond`, `skip`, `retry` or `withdraw` to each of these approvals; return what came of each, by id."""
        return self._inbox().requests.decide_all(ids, verb, actor=Actor.here(by), note=note, digests=digests)

    def reconcile(self, approval_id: str, *, happened: bool, by: str, note: str = "") -> Approval:
        """State whether an action whose outcome is unknown has happened.

        `happened=False` is refused while its process may still run; a new call may then ask again.
        """
        return self._inbox().requests.reconcile(approval_id, actor=Actor.here(by), happened=happened, note=note)

    def history(
        self, *, action: str | None = None, by: str | None = None, since: float | None = None, limit: int = 100
    ) -> list[Approval]:
        """Return what is no longer pending, newest first.

        Args:
            action: only of actions that match this name or glob.
            by: only what this person has decided, voted for or closed.
            since: only what changed at or after this time, in seconds since the epoch.
            limit: at most this many.
        """
        return self._inbox().requests.history(action=action, by=by, since=since, limit=limit)

    def watch(self, after: int | None = None) -> Changes:
        """Return an endless iterator of changes as they happen in any process, for `for` and `async for`.

        Args:
            after: number of the change after which to begin; from now on when None.
        """
        inbox = self._inbox()
        return Changes(inbox, inbox.tables.head()[0] if after is None else after)

    def execute(self, approval_id: str, arguments: Mapping[str, object] | None = None) -> Any:
        """Carry out an approved action whose process is gone or went on without it, and return its result.

        The action is found by name and version among the gates that this runtime defines. It runs once, as a run of its own. Of a finished
        action the recorded result is returned.

        Args:
            approval_id: the approval.
            arguments: values for parameters that the gate ignores (`ignore=`), which are not kept.

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
        """Carry on the threads of a graph whose interrupts ask about requests that are decided by now.

        An interrupt is resumed when all of its requests have ended: decided, expired or withdrawn. Each thread is invoked with the
        configuration values that it was started with, as far as they are plain values and no secrets. An action runs once, also if an
        answer to the graph or another process comes at the same time.

        Args:
            graph: the compiled graph or agent, with its checkpointer.
            thread: only this thread; all that wait when None.
            limit: at most this many threads.
            config: additional configuration, such as `{"callbacks": [handler]}`; its values win over those that were kept.

        Returns:
            What came of each thread that was carried on, or had to be left. Errors that a graph raises are stated there.

        Raises:
            GraceError: `graph` is no graph with a checkpointer.
        """
        return self._carrier.resume(graph, thread=thread, limit=limit, config=config)

    async def aresume(
        self,
        graph: Any,
        *,
        thread: str | None = None,
        limit: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> list[Resumed]:
        """`resume` without blocking the event loop."""
        return await self._carrier.aresume(graph, thread=thread, limit=limit, config=config)

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
            until: how long it holds from now, in seconds or as a text such as `8h`.
            uses: at most this many calls.
            by: who consents.
            note: kept with it.
            version: the version of the action that it is limited to.
        """
        standing = Standing(
            action=action,
            domain=self._inbox().domain,
            parameters=parameters,
            until=self._inbox().clock() + seconds_of("until", until),
            uses=uses,
            note=note,
            version=version,
        )
        return self._inbox().requests.grant(standing, actor=Actor.here(by))

    def standing(self, *, ended: bool = False) -> list[Standing]:
        """Return the standing approvals that hold; with `ended`, the others, too."""
        return self._inbox().requests.standing(ended=ended)

    def end_standing(self, approval_id: str, *, by: str, reason: str = "") -> Standing:
        """End a standing approval, and cancel what it approved and nobody has claimed."""
        return self._inbox().requests.end_standing(approval_id, actor=Actor.here(by), reason=reason)

    def sweep(self) -> int:
        """Write what is due: expiry, escalation, executions whose process is gone; return the number of changes."""
        return self._inbox().requests.sweep()

    def restored(self, *, by: str) -> int:
        """After the store was restored from a backup: mark everything approved or claimed as unknown; return their number."""
        return self._inbox().requests.restored(actor=Actor.here(by))

    def verify(self, checkpoint: Checkpoint | None = None) -> Verification:
        """Verify the chain of all that happened, against a checkpoint that was kept elsewhere. Without one, only accidents are found."""
        inbox = self._inbox()
        return verify(inbox.tables, at=inbox.clock(), checkpoint=checkpoint)

    def checkpoint(self) -> Checkpoint:
        """Return the head of the chain, to be kept where nobody who can write the store can change it."""
        inbox = self._inbox()
        return checkpoint(inbox.tables, at=inbox.clock())

    def export(self) -> Iterator[dict[str, Any]]:
        """Yield the entries of the chain as JSON objects."""
        return export(self._inbox().tables)

    def forget(self, *, before: float, by: str) -> int:
        """Delete the contents of approvals that ended before a time, in seconds since the epoch; the chain stays verifiable."""
        inbox = self._inbox()
        return forget(inbox.tables, before=before, at=inbox.clock(), actor=Actor.here(by))

    apending = twin(pending)
    aget = twin(get)
    aapprove = twin(approve)
    aedit = twin(edit)
    areject = twin(reject)
    arespond = twin(respond)
    askip = twin(skip)
    aretry = twin(retry)
    awithdraw = twin(withdraw)
    adecide_all = twin(decide_all)
    areconcile = twin(reconcile)
    ahistory = twin(history)
    agrant = twin(grant)
    astanding = twin(standing)
    aend_standing = twin(end_standing)
    asweep = twin(sweep)
    arestored = twin(restored)
    averify = twin(verify)
    acheckpoint = twin(checkpoint)
    aforget = twin(forget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A thread whose decided requests were carried on, or could not be."""

    thread: str
    approvals: tuple[str, ...] = ()
    """Ids of the requests whose decisions its graph was resumed with."""
    state: str = "finished"
    """`finished`; `paused`, where it asks something else; `raised`; or `left`, where it was not resumed."""
    problem: str = ""
    """The error that the graph raised, or why it was left."""
    error: Exception | None = None
    """The error itself."""
    output: Any = field(default=None, repr=False)
    """What the graph returned."""
