"""A call with a deadline: it runs in a thread that is abandoned when the time is over."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING, Any

from grace_kp.errors import JudgeError

if TYPE_CHECKING:
    from collections.abc import Callable


def bounded(call: Callable[[], Any], timeout: float | None, what: str = "the judge") -> Any:
    """The result of `call`, which is left to itself when it takes longer than `timeout` seconds.

    Raises:
        JudgeError: it took too long; anything else that `call` raises comes through.
    """
    if timeout is None:
        return call()
    done = threading.Event()
    box: list[Any] = [None, None]
    context = contextvars.copy_context()

    def work() -> None:
        try:
            box[0] = context.run(call)
        except BaseException as error:  # noqa: BLE001 — handed to the thread that waits
            box[1] = error
        done.set()

    try:
        threading.Thread(target=work, name="grace_kp judge", daemon=True).start()
    except RuntimeError:  # no thread can be started any more when the interpreter exits
        return call()
    if not done.wait(timeout):
        raise JudgeError(f"{what} did not answer within {timeout:g} s")
    if box[1] is not None:
        raise box[1]
    return box[0]
