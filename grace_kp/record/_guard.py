"""The one guard that makes recording fail open: it counts what breaks, logs it once, and lets the agent go on.

Where the stack is full, calls that begin are not recorded, and their run counts the loss. Calls that end there are ended as soon as
there is room. The handlers of RecursionError call nothing that takes a level of the stack.

`GRACE_KP_STRICT_RECORDING=1` makes it raise instead, for the library's own tests.
"""

from __future__ import annotations

import functools
import logging
import os
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from grace_kp.record import _current
from grace_kp.record._current import TROUBLES
from grace_kp.record._host import CANCELLED

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")

STRICT = "GRACE_KP_STRICT_RECORDING"
_log = logging.getLogger("grace_kp")


def shielded(function: Callable[P, R]) -> Callable[P, R | None]:
    """Return `function` guarded: an Exception in it is noted, and the result is None. KeyboardInterrupt and the like are the user's."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            TROUBLES.own += 1
            return None
        except Exception as error:  # noqa: BLE001
            note(function.__qualname__, error)
            return None

    return guarded


def shielded_pair(
    function: Callable[[A, B], R], otherwise: Callable[[], R | None] = lambda: None
) -> Callable[[A, B], R | None]:
    """Guard a function that begins a call or run, from exactly two arguments: packing them for every recorded call would cost time."""
    name = function.__qualname__

    @functools.wraps(function)
    def guarded(first: A, second: B) -> R | None:
        try:
            return function(first, second)
        except RecursionError:
            here = _current.get_frame()
            if here is None:
                _current.TROUBLES.own += 1
            elif hasattr(here, "dropped"):
                here.dropped += 2  # a call and its observation
            else:
                here.run.dropped += 2
            return None
        except Exception as error:  # noqa: BLE001
            note(name, error)
        return shielded(otherwise)()

    return guarded


def shielded_end(function: Callable[[A, B], None]) -> Callable[[A, B], None]:
    """Guard a function that ends a call or run with a result or an error. Where the stack is full, `finish_late` ends it."""
    name = function.__qualname__

    @functools.wraps(function)
    def guarded(first: A, second: B) -> None:
        try:
            function(first, second)
        except RecursionError:
            TROUBLES.late += [(function, first, second)]
        except Exception as error:  # noqa: BLE001
            note(name, error)

    return guarded


def finish_late() -> None:
    """End the calls and runs that could not be ended where the stack was full."""
    for _ in range(len(TROUBLES.late)):
        try:
            late = TROUBLES.late.pop(0)
        except IndexError:  # another thread took it
            return
        try:
            end, frame, value = late
            shielded_end(end)(frame, value)
        except RecursionError:
            TROUBLES.late += [late]
            raise


def attempt(where: str, function: Callable[[], R]) -> R | None:
    """Call code that is not ours, such as a user's callable for an objective; note an error, SystemExit included, and return None.

    KeyboardInterrupt and other cancellations leave it.
    """
    try:
        return function()
    except BaseException as error:
        if not issubclass(type(error), Exception) and _current.HOST.status_after(error) == CANCELLED:
            raise
        note(where, error, theirs=True)
        return None


def note(where: str, error: BaseException | str, *, theirs: bool = False) -> None:
    """Count a trouble and log the first of its kind. If the strict switch is set, raise it unless it is `theirs`.

    `theirs` marks trouble in code that is not ours and that recording calls: a hook, an objective's template, a store.
    """
    text = error if type(error) is str else ""  # not `__class__`, which may run code of the error
    kind = f"{where}: {text or type(error).__name__}"
    if not theirs and not text:
        TROUBLES.own += 1
    try:
        from grace_kp.trace import error_text, redact_text  # needed only when something goes wrong

        # The name or the message of an exception may quote secret values.
        kind = redact_text(kind[:8_192], identifiers=False)
        whole = f"{where}: {error_text(error, 8_192)}" if isinstance(error, BaseException) else kind
        TROUBLES.last = redact_text(whole, identifiers=False)[:500]
    except Exception:  # noqa: BLE001
        TROUBLES.last = kind
    TROUBLES.counts[kind] += 1
    if TROUBLES.counts[kind] == 1:
        _log.warning("recording went on without this: %s", TROUBLES.last)
    if not theirs and os.environ.get(STRICT) == "1" and issubclass(type(error), BaseException):
        raise error  # type: ignore[misc]  # a string was excluded
