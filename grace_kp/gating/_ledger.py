"""The ledger: decisions about actions and their executions, where these outlive the process. An action runs once per decision.

Programs that run again from an earlier point, as graphs do, look up a decision instead of repeating it. An action that has begun never begins
again; without a recorded end its outcome is unknown. `idempotency_key` identifies the running action to the service that it calls.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from grace_kp.approvals import idempotency_key_of, kept_result
from grace_kp.errors import GraceError, StoreError
from grace_kp.record import OPERATIONS
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable


DECIDED, RUNNING, DONE, FAILED = "decided", "running", "done", "failed"
MAX_IN_MEMORY = 100_000
"""Entries beyond which the ledger in memory refuses new ones."""
ATTEMPTS = 3
_CONTENTS = frozenset({"decision", "result"})


class Ledger(Protocol):
    """Entries by ledger key. Each call is atomic, and what it has written is safe from the death of the process."""

    def action(self, key: str) -> bytes | None:
        """Return the entry; None where there is none."""

    def put_action(self, key: str, data: bytes, *, only_if: bytes | None) -> bool:
        """Replace the entry `only_if` (None: no entry) by `data`; return False, and write nothing, where there is another entry."""


class AtMostOnce(Protocol):
    """One action that runs at most once: its claim and its outcome."""

    @property
    def id(self) -> str:
        """An id that is the same for each attempt."""

    @property
    def blocks(self) -> bool:
        """Whether a claim or an outcome may wait for a disk or another process, so that it must not be written on an event loop."""

    def earlier(self, *, again_after_failure: bool = False) -> EarlierRun | None:
        """Return the execution that keeps the action from running now; None where it may run."""

    def claim(self, *, again_after_failure: bool = False) -> EarlierRun | None:
        """Record that the action is about to run; return the earlier execution that keeps it from running."""

    def record(self, state: str, result: object = None, *, keep: bool = False, error: str = "") -> None:
        """Record the end of the action: DONE, FAILED with the type of the error, or RUNNING where its outcome is unknown.

        DECIDED states that it did not run after all: it paused, or was stopped, before it did anything that counts. The result is kept where
        `keep` says so and JSON can hold it.
        """


class InMemory:
    """A ledger that ends with the process. It drops no entries: without its entry an action could run twice."""

    def __init__(self) -> None:
        self._entries: dict[str, Any] = {}
        self._lock = threading.Lock()

    def action(self, key: str) -> Any:
        """Return the entry; None where there is none."""
        return self._entries.get(key)

    def put_action(self, key: str, data: object, *, only_if: object) -> bool:
        """Put an entry in place of `only_if`; return whether `only_if` was the entry."""
        with self._lock:
            if self._entries.get(key) != only_if:
                return False
            if key not in self._entries and len(self._entries) >= MAX_IN_MEMORY:
                raise StoreError(
                    f"the ledger in memory is full: it holds {MAX_IN_MEMORY:,} actions, and a forgotten action could run twice; "
                    "use a store in a file"
                )
            self._entries[key] = data
            return True


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """An execution of an action that began before: whether it ended, and its result if that was kept."""

    state: str
    at: float
    """Seconds since the epoch."""
    has_result: bool = False
    result: Any = None
    error: str = ""

    @property
    def outcome(self) -> str:
        """The outcome of a call that this execution prevents."""
        return "executed_before" if self.state == DONE else f"{self.state}_before"

    def describe(self, action: str) -> str:
        """Describe the execution, for people and models."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.at))
        if self.state == DONE:
            return f"{action} has run already ({when}) and is not run again; its result was not kept"
        if self.state == FAILED:
            return f"{action} was run already ({when}) and failed with {self.error}; it is not run again without a new decision"
        return (
            f"{action} was begun ({when}) and its outcome is unknown: its process died, or still runs it; "
            "it is not run again: find out whether it took effect"
        )


