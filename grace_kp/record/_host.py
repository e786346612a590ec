"""The host interface: what recording knows of the frameworks that call the user's code.

A framework registers its name, the exceptions that it uses as signals, and how it tells where its program is. Recording itself names
no framework.
"""

from __future__ import annotations

import inspect
import sys
import typing
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Locate = Callable[[Any], Any]
    Place = Callable[[], str | None]

COMPLETED, FAILED, CANCELLED, EXITED, CLOSED = "completed", "failed", "cancelled", "exited", "closed"
SUSPENDED, WAITING, NOT_APPROVED, INTERRUPTED = "suspended", "waiting", "not_approved", "interrupted"
MAX_TARGETS, MAX_NAME = 5, 200
CANCELLATIONS = frozenset({"KeyboardInterrupt", "Cancelled", "GreenletExit"})
"""Those of Python, trio and gevent. An Exception of such a name is an error like others, such as the status of a service."""


@dataclass(frozen=True, slots=True)
class Signal:
    """The meaning of an exception class that is a signal and not a failure."""

    status: str
    """Status of a run or call that this exception leaves."""
    pauses: bool = False
    """The program stops and can go on later."""
    targets: Callable[[BaseException], object] | None = None
    """For a handoff: return the names of the parts of the program that continue, one name or a list."""


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework that recording works with.

    `name` is also `metadata.framework` of its traces, and the field under `grace` that holds its facts.
    """

    name: str
    package: str
    """The top-level package that is loaded while the framework is in use."""
    load: Callable[[], Any]
    """Import and return the adapter: a module of `grace_kp.integrations` with `resumable()`, which gates ask how to pause the program."""
    signals: Mapping[str, Signal] = field(default_factory=dict)
    """Its signals, by the name of their class. Names, because the framework may not be installed."""
    injects: Callable[[object], bool] | None = None
    """Return whether the framework itself fills in the parameters of this declared type."""
    injects_with: str = ""
    """The package whose types `injects` knows; before it is loaded, no parameter is declared with one."""
    runs_here: Callable[[], bool] = lambda: True
    """Return whether the framework may be running the current code. Only then is the adapter loaded to ask for a resumable program."""


class Host:
    """The registered frameworks. Changed only when one registers."""

    __slots__ = ("frameworks", "locate", "place", "signals")

    def __init__(self) -> None:
        self.frameworks: dict[str, Framework] = {}
        # Names, because neither asyncio nor the gates need to be loaded.
        self.signals = {
            "CancelledError": Signal(CANCELLED),
            "ActionNotApproved": Signal(NOT_APPROVED),
            "ActionPending": Signal(WAITING),
            "CallWaits": Signal(WAITING, pauses=True),
        }
        self.locate: Locate | None = None
        """From our innermost call or run to the innermost one that a framework knows; None while no framework tells."""
        self.place: Place | None = None
        """Return the part of a framework's program that runs here, if resuming runs that part again as a whole."""

    def register(self, framework: Framework) -> None:
        """Add a framework, or replace the one of its name."""
        self.frameworks[framework.name] = framework
        self.signals.update(framework.signals)

    def register_location(self, locate: Locate, place: Place) -> None:
        """From now on ask a framework where execution is.

        A framework that carries its calls through threads and tasks knows better than a context variable of ours, which would have
        to be set in its callbacks and would leak from there.
        """
        self.locate, self.place = locate, place

    def resumable(self) -> Any:
        """Return the program that runs here and may run again from an earlier point; None elsewhere."""
        for framework in self.frameworks.values():
            if framework.package in sys.modules and framework.runs_here() and (found := framework.load().resumable()):
                return found
        return None

    def position(self) -> dict[str, Any] | None:
        """Return where that program is, if its framework tells: its thread, place and step, and the attempt at them."""
        position = getattr(self.resumable(), "position", None)
        return None if position is None else position()

    def injected(self, function: Any) -> frozenset[str]:
        """Return the parameters of a function that a framework fills in, by their declared types.

        No caller chooses them, so they are not recorded as arguments. Types that cannot be resolved are ignored; names alone do not count.
        """
        known = [
            framework.injects
            for framework in self.frameworks.values()
            if framework.injects is not None and framework.injects_with in sys.modules
        ]
        if not known:
            return frozenset()
        call = function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__
        plain = inspect.unwrap(call)
        names = getattr(plain, "__globals__", {})
        found: dict[str, Any] = {}
        for name, annotation in getattr(plain, "__annotations__", {}).items():
            holder: Any = SimpleNamespace(__annotations__={name: annotation})
            try:
                found.update(typing.get_type_hints(holder, names, include_extras=True))
            except (NameError, AttributeError, TypeError, SyntaxError):
                continue
        found.pop("return", None)
        return frozenset(name for name, declared in found.items() if any(injects(declared) for injects in known))

    def status_after(self, error: BaseException) -> str:
        """Return the status of a run or call that this exception left."""
        kind = type(error)  # not `__class__`, which may run code of the error
        if issubclass(kind, GeneratorExit):
            return CLOSED
        if issubclass(kind, SystemExit):
            return EXITED
        if not issubclass(kind, Exception) and any(base.__name__ in CANCELLATIONS for base in kind.__mro__):
            return CANCELLED
        if issubclass(kind, BaseExceptionGroup):
            # Of parallel calls, or cancellations of a trio nursery. If their statuses differ, the run has failed.
            members = BaseExceptionGroup.exceptions.__get__(error)
            statuses = {self.status_after(member) for member in members}
            return statuses.pop() if len(statuses) == 1 else FAILED
        signal = self._signal_of(kind)
        return FAILED if signal is None else signal.status

    def pauses(self, error: BaseException) -> bool:
        """Return whether an exception stops the program so that it can go on later, as an interrupt does."""
        signal = self._signal_of(type(error))
        return signal is not None and signal.pauses

    def hands_off(self, error: BaseException) -> bool:
        """Return whether an exception hands over to another part of the program, which ends this part normally."""
        signal = self._signal_of(type(error))
        return signal is not None and signal.status == COMPLETED

    def handoff_text(self, error: BaseException) -> str:
        """Describe a handoff by the parts of the program that it goes to."""
        signal = self._signal_of(type(error))
        found = None if signal is None or signal.targets is None else signal.targets(error)
        names = [name for name in (found if isinstance(found, list | tuple) else [found]) if name]
        return self.handoff_to(names) if names else "handed off to its parent graph"

    @staticmethod
    def handoff_to(names: Sequence[object]) -> str:
        """Describe a handoff to the parts of a program with these names."""
        more = f" and {len(names) - MAX_TARGETS} more" if len(names) > MAX_TARGETS else ""
        return f"handed off to {', '.join(str(name)[:MAX_NAME] for name in names[:MAX_TARGETS])}{more}"

    def _signal_of(self, kind: type[BaseException]) -> Signal | None:
        return next((self.signals[base.__name__] for base in kind.__mro__ if base.__name__ in self.signals), None)
