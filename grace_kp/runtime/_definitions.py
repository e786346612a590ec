"""The gated actions of a runtime, so that an approved action can be found again by its name and version."""

from __future__ import annotations

import inspect
import threading
import weakref
from typing import TYPE_CHECKING

from grace_kp.errors import ApprovalError
from grace_kp.trace import SCALARS

if TYPE_CHECKING:
    from grace_kp.approvals import Approval
    from grace_kp.gating import GatedAction


class Definitions:
    """Gated actions by name. They are forgotten with the functions that they gate."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, list[weakref.ref[GatedAction]]] = {}

    def add(self, action: GatedAction) -> None:
        """Take note of an action."""
        with self._lock:
            known = self._by_name.setdefault(action.name, [])
            known[:] = [*(reference for reference in known if reference() is not None), weakref.ref(action)]

    def names(self) -> list[str]:
        """Return the names of the actions that still exist."""
        with self._lock:
            return [
                name for name, known in self._by_name.items() if any(reference() is not None for reference in known)
            ]

    def named(self, name: str) -> list[GatedAction]:
        """Return the actions with this name, in the order in which they were defined."""
        with self._lock:
            return [action for reference in self._by_name.get(name, ()) if (action := reference()) is not None]

    def find(self, approval: Approval) -> GatedAction:
        """Return the action that an approval is about.

        Raises:
            ApprovalError: no gate of this runtime has the action in this version, or two different functions have.
        """
        named = self.named(approval.action)
        if not named:
            message = f"no gate of this runtime defines the action {approval.action!r}; import the module that defines it first"
            raise ApprovalError(message, approval_id=approval.id)
        fitting = [action for action in named if action.terms.version == approval.version]
        if not fitting:
            versions = ", ".join(sorted({action.terms.version for action in named}))
            message = (
                f"the approval {approval.id} is about version {approval.version} of {approval.action}, and this runtime defines {versions}; "
                "run the version that was approved, or withdraw the approval and ask again"
            )
            raise ApprovalError(message, approval_id=approval.id)
        places = {action.terms.place for action in fitting}
        if len(places) > 1 and (place := approval.note.get("function")) in places:
            fitting, places = [action for action in fitting if action.terms.place == place], {str(place)}
        if len(places) > 1:
            message = (
                f"several functions are gated as {approval.action!r} in the same version: {', '.join(sorted(places))}; "
                "give them different names with @grace.gate(name=…)"
            )
            raise ApprovalError(message, approval_id=approval.id)
        if len({_closure(action) for action in fitting}) > 1:
            message = (
                f"{fitting[-1].terms.place} was defined several times with different values around it, and the approval {approval.id} does not say "
                "which one is meant; give each a name of its own with @grace.gate(name=…)"
            )
            raise ApprovalError(message, approval_id=approval.id)
        return fitting[-1]


def _closure(action: GatedAction) -> tuple[tuple[str, object], ...]:
    """Return what tells a function from others that the same code has defined: the values in its closure, plain ones by value."""
    closure = (
        inspect.getclosurevars(inspect.unwrap(action.action)).nonlocals if inspect.isfunction(action.action) else {}
    )
    return tuple((name, repr(value) if type(value) in SCALARS else id(value)) for name, value in closure.items())
