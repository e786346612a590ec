"""Arguments that do not fit, found when a function is called.

A call of a coroutine or generator function fails at once if its arguments do not fit; what such a function does comes later. A wrapper
that is itself one takes any arguments and would fail later. So these wrappers are plain functions: they check the arguments, then
return the coroutine or generator of their body. For everybody who asks, they are of the kind of their body.
"""

from __future__ import annotations

import functools
import inspect
import sys
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Body = Callable[[tuple[Any, ...], dict[str, Any]], Any]
    Refused = Callable[[tuple[Any, ...], dict[str, Any], TypeError], object]

_KINDS = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_LIBRARY = __name__.partition(".")[0] + "."
_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def fitting(function: Callable[..., Any], body: Body, refused: Refused | None = None) -> Callable[..., Any]:
    """Return a wrapper of `function` that raises a TypeError when it is called with arguments that do not fit.

    Args:
        function: what is wrapped: a coroutine function, generator function, async generator function, or a callable of such a kind.
        body: a function of the same kind, called with the arguments by position and by name; its own name is replaced.
        refused: called with the arguments and the error before that is raised.
    """
    check = argument_check(function)
    least, most = _positional_range(function)
    name_like(body, unwrapped(function))

    def recorded(*args: object, **kwargs: object) -> Any:
        if kwargs or not least <= len(args) <= most:
            try:
                check(*args, **kwargs)
            except TypeError as error:
                if refused is not None:
                    refused(args, kwargs, error)
                raise
        return body(args, kwargs)

    # `inspect` tells the kind of a function by these flags, which have no effect on how it runs; see also `types.coroutine`.
    code = recorded.__code__.replace(co_flags=recorded.__code__.co_flags | body.__code__.co_flags & _KINDS)
    return functools.wraps(function)(
        FunctionType(code, recorded.__globals__, recorded.__name__, None, recorded.__closure__)
    )


def unwrapped(function: object) -> Any:
    """Return the function behind partials and objects with `__call__`, which decides whether a callable is async."""
    while isinstance(function, functools.partial):
        function = function.func
    if not (inspect.isroutine(function) or inspect.isclass(function)) and callable(function):
        return type(function).__call__
    return function


def name_like(function: Any, named: Any) -> None:
    """Give a function the name of another, or of a coroutine or generator, so that its coroutines and generators have it."""
    function.__name__ = getattr(named, "__name__", function.__name__)
    function.__qualname__ = getattr(named, "__qualname__", function.__name__)


def argument_check(function: Any) -> Callable[..., object]:
    """Return a function that does nothing, or raises the TypeError which `function` raises if the arguments do not fit.

    It does not check the arguments of a callable that is not written in Python.
    """
    if isinstance(function, functools.partial):
        return functools.partial(argument_check(function.func), *function.args, **function.keywords)
    if isinstance(function, MethodType):
        return MethodType(argument_check(function.__func__), function.__self__)
    if isinstance(function, FunctionType):
        inner = _inner(function)
        return _hollow(function) if inner is None else argument_check(inner)
    if inspect.isroutine(function) or inspect.isclass(function):
        return _anything
    call = type(function).__call__
    return MethodType(argument_check(call), function) if isinstance(call, FunctionType) else _anything


def _anything(*_args: object, **_kwargs: object) -> None:
    """Take any arguments."""


def _inner(function: FunctionType) -> Any:
    """Return what a wrapper of this library wraps, because the wrapper takes any arguments; None for any other function."""
    ours = function.__globals__.get("__name__", "").startswith(_LIBRARY)
    return getattr(function, "__wrapped__", None) if ours else None


def _hollow(function: FunctionType) -> FunctionType:
    """Return a function with the parameters of another and without its contents."""
    code = function.__code__
    names = code.co_varnames[: _parameters(function)]
    base = _anything.__code__
    empty = base.replace(
        co_argcount=code.co_argcount,
        co_posonlyargcount=code.co_posonlyargcount,
        co_kwonlyargcount=code.co_kwonlyargcount,
        co_varnames=names,
        co_nlocals=len(names),
        co_flags=base.co_flags & ~_VARIADIC | code.co_flags & _VARIADIC,
    )
    hollow = FunctionType(empty, _anything.__globals__, function.__name__, function.__defaults__)
    hollow.__kwdefaults__ = function.__kwdefaults__
    hollow.__qualname__ = function.__qualname__
    return hollow


def _parameters(function: FunctionType) -> int:
    code = function.__code__
    variadic = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + variadic


def _positional_range(function: Any) -> tuple[int, int]:
    """Return how many arguments by position certainly fit; an empty range if that cannot be said, so that each call is checked."""
    if not isinstance(function, FunctionType):
        return 1, 0
    inner = _inner(function)
    if inner is not None:
        return _positional_range(inner)
    code = function.__code__
    if code.co_kwonlyargcount > len(function.__kwdefaults__ or ()):
        return 1, 0
    most = sys.maxsize if code.co_flags & inspect.CO_VARARGS else code.co_argcount
    return code.co_argcount - len(function.__defaults__ or ()), most
