"""How a run or call that was left by an exception has ended, told by the exception's classes and their names.

Frameworks use exceptions as signals, and some of these are no failures. This module imports no framework: it compares names.
"""

from __future__ import annotations

from typing import Any

COMPLETED, FAILED, CANCELLED, EXITED, CLOSED = "completed", "failed", "cancelled", "exited", "closed"
SUSPENDED, NOT_APPROVED, INTERRUPTED = "suspended", "not_approved", "interrupted"

_ENDINGS = (
    ("GraphInterrupt", SUSPENDED),
    ("ParentCommand", COMPLETED),
    ("GraphDrained", CANCELLED),
    ("ActionNotApproved", NOT_APPROVED),
)
"""What the exceptions of LangGraph and of the gates stand for; every other one is a failure."""
_MAX_TARGETS = 5


def way_out(error: BaseException) -> str:
    """Return the status of a run that was left by this exception."""
    kind = type(error)  # what the error says of its own class is not asked
    if issubclass(kind, GeneratorExit):
        return CLOSED
    if issubclass(kind, SystemExit):
        return EXITED
    names = _names(error)
    if issubclass(kind, KeyboardInterrupt) or "CancelledError" in names:
        return CANCELLED
    return next((status for name, status in _ENDINGS if name in names), FAILED)


def pauses(error: BaseException) -> bool:
    """Return whether an exception stops the program so that it can go on later: an interrupt, or a drained graph."""
    return not _names(error).isdisjoint({"GraphInterrupt", "GraphDrained"})


def hands_off(error: BaseException) -> bool:
    """Return whether an exception carries a command to the parent graph, which ends the graph that raises it normally."""
    return "ParentCommand" in _names(error)


def handoff_text(error: BaseException) -> str:
    """Describe a handoff by the nodes that it goes to. What it carries along belongs to the parent graph."""
    command = error.args[0] if error.args else None
    goto: Any = getattr(command, "goto", None)
    targets = list(goto) if isinstance(goto, list | tuple) else [goto]
    names = [name for target in targets if (name := _target(target))]
    if not names:
        return "handed off to its parent graph"
    more = f" and {len(names) - _MAX_TARGETS} more" if len(names) > _MAX_TARGETS else ""
    return f"handed off to {', '.join(names[:_MAX_TARGETS])}{more}"


def _target(target: Any) -> str | None:
    """The name of a node that a command goes to, which may stand in a `Send`."""
    name = target if isinstance(target, str) else getattr(target, "node", None)
    return name[:200] if isinstance(name, str) and name else None


def _names(error: BaseException) -> set[str]:
    return {base.__name__ for base in type(error).__mro__}
