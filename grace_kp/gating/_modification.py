"""A reviewer's arguments in place of the call's own: they must fit the signature and its declared types, and nothing is guessed.

A value that has its declared type runs as it was submitted. A JSON value that the type has a JSON form for (a date as text, a model as an
object) is read as that type. Everything else is a problem to be named to the reviewer: the text "20" is no int.
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from grace_kp.gating._ledger import is_same

if TYPE_CHECKING:
    from grace_kp.gating._call import Call

_POSITIONAL, _KEYWORDS = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY


def modified(call: Call, changes: Mapping[str, Any]) -> tuple[inspect.BoundArguments | None, str]:
    """The call with the reviewer's arguments; or None, and what is wrong with them."""
    parameters = call.signature.parameters
    rest = next((parameter.name for parameter in parameters.values() if parameter.kind is _KEYWORDS), None)
    arguments = dict(call.bound.arguments)
    declared = call.types()
    # Parameters first: `**more` as a whole does not undo changes of single keywords.
    for name, value in sorted(changes.items(), key=lambda change: change[0] not in parameters):
        if name == call.hidden or (name not in parameters and rest is None):
            known = ", ".join(key for key in parameters if key != call.hidden) or "none"
            return None, f"{call.action} has no parameter {name!r}; it has {known}"
        original = _original(call, name)
        if _is_unchanged(value, original):
            fitting, problem = original, ""
        elif name in parameters:
            fitting, problem = _fitting(value, parameters[name], declared.get(name))
        else:
            fitting, problem = _fitting_item(value, name, declared.get(str(rest)))
        if problem:
            return None, f"the arguments do not fit {call.action}: {problem}"
        if name in parameters:
            arguments[name] = fitting
        else:
            arguments[str(rest)] = {**arguments.get(str(rest), {}), name: fitting}
    changed = inspect.BoundArguments(call.signature, _without_gaps(call.signature, arguments))
    try:
        bound = call.signature.bind(*changed.args, **changed.kwargs)
    except TypeError as error:
        return None, f"the arguments do not fit {call.action}: {error}"
    problem = "" if call.check is None else call.check(arguments)
    return (None, f"the arguments do not fit {call.action}: {problem}") if problem else (bound, "")


