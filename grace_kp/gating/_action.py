"""A gate around a function: which functions can be gated, and their calls as the engine takes them."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from grace_kp.errors import GateError
from grace_kp.gating._case import Case
from grace_kp.gating._drivers import drive, drive_async
from grace_kp.gating._engine import gated_call
from grace_kp.gating._identity import Coverage
from grace_kp.gating._outcome import GateEntry, raise_or_return
from grace_kp.gating._resumable import resumable
from grace_kp.record import argument_check, fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.gating._case import Consent, GateScope
    from grace_kp.gating._identity import Identifier
    from grace_kp.gating._policy import Policy


def gate(
    action: Callable[..., Any],
    *,
    name: str | None = None,
    policy_for: Callable[[str], Policy],
    scope: Callable[[], GateScope],
    identity: Identifier | Mapping[str, Identifier] | None = None,
) -> Callable[..., Any]:
    """Return `action` behind a gate, a coroutine function where `action` is one.

    Args:
        action: a function, coroutine function or method; or a partial of one, whose arguments count like those of the call.
        name: the name that policies match; the function's own when None.
        policy_for: returns the policy of an action by its name, each time the action is called.
        scope: returns the run around the call.
        identity: what identifies the method's own object, or arguments by name, where their contents are not to be checked.

    Raises:
        GateError: a generator function or a class, with the reason why it cannot be gated; or `identity` names no parameter.
    """
    named, (action, preset, preset_by_name) = action, _unwrapped(action)
    _check(action)
    called = name or getattr(action, "__name__", None) or type(action).__name__
    signature = inspect.signature(action)
    hidden = _own_object(action, signature)
    coverage = Coverage(action, signature, hidden, identity)

    def types() -> Mapping[str, Any]:
        from grace_kp.gating._modification import declared_types

        return declared_types(action, signature)

    def case_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Case:
        # First of all: calls side by side are known again by the order in which they begin.
        program = resumable()
        if program is not None:
            program.begin()
        try:
            # A call that does not fit fails here, before anybody is asked.
            bound = signature.bind(*_filled(preset, args), **{**preset_by_name, **kwargs})
            case = Case(
                action=called,
                signature=signature,
                bound=bound,
                hidden=hidden,
                types=types,
                policy=policy_for(called),
                scope=scope(),
                entry=GateEntry({}),
                coverage=coverage,
                program=program,
            )
            case.entry = GateEntry.new(called, case.shown())
        except BaseException:
            if program is not None:
                program.end()
            raise
        return case

    def run(consent: Consent) -> Any:
        assert consent.bound is not None  # noqa: S101
        return action(*consent.bound.args, **consent.bound.kwargs)

    if inspect.iscoroutinefunction(action):

        async def gated_coroutine(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return raise_or_return(await drive_async(gated_call(case_of(args, kwargs)), run), called)

        return fitting(named, gated_coroutine)
    check = argument_check(named)

    @functools.wraps(named)
    def gated(*args: Any, **kwargs: Any) -> Any:
        check(*args, **kwargs)
        return raise_or_return(drive(gated_call(case_of(args, kwargs)), run), called)

    return gated


_PLACEHOLDER = getattr(functools, "Placeholder", object())
"""Stands in a partial for an argument of the call, from Python 3.14 on."""


def _unwrapped(action: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the function in a partial, with the arguments that the partial sets, which a reviewer sees, too."""
    preset: tuple[Any, ...] = ()
    by_name: dict[str, Any] = {}
    while isinstance(action, functools.partial):
        preset = _filled(action.args, preset)
        by_name = {**action.keywords, **by_name}
        action = action.func
    return action, preset, by_name


def _filled(preset: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments by position: the preset ones, and those of the call in the places left for them and behind."""
    rest = list(args)
    front = [rest.pop(0) if value is _PLACEHOLDER and rest else value for value in preset]
    return (*front, *rest)


def _check(action: Any) -> None:
    if inspect.isclass(action):
        raise GateError(f"a gate goes on a function, not on the class {action.__name__}; gate the method that acts")
    if not callable(action):
        raise GateError(f"a gate goes on a function, not on {type(action).__name__}")
    call = action if inspect.isroutine(action) else type(action).__call__
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise GateError(
            f"{getattr(action, '__qualname__', action)} is a generator: it acts piece by piece, after the gate has let it through; "
            "gate the function that does the acting"
        )


def _own_object(action: Any, signature: inspect.Signature) -> str | None:
    """Return the parameter that is the method's own object."""
    owner = getattr(action, "__qualname__", "").rpartition(".")[0]
    first = next(iter(signature.parameters), None)
    is_method = bool(owner) and not owner.endswith("<locals>")
    return first if is_method and first in {"self", "cls", "mcs"} else None
