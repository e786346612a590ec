"""The gated call: gets the consent, checks that nothing was changed meanwhile, and runs the action at most once."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from grace_kp.errors import ActionCancelled, GateError
from grace_kp.gating._case import Case, Consent
from grace_kp.gating._drive import drive, drive_async
from grace_kp.gating._flow import check_unchanged, consent
from grace_kp.gating._hidden import recorded_arguments
from grace_kp.gating._identity import Coverage
from grace_kp.gating._ledger import DONE, Ran, outcome_unknown
from grace_kp.record import HOST
from grace_kp.trace import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.gating._flow import GateScope
    from grace_kp.gating._identity import Identifier
    from grace_kp.gating._ledger import Entry
    from grace_kp.gating._policy import Policy


def gate(
    action: Callable[..., Any],
    *,
    name: str | None = None,
    policy_for: Callable[[str], Policy],
    scope: Callable[[], GateScope],
    identity: Identifier | Mapping[str, Identifier] | None = None,
) -> Callable[..., Any]:
    """`action` behind a gate; sync or async as it is.

    Args:
        action: a function, coroutine function or method; or a partial of one, whose arguments count like those of the call.
        name: what policies call it; the function's own name when None.
        policy_for: gives the policy of an action by its name, each time it is called.
        scope: gives what the gate needs to know of the run around the call.
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
        # A call that does not fit fails here, before anybody is asked.
        bound = signature.bind(*_filled(preset, args), **{**preset_by_name, **kwargs})
        entry: dict[str, Any] = {"action": called, "outcome": "undecided"}
        case = Case(
            called,
            signature,
            bound,
            hidden,
            types,
            policy=policy_for(called),
            scope=scope(),
            entry=entry,
            coverage=coverage,
        )
        entry.update(recorded_arguments(case.shown()))
        if case.scope.again is not None:
            case.scope.again.begin()
        return case

    if inspect.iscoroutinefunction(action):

        @functools.wraps(named)
        async def gated_coroutine(*args: Any, **kwargs: Any) -> Any:
            case = case_of(args, kwargs)
            given = await _guarded_async(case)
            if given.bound is None:
                return None
            if case.kept is not None:
                import asyncio

                begun = await asyncio.to_thread(_begun, case, given)
                if begun is not None:
                    return _once_more(case, begun)
            _about_to_run(case, given)
            try:
                result = await action(*given.bound.args, **given.bound.kwargs)
            except BaseException as error:
                _ran(case, given, error)
                if case.kept is not None and isinstance(error, Exception):
                    await asyncio.to_thread(_keep, case, None, error)
                raise
            _ran(case, given, None)
            if case.kept is not None:
                await asyncio.to_thread(_keep, case, result, None)
            return result

        return gated_coroutine

    @functools.wraps(named)
    def gated(*args: Any, **kwargs: Any) -> Any:
        case = case_of(args, kwargs)
        given = _guarded(case)
        if given.bound is None:
            return None
        if case.kept is not None:
            begun = _begun(case, given)
            if begun is not None:
                return _once_more(case, begun)
        _about_to_run(case, given)
        try:
            result = action(*given.bound.args, **given.bound.kwargs)
        except BaseException as error:
            _ran(case, given, error)
            _keep(case, None, error)
            raise
        _ran(case, given, None)
        _keep(case, result, None)
        return result

    return gated


_PLACEHOLDER = getattr(functools, "Placeholder", object())
"""Stands in a partial for an argument of the call, from Python 3.14 on."""


