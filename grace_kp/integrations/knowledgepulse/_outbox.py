"""What waits to be sent to a registry, and the one background thread that sends it, so that neither agents nor the store wait.

It knows nothing of registries: it is given a function that sends one trace and says what came of it. The thread starts when there is
something to send and ends when there has been nothing for a while.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from grace_kp.record import FORKABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.integrations.knowledgepulse import Contributed
    from grace_kp.trace import ReasoningTrace

    Send = Callable[[ReasoningTrace, float | None], Contributed]

EXIT_SECONDS = 2.0
IDLE_SECONDS = 5.0
STATUSES = ("sent", "already_there", "not_eligible", "failed", "dropped")
_log = logging.getLogger("grace_kp.registry")


class Outbox:
    """A bounded queue with a thread of its own.

    Args:
        send: sends one trace, within so many seconds where they are given, and says what came of it.
        most: how many traces wait at the most; what comes beyond that is counted and not sent.
    """

    def __init__(self, send: Send, *, most: int) -> None:
        self._send = send
        self._most = most
        self._closed = False
        self._ends: float | None = None
        self._fresh()
        FORKABLE.add(self)
        self._at_exit = _exiting(weakref.ref(self))
        atexit.register(self._at_exit)

    def _fresh(self) -> None:
        self.still = threading.Lock()
        """Held while something is imported: no fork may come in between."""
        self._held = False
        self._changed = threading.Condition()
        self._waiting: deque[ReasoningTrace] = deque()
        self._sending = 0
        self._thread: threading.Thread | None = None
        self._counts = dict.fromkeys(STATUSES, 0)
        self._told: set[str] = set()
        self._last_problem: str | None = None

    def put(self, trace: ReasoningTrace) -> None:
        """Let a trace be sent soon. Costs an append, but for the last moments of the program."""
        if self._ends is not None:
            self._in_place(trace)
            return
        with self._changed:
            if not self._closed and len(self._waiting) < self._most:
                self._waiting.append(trace)
                self._changed.notify_all()
                self._start()
                return
        if self._closed:
            self._drop("traces came after the registry was closed and are not sent")
        else:
            self._drop(f"more than {self._most:,} traces wait; some are not sent")

    def count(self, status: str, number: int = 1) -> None:
        """Note what became of a trace."""
        with self._changed:
            self._counts[status] += number

    def _start(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="grace_kp registry", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # at interpreter exit none can be started any more; what waits is sent by `leave`
                return
            self._thread = thread

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._closed:
                    self._changed.wait(IDLE_SECONDS)
                if not self._waiting:
                    self._thread = None
                    return
                trace = self._waiting.popleft()
                self._sending += 1
            try:
                self._one(trace, None)
            finally:
                with self._changed:
                    self._sending -= 1
                    self._changed.notify_all()

    def _one(self, trace: ReasoningTrace, seconds: float | None) -> None:
        try:
            done = self._send(trace, seconds)
        except Exception as error:  # noqa: BLE001 — a registry that cannot be used is reported, never raised
            self.count("failed")
            self._problem(type(error).__name__, f"a trace was not sent: {error}")
            return
        self.count(done.status)
        if done.status == "failed":
            self._problem(f"HTTP {done.http_status}", f"a trace was not sent: {done.reason}")
        else:
            self._told.clear()  # what goes wrong after this is news again

    def _in_place(self, trace: ReasoningTrace) -> None:
        left = (self._ends or 0.0) - time.monotonic()
        if left > 0:
            self._one(trace, left)
        else:
            self._drop("the program ended before all traces were sent")

    def _drop(self, why: str, number: int = 1) -> None:
        self.count("dropped", number)
        self._problem(why, why)

    def _problem(self, kind: str, message: str) -> None:
        self._last_problem = message
        if kind not in self._told:
            self._told.add(kind)
            _log.warning(message)

    def flush(self, timeout: float) -> bool:
        """Wait until nothing waits and nothing is being sent; False where that took too long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._sending, timeout)

    def close(self, timeout: float) -> bool:
        """Flush, and end the thread; what still waits then is not sent, and what comes later neither."""
        flushed = self.flush(timeout)
        with self._changed:
            self._closed = True
            lost = len(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        if lost:
            self._drop("the registry was closed before all traces were sent", lost)
        atexit.unregister(self._at_exit)
        return flushed

    def leave(self) -> None:
        """At the end of the program: send what waits, and for as long as there is time what still comes."""
        self._ends = time.monotonic() + EXIT_SECONDS
        if self._thread is not None:
            self.flush(EXIT_SECONDS)
            return
        while self._waiting:
            self._in_place(self._waiting.popleft())

    def before_fork(self) -> None:
        """Let nothing be half imported in the moment of a fork."""
        self._held = self.still.acquire(timeout=5.0)

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._held:
            self.still.release()

    def after_fork(self) -> None:
        """In a forked child: what waited is the parent's to send, and its thread is not here."""
        self._fresh()
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            # A child of multiprocessing ends without running at-exit handlers, but runs these; the runtimes' come first.
            util.register_after_fork(self, lambda outbox: util.Finalize(outbox, outbox.leave, exitpriority=90))

    def status(self) -> dict[str, Any]:
        """The counts, how many wait, and what went wrong last."""
        with self._changed:
            waiting = len(self._waiting) + self._sending
            return {**self._counts, "waiting": waiting, "last_problem": self._last_problem}


def _exiting(reference: weakref.ref[Outbox]) -> Callable[[], None]:
    def at_exit() -> None:
        outbox = reference()
        if outbox is not None:
            outbox.leave()

    return at_exit
