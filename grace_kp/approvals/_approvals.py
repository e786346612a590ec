"""`grace.approvals`: what people and programs do with requests for approval. Every verb has an async twin with an `a` before its name."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from grace_kp.approvals._chain import entry_of, export, forget
from grace_kp.approvals._inbox import RequestVerbs
from grace_kp.approvals._people import Actor
from grace_kp.approvals._standing import Standing
from grace_kp.approvals._verify import checkpoint, verify
from grace_kp.approvals._words import seconds_of
from grace_kp.background import to_thread
from grace_kp.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping

    from grace_kp.approvals._inbox import Inbox
    from grace_kp.approvals._tables import Link
    from grace_kp.approvals._transaction import Transactions
    from grace_kp.approvals._verify import Checkpoint, Verification


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


class Approvals(RequestVerbs):
    """The requests for approval in the store of a runtime.

    A `by` that is a name in Python is only *stated*; a login makes it *authenticated*.
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

    @property
    def _transactions(self) -> Transactions:
        return self._inbox().requests.transactions

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
        return self._inbox().requests.grant(standing, by=Actor.of(by))

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