def _unwrapped(action: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function in a partial, with the arguments that the partial sets: a reviewer sees these, too."""
    preset: tuple[Any, ...] = ()
    by_name: dict[str, Any] = {}
    while isinstance(action, functools.partial):
        preset = _filled(action.args, preset)
        by_name = {**action.keywords, **by_name}
        action = action.func
    return action, preset, by_name


def _filled(preset: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments by position: those that are preset, and those of the call in the places left for them and behind."""
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
    """The parameter that is the method's own object."""
    owner = getattr(action, "__qualname__", "").rpartition(".")[0]
    first = next(iter(signature.parameters), None)
    is_method = bool(owner) and not owner.endswith("<locals>")
    return first if is_method and first in {"self", "cls", "mcs"} else None


def _guarded(case: Case) -> Consent:
    again = case.scope.again
    try:
        if again is not None:
            again.wait()
        return drive(consent(case), case)
    except BaseException as error:
        _not_run(case, error)
        raise
    finally:
        if again is not None:
            again.end()


async def _guarded_async(case: Case) -> Consent:
    again = case.scope.again
    try:
        if again is not None:
            await again.wait_async()
        return await drive_async(consent(case), case)
    except BaseException as error:
        _not_run(case, error)
        raise
    finally:
        if again is not None:
            again.end()


def _begun(case: Case, given: Consent) -> Ran | None:
    """Say in the ledger that the action is about to run; what is known of it, where it was begun before.

    Raises:
        ActionCancelled: that cannot be kept, and what cannot be kept is not run.
    """
    assert case.kept is not None  # noqa: S101
    check_unchanged(case, given)
    try:
        return case.kept.claim(again_after_failure="response" not in case.entry)
    except Exception as error:
        case.entry["outcome"], case.entry["error"] = "cancelled", error_text(error)
        message = f"{case.action} was not run, because it could not be kept that it is about to: {error_text(error)}"
        raise ActionCancelled(message) from error


def _once_more(case: Case, begun: Ran) -> Any:
    """The result of an action that has run before; it is not run again.

    Raises:
        ActionOutcomeUnknown: its result was not kept, or nobody knows what came of it.
    """
    case.entry["outcome"] = "executed_before" if begun.state == DONE else f"{begun.state}_before"
    if begun.state == DONE and begun.has_result:
        return begun.result
    raise outcome_unknown(case.action, begun)


def _keep(case: Case, result: Any, error: BaseException | None) -> None:
    """Keep in the ledger how the action ended. Where that fails it stays begun, and what came of it unknown."""
    if case.kept is None:
        return
    try:
        if error is None:
            case.kept.done(result, keep=True)
        elif HOST.pauses(error):
            case.kept.release()
        elif HOST.hands_off(error):
            case.kept.done()
        elif isinstance(error, Exception):
            case.kept.failed(error)
    except Exception as problem:  # noqa: BLE001 — the action has run; what it gave is the caller's
        case.entry["ledger_error"] = error_text(problem)


def _not_run(case: Case, error: BaseException) -> None:
    if HOST.pauses(error):
        case.entry["outcome"] = "waiting"
    elif case.entry["outcome"] == "undecided":
        case.entry["outcome"] = "cancelled"
        case.entry["error"] = error_text(error)


def _about_to_run(case: Case, given: Consent) -> None:
    try:
        check_unchanged(case, given)
    except BaseException:
        if case.kept is not None:
            _release(case.kept, case)
        raise
    if given.modified and given.bound is not None:
        shown = {name: value for name, value in given.bound.arguments.items() if name != case.hidden}
        case.entry.update(recorded_arguments(shown, executed=True))
    # Until it has ended nobody knows; a process that dies here leaves this word.
    case.entry["outcome"] = "running"


def _release(kept: Entry, case: Case) -> None:
    """Take back that the action is about to run. Where that fails, what came of it stays unknown."""
    try:
        kept.release()
    except Exception as problem:  # noqa: BLE001 — the action does not run either way
        case.entry["ledger_error"] = error_text(problem)


def _ran(case: Case, given: Consent, error: BaseException | None) -> None:
    if error is None or HOST.hands_off(error):
        case.entry["outcome"] = "executed_modified" if given.modified else "executed"
    elif HOST.pauses(error):
        case.entry["outcome"] = "waiting"
    else:
        case.entry["outcome"] = "failed"
        case.entry["error"] = type(error).__name__
    if given.modified and given.bound is not None:
        case.entry["executed_digest"] = given.digest
