"""The one guard that makes recording fail open: whatever breaks in it is counted, logged once, and the agent goes on.

`GRACE_KP_STRICT_RECORDING=1` makes it raise instead, for the library's own tests.
"""

from __future__ import annotations

import functools
import logging
import os
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from grace_kp.record._current import TROUBLES

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")

STRICT = "GRACE_KP_STRICT_RECORDING"
_log = logging.getLogger("grace_kp")


def shielded(function: Callable[P, R]) -> Callable[P, R | None]:
    """`function`, but an Exception in it is noted and gives None. KeyboardInterrupt and the like pass: they are the user's."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001
            note(function.__qualname__, error)
            return None

    return guarded


def shielded_pair(
    function: Callable[[A, B], R], otherwise: Callable[[], R | None] = lambda: None
) -> Callable[[A, B], R | None]:
    """`shielded` for a function of exactly two arguments: the recorded call's own path, where packing arguments would show.

    Args:
        function: what may fail.
        otherwise: gives the result where it does.
    """
    name = function.__qualname__

    @functools.wraps(function)
    def guarded(first: A, second: B) -> R | None:
        try:
            return function(first, second)
        except Exception as error:  # noqa: BLE001
            note(name, error)
        return shielded(otherwise)()

    return guarded


def attempt(where: str, function: Callable[[], R]) -> R | None:
    """What the user's own code returns, such as a callable for an objective; None, and a note, where it raises an Exception."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001
        note(where, error, theirs=True)
        return None


def note(where: str, error: BaseException | str, *, theirs: bool = False) -> None:
    """Count one trouble; the first of its kind is logged. Raise it where the strict switch is set and it is not `theirs`.

    `theirs` is trouble in the user's own code that recording calls: a hook, an objective's template.
    """
    text = error if type(error) is str else ""  # what an error says of its own class is not asked
    kind = f"{where}: {text or type(error).__name__}"
    TROUBLES.counts[kind] += 1
    if not theirs and not text:
        TROUBLES.own += 1
    try:
        from grace_kp.trace import redact_text  # needed only where something goes wrong

        # What an exception says may quote the values that it is about.
        TROUBLES.last = redact_text(kind if text else f"{kind}: {error}"[:8_192], identifiers=False)[:500]
    except Exception:  # noqa: BLE001
        TROUBLES.last = kind
    if TROUBLES.counts[kind] == 1:
        _log.warning("recording went on without this: %s", TROUBLES.last)
    if not theirs and os.environ.get(STRICT) == "1" and issubclass(type(error), BaseException):
        raise error  # type: ignore[misc]  # it is no text
