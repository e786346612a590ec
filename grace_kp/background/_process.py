"""Hooks for forks and for the exit of the process, and reports of lost data.

Both hooks are registered only here.
"""

from __future__ import annotations

import atexit
import itertools
import logging  # before the hooks at the end of this file, see there
import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Iterable
    from multiprocessing.util import Finalize


LOCK_SECONDS = 5.0
"""Seconds that a fork waits for a lock. If it stays busy, the child replaces it anyway."""
IMPORT_SECONDS = 60.0
"""Seconds that a fork waits for a lock under which modules are imported. A half-imported module would stay half imported in the child."""
STEP_BACK_SECONDS = 0.0005
LOCK_ATTEMPTS = 100
"""Attempts to take all locks while other threads create residents."""
EXIT_PRIORITY = 100
"""Priority among the finalizers of a multiprocessing child: early, while other libraries still work."""
_log = logging.getLogger("grace_kp.background")
_loss_log = logging.getLogger("grace_kp")


class Lock(Protocol):
    """`threading.Lock` or `threading.RLock`."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock."""

    def release(self) -> None:
        """Release the lock."""


class Resident:
    """An object with locks, threads or unfinished work, which `watch` notifies of forks and of the exit."""

    __slots__ = ("__weakref__",)

    def import_locks(self) -> Iterable[Lock]:
        """Return the locks under which modules are imported. A fork takes them first and waits longer for them."""
        return ()

    def fork_locks(self) -> Iterable[Lock]:
        """Return the locks that the forking thread holds during a fork. It takes each before it asks for the next."""
        return ()

    def after_fork(self) -> None:
        """In the child, replace locks and drop the parent's work. No other thread exists there. Do not wake a worker here."""

    def at_exit(self) -> None:
        """Finish work in bounded time while the interpreter exits."""


class Process:
    """The residents of this process, held weakly."""

    def __init__(self) -> None:
        self._residents: WeakValueDictionary[tuple[bool, int], Resident] = WeakValueDictionary()
        self._numbers = itertools.count()
        self._held: dict[int, list[Lock]] = {}
        self._forking: set[int] = set()
        """Ids of the threads that wait for locks before a fork."""
        self._has_exited = False
        self._is_registered = False
        self._finalizer: Finalize | None = None

    def watch(self, resident: Resident, *, last: bool = False) -> None:
        """Notify `resident` of forks and of the exit from now on. After the exit, finish it at once."""
        self._residents[last, -next(self._numbers)] = resident
        if self._has_exited:
            self._leave(resident)

    def residents(self) -> list[Resident]:
        """Return the residents in the order of `exit`: newest first, then those watched with `last`."""
        references = sorted(self._residents.valuerefs(), key=lambda reference: reference.key)
        return [resident for reference in references if (resident := reference()) is not None]

    def before_fork(self) -> None:
        """Take all locks. A lock that another thread holds during the fork would stay locked in the child."""
        thread = threading.get_ident()
        self._forking.add(thread)
        try:
            for _ in range(LOCK_ATTEMPTS):
                residents = self.residents()
                held = self._held[thread] = []
                for resident in residents:
                    # One by one: an interrupt may come while the next is waited for.
                    held.extend(lock for lock in resident.import_locks() if lock.acquire(timeout=IMPORT_SECONDS))
                    held.extend(lock for lock in resident.fork_locks() if lock.acquire(timeout=LOCK_SECONDS))
                if {*map(id, self.residents())} <= {*map(id, residents)}:
                    return
                # Another thread has created a resident meanwhile, and may be using its locks.
                self.after_fork_in_parent()
        finally:
            self._forking.discard(thread)

    def let_forks_go_first(self) -> None:
        """Yield the interpreter to the holder of a lock that a fork waits for. Recording threads call it.

        A computing thread keeps the interpreter for 5 ms each time, and the holder needs it many times.
        """
        if self._forking:
            time.sleep(STEP_BACK_SECONDS)

    def after_fork_in_parent(self) -> None:
        for lock in reversed(self._held.pop(threading.get_ident(), [])):
            lock.release()

    def after_fork(self) -> None:
        """In the child, have every resident drop the parent's work."""
        self._held, self._forking = {}, set()
        for resident in self.residents():
            resident.after_fork()
        self._finalizer = None
        self.prepare_exit()

    def prepare_exit(self) -> None:
        """Register a finalizer with multiprocessing, whose children exit without the handlers of `atexit`.

        Workers call it when work begins: the library may be imported in the child, and a starting child drops all finalizers.
        """
        util = sys.modules.get("multiprocessing.util")
        if util is None or not hasattr(util, "_exit_function"):  # not imported, or not completely
            return
        if not self._is_registered:
            self._is_registered = True
            util.register_after_fork(self, Process.prepare_exit)
        if self._finalizer is None or not self._finalizer.still_active():
            self._finalizer = util.Finalize(None, self._exit_child, exitpriority=EXIT_PRIORITY)

    def _exit_child(self) -> None:
        # Elsewhere the handlers of `atexit` are running. From Python 3.14 on these finalizers are among the handlers of a child.
        process = sys.modules.get("multiprocessing.process")
        is_child = process is not None and process.parent_process() is not None
        if threading.main_thread().is_alive() or is_child:
            self.exit()

    def exit(self) -> None:
        """Finish every resident, once. A failure of one does not affect the others."""
        if self._has_exited:
            return
        self._has_exited = True
        for resident in self.residents():
            self._leave(resident)

    def _leave(self, resident: Resident) -> None:
        try:
            resident.at_exit()
        except Exception as error:  # noqa: BLE001
            from grace_kp.trace import redacted_error  # needed only when something goes wrong

            _log.warning("%s failed at exit: %s", type(resident).__name__, redacted_error(error))


def is_subinterpreter() -> bool:
    """Return whether this is a sub-interpreter. These cannot load numpy or pydantic, and some hang when they try."""
    try:
        if sys.version_info >= (3, 13):
            import _interpreters as interpreters
        else:
            import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]
    except ImportError:
        return False
    return bool(interpreters.get_current() != interpreters.get_main())


def report_loss(message: str) -> None:
    """Write `message` as one line to stderr, if there is one, and to the handlers of logging. Never raise."""
    line = f"grace_kp: {' '.join(message.split())}"
    with suppress(Exception):
        stream, is_original = sys.stderr, sys.stderr is sys.__stderr__
        if stream is not None and is_original:
            # Bypass the buffer: a daemon thread that holds its lock aborts an exiting interpreter.
            os.write(stream.fileno(), f"{line}\n".encode(stream.encoding, "backslashreplace"))
        elif stream is not None:
            stream.write(line + "\n")
            stream.flush()
    with suppress(Exception):
        if _loss_log.hasHandlers():
            _loss_log.error(line.removeprefix("grace_kp: "))


PROCESS = Process()
watch, prepare_exit, let_forks_go_first = PROCESS.watch, PROCESS.prepare_exit, PROCESS.let_forks_go_first

# The hook registered last runs first before a fork. Logging takes its lock in such a hook. Imported later than this line,
# it would hold that lock while we wait for a thread that is about to log, or to import a module that asks for a logger.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=PROCESS.before_fork, after_in_parent=PROCESS.after_fork_in_parent, after_in_child=PROCESS.after_fork
    )
atexit.register(PROCESS.exit)