class SharedEntry:
    """JSON in a ledger, which several runs may change at once.

    Args:
        ledger: the ledger of this process, or a function that opens a ledger when the entry is first read or written.
        ledger_key: the key of the entry.
    """

    def __init__(self, ledger: Callable[[], Ledger] | InMemory, ledger_key: str) -> None:
        self._ledger = ledger
        self._key = ledger_key

    @property
    def blocks(self) -> bool:
        """Whether a read or a write may wait for a disk."""
        return not isinstance(self._ledger, InMemory)

    def _read(self) -> tuple[Any, dict[str, Any]]:
        ledger = self._ledger if isinstance(self._ledger, InMemory) else self._ledger()
        data: Any = ledger.action(self._key)
        if type(data) is dict:
            return data, data
        return data, ({} if data is None else json.loads(data))

    def _put(self, entry: dict[str, Any], *, only_if: Any) -> bool:
        if isinstance(self._ledger, InMemory):
            # Encoding takes longer than everything else. Decisions and results are encoded all the same: their owner may change them later.
            data = entry if _CONTENTS.isdisjoint(entry) else json.dumps(entry).encode()
            return self._ledger.put_action(self._key, data, only_if=only_if)
        return self._ledger().put_action(self._key, json.dumps(entry).encode(), only_if=only_if)


class LedgerEntry(SharedEntry):
    """One action in a ledger."""

    @property
    def id(self) -> str:
        """An id of the entry that does not show its key."""
        return hashlib.sha256(self._key.encode()).hexdigest()[:16]

    def decision(self) -> dict[str, Any] | None:
        """Return the decision; None before there is one."""
        found: dict[str, Any] | None = self._read()[1].get("decision")
        return found

    def decide(self, decision: dict[str, Any]) -> dict[str, Any]:
        """Keep a decision, and return the one that was kept first."""
        entry = {"state": DECIDED, "at": time.time(), "decision": decision}
        return decision if self._put(entry, only_if=None) else self.decision() or decision

    def void(self) -> None:
        """Keep with the decision that the first answer about it is void."""
        data, entry = self._read()
        if entry.get("decision"):
            self._put({**entry, "decision": {**entry["decision"], "void": True}}, only_if=data)

    def answer(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Keep a reviewer's answer with the decision, and return the one that was kept first."""
        for _ in range(ATTEMPTS):
            data, entry = self._read()
            decision = entry.get("decision") or {}
            if "answer" in decision:
                return dict(decision["answer"])
            if self._put({**entry, "decision": {**decision, "answer": answer}}, only_if=data):
                return answer
        raise StoreError("two answers to the same question arrived at once")

    def earlier(self, *, again_after_failure: bool = False) -> EarlierRun | None:
        """Return the execution that keeps the action from running now; None where it may run."""
        return _earlier(self._read()[1], again_after_failure)

    def claim(self, *, again_after_failure: bool = False) -> EarlierRun | None:
        """Record that the action is about to run; return the earlier execution that keeps it from running."""
        for _ in range(ATTEMPTS):
            data, entry = self._read()
            if (earlier := _earlier(entry, again_after_failure)) is not None:
                return earlier
            if self._put({**entry, "state": RUNNING, "at": time.time()}, only_if=data):
                return None
        raise StoreError("two runs want to begin the same action at once")

    def record(self, state: str, result: object = None, *, keep: bool = False, error: str = "") -> None:
        """Record the end of the action, see `AtMostOnce`. One whose outcome is unknown stays as begun."""
        if state == RUNNING:
            return
        more: dict[str, Any] = {"result": result} if keep and kept_result(result) else {}
        if error:
            more["error"] = redact_text(error, identifiers=False)
        data, entry = self._read()
        self._put({**entry, **more, "state": state, "at": time.time()}, only_if=data)


def _earlier(entry: dict[str, Any], again_after_failure: bool) -> EarlierRun | None:
    state = entry.get("state", DECIDED)
    if state == DECIDED or (state == FAILED and again_after_failure):
        return None
    return EarlierRun(state, entry["at"], "result" in entry, entry.get("result"), entry.get("error", ""))


def idempotency_key() -> str:
    """Return a key for the gated action that runs here, to pass to the receiving service as its idempotency key.

    It is a UUID. With an inbox it is the same for each attempt under one approval, in every process. Where the gate has a `key`, it is also the
    same for a new request with the same key and arguments: after an execution that was reconciled as not done, and after a restored backup
    that has lost the first request. After an attempt that raised, it is another. Without an inbox it is the same for each attempt of one call
    in a program that runs again, such as a graph, and otherwise new for each call. A new thread inside of the action sees it where it was
    started through `grace_kp.propagate`.

    Raises:
        GraceError: no gated action runs here.
    """
    operations = OPERATIONS.get()
    if not operations:
        raise GraceError(
            "idempotency_key() is called outside of a gated action; call it inside of a function under @grace.gate"
        )
    return idempotency_key_of(operations[-1])
