"""How a recorded call begins and ends: the run that it belongs to or opens, and the shell around each kind of function.

There is one shell for plain functions, coroutines, generators and async generators each.

A shell calls the user's function itself, outside of our code that catches exceptions, and makes the frame current only while the user's
code runs. Results and exceptions pass through untouched. Generators keep their whole protocol: sending, throwing and closing reach the
user's generator, and its answers come back. The items that a generator yields are kept within bounds.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from itertools import islice
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType, ModuleType
from typing import TYPE_CHECKING, Any

from grace_kp.record import _current
from grace_kp.record._current import FIRST, FOLLOWED, HOST, ORDER, TROUBLES
from grace_kp.record._evidence import ENDED, FULL, stray
from grace_kp.record._guard import attempt, shielded, shielded_end, shielded_pair
from grace_kp.record._run import HERE, Call, Listener, Recorder, Run, current_run, find_frame
from grace_kp.record._spec import AGENT, SCOPE, fitting, name_like, unwrap
from grace_kp.settings import Settings
from grace_kp.trace import MAX_ITEMS, class_mro, class_namespace, dictionary_getter, render, stored_fields

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from contextvars import Token

    from grace_kp.confidence import ResultReader
    from grace_kp.record._run import Frame
    from grace_kp.record._spec import Body, Spec

    Arguments = tuple[object, ...]
    Named = dict[str, Any]
    Enter = Callable[[Arguments, Named], Frame | None]


def wrap(function: Callable[..., Any], spec: Spec, recorder: Callable[[], Recorder]) -> Callable[..., Any]:
    """Return `function`, recorded; of the same kind, with the same name, signature and documentation."""
    plain, enter = unwrap(function), _entering(spec, recorder)
    for is_kind, body in _BODIES:
        if is_kind(plain):
            spec.can_await = body is not _generator_body
            return fitting(function, body(function, enter), functools.partial(_record_refusal, enter))
    return _plain_shell(function, enter)


@shielded
def _record_refusal(enter: Enter, args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError) -> None:
    """Record a call whose arguments do not fit: as a failed call in the run around it, if there is one."""
    if current_run() is not None and (frame := enter(args, kwargs)) is not None:
        frame.fail(error)


def _leave(frame: Frame | None, token: Token[Any]) -> None:
    """Leave a frame, also in a context other than the one it was entered in."""
    try:
        _current.reset_frame(token)
    except ValueError:
        if _current.get_frame() is frame:
            _current.set_frame(None)


def _plain_shell(function: Callable[..., Any], enter: Enter) -> Callable[..., Any]:
    @functools.wraps(function)
    def recorded(*args: object, **kwargs: object) -> Any:
        frame = enter(args, kwargs)
        token = _current.set_frame(frame or _current.get_frame())  # if nothing is recorded, the current frame stays
        try:
            # A call with a star needs the C stack on Python 3.11, where a function that calls itself would overflow it.
            count = 9 if kwargs else len(args)
            if count == 1:
                result = function(args[0])
            elif count == 2:
                result = function(args[0], args[1])
            elif count == 3:
                result = function(args[0], args[1], args[2])
            else:
                result = function(*args, **kwargs)
        except BaseException as error:
            _current.reset_frame(token)
            if frame is not None:
                frame.fail(error)
            raise
        _current.reset_frame(token)
        if frame is None:
            return result
        kind = type(result)
        if (
            kind is str
            or result is None
            or ((kind is dict or kind is list) and frame.run is not frame)
            or kind is int
            or kind is float
            or kind is bool
        ):
            frame.close(result)
            return result
        try:
            is_future = kind is not dict and kind is not list and _follow(frame, result)
            return result if is_future else _end_with(frame, result)
        except RecursionError:
            frame.close(None)  # the stack is full: what the promise brings is not recorded
            return result

    return recorded


def _end_with(frame: Frame, result: Any) -> Any:
    """End the frame of a function with its result. A coroutine or generator keeps it open until that ends.

    A run is also kept open by the generators that its result stores, such as the body of a web response.
    """
    if _is_promise(type(result)):
        return _follow_promise(frame, result, Streams())
    held = _hold_open(frame, result) if frame.run is frame else None
    if held is None:
        frame.close(result)
    return result if held is None else held


def _follow_promise(frame: Frame, promise: Any, streams: Streams) -> Any:
    """Return a coroutine or generator that does the same as another, in the frame, and keeps the frame open."""
    body = _PROMISES[type(promise)](_Pending(promise, frame, streams).start, lambda _args, _kwargs: frame, streams)
    name_like(body, promise)
    streams.open += 1
    following = body((), {})
    FOLLOWED[following] = frame.run
    return following


@shielded
def _hold_open(frame: Frame, result: Any) -> Any:
    """Have the generators that a result stores keep a run open; return the result, or the tuple that replaces it; None without any."""
    streams, replaced, left = Streams(), dict[int, Any](), iter(range(_MOST_VALUES))

    def follow(value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is GeneratorType or kind is AsyncGeneratorType:
            if id(value) not in replaced and _is_unstarted(value, frame.run):
                replaced[id(value)] = _follow_promise(frame, value, streams)
            return replaced.get(id(value), value)
        if next(left, None) is None or depth == 0 or kind is str or value is None or issubclass(kind, _CLOSED):
            return value
        if issubclass(kind, tuple):
            if tuple.__len__(value) > MAX_ITEMS:
                return value
            items = [follow(item, depth - 1) for item in tuple.__iter__(value)]
            is_same = dictionary_getter(kind) is not None or all(map(operator.is_, items, tuple.__iter__(value)))
            return value if is_same else tuple.__new__(kind, items)
        store: Any = dict if issubclass(kind, dict) else list if issubclass(kind, list) else None
        put = object.__setattr__ if store is None else store.__setitem__
        fields: Any = (stored_fields(value, kind) or {}) if store is None else value
        stored: Any = enumerate(list.__iter__(fields)) if store is list else dict.items(fields)
        for name, item in list(islice(stored, MAX_ITEMS)):
            if (followed := follow(item, depth - 1)) is not item:
                put(value, name, followed)
        return value

    result = follow(result, _DEPTH)
    return result if streams.open else None


def _is_unstarted(stream: Any, run: Run) -> bool:
    """Return whether a generator has not been started, and keeps no run open but those nested in this one: others may own it."""
    inner = FOLLOWED.get(stream)
    while inner is not None and inner is not run:
        inner = None if inner.via is None else inner.via.run
    if stream in FOLLOWED and (inner is None or FOLLOWED[stream] is run):
        return False
    if type(stream) is GeneratorType:
        return inspect.getgeneratorstate(stream) == inspect.GEN_CREATED
    begun = getattr(stream, "ag_suspended", False)  # since Python 3.12
    return stream.ag_frame is not None and not begun and stream.ag_frame.f_lineno == stream.ag_code.co_firstlineno


class _Pending:
    """A coroutine or generator that a function returned or yielded and that has not been started."""

    __slots__ = ("_frame", "_promise", "_streams")

    def __init__(self, promise: Any, frame: Frame, streams: Streams) -> None:
        self._promise, self._frame, self._streams = promise, frame, streams

    def start(self) -> Any:
        promise, self._promise = self._promise, None
        return promise

    def __del__(self) -> None:
        if self._promise is None:
            return
        # The coroutine around it warns that it was never awaited; once is enough.
        if type(self._promise) is CoroutineType:
            self._promise.close()
        RecordedStream(self._frame, self._streams).fail(GeneratorExit("it was dropped before it was started"))


@shielded
def _follow(frame: Frame, future: Any) -> bool:
    """End the frame when a future is done; return whether the result is a future."""
    # Looked up in the classes themselves: attribute access could run code of a user's metaclass.
    if not any("add_done_callback" in class_namespace(base) for base in class_mro(type(future))):
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


def _coroutine_body(function: Callable[..., Any], enter: Enter, _streams: Streams | None = None) -> Body:
    async def recorded(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        frame = enter(args, kwargs)
        if frame is None:
            return await function(*args, **kwargs)
        token = _current.set_frame(frame)
        try:
            result = await function(*args, **kwargs)
        except BaseException as error:
            _leave(frame, token)
            frame.fail(error)
            if frame.run.stored is not None and type(error) is not GeneratorExit:
                await frame.run.stored
            raise
        _leave(frame, token)
        kind = type(result)
        if kind is str or result is None or (frame.run is not frame and (kind is dict or not _is_promise(kind))):
            frame.close(result)
        else:
            result = _end_with(frame, result)
        if frame.run.stored is not None:
            await frame.run.stored
        return result

    return recorded


def _generator_body(function: Callable[..., Any], enter: Enter, streams: Streams | None = None) -> Body:
    def recorded(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        generator = function(*args, **kwargs)
        frame = enter(args, kwargs)
        if frame is None:
            return (yield from generator)
        stream = RecordedStream(frame, streams)
        thrown: BaseException | None = None
        value: Any = None
        while True:
            token = _current.set_frame(frame)
            try:
                # `next` counts less towards the recursion limit than `send`.
                if thrown is not None:
                    item = generator.throw(thrown)
                elif value is None:
                    item = next(generator)
                else:
                    item = generator.send(value)
            except StopIteration as stop:
                _current.reset_frame(token)
                stream.close(stop.value)
                return stop.value
            except BaseException as error:
                _current.reset_frame(token)
                stream.fail(error)
                raise
            _current.reset_frame(token)
            stream.add(item)
            kind = type(item)
            if kind is GeneratorType or kind is AsyncGeneratorType:
                item = _follow_yielded(stream, item)
            try:
                value, thrown = (yield item), None
            except BaseException as error:  # noqa: BLE001
                stream.note_thrown(error)
                thrown = error

    return recorded


def _async_generator_body(function: Callable[..., Any], enter: Enter, streams: Streams | None = None) -> Body:
    async def recorded(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        generator = function(*args, **kwargs)
        frame = enter(args, kwargs)
        stream = RecordedStream(frame, streams)
        before = frame or _current.get_frame()  # if nothing is recorded, the current frame stays
        resume: Callable[[Any], Any] = _hide_from_loop(generator)
        value: Any = None
        while True:
            token = _current.set_frame(before)
            try:
                item = await resume(value)
            except StopAsyncIteration:
                _leave(before, token)
                stream.close(None)
                if frame is not None and frame.run.stored is not None:
                    await frame.run.stored
                return
            except BaseException as error:
                _leave(before, token)
                stream.fail(error)
                if frame is not None and frame.run.stored is not None:
                    await frame.run.stored
                raise
            _leave(before, token)
            stream.add(item)
            kind = type(item)
            if kind is GeneratorType or kind is AsyncGeneratorType:
                item = _follow_yielded(stream, item)
            try:
                value = yield item
                resume = generator.asend
            except BaseException as error:  # noqa: BLE001
                stream.note_thrown(error)
                resume, value = generator.athrow, error

    return recorded


_BODIES: tuple[tuple[Callable[[Any], bool], Callable[[Callable[..., Any], Enter], Body]], ...] = (
    (inspect.iscoroutinefunction, _coroutine_body),
    (inspect.isasyncgenfunction, _async_generator_body),
    (inspect.isgeneratorfunction, _generator_body),
)
_PROMISES: dict[type, Callable[[Callable[..., Any], Enter, Streams], Body]] = {
    CoroutineType: _coroutine_body,
    GeneratorType: _generator_body,
    AsyncGeneratorType: _async_generator_body,
}
_CLOSED = (type, FunctionType, ModuleType, str, bytes, int, float, bool, type(None))
_DEPTH = 2
"""How deep in a result generators are found: the body of a response, also of one in a tuple."""
_MOST_VALUES = 1_000
"""How many values of a result are searched for them, in the thread of the agent."""


def _is_promise(kind: type) -> bool:
    # Not by a lookup: a metaclass may redefine hashing and comparing.
    return kind is CoroutineType or kind is GeneratorType or kind is AsyncGeneratorType


def _follow_yielded(stream: RecordedStream, item: Any) -> Any:
    """Return a generator that a stream yields, so that it keeps the frame open as well."""
    if stream.frame is None:
        return item
    if stream.streams is None:
        stream.streams = Streams(count=1)
    return _follow_promise(stream.frame, item, stream.streams)


def _hide_from_loop(generator: AsyncGenerator[Any, Any]) -> Callable[[Any], Any]:
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


class Streams:
    """The streams that keep one frame open until the last of them has ended: those in a result, and those that a stream yields."""

    __slots__ = ("error", "open", "results")

    def __init__(self, *, count: int = 0) -> None:
        self.open = count
        self.error: BaseException | None = None
        """The first error that left one of them."""
        self.results: list[Any] = []


class RecordedStream:
    """The frame of a generator: its items, up to a number and a length, and how it ended."""

    __slots__ = ("closing", "count", "found", "frame", "items", "last", "left", "streams", "text")

    def __init__(self, frame: Frame | None, streams: Streams | None = None) -> None:
        self.frame = frame
        self.streams = streams
        self.closing: BaseException | None = None
        self.items: list[Any] = []
        self.last: Any = None
        self.count = 0
        self.text = True
        self.left = 0 if frame is None or not frame.run.owner.capture_output else frame.run.max_text
        self.found: ResultReader | None = None
        """Reads the results that a streaming retriever yields, before they are rendered or dropped."""
        if isinstance(frame, Call):
            frame.streams = True
            if frame.spec.searches:
                self.found = frame.hits = _reader_for(frame)

    @shielded
    def add(self, item: object) -> None:
        self.count += 1
        self.last = item
        if self.found is not None:
            self.found.read_item(item)
        if type(item) is not str:
            self.text = False
            if len(self.items) >= MAX_ITEMS:
                self.left = 0
        if self.left > 0:
            rendered = render(item, self.left)
            self.items.append(rendered)
            self.left -= len(rendered) if type(rendered) is str else 50

    def note_thrown(self, error: BaseException) -> None:
        """Note what the caller threw into the generator. A close ends the stream, however the generator reacts to it."""
        if isinstance(error, GeneratorExit):
            self.closing = error

    @shielded_end
    def close(self, returned: object) -> None:
        """Record that the generator is exhausted, or returned when it was closed."""
        self._end(returned if self.closing is None else None, self.closing)

    @shielded_end
    def fail(self, error: BaseException) -> None:
        """Record that an exception left the generator; the items until then are kept."""
        self._end(None, error)

    def _end(self, returned: object, error: BaseException | None) -> None:
        frame, streams = self.frame, self.streams
        if frame is None:
            return
        result = self._result(returned)
        if streams is not None:
            with frame.run.owner.lock:
                streams.open -= 1
                streams.error = error = streams.error or error
                streams.results += [result] if self.count or not streams.open else []
                if streams.open:
                    return
            result = streams.results if len(streams.results) > 1 else streams.results[0]
        if error is not None:
            if result and frame.result is None:
                frame.result = result
            if isinstance(frame, Call):
                frame.hits = frame.found()
            frame.fail(error)
        elif isinstance(frame, Call):
            # A streamed string is one result.
            frame.hits = None if self.found is None or self.text else self.found.results()
            frame.end_with(result, self.last if returned is None else returned)
        else:
            frame.close(result)

    def _result(self, returned: object) -> Any:
        if self.text and self.count:
            joined: Any = "".join(self.items)
            more = self.count - len(self.items)
            out: Any = f"{joined}… [{more:,} more pieces]" if more else joined
        else:
            out = list(self.items)
            if self.count > len(out):
                out.append(f"… {self.count - len(out):,} more")
        if returned is None:
            return out
        return {"yielded": out, "returned": returned} if self.count else returned


@shielded
def _reader_for(search: Call) -> ResultReader | None:
    from grace_kp.confidence import ResultReader  # loaded with the first search

    return ResultReader(search.spec.scores)


_BIG = 1 << 64


def _entering(spec: Spec, recorder: Callable[[], Recorder]) -> Enter:
    """Return the function that a wrapper calls first: it gives the frame to make current, or None to record nothing."""
    open_frame, mask = _opening(spec, recorder), spec.mask
    # The gates inside a run that could not be opened have to know that they do not see what happens in it.
    enter = shielded_pair(open_frame, lambda: silent_run(spec, spec.name) if spec.kind == AGENT else None)
    return enter if mask is None else lambda args, kwargs: enter(*mask(args, kwargs))


def _opening(spec: Spec, recorder: Callable[[], Recorder]) -> Enter:
    bound = spec.bound

    def open_agent(args: Arguments, kwargs: Named) -> Run | None:
        return open_run(recorder(), spec, args[1:] if bound else args, kwargs)

    def open_scope(args: Arguments, kwargs: Named) -> Run | None:
        return None if current_run() is not None else open_agent(args, kwargs)

    def open_tool(args: Arguments, kwargs: Named) -> Call | None:
        # Through the module, by whose name a pickle of this function refers to them.
        here = _current.get_frame()
        if _current.HOST.locate is not None:
            here = _current.HOST.locate(here)
        if bound:
            args = args[1:]
        if here is None:
            return call_alone(recorder(), spec, kwargs, args=args)
        run, parent = (here.run, here) if isinstance(here, Call) else (here, None)
        if not run.open:
            return call_alone(recorder(), spec, kwargs, args=args)
        if len(run.events) >= run.owner.max_events:
            run.dropped += 2  # the call and its observation
            return None
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

    return open_agent if spec.kind == AGENT else open_scope if spec.kind == SCOPE else open_tool


def silent_run(spec: Spec, objective: str) -> Run:
    """Return a run without listeners, for one that could not be opened or while recording is off."""
    silent = Recorder(Settings(enabled=False), Listener())
    return Run(silent, spec, spec.name, objective, spec.domain or "default")


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
    here = find_frame() if inside is None else inside
    around = None if here is None else here.run
    via = None
    if around is not None and around.open and len(around.events) < around.owner.max_events:
        parent = here if isinstance(here, Call) else None
        via = Call(around, spec, parent, *_render_arguments(around, args, kwargs))
    is_stated = objective is not None
    if objective is None:
        objective = spec.objective_of(args, kwargs, owner.max_text) if owner.capture_input else spec.name
    run = Run(owner, spec, spec.name, objective, spec.domain or owner.domain, via)  # names would cost a dict
    if spec.has_documents and not is_stated:
        run.objective_is_document = spec.takes_document(args, kwargs)
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
