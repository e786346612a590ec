"""One wrapping core with a shell for each kind of function: plain, coroutine, generator, async generator.

A shell calls the user's function itself, outside of our code that catches exceptions, and makes the frame current only while the user's
code runs. Results and exceptions pass through untouched. Generators keep their whole protocol: sending, throwing and closing reach the
user's generator, and its answers come back.
"""

from __future__ import annotations

import functools
import inspect
import sys
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from grace_kp.record._current import CURRENT
from grace_kp.record._enter import entering
from grace_kp.record._guard import shielded
from grace_kp.record._stream import Stream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextvars import Token

    from grace_kp.record._enter import Enter
    from grace_kp.record._location import Frame
    from grace_kp.record._run import Recorder
    from grace_kp.record._spec import Spec

_get, _set, _reset = CURRENT.get, CURRENT.set, CURRENT.reset


def wrap(function: Callable[..., Any], spec: Spec, recorder: Callable[[], Recorder]) -> Callable[..., Any]:
    """Return `function`, recorded; of the same kind, with the same name, signature and documentation."""
    plain, enter = unwrapped(function), entering(spec, recorder)
    if inspect.iscoroutinefunction(plain):
        return _coroutine_shell(function, enter)
    if inspect.isasyncgenfunction(plain):
        return _async_generator_shell(function, enter)
    if inspect.isgeneratorfunction(plain):
        return _generator_shell(function, enter)
    return _plain_shell(function, enter)


def unwrapped(function: object) -> Any:
    """Return the function behind partials and objects with `__call__`, which decides whether a callable is async."""
    while isinstance(function, functools.partial):
        function = function.func
    if not (inspect.isroutine(function) or inspect.isclass(function)) and callable(function):
        return type(function).__call__
    return function


def _leave(token: Token[Any], frame: Frame | None) -> None:
    """Restore the frame from before, even if the context has changed since."""
    try:
        _reset(token)
    except ValueError:
        if _get() is frame:
            _set(None)


def _plain_shell(function: Callable[..., Any], enter: Enter) -> Callable[..., Any]:
    @functools.wraps(function)
    def recorded(*args: object, **kwargs: object) -> Any:
        frame = enter(args, kwargs)
        if frame is None:
            return function(*args, **kwargs)
        token = _set(frame)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            _leave(token, frame)
            frame.fail(error)
            raise
        _reset(token)
        kind = type(result)
        if (
            kind is str
            or result is None
            or kind is dict
            or kind is list
            or kind is int
            or kind is float
            or kind is bool
        ):
            frame.close(result)
            return result
        return _settled(frame, result)

    return recorded


def _settled(frame: Frame, result: object) -> Any:
    """End the frame of a plain function with its result. A coroutine, generator or future keeps it open until that ends."""
    for promise, shell in _PROMISES:
        if type(result) is promise:
            return shell(lambda: result, lambda _args, _kwargs: frame)()
    if not _follow(frame, result):
        frame.close(result)
    return result


def _is_future(kind: type) -> bool:
    # Looked up in the classes themselves: attribute access could run code of a user's metaclass.
    return any("add_done_callback" in _class_dict(base) for base in _class_mro(kind))


_class_dict = type.__dict__["__dict__"].__get__
_class_mro = type.__dict__["__mro__"].__get__


@shielded
def _follow(frame: Frame, future: Any) -> bool:
    """End the frame when a future is done; return whether the result is a future."""
    if not _is_future(type(future)):
        return False

    def done(finished: Any) -> None:
        try:
            error = finished.exception()
        except BaseException as cancelled:  # noqa: BLE001
            error = cancelled
        if error is None:
            frame.close(finished.result())
        else:
            frame.fail(error)

    future.add_done_callback(done)
    return True


def _coroutine_shell(function: Callable[..., Any], enter: Enter) -> Callable[..., Any]:
    @functools.wraps(function)
    async def recorded(*args: object, **kwargs: object) -> Any:
        frame = enter(args, kwargs)
        if frame is None:
            return await function(*args, **kwargs)
        token = _set(frame)
        try:
            result = await function(*args, **kwargs)
        except BaseException as error:
            _leave(token, frame)
            frame.fail(error)
            raise
        _leave(token, frame)
        frame.close(result)
        return result

    return recorded


def _generator_shell(function: Callable[..., Any], enter: Enter) -> Callable[..., Any]:
    @functools.wraps(function)
    def recorded(*args: object, **kwargs: object) -> Any:
        generator = function(*args, **kwargs)
        frame = enter(args, kwargs)
        if frame is None:
            return (yield from generator)
        stream = Stream(frame)
        resume: Callable[[Any], Any] = generator.send
        value: Any = None
        while True:
            token = _set(frame)
            try:
                item = resume(value)
            except StopIteration as stop:
                _leave(token, frame)
                stream.close(stop.value)
                return stop.value
            except BaseException as error:
                _leave(token, frame)
                stream.fail(error)
                raise
            _leave(token, frame)
            stream.add(item)
            try:
                value = yield item
                resume = generator.send
            except BaseException as error:  # noqa: BLE001
                stream.thrown(error)
                resume, value = generator.throw, error

    return recorded


def _async_generator_shell(function: Callable[..., Any], enter: Enter) -> Callable[..., Any]:
    @functools.wraps(function)
    async def recorded(*args: object, **kwargs: object) -> Any:
        generator = function(*args, **kwargs)
        frame = enter(args, kwargs)
        stream = Stream(frame)
        before = frame or _get()  # if nothing is recorded, the current frame stays
        resume: Callable[[Any], Any] = _unhooked(generator)
        value: Any = None
        while True:
            token = _set(before)
            try:
                item = await resume(value)
            except StopAsyncIteration:
                _leave(token, before)
                stream.close(None)
                return
            except BaseException as error:
                _leave(token, before)
                stream.fail(error)
                raise
            _leave(token, before)
            stream.add(item)
            try:
                value = yield item
                resume = generator.asend
            except BaseException as error:  # noqa: BLE001
                stream.thrown(error)
                resume, value = generator.athrow, error

    return recorded


_PROMISES: tuple[tuple[type, Callable[[Callable[..., Any], Enter], Callable[..., Any]]], ...] = (
    (CoroutineType, _coroutine_shell),
    (GeneratorType, _generator_shell),
    (AsyncGeneratorType, _async_generator_shell),
)


def _unhooked(generator: AsyncGenerator[Any, Any]) -> Callable[[Any], Any]:
    """Return the first `asend` of an inner generator, which hides that generator from the event loop.

    At its end the loop closes every generator that it knows, all at once. The outer generator closes the inner one. If the loop knew
    both, the two closings would collide and be reported as an error.
    """

    def first(value: object) -> Any:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)
        try:
            return generator.asend(value)
        finally:
            sys.set_asyncgen_hooks(*hooks)

    return first