def _without_gaps(signature: inspect.Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with the default of each missing parameter that others need in front of them.

    Without it, what is passed by position would end up in another parameter or in `**more`.
    """
    filled = dict(arguments)
    missing: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name not in arguments:
            missing.append(parameter)
        elif parameter.kind is _POSITIONAL_ONLY or (parameter.kind is _POSITIONAL and arguments[name]):
            filled.update({item.name: item.default for item in missing})
        elif parameter.kind is _KEYWORDS and arguments[name]:
            filled.update({item.name: item.default for item in missing if item.kind is _POSITIONAL_ONLY})
    return filled


def declared_types(action: Any, signature: inspect.Signature) -> dict[str, Any]:
    """The type of each parameter that declares one which can be resolved."""
    plain = inspect.unwrap(_function(action))
    space = getattr(plain, "__globals__", {})
    closure = getattr(plain, "__closure__", None) or ()
    names = getattr(getattr(plain, "__code__", None), "co_freevars", ())
    inner = {name: cell.cell_contents for name, cell in zip(names, closure, strict=True) if _is_filled(cell)}
    found: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.annotation is parameter.empty:
            continue
        holder: Any = SimpleNamespace(__annotations__={name: parameter.annotation})
        try:
            found.update(typing.get_type_hints(holder, space, {**space, **inner}, include_extras=True))
        except (NameError, AttributeError, TypeError, SyntaxError):
            continue  # a name that is only known to a type checker
    return found


def problem_with(value: Any, declared: Any) -> str:
    """What is wrong with a value for a type; empty where nothing is, or where the type cannot be checked."""
    return _read(value, declared)[1]


def _function(action: Any) -> Any:
    while hasattr(action, "func"):
        action = action.func
    if inspect.isroutine(action) or isinstance(action, type):
        return action
    return type(action).__call__


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _fitting(value: Any, parameter: inspect.Parameter, declared: Any) -> tuple[Any, str]:
    """A parameter's value as its type; or what is wrong with it."""
    name = parameter.name
    if parameter.kind is _POSITIONAL:
        if not isinstance(value, list | tuple):
            return None, f"{name}: must be a list, not {type(value).__name__}"
        items = [_fitting_item(item, f"{name}[{number}]", declared) for number, item in enumerate(value)]
        return tuple(item for item, _ in items), next((problem for _, problem in items if problem), "")
    if parameter.kind is _KEYWORDS:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            return None, f"{name}: must be an object, not {type(value).__name__}"
        pairs = {key: _fitting_item(item, key, declared) for key, item in value.items()}
        problem = next((problem for _, problem in pairs.values() if problem), "")
        return {key: item for key, (item, _) in pairs.items()}, problem
    if value is None and parameter.default is None:
        return None, ""  # `x: int = None`
    return _fitting_item(value, name, declared)


def _fitting_item(value: Any, name: str, declared: Any) -> tuple[Any, str]:
    if typing.get_origin(declared) is typing.Unpack:
        fields = typing.get_type_hints(typing.get_args(declared)[0], include_extras=True)
        declared = fields.get(name)
    if declared is None:
        return value, ""
    fitting, problem = _read(value, declared)
    return fitting, f"{name}{problem if problem.startswith('.') else f': {problem}'}" if problem else ""


def _read(value: Any, declared: Any) -> tuple[Any, str]:
    """A value as a type; or the value, and what is wrong with it."""
    if typing.is_typeddict(declared):
        return _read_fields(value, declared)
    adapter = _adapter(declared)
    if adapter is None:
        return value, ""
    from pydantic import ValidationError

    try:
        read = adapter.validate_python(value, strict=True)
    except ValidationError as error:
        problem = _first_problem(error)
    else:
        # A number stays a number and an object becomes the model that it describes; what the type would make of a text is not wanted.
        return value if type(read) is type(value) and isinstance(value, str | bytes | int | float) else read, ""
    text = _as_json(value)
    if text is None:
        return value, problem
    try:
        return adapter.validate_json(text, strict=True), ""
    except ValidationError as error:
        # In JSON some types can only be described, not checked; then the message about the value itself says more.
        plain = all(item["type"] != "needs_python_object" for item in error.errors())
        return value, _first_problem(error) if plain else problem


def _read_fields(value: Any, declared: Any) -> tuple[Any, str]:
    """A dict with declared keys. Each is read by itself, because pydantic reads such a type only from Python 3.12 on."""
    if not isinstance(value, dict):
        return value, "Input should be a valid dictionary"
    types = typing.get_type_hints(declared, include_extras=True)
    missing = [name for name in types if name not in value and _is_required(name, types[name], declared)]
    if missing:
        return value, f".{min(missing)}: Field required"
    read: dict[str, Any] = {}
    for name, item in value.items():
        if name not in types:
            return value, f".{name}: Extra inputs are not permitted"
        hint = types[name]
        while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
            hint = typing.get_args(hint)[0]
        read[name], problem = _read(item, hint)
        if problem:
            return value, f".{name}{problem if problem.startswith('.') else f': {problem}'}"
    return read, ""


def _is_required(name: str, hint: Any, declared: Any) -> bool:
    # The class itself does not see what is written in annotations that are texts.
    origin = typing.get_origin(hint)
    return origin is typing.Required or (origin is not typing.NotRequired and name in declared.__required_keys__)


def _adapter(declared: Any) -> Any:
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation

    try:
        try:
            config = ConfigDict(arbitrary_types_allowed=True)
            return TypeAdapter(declared, config=config)
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":
                raise
            return TypeAdapter(declared)  # a model, dataclass or TypedDict has a configuration of its own
    except (PydanticUserError, PydanticUndefinedAnnotation, NameError, TypeError, AttributeError):
        return None


def _first_problem(error: Any) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    inside = "".join(f".{part}" for part in first["loc"])
    return f"{inside}: {first['msg']}" if inside else str(first["msg"])


def _as_json(value: Any) -> str | None:
    """The value as JSON, if it is one that comes back the same."""
    try:
        text = json.dumps(value, allow_nan=False)
        return text if is_same(json.loads(text), value) else None
    except (TypeError, ValueError, RecursionError):
        return None


def _original(call: Call, name: str) -> Any:
    """What the call has in the place that a reviewer changes; the default where it has nothing."""
    if name in call.bound.arguments:
        return call.bound.arguments[name]
    if name in call.signature.parameters:
        return call.signature.parameters[name].default
    extra = next(
        (parameter.name for parameter in call.signature.parameters.values() if parameter.kind is _KEYWORDS), ""
    )
    return call.bound.arguments.get(extra, {}).get(name, inspect.Parameter.empty)


def _is_unchanged(value: Any, original: Any) -> bool:
    """Whether a reviewer returned an argument as it was, or as it is shown in JSON."""
    from grace_kp.gating._digest import NotCheckable, digest_of
    from grace_kp.trace import render

    if value is original:
        return True
    try:
        if digest_of({"": value}) == digest_of({"": original}):
            return True
    except NotCheckable:
        return False
    return not isinstance(original, str) and _as_json(value) is not None and is_same(value, render(original))
