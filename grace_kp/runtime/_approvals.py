"""Approvals in a runtime: its gated actions by name, and the execution of approved actions whose caller no longer waits."""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.background import finish, to_thread
from grace_kp.errors import ApprovalError, GraceError
from grace_kp.record import HOST, SCOPE, current_run, decorate, fitting
from grace_kp.trace import SCALARS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.approvals import Approval, Inbox, Resumed
    from grace_kp.gating import GatedAction
    from grace_kp.record import Recorder


def _adapter_of(graph: object) -> Any:
    packages = {base.__module__.partition(".")[0] for base in type(graph).__mro__}
    for framework in HOST.frameworks.values():
        if framework.package in packages:
            return framework.load()
    raise GraceError(f"resume takes a compiled graph of a framework that pauses, not {type(graph).__name__}")


@dataclass(frozen=True, slots=True)
class ApprovedActions:
    """Finds the action of an approval among the gates of a runtime, and runs it as a separate run."""

    definitions: Definitions
    """The actions that the runtime gates."""
    inbox: Callable[[], Inbox]
    recorder: Callable[[], Recorder]

    def execute(self, approval_id: str, arguments: Mapping[str, object]) -> Any:
        return finish(self._prepare_call(approval_id, arguments)())

    async def aexecute(self, approval_id: str, arguments: Mapping[str, object]) -> Any:
        begun = await to_thread(self._prepare_call, approval_id, arguments)
        if inspect.iscoroutinefunction(begun.func):
            return await begun()
        return await to_thread(begun)

    def resume(self, graph: Any, **chosen: Any) -> list[Resumed]:
        resumed: list[Resumed] = _adapter_of(graph).resume_graph(self.inbox(), graph, **chosen)
        return resumed

    async def aresume(self, graph: Any, **chosen: Any) -> list[Resumed]:
        inbox = await to_thread(self.inbox)
        resumed: list[Resumed] = await _adapter_of(graph).aresume_graph(inbox, graph, **chosen)
        return resumed

    def _prepare_call(self, approval_id: str, arguments: Mapping[str, object]) -> functools.partial[Any]:
        inbox = self.inbox()
        approval = inbox.requests.get(approval_id)
        action = self.definitions.find(approval)
        bound = action.kept_arguments(approval, inbox, arguments)
        carry_out = decorate(
            self._around(action, approval, bound),
            recorder=self.recorder,
            kind=SCOPE,
            name=action.name,
            sealed=action.terms.sealed,
        )
        return functools.partial(carry_out, *bound.args, **bound.kwargs)

    def _around(self, action: GatedAction, approval: Approval, bound: inspect.BoundArguments) -> Callable[..., Any]:
        from grace_kp.gating import drive, drive_async, raise_or_return

        def begin() -> Any:
            run = current_run()
            if run is not None:
                run.update(metadata={"approval": approval.id, "requested_by_run": approval.run_id})
            return action.carry_out(approval, bound)

        if action.is_coroutine:

            async def carry_out_async(_args: object, _kwargs: object) -> Any:
                return raise_or_return(await drive_async(begin(), action.run), action.name)

            return fitting(action.action, carry_out_async)

        @functools.wraps(action.action)
        def carry_out(*_args: object, **_kwargs: object) -> Any:
            return raise_or_return(drive(begin(), action.run), action.name)

        return carry_out


class Definitions:
    """Gated actions by name. They are forgotten with the functions that they gate."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, list[weakref.ref[GatedAction]]] = {}

    def add(self, action: GatedAction) -> None:
        with self._lock:
            known = self._by_name.setdefault(action.name, [])
            known[:] = [*(reference for reference in known if reference() is not None), weakref.ref(action)]

    def names(self) -> list[str]:
        with self._lock:
            return [name for name, known in self._by_name.items() if any(each() is not None for each in known)]

    def find_named(self, name: str) -> list[GatedAction]:
        with self._lock:
            return [action for reference in self._by_name.get(name, ()) if (action := reference()) is not None]

    def find(self, approval: Approval) -> GatedAction:
        """Return the action that an approval is about."""

        def refuse(message: str) -> ApprovalError:
            return ApprovalError(message, approval_id=approval.id)

        named = self.find_named(approval.action)
        if not named:
            raise refuse(
                f"no gate of this runtime defines the action {approval.action!r}; import the module that defines it first"
            )
        fitting = [action for action in named if action.terms.version == approval.version]
        if not fitting:
            versions = ", ".join(sorted({action.terms.version for action in named}))
            raise refuse(
                f"the approval {approval.id} is about version {approval.version} of {approval.action}, and this runtime defines {versions}; "
                "run the version that was approved, or withdraw the approval and ask again"
            )
        places = {action.terms.place for action in fitting}
        if len(places) > 1 and (place := approval.note.get("function")) in places:
            fitting, places = [action for action in fitting if action.terms.place == place], {str(place)}
        if len(places) > 1:
            raise refuse(
                f"several functions are gated as {approval.action!r} in the same version: {', '.join(sorted(places))}; "
                "give them different names with @grace.gate(name=…)"
            )
        if len({_closure(action) for action in fitting}) > 1:
            raise refuse(
                f"{fitting[-1].terms.place} was defined several times with different values around it, and the approval {approval.id} does not say "
                "which one is meant; give each a different name with @grace.gate(name=…)"
            )
        return fitting[-1]


def _closure(action: GatedAction) -> tuple[tuple[str, object], ...]:
    """Return the values in a function's closure, plain ones by value. They differ between functions that the same code has defined."""
    function = action.action
    closure = inspect.getclosurevars(inspect.unwrap(function)).nonlocals if inspect.isfunction(function) else {}
    return tuple((name, repr(value) if type(value) in SCALARS else id(value)) for name, value in closure.items())
