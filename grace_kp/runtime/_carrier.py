"""Carries out approved actions of a runtime where nobody waits for them: `grace.approvals.execute`."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from grace_kp.background import finish, to_thread
from grace_kp.errors import GraceError
from grace_kp.record import HOST, SCOPE, current_run, decorate, fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.approvals import Approval, Resumed
    from grace_kp.gating import GatedAction
    from grace_kp.record import Recorder
    from grace_kp.runtime._definitions import Definitions
    from grace_kp.runtime._gates import Gates


def _adapter_of(graph: object) -> Any:
    """Return the adapter of the framework that a graph belongs to.

    Raises:
        GraceError: no framework knows it.
    """
    packages = {base.__module__.partition(".")[0] for base in type(graph).__mro__}
    for framework in HOST.frameworks.values():
        if framework.package in packages:
            return framework.load()
    raise GraceError(f"resume takes a compiled graph of a framework that pauses, not {type(graph).__name__}")


class Carrier:
    """Finds the action of an approval among the gates of a runtime, and runs it as a run of its own.

    Args:
        definitions: returns the actions that the runtime gates.
        gates: returns its gates.
        recorder: returns its recorder.
    """

    def __init__(
        self, definitions: Callable[[], Definitions], gates: Callable[[], Gates], recorder: Callable[[], Recorder]
    ) -> None:
        self._definitions, self._gates, self._recorder = definitions, gates, recorder

    def execute(self, approval_id: str, arguments: Mapping[str, object]) -> Any:
        """Carry out an approved action, and return its result."""
        return finish(self._begun(approval_id, arguments)())

    async def aexecute(self, approval_id: str, arguments: Mapping[str, object]) -> Any:
        """`execute` without blocking the event loop."""
        begun = await to_thread(self._begun, approval_id, arguments)
        if inspect.iscoroutinefunction(begun.func):
            return await begun()
        return await to_thread(begun)

    def resume(self, graph: Any, **chosen: Any) -> list[Resumed]:
        """Carry on the threads of a graph whose requests are decided."""
        resumed: list[Resumed] = _adapter_of(graph).resume_graph(self._gates().inbox, graph, **chosen)
        return resumed

    async def aresume(self, graph: Any, **chosen: Any) -> list[Resumed]:
        """`resume` without blocking the event loop."""
        inbox = await to_thread(lambda: self._gates().inbox)
        resumed: list[Resumed] = await _adapter_of(graph).aresume_graph(inbox, graph, **chosen)
        return resumed

    def _begun(self, approval_id: str, arguments: Mapping[str, object]) -> functools.partial[Any]:
        """Return the call that carries out the action."""
        inbox = self._gates().inbox
        approval = inbox.requests.get(approval_id)
        action = self._definitions().find(approval)
        bound = action.kept(approval, inbox, arguments)
        carried = decorate(
            self._around(action, approval, bound),
            recorder=self._recorder,
            kind=SCOPE,
            name=action.name,
            sealed=action.terms.sealed,
        )
        return functools.partial(carried, *bound.args, **bound.kwargs)

    def _around(self, action: GatedAction, approval: Approval, bound: inspect.BoundArguments) -> Callable[..., Any]:
        from grace_kp.gating import drive, drive_async, raise_or_return

        def begin() -> Any:
            run = current_run()
            if run is not None:
                run.update(metadata={"approval": approval.id, "requested_by_run": approval.run_id})
            return action.carried_out(approval, bound)

        if action.is_coroutine:

            async def carried_async(_args: object, _kwargs: object) -> Any:
                return raise_or_return(await drive_async(begin(), action.run), action.name)

            return fitting(action.action, carried_async)

        @functools.wraps(action.action)
        def carried(*_args: object, **_kwargs: object) -> Any:
            return raise_or_return(drive(begin(), action.run), action.name)

        return carried
