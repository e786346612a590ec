"""The description of a recorded function, derived once when it is decorated, and what happens to the arguments of its calls.

Arguments are bound to names when the run finishes, not while it is live: `Signature.bind` costs more than a whole recorded call.

A call of a coroutine or generator function fails at once if its arguments do not fit; what such a function does comes later. A wrapper
that is itself one takes any arguments and would fail later. So these wrappers are plain functions: they check the arguments, then
return the coroutine or generator of their body. For everybody who asks, they are of the kind of their body.

A gate names sealed parameters; whatever is recorded of the call has a mark in their place. Elsewhere in the trace the values may come up
again, in a result or in the message of an error. `_document` removes them there, from every run around the gated call and inside of it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeAlias

from grace_kp.record._current import HOST
from grace_kp.record._guard import attempt, note
from grace_kp.trace import MAX_METADATA, MAX_TAGS, MAX_VALUE, cut, render, render_text, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Body = Callable[[tuple[Any, ...], dict[str, Any]], Any]
    Refused = Callable[[tuple[Any, ...], dict[str, Any], TypeError], object]
    Mask: TypeAlias = "Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]"

TOOL, RETRIEVER, AGENT, SCOPE = "tool", "retriever", "agent", "scope"
"""Kinds of recorded functions. A scope opens a run only outside of any run; inside a run it leaves no trace."""

MAX_OBJECTIVE = 2_000


class Spec:
    """The description of a recorded function."""

    __slots__ = (
        "attributes", "bound", "can_await", "domain", "failed", "has_documents", "injected", "kind", "looks", "mask", "name",
        "objective", "positional", "scores", "searches", "var_keyword", "var_positional",
    )  # fmt: skip

    def __init__(
        self,
        function: Callable[..., Any] | None,
        *,
        kind: str,
        name: str | None = None,
        domain: str | None = None,
        objective: str | Callable[..., Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
        scores: object = None,
        sealed: Iterable[str] = (),
    ) -> None:
        self.name = name or name_of(function)
        self.scores = scores
        """The declared kind of the scores of search results; None if undeclared."""
        self.kind = kind
        self.searches = kind == RETRIEVER
        self.failed: Callable[[Any], object] | None = None
        """Declared by the program: whether a result is a failure."""
        self.looks = self.searches
        """Whether each result is looked at: for what was found, or for a failure."""
        self.domain = domain
        self.objective = objective
        stated = {name: value for name, value in (attributes or {}).items() if value is not None}
        self.attributes = Declared(self.name, function, stated) if stated else None
        """Tags, user, session and metadata of every run of the function."""
        self.positional: tuple[str, ...] = ()
        self.var_positional = "args"
        self.var_keyword = "kwargs"
        self.bound = False
        """Whether the first parameter is the instance or class of a method, which is not an input."""
        self.injected = frozenset() if function is None else HOST.injected(function)
        """Parameters that a framework fills in. They are not recorded."""
        self.mask = mask_of(function, (*sealed, *self.injected))
        """Replaces the sealed arguments of a call; None where none are sealed."""
        self.has_documents = False
        """Whether a parameter is named like a document."""
        self.can_await = False
        """Whether a coroutine awaits at the end of the run until it is stored, so that nothing blocks its event loop."""
        if function is not None:
            self._read(function)

    def _read(self, function: Callable[..., Any]) -> None:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return  # some builtins have no signature; their arguments are named by position
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.positional = tuple(item.name for item in parameters if item.kind in by_position)
        self.has_documents = any(self.is_document(item.name) for item in parameters)
        for item in parameters:
            if item.kind is inspect.Parameter.VAR_POSITIONAL:
                self.var_positional = item.name
            elif item.kind is inspect.Parameter.VAR_KEYWORD:
                self.var_keyword = item.name
        owner = getattr(function, "__qualname__", "").rpartition(".")[0]
        method = bool(owner) and not owner.endswith("<locals>")
        self.bound = method and bool(self.positional) and self.positional[0] in {"self", "cls", "mcs"}
        if self.bound:
            self.positional = self.positional[1:]

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the passed arguments by parameter name; those left to their defaults are not among them."""
        known = len(self.positional)
        named: dict[str, Any] = dict(zip(self.positional, args, strict=False))
        if len(args) > known:
            named[self.var_positional] = list(args[known:])
        if kwargs:
            for key, value in kwargs.items():
                named[key if key not in named else f"{self.var_keyword}.{key}"] = value
        for name in self.injected:
            named.pop(name, None)
        return named

    def objective_of(self, args: Sequence[Any], kwargs: Mapping[str, Any], max_text: int) -> str:
        """Return the objective of a run: the stated one, else the first string among the arguments, else the call itself.

        `args` are without the bound instance. If the user's template or callable fails, the next rule applies.
        """
        limit = max_text if max_text < MAX_OBJECTIVE else MAX_OBJECTIVE  # noqa: FURB136 — cheaper than a call
        if self.objective is not None:
            stated = self.objective
            text = attempt(f"objective of {self.name}", lambda: _fill_objective(stated, self.bind(args, kwargs)))
            if text is not None and text.strip():
                return cut(text, limit)
        for value in (*args, *kwargs.values()) if kwargs else args:
            if type(value) is str:
                if value and not value.isspace():
                    return value if len(value) <= limit else cut(value, limit)
            elif issubclass(type(value), str) and str.strip(value):
                return cut(str.__getitem__(value, slice(None)), limit)
        shown = [to_text(render(value, 80)) for value in args]
        shown += [f"{key}={to_text(render(value, 80))}" for key, value in kwargs.items()]
        return cut(f"{self.name}({', '.join(cut(text, 80) for text in shown)})", limit)

    def takes_document(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> bool:
        """Return whether the objective of a run is, or its template quotes, the value of a parameter that is named like a document."""
        if self.objective is not None:
            return isinstance(self.objective, str) and any(
                map(self.is_document, re.findall(r"\{(\w+)", self.objective))
            )
        texts = (name for name, value in self.bind(args, kwargs).items() if isinstance(value, str) and str.strip(value))
        return self.is_document(next(texts, ""))

    @staticmethod
    def is_document(name: str) -> bool:
        """Return whether a name is that of a document, such as `incoming_mail`, rather than of what a user wishes."""
        return _DOCUMENT.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()) is not None


