"""How a recorded call begins: which run it belongs to, or which run it opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._current import BEYOND, CURRENT, FIRST, ORDER, located
from grace_kp.record._gaps import stray
from grace_kp.record._guard import shielded_pair
from grace_kp.record._run import Call, Run
from grace_kp.record._spec import AGENT, SCOPE
from grace_kp.trace import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.record._spec import Spec

    Enter = Callable[[tuple[Any, ...], dict[str, Any]], Call | Run | None]

_BIG = 1 << 64


def entering(spec: Spec) -> Enter:
    """What a wrapper calls first: it gives the frame to make current, or None where nothing is recorded."""
    if spec.kind == AGENT:
        return _entering_agent(spec)
    if spec.kind == SCOPE:
        return shielded_pair(lambda args, kwargs: _open_scope(spec, args, kwargs))
    here_of = CURRENT.get
    beyond = BEYOND
    bound = spec.bound

    @shielded_pair
    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        here = here_of()
        if beyond.find is not None:
            here = beyond.find(here)
        if here is None:
            return _open_root_tool(spec, args, kwargs)
        parent: Call | None
        if isinstance(here, Run):
            run, parent = here, None
        else:
            run, parent = here.run, here
        if not run.open:
            return _open_root_tool(spec, args, kwargs)
        if len(run.events) >= run.owner.max_events:
            run.dropped += 2  # the call and its observation
            return None
        if bound:
            args = args[1:]
        limit = run.max_text
        for value in args:
            kind = type(value)
            if not (
                (kind is str and len(value) <= limit)
                or value is None
                or kind is float
                or kind is bool
                or (kind is int and -_BIG < value < _BIG)
            ):
                return Call(run, spec, parent, *_rendered(run, args, kwargs))
        if kwargs:
            return Call(run, spec, parent, *_rendered(run, args, kwargs))
        return Call(run, spec, parent, args if run.owner.capture_input else (), None)

    return enter


def _entering_agent(spec: Spec) -> Enter:
    bound = spec.bound

    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run | None:
        return open_run(spec, args[1:] if bound else args, kwargs)

    # The gates inside of a run that could not be opened have to know that they do not see what happens in it.
    return shielded_pair(enter, lambda: silent_run(spec, spec.name))


def silent_run(spec: Spec, objective: str) -> Run:
    """A run that nobody hears of, where a run could not be opened or recording is off."""
    from grace_kp.record import _run
    from grace_kp.record._recorder import Recorder

    nobody = Recorder(opened=_ignore, ended=_ignore, enabled=False)
    return _run.Run(nobody, spec, name=spec.name, objective=objective, domain=spec.domain or "default")


def _ignore(_run: Run) -> None:
    """Nobody hears of it."""


def _rendered(run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any] | None]:
    """The arguments as they are now, so that no later change of them shows. A list says that it is rendered already."""
    if not run.owner.capture_input:
        return [], None
    limit = run.max_text
    return [render(value, limit) for value in args], {
        key: render(value, limit) for key, value in kwargs.items()
    } or None


def open_run(
    spec: Spec,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    objective: str | None = None,
    inside: Call | Run | None = None,
    quiet: bool = False,
) -> Run | None:
    """A new run, linked to the one around it; None where recording is off.

    Args:
        spec: what is called.
        args: what it is called with.
        kwargs: the same, by name.
        objective: what the run is for; worked out from the arguments when None.
        inside: the call or run around it; the current one when None.
        quiet: leave it to the caller to announce the run, when it knows which run this is.
    """
    owner = spec.recorder()
    if not owner.enabled:
        return None
    here = located() if inside is None else inside
    around = here if here is None or isinstance(here, Run) else here.run
    via = None
    if around is not None and around.open and len(around.events) < around.owner.max_events:
        parent = here if isinstance(here, Call) else None
        via = Call(around, spec, parent, *_rendered(around, args, kwargs))
    if objective is None:
        objective = spec.objective_of(args, kwargs, owner.max_text) if owner.capture_input else spec.name
    run = Run(owner, spec, name=spec.name, objective=objective, domain=spec.domain or owner.domain, via=via)
    run.number = number = next(ORDER)
    if FIRST.number == 0:
        FIRST.number = number
    if via is not None:
        via.child = run
    elif around is not None:
        if around.open:
            around.dropped += 2  # the call of the nested run and its observation
        run.via_trace = around.id  # it began after the run around it had ended: a trace of its own, but not an orphan
        if around.attributes is not None:
            run.update(user=around.attributes.user, session=around.attributes.session)
    if spec.attributes is not None:
        bound = spec.bind(args, kwargs)
        run.update(**spec.attributes.resolve(bound, capture_input=owner.capture_input))
    if run.capture is not None:
        run.capture.append(run)
    if not quiet:
        owner.announce(run)
    return run


def call_in(inside: Call | Run, spec: Spec, kwargs: dict[str, Any]) -> Call | None:
    """A call of a tool inside a call or run; None where the run is at its bound."""
    run, parent = (inside.run, inside) if isinstance(inside, Call) else (inside, None)
    if len(run.events) >= run.owner.max_events:
        run.dropped += 2
        return None
    limit = run.max_text
    for value in kwargs.values():
        kind = type(value)
        if not ((kind is str and len(value) <= limit) or value is None or kind is bool):
            return Call(run, spec, parent, *_rendered(run, (), kwargs))
    return Call(run, spec, parent, [], dict(kwargs) if run.owner.capture_input and kwargs else None)


def call_alone(spec: Spec, kwargs: dict[str, Any], *, objective: str | None = None) -> Call | None:
    """A call of a tool outside of any run: a run of its own, with one call in it; None where recording is off."""
    run = open_run(spec, (), kwargs, objective=objective)
    if run is None:
        return None
    stray(run)
    call = Call(run, spec, None, *_rendered(run, (), kwargs))
    call.owns = True
    return call


def open_agent(spec: Spec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run | None:
    """The root call of an agent: a run of its own, also inside another one."""
    return open_run(spec, args[1:] if spec.bound else args, kwargs)


def _open_scope(spec: Spec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run | None:
    here = located()
    if here is not None and (here if isinstance(here, Run) else here.run).open:
        return None
    return open_agent(spec, args, kwargs)


def _open_root_tool(spec: Spec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """A tool that is called outside of any run is a run of its own, with one call in it."""
    if spec.bound:
        args = args[1:]
    run = open_run(spec, args, kwargs)  # not `call_alone`: its arguments have positions
    if run is None:
        return None
    stray(run)
    call = Call(run, spec, None, *_rendered(run, args, kwargs))
    call.owns = True
    return call
