"""How a recorded call begins: which run it belongs to, or which run it opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record import _current, _run
from grace_kp.record._current import CURRENT, FIRST, HOST, ORDER, TROUBLES
from grace_kp.record._gaps import ENDED, FULL, stray
from grace_kp.record._guard import attempt, shielded_pair
from grace_kp.record._run import HERE, Call, Recorder, Run, located
from grace_kp.record._spec import AGENT, SCOPE
from grace_kp.settings import Settings
from grace_kp.trace import render

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.record._run import Frame
    from grace_kp.record._spec import Spec

    Arguments = tuple[object, ...]
    Named = dict[str, Any]
    Enter = Callable[[Arguments, Named], Frame | None]

_BIG = 1 << 64


def entering(spec: Spec, recorder: Callable[[], Recorder]) -> Enter:
    """Return the function that a wrapper calls first: it gives the frame to make current, or None to record nothing."""
    enter, mask = _entering(spec, recorder), spec.mask
    return enter if mask is None else lambda args, kwargs: enter(*mask(args, kwargs))


def _entering(spec: Spec, recorder: Callable[[], Recorder]) -> Enter:
    if spec.kind == AGENT:
        return _entering_agent(spec, recorder)
    if spec.kind == SCOPE:
        return shielded_pair(lambda args, kwargs: _open_scope(recorder, spec, args, kwargs))
    bound = spec.bound

    @shielded_pair
    def enter(args: Arguments, kwargs: Named) -> Call | None:
        # Through the module, by whose name a pickle of this function refers to them.
        here = _current.get_frame()
        if _current.HOST.locate is not None:
            here = _current.HOST.locate(here)
        if here is None:
            return _open_root_tool(recorder, spec, args, kwargs)
        parent: Call | None
        if isinstance(here, Run):
            run, parent = here, None
        else:
            run, parent = here.run, here
        if not run.open:
            return _open_root_tool(recorder, spec, args, kwargs)
        if len(run.events) >= run.owner.max_events:
            run.dropped += 2  # the call and its observation
            return None
        if bound:
            args = args[1:]
        limit = run.max_text
        for value in args:
            kind = type(value)
            if not (
                (kind is str and len(value) <= limit)  # type: ignore[arg-type]  # it is a str
                or value is None
                or kind is float
                or kind is bool
                or (kind is int and -_BIG < value < _BIG)  # type: ignore[operator]  # it is an int
            ):
                return Call(run, spec, parent, *_render_arguments(run, args, kwargs))
        if kwargs:
            return Call(run, spec, parent, *_render_arguments(run, args, kwargs))
        return Call(run, spec, parent, args if run.owner.capture_input else (), None)

    return enter


def _entering_agent(spec: Spec, recorder: Callable[[], Recorder]) -> Enter:
    bound = spec.bound

    def enter(args: Arguments, kwargs: Named) -> Run | None:
        return open_run(recorder(), spec, args[1:] if bound else args, kwargs)

    # The gates inside a run that could not be opened have to know that they do not see what happens in it.
    return shielded_pair(enter, lambda: silent_run(spec, spec.name))


def silent_run(spec: Spec, objective: str) -> Run:
    """Return a run that nobody hears of, for one that could not be opened or while recording is off."""
    nobody = Recorder(Settings(enabled=False), _run.Listener())
    return _run.Run(nobody, spec, spec.name, objective, spec.domain or "default")


def _render_arguments(run: Run, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[list[Any], Named | None]:
    """Return the arguments as they are now, so that no later change of them shows. A list is rendered already."""
    if not run.owner.capture_input:
        return [], None
    limit = run.max_text
    named = {key: render(value, limit) for key, value in kwargs.items()}
    return [render(value, limit) for value in args], named or None


def open_run(
    owner: Recorder,
    spec: Spec,
    args: Arguments,
    kwargs: Named,
    *,
    objective: str | None = None,
    inside: Frame | None = None,
    quiet: bool = False,
) -> Run | None:
    """Open a run, linked to the one around it; return None if recording is off."""
    if not owner.enabled:
        return None
    here = inside
    if here is None:
        here = CURRENT.get()
        if HOST.locate is not None:
            here = HOST.locate(here)
    around = None if here is None else here.run
    via = None
    if around is not None and around.open and len(around.events) < around.owner.max_events:
        parent = here if isinstance(here, Call) else None
        via = Call(around, spec, parent, *_render_arguments(around, args, kwargs))
    if objective is None:
        objective = spec.objective_of(args, kwargs, owner.max_text) if owner.capture_input else spec.name
    run = Run(owner, spec, spec.name, objective, spec.domain or owner.domain, via)  # names would cost a dict
    run.number = number = next(ORDER)
    if FIRST.number == 0:
        FIRST.number = number
    run.node = attempt("finding the node around a run", HOST.position)
    if via is not None:
        via.child = run
    elif around is not None:
        if around.open:
            around.dropped += 2  # the call of the nested run and its observation
        run.missing = (FULL if around.open else ENDED,)
        run.via_trace = around.id  # it began after the run around it had ended: a separate trace, but not an orphan
        if around.attributes is not None:
            run.update(user=around.attributes.user, session=around.attributes.session)
    if spec.attributes is not None:
        bound = spec.bind(args, kwargs)
        run.update(**spec.attributes.resolve(bound, capture_input=owner.capture_input))
    if run.capture is not None:
        run.capture.append(run)
    if not quiet:
        try:
            owner.announce(run)
        except RecursionError:
            owner.open_runs.add(run)  # the journal hears of it with the next run; this one is recorded all the same
    return run


def call_in(inside: Frame, spec: Spec, kwargs: Named, place: str | None = HERE) -> Call | None:
    """Open a call of a tool inside a call or run; return None if the run is at its bound."""
    run, parent = (inside.run, inside) if isinstance(inside, Call) else (inside, None)
    if len(run.events) >= run.owner.max_events:
        run.dropped += 2
        return None
    limit = run.max_text
    for value in kwargs.values():
        kind = type(value)
        if not (
            (kind is str and len(value) <= limit)
            or value is None
            or kind is bool
            or (kind is int and -_BIG < value < _BIG)
            or (kind is float and value - value == 0)
        ):
            return Call(run, spec, parent, *_render_arguments(run, (), kwargs), place)
    return Call(run, spec, parent, [], {**kwargs} if run.owner.capture_input and kwargs else None, place)


def call_alone(
    owner: Recorder, spec: Spec, kwargs: Named, *, args: Arguments = (), objective: str | None = None
) -> Call | None:
    """Open a run that consists of one call of a tool; return the call, or None if recording is off."""
    run = open_run(owner, spec, args, kwargs, objective=objective)
    if run is None:
        return None
    try:
        stray(run)
        call = Call(run, spec, None, *_render_arguments(run, args, kwargs))
    except RecursionError:
        TROUBLES.late += [(Run.discard, run, None)]
        raise
    call.owns = True
    return call


def _open_scope(recorder: Callable[[], Recorder], spec: Spec, args: Arguments, kwargs: Named) -> Run | None:
    here = located()
    if here is not None and here.run.open:
        return None
    return open_run(recorder(), spec, args[1:] if spec.bound else args, kwargs)


def _open_root_tool(recorder: Callable[[], Recorder], spec: Spec, args: Arguments, kwargs: Named) -> Call | None:
    return call_alone(recorder(), spec, kwargs, args=args[1:] if spec.bound else args)
