"""Arguments from a reviewer in place of the call's own: they must fit the signature and its declared types, without guessing.

A value of the declared type runs as it was submitted. The JSON form of a type, such as a string for a date, is read as that type.
Everything else is a problem to report to the reviewer: the string "20" is not an int.
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from grace_kp.gating._case import Consent
from grace_kp.gating._digest import NotCheckable, closure_of, digest_of
from grace_kp.trace import render

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

    from grace_kp.gating._case import GatedCall

_POSITIONAL, _KEYWORDS = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY


class _EditMisfit(Exception):
    """A value does not fit; the message says why."""

    def within(self, name: str) -> _EditMisfit:
        """Return the same problem of the value that holds this one under `name`."""
        problem = str(self)
        return _EditMisfit(f"{name}{problem}" if problem.startswith(".") else f"{name}: {problem}")


def apply_changes(call: GatedCall, changes: Mapping[str, Any]) -> tuple[inspect.BoundArguments | None, str]:
    """Return the call with the reviewer's arguments; or None, and the problem."""
    parameters = call.signature.parameters
    rest = next((parameter.name for parameter in parameters.values() if parameter.kind is _KEYWORDS), None)
    arguments = dict(call.bound.arguments)
    declared = call.types()
    # Parameters first: `**more` as a whole does not undo changes of single keywords.
    for name, value in sorted(changes.items(), key=lambda change: change[0] not in parameters):
        if name == call.hidden or name in call.injected or (name not in parameters and rest is None):
            known = ", ".join(key for key in parameters if key not in {call.hidden, *call.injected}) or "none"
            return None, f"{call.action} has no parameter {name!r}; it has {known}"
        try:
            if name in parameters:
                parameter = parameters[name]
                original = call.bound.arguments.get(name, parameter.default)
                is_kept = _is_unchanged(value, original)
                arguments[name] = original if is_kept else _read_argument(value, parameter, declared.get(name))
            else:
                extra = str(rest)
                original = call.bound.arguments.get(extra, {}).get(name, inspect.Parameter.empty)
                is_kept = _is_unchanged(value, original)
                fitting = original if is_kept else _read_item(value, name, declared.get(extra))
                arguments[extra] = {**arguments.get(extra, {}), name: fitting}
        except _EditMisfit as problem:
            return None, f"the arguments do not fit {call.action}: {problem}"
    changed = inspect.BoundArguments(call.signature, _without_gaps(call.signature, arguments))
    try:
        bound = call.signature.bind(*changed.args, **changed.kwargs)
    except TypeError as error:
        return None, f"the arguments do not fit {call.action}: {error}"
    rejected = "" if call.check is None else call.check(arguments)
    return (None, f"the arguments do not fit {call.action}: {rejected}") if rejected else (bound, "")


def consent_to_changes(case: GatedCall, changes: Mapping[str, Any], digest: str) -> Consent | str:
    """Return a consent to the call with the reviewer's arguments, or their problem; `digest` is that of the arguments in the question."""
    bound, problem = apply_changes(case, changes)
    if bound is None:
        return problem
    try:
        changed = case.digest(bound)
    except NotCheckable as error:
        return str(error)
    return Consent(bound, changed, modified=changed != digest)


def problem_with(value: object, declared: object) -> str:
    """Return why a value does not fit a type; empty where it fits, or where the type cannot be checked."""
    try:
        _read(value, declared)
    except _EditMisfit as problem:
        return str(problem)
    return ""


def declared_types(action: object, signature: inspect.Signature) -> dict[str, Any]:
    """Return the type of each parameter that declares a type which can be resolved."""
    call: Any = action if inspect.isroutine(action) or isinstance(action, type) else type(action).__call__
    function = inspect.unwrap(call)
    names = getattr(function, "__globals__", {})
    inner = {**names, **closure_of(function)}
    found: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.annotation is parameter.empty:
            continue
        holder: Any = SimpleNamespace(__annotations__={name: parameter.annotation})
        try:
            found.update(typing.get_type_hints(holder, names, inner, include_extras=True))
        except (NameError, AttributeError, TypeError, SyntaxError):
            continue  # a name that is only known to a type checker
    return found


