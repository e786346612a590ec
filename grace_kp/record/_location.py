"""Where this context is: the innermost recorded call or run, ours or a framework's."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from grace_kp.record._current import CURRENT, HOST

if TYPE_CHECKING:
    from grace_kp.record._call import Call
    from grace_kp.record._run import Run

Frame: TypeAlias = "Call | Run"


def located() -> Frame | None:
    """Return the innermost recorded call or run of this context."""
    here: Frame | None = CURRENT.get()
    return here if HOST.locate is None else HOST.locate(here)


def current_run() -> Run | None:
    """Return the open run around this context; None outside of any run."""
    here = located()
    return here.run if here is not None and here.run.open else None