_DOCUMENT = re.compile(
    r"(?<![^\W\d_])(?:articles?|attachments?|body|contents?|docs?|documents?|e?mails?|html|letters?|markdown|ticket|transcript|webpage)(?![^\W\d_])"
)


def _fill_objective(objective: str | Callable[..., Any], named: dict[str, Any]) -> str:
    if isinstance(objective, str):
        return objective.format(**named) if "{" in objective else objective
    return render_text(call_on_arguments(objective, named), MAX_OBJECTIVE)


_PARAMETER = re.compile(r"\{(\w+)\}")


class Declared:
    """Attributes that a decorator states: values, templates with parameters in braces, or callables on the bound arguments."""

    __slots__ = ("_defaults", "_place", "_values")

    def __init__(self, name: str, function: Callable[..., Any] | None, values: dict[str, Any]) -> None:
        self._place = f"attributes of {name}"
        self._defaults: dict[str, Any] = {}
        if function is not None:
            with contextlib.suppress(TypeError, ValueError):  # some builtins have no signature
                parameters = inspect.signature(function).parameters.values()
                self._defaults = {item.name: item.default for item in parameters if item.default is not item.empty}
        self._values = values
        tags, metadata = values.get("tags"), values.get("metadata")
        if not (tags is None or callable(tags) or isinstance(tags, str | list | tuple | set | frozenset)):
            raise TypeError(f"tags must be a list of strings or a callable, not {type(tags).__name__}")
        if not (metadata is None or callable(metadata) or isinstance(metadata, dict)):
            raise TypeError(f"metadata must be a dict or a callable, not {type(metadata).__name__}")

    def resolve(self, bound: Mapping[str, Any], *, capture_input: bool) -> dict[str, Any]:
        """Return the attributes of one call, without those that cannot be resolved; these are noted.

        Without `capture_input`, tags and metadata that depend on the arguments are left out. User and session stay: a run is found and
        deleted by them.
        """
        named = {**self._defaults, **bound}
        found: dict[str, Any] = {}
        for kind, value in self._values.items():
            hidden = not capture_input and kind in {"tags", "metadata"}
            if isinstance(value, dict):
                items = {key: self._resolve(item, named, hidden) for key, item in value.items()}
                found[kind] = {key: item for key, item in items.items() if item is not None}
            elif isinstance(value, list | tuple | set | frozenset):
                resolved = (self._resolve(item, named, hidden) for item in value)
                found[kind] = [item for item in resolved if item is not None]
            else:
                found[kind] = self._resolve(value, named, hidden)
        return found

    def _resolve(self, value: object, named: dict[str, Any], hidden: bool) -> Any:
        if isinstance(value, str) and "{" in value:
            template, whole = value, _PARAMETER.fullmatch(value)  # a single parameter becomes the argument itself
            filled = (lambda: named[whole[1]]) if whole else (lambda: template.format(**named))
            return None if hidden else attempt(self._place, filled)
        if not callable(value):
            return value
        function = value
        return None if hidden else attempt(self._place, lambda: call_on_arguments(function, named))


def call_on_arguments(function: Callable[..., Any], named: dict[str, Any]) -> Any:
    """Call a user's callable on bound arguments: by name if its parameters match theirs, else with one mapping of all."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return function(named)
    if any(item.kind is inspect.Parameter.POSITIONAL_ONLY for item in parameters):
        return function(named)
    if any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters):
        return function(**named)
    required = [item.name for item in parameters if item.default is inspect.Parameter.empty]
    if all(name in named for name in required):
        return function(**{item.name: named[item.name] for item in parameters if item.name in named})
    return function(named)


def name_of(function: object) -> str:
    """Return the function's own name, through partials and callable objects."""
    while hasattr(function, "func") and not hasattr(function, "__name__"):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name)