def _without_gaps(signature: inspect.Signature, arguments: Mapping[str, object]) -> dict[str, object]:
    """Arguments with the default of each missing parameter that others need in front of them.

    Otherwise positional arguments would end up in another parameter or in `**more`.
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


def _read_argument(value: object, parameter: inspect.Parameter, declared: object) -> object:
    name = parameter.name
    if parameter.kind is _POSITIONAL:
        if not isinstance(value, list | tuple):
            raise _EditMisfit(f"{name}: must be a list, not {type(value).__name__}")
        return tuple(_read_item(item, f"{name}[{number}]", declared) for number, item in enumerate(value))
    if parameter.kind is _KEYWORDS:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise _EditMisfit(f"{name}: must be an object, not {type(value).__name__}")
        return {key: _read_item(item, key, declared) for key, item in value.items()}
    if value is None and parameter.default is None:
        return None  # `x: int = None`
    return _read_item(value, name, declared)


def _read_item(value: object, name: str, declared: object) -> object:
    if typing.get_origin(declared) is typing.Unpack:
        declared = typing.get_type_hints(typing.get_args(declared)[0], include_extras=True).get(name)
    if declared is None:
        return value
    try:
        return _read(value, declared)
    except _EditMisfit as problem:
        raise problem.within(name) from None


def _read(value: object, declared: object) -> object:
    if typing.is_typeddict(declared):
        return _read_fields(value, declared)
    adapter = _adapter(declared)
    if adapter is None:
        return value
    from pydantic import PydanticUserError, ValidationError

    try:
        read = adapter.validate_python(value, strict=True)
    except PydanticUserError:
        return value  # the type refers to a type that is not defined
    except ValidationError as error:
        problem = _first_problem(error)
    else:
        # A number stays a number and an object becomes the model that it describes; conversions of a string by the type are not wanted.
        return value if type(read) is type(value) and isinstance(value, str | bytes | int | float) else read
    text = _as_json(value)
    if text is not None:
        try:
            return adapter.validate_json(text, strict=True)
        except ValidationError as error:
            # Some types cannot be checked in JSON; then the message about the value itself is clearer.
            if all(item["type"] != "needs_python_object" for item in error.errors()):
                problem = _first_problem(error)
    raise _EditMisfit(problem)


def _read_fields(value: object, declared: Any) -> dict[str, object]:
    """A dict with declared keys. Each is read by itself, because pydantic reads such a type only from Python 3.12 on."""
    if not isinstance(value, dict):
        raise _EditMisfit("Input should be a valid dictionary")
    types = typing.get_type_hints(declared, include_extras=True)
    # Where annotations are strings, `__required_keys__` ignores Required and NotRequired.
    origins = {name: typing.get_origin(hint) for name, hint in types.items()}
    required = {name for name, origin in origins.items() if origin is typing.Required}
    required |= {name for name in declared.__required_keys__ if origins.get(name) is not typing.NotRequired}
    if missing := required - value.keys():
        raise _EditMisfit(f".{min(missing)}: Field required")
    read: dict[str, object] = {}
    for name, item in value.items():
        if name not in types:
            raise _EditMisfit(f".{name}: Extra inputs are not permitted")
        hint = types[name]
        while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
            hint = typing.get_args(hint)[0]
        try:
            read[name] = _read(item, hint)
        except _EditMisfit as problem:
            raise problem.within(f".{name}") from None
    return read


def _adapter(declared: Any) -> TypeAdapter[Any] | None:
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation

    try:
        try:
            return TypeAdapter(declared, config=ConfigDict(arbitrary_types_allowed=True))
        except PydanticUserError:
            return TypeAdapter(declared)  # models, dataclasses and TypedDicts have their own configuration
    except (PydanticUserError, PydanticUndefinedAnnotation, NameError, TypeError, AttributeError):
        return None


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    inside = "".join(f".{part}" for part in first["loc"])
    return f"{inside}: {first['msg']}" if inside else str(first["msg"])


def _as_json(value: object) -> str | None:
    """The value as JSON, if it comes back from it the same."""
    try:
        text = json.dumps(value, allow_nan=False)
        return text if digest_of({"": json.loads(text)}) == digest_of({"": value}) else None
    except (TypeError, ValueError, RecursionError, NotCheckable):
        return None


def _is_unchanged(value: object, original: object) -> bool:
    """Whether a reviewer returned an argument unchanged, or in its JSON form."""
    if value is original:
        return True
    try:
        if (found := digest_of({"": value})) == digest_of({"": original}):
            return True
    except NotCheckable:
        return False
    if isinstance(original, str) or _as_json(value) is None:
        return False
    return any(found == digest_of({"": render(original, hides=hides)}) for hides in (False, True))
