"""What was decided about an action and whether it has run, kept where it outlives the process: an action runs once per decision.

For programs that run again from some point on, as graphs do after an interrupt, a crash or a second answer. A decision is looked up,
never made again; an action that has begun is not begun again. Where it is not known whether it came to its end, it is said to be unknown.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Protocol

from grace_kp.errors import ActionOutcomeUnknown, StoreError

DECIDED, RUNNING, DONE, FAILED = "decided", "running", "done", "failed"
MAX_RESULT = 100_000
MAX_IN_MEMORY = 100_000


class Keeps(Protocol):
    """Where entries are kept, by key. Each call is atomic, and what returned is safe from the death of the process."""

    def action(self, key: str) -> bytes | None:
        """The entry; None where there is none."""
        ...

    def put_action(self, key: str, data: bytes, *, only_if: bytes | None) -> bool:
        """Put an entry where `only_if` stands now, None being nothing; False where something else stands."""
        ...


class InMemory:
    """Entries that live as long as the process."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def action(self, key: str) -> bytes | None:
        """The entry; None where there is none."""
        return self._entries.get(key)

    def put_action(self, key: str, data: bytes, *, only_if: bytes | None) -> bool:
        """Put an entry where `only_if` stands now."""
        with self._lock:
            if self._entries.get(key) != only_if:
                return False
            self._entries[key] = data
            self._entries.move_to_end(key)
            while len(self._entries) > MAX_IN_MEMORY:
                self._entries.popitem(last=False)
            return True


@dataclass(frozen=True, slots=True)
class Ran:
    """An action that was begun before: whether it ended, and what it gave if that was kept."""

    state: str
    at: float
    """Seconds since the epoch."""
    has_result: bool = False
    result: Any = None
    error: str = ""

    def told(self, action: str) -> str:
        """What is known of it, for people and models."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.at))
        if self.state == DONE:
            return f"{action} has run already ({when}) and is not run again; its result was not kept"
        if self.state == FAILED:
            return f"{action} was run already ({when}) and failed with {self.error}; it is not run again without a new decision"
        return (
            f"{action} was begun ({when}) and it is not known whether it came to its end: its process died, or is still at it; "
            "it is not run again: find out what it did"
        )


class Entry:
    """One action in the ledger."""

    def __init__(self, keeps: Keeps, key: str) -> None:
        self._keeps = keeps
        self._key = key

    @property
    def id(self) -> str:
        """Tells the entry from others, without saying where it belongs."""
        return hashlib.sha256(self._key.encode()).hexdigest()[:16]

    def _read(self) -> tuple[bytes | None, dict[str, Any]]:
        data = self._keeps.action(self._key)
        return data, ({} if data is None else json.loads(data))

    def decision(self) -> dict[str, Any] | None:
        """What was decided; None where nothing has been."""
        found: dict[str, Any] | None = self._read()[1].get("decision")
        return found

    def decide(self, decision: dict[str, Any]) -> dict[str, Any]:
        """Keep a decision; what holds is the one that was kept first."""
        data = _bytes({"state": DECIDED, "at": time.time(), "decision": decision})
        if self._keeps.put_action(self._key, data, only_if=None):
            return decision
        return self.decision() or decision

    def claim(self, *, again_after_failure: bool = False) -> Ran | None:
        """Say that the action is about to run; what is known of it when it was begun before, and then it must not be run.

        Raises:
            StoreError: it cannot be kept, and so the action must not be run either.
        """
        for _ in range(3):
            data, entry = self._read()
            state = entry.get("state", DECIDED)
            if state not in {DECIDED, FAILED} or (state == FAILED and not again_after_failure):
                return Ran(state, entry["at"], "result" in entry, entry.get("result"), entry.get("error", ""))
            fresh = _bytes({**entry, "state": RUNNING, "at": time.time()})
            if self._keeps.put_action(self._key, fresh, only_if=data):
                return None
        raise StoreError("two runs want to begin the same action at once")

    def release(self) -> None:
        """It did not run after all: it paused for a person before it did anything that counts."""
        self._put(DECIDED)

    def done(self, result: Any = None, *, keep: bool = False) -> None:
        """It came to its end, with this result where `keep` says that it can be given again."""
        kept = {"result": result} if keep and _can_be_kept(result) else {}
        self._put(DONE, **kept)

    def failed(self, error: BaseException) -> None:
        """It raised."""
        self._put(FAILED, error=type(error).__name__)

    def _put(self, state: str, **more: Any) -> None:
        data, entry = self._read()
        self._keeps.put_action(self._key, _bytes({**entry, **more, "state": state, "at": time.time()}), only_if=data)


class Again(Protocol):
    """A call in a program that may be run again: what is known of it from before, and who asks by pausing the program."""

    reviewer: Any

    def begin(self) -> None:
        """The call begins; told in the order in which the program makes its calls."""
        ...

    def wait(self) -> None:
        """Until the calls before it have been decided on."""
        ...

    async def wait_async(self) -> None:
        """`wait` without blocking the event loop."""
        ...

    def end(self) -> None:
        """It has been decided on, one way or the other."""
        ...

    def may_have_forgotten(self, keeps: Keeps) -> bool:
        """Whether this call may have been asked about by a process whose ledger is gone."""
        ...

    def entry(self, keeps: Keeps, action: str) -> Entry:
        """The ledger's entry of this call."""
        ...


def outcome_unknown(action: str, ran: Ran) -> ActionOutcomeUnknown:
    """The error for a caller that cannot be given the result."""
    return ActionOutcomeUnknown(ran.told(action), state=ran.state)


def _can_be_kept(result: Any) -> bool:
    """Whether a result comes back from JSON as it went in, is not large, and holds no secret."""
    from grace_kp.trace import redact_value

    try:
        text = json.dumps(result, allow_nan=False)
        return (
            len(text) <= MAX_RESULT
            and is_same(json.loads(text), result)
            and redact_value(result, identifiers=False) == result
        )
    except (TypeError, ValueError, RecursionError):
        return False


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal in their types, too."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if type(one) is list:
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


def _bytes(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode()