_KINDS = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_LIBRARY = __name__.partition(".")[0] + "."
_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def fitting(function: Callable[..., Any], body: Body, refused: Refused | None = None) -> Callable[..., Any]:
    """Return a wrapper of `function` that raises a TypeError when it is called with arguments that do not fit."""
    check = argument_check(function)
    least, most = _positional_range(function)
    name_like(body, unwrap(function))

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


def unwrap(function: object) -> Any:
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
    variadic = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + variadic]
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


SEALED = "[SEALED]"
"""Replaces an argument that its gate keeps encrypted."""
_NAMES, _AGAIN = "__grace_sealed__", "__grace_again__"


def seal(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """Mark a function, and so all that wrap it from now on: these parameters are not recorded; return the function."""
    if names := tuple(names):
        setattr(function, _NAMES, (*sealed_parameters(function), *names))
    return function


def sealed_parameters(function: object) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(function, _NAMES, ())
    return found


def can_seal(recorded: Any, again: Callable[[tuple[str, ...]], Any]) -> None:
    """Note how a recorded function is built once more with sealed parameters, should a gate be put around it."""
    setattr(recorded, _AGAIN, (recorded.__wrapped__, again))


def reseal(function: Any, names: tuple[str, ...]) -> Any:
    """Return a function that does not record these parameters, if it is a recorded one; else the function itself."""
    built: Any = getattr(function, _AGAIN, None)
    # A wrapper around a recorded function has its attributes, too, but does more than record.
    return (
        built[1](names)
        if names and built is not None and built[0] is getattr(function, "__wrapped__", None)
        else function
    )


def mask_of(function: Any, sealed: Iterable[str] = ()) -> Mask | None:
    """Return what replaces the sealed arguments of a call; None where none are sealed."""
    names = (*sealed_parameters(function), *sealed)
    if not names:
        return None
    parameters = inspect.signature(function).parameters
    by_position = [
        item for item in parameters.values() if item.kind in {item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD}
    ]
    places = {place for place, item in enumerate(by_position) if item.name in names}
    rest = {item.kind: item.name in names for item in parameters.values()}
    hides_more, hides_others = (
        rest.get(kind, False) for kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    )

    def mask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def is_hidden(place: int) -> bool:
            return place in places or (hides_more and place >= len(by_position))

        return (
            tuple(SEALED if is_hidden(place) else value for place, value in enumerate(args)),
            {
                name: SEALED if name in names or (hides_others and name not in parameters) else value
                for name, value in kwargs.items()
            },
        )

    return mask


class Attributes:
    """Tags, user, session and metadata of one run, bounded when they are stated. Changed under the recorder's lock only."""

    __slots__ = ("changes", "dropped_metadata", "dropped_tags", "metadata", "session", "tags", "user")

    def __init__(self) -> None:
        self.tags: dict[str, None] = {}
        self.metadata: dict[str, Any] = {}
        self.user: str | None = None
        self.session: str | None = None
        self.dropped_tags = 0
        self.dropped_metadata = 0
        self.changes = 0
        """Number of changes; the journal writes the attributes again after a change."""

    def merge(self, *, tags: object, user: object, session: object, metadata: object, max_text: int) -> None:
        """Add tags, merge metadata by key, replace user and session. None changes nothing."""
        self.changes += 1
        for tag in _read_tags(tags, "tags", max_text):
            if tag in self.tags or len(self.tags) < MAX_TAGS:
                self.tags[tag] = None
            else:
                self.dropped_tags += 1
        self.user = _read_label(user, "user", max_text) or self.user
        self.session = _read_label(session, "session", max_text) or self.session
        if metadata is not None and not isinstance(metadata, dict):
            note("update", f"metadata must be a dict, not {type(metadata).__name__}")
        elif metadata:
            rendered = {render_text(key, max_text): render(value, MAX_VALUE) for key, value in metadata.items()}
            for key, value in rendered.items():
                if key in self.metadata or len(self.metadata) < MAX_METADATA:
                    self.metadata[key] = value
                else:
                    self.dropped_metadata += 1


def _read_tags(tags: object, name: str, max_text: int) -> list[str]:
    if tags is None:
        return []
    if isinstance(tags, str):  # one tag, not its letters
        tags = (tags,)
    if not isinstance(tags, list | tuple | set | frozenset):
        note("update", f"{name} must be a list of strings, not {type(tags).__name__}")
        return []
    in_order = sorted(tags, key=str) if isinstance(tags, set | frozenset) else tags
    return [tag for item in in_order if (tag := _read_label(item, name, max_text))]


def _read_label(value: object, name: str, max_text: int) -> str | None:
    if value is None:
        return None
    text = render_text(value, max_text)
    if not text.strip():
        note("update", f"{name} must not be empty")
        return None
    return text
