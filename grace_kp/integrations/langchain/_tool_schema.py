"""The arguments of a tool: their names and types by its schema, problems with others, and their validation before the tool runs."""

from __future__ import annotations

import copy
import inspect
import sys
import types
import typing
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackManager, BaseRunManager
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.tools.base import FILTERED_ARGS, _is_injected_arg_type
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from grace_kp.approvals import schema_of
from grace_kp.errors import MissingExtra
from grace_kp.gating import problem_with
from grace_kp.trace import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Parse = Callable[[Any, Any, "str | None"], Any]

_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def argument_names(tool: object) -> dict[str, bool] | None:
    """Return the arguments that a model may pass, and whether each is required; None where the tool has no schema."""
    schema = _call_schema(tool)
    if isinstance(schema, dict):
        return {name: name in schema["required"] for name in schema["properties"]}
    fields = getattr(schema, "model_fields", None)
    if not isinstance(fields, dict):
        return None
    taken = _taken_names(tool)
    return {field.alias or name: field.is_required() for name, field in fields.items() if name not in taken}


def argument_types(tool: object) -> dict[str, Any]:
    fields = getattr(getattr(tool, "args_schema", None), "model_fields", None)
    return {name: field.annotation for name, field in fields.items()} if isinstance(fields, dict) else {}


def edit_schema(tool: object, signature: inspect.Signature) -> dict[str, Any]:
    """Return the JSON schema by which an inbox checks single arguments of an edit.

    The inbox does not know the tool's classes. The process that continues the run checks everything else.
    """
    schema = _call_schema(tool)
    if isinstance(schema, dict):
        found = {name: _with_null(item) for name, item in schema.items()}
        properties, definitions = _properties(found), found.get("$defs", {})
    else:
        fields = getattr(getattr(tool, "args_schema", None), "model_fields", {})
        found = schema_of(signature, {name: field.rebuild_annotation() for name, field in fields.items()})
        properties, definitions = found["properties"], {}
    return {
        "properties": {
            name: declared if _is_usable(declared := properties.get(name, {}), definitions) else {}
            for name in signature.parameters
        },
        "$defs": definitions,
    }


def _is_usable(schema: Any, definitions: Mapping[str, Any]) -> bool:
    """Return whether a schema refers to its own definitions only, and needs no classes or dictionary keys that JSON lacks."""
    if isinstance(schema, list):
        return all(_is_usable(item, definitions) for item in schema)
    if not isinstance(schema, dict):
        return True
    if "x-class" in schema or "x-members" in schema or schema.get("x-encoding") == "$dict":
        return False
    target = schema.get("$ref")
    is_found = target is None or str(target).removeprefix("#/$defs/") in definitions
    return is_found and all(_is_usable(item, definitions) for item in schema.values())


def schema_problem(tool: object, arguments: Mapping[str, Any], names: Mapping[str, bool] | None = None) -> str:
    names = argument_names(tool) or names
    if names:
        unknown = [name for name in arguments if name not in names]
        if unknown and not _takes_more(tool):
            return f"the tool has no argument {unknown[0]!r}; its arguments are {', '.join(names)}"
        missing = [name for name, required in names.items() if required and name not in arguments]
        if missing:
            return f"the argument {missing[0]!r} is missing"
    schema = _call_schema(tool)
    if isinstance(schema, dict):
        return _json_schema_problem(schema, arguments, is_edit=True)
    # A model of pydantic 1 cannot be read strictly; the tool itself validates the edit.
    return problem_with(dict(arguments), schema) if hasattr(schema, "model_fields") else ""


def _json_schema_problem(schema: Mapping[str, Any], arguments: Mapping[str, Any], *, is_edit: bool) -> str:
    """Return the problem with arguments by a JSON schema, or an empty string. What cannot be checked is a problem only in an edit."""
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import UnknownType, best_match
        from referencing import Registry
    except ImportError:
        return str(MissingExtra("Checking an edit by a JSON Schema", "approvals")) if is_edit else ""
    try:
        # The registry is empty, so references cannot leave the schema.
        own = {name: _with_null(item) for name, item in schema.items()}
        validator = Draft202012Validator(own, registry=Registry())
        worst: Any = best_match(validator.iter_errors(dict(arguments)))
    except UnknownType:
        return ""
    except Exception as error:  # noqa: BLE001 — a foreign schema may break a validator anywhere
        return f"the schema of the tool cannot be used ({type(error).__name__})" if is_edit else ""
    return "" if worst is None else f"{worst.json_path.removeprefix('$.')}: {worst.message[:300]}"


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _with_null(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _with_null(item) for name, item in schema.items()}
    return {"anyOf": [found, {"type": "null"}]} if schema.get("nullable") is True else found


def _takes_more(tool: object) -> bool:
    schema = getattr(tool, "args_schema", None)  # the call schema lacks its settings
    if isinstance(schema, dict):
        return bool(schema.get("additionalProperties", False))
    config = getattr(schema, "model_config", None)
    extra = config.get("extra") if config else getattr(getattr(schema, "__config__", None), "extra", "")
    return bool(extra == "allow")


class InvalidCall(Exception):
    """A call that the tool itself refuses. The message says why."""


class NotHeld(Exception):
    """A tool that cannot be held to the arguments that people see. The message says why."""


def validate_arguments(tool: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call as the tool validates them, without the parameters that LangChain fills in."""
    schema, injected = tool.args_schema, injected_names(tool)
    own = {name: value for name, value in arguments.items() if name not in injected}
    for name in ("invoke", "ainvoke", "run", "arun", "_to_args_and_kwargs"):
        owner = next(base for base in type(tool).__mro__ if name in base.__dict__)
        if not owner.__module__.startswith("langchain_core."):
            raise NotHeld(
                f"its class replaces `{name}`, so that it may run with other arguments; replace `_run` instead"
            )
    with_parser(tool, lambda *_: None, lambda: None)
    if isinstance(schema, dict) and (problem := _json_schema_problem(_call_schema(tool), own, is_edit=False)):
        raise InvalidCall(problem)
    fields = _fields(schema)
    filled_in = injected & fields.keys()
    probe = tool
    if filled_in:
        if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
            raise NotHeld("its schema is a model of pydantic 1 with parameters that LangChain fills in")
        absent: dict[str, Any] = dict.fromkeys(filled_in, (Any, None))
        probe = tool.model_copy(update={"args_schema": create_model(schema.__name__, __base__=schema, **absent)})
    elif fields == {} and isinstance(schema, type):
        return {}  # LangChain calls such a tool without arguments
    try:
        parsed = probe._parse_input(copy.deepcopy(own), "")
    except Exception as error:
        found = error.errors() if isinstance(error, ValidationError) else [{"type": "value_error"}]
        raised_by_code = any(each["type"] in {"value_error", "assertion_error"} for each in found)
        if filled_in and raised_by_code:  # a validator may need the parameters that LangChain fills in later
            problem = f"without what LangChain fills in ({', '.join(sorted(filled_in))}): {error_text(error)}"
            raise NotHeld(f"its arguments cannot be validated before it runs, {problem}") from error
        raise InvalidCall(error_text(error)) from error
    if not isinstance(parsed, dict):
        raise NotHeld("it takes something other than named arguments")
    values = {name: value for name, value in parsed.items() if name not in injected}
    if isinstance(tool, Tool):
        if len(values) != 1:
            raise InvalidCall(f"it takes a single argument, not {len(values)}")
    elif schema is None:  # LangChain validates nothing, and leaves the defaults to the function
        rest = {each.name for each in inspect.signature(tool._run).parameters.values() if each.kind in _VARIADIC}
        for name, field in _fields(tool.tool_call_schema).items():
            if name not in {*values, *rest} and not field.is_required():
                values[name] = field.get_default(call_default_factory=True)
    return values


def without_defaults(tool: Any, found: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return validated arguments without the constant defaults that a call does not state."""
    fields = _fields(tool.args_schema)
    return {
        name: value
        for name, value in found.items()
        if name in stated or name not in fields or getattr(fields[name], "default", NotHeld) is not value
    }


def as_input(tool: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments under the names that the tool's schema reads, which may be aliases of its function's parameters."""
    found = {}
    for name, value in arguments.items():
        field = _fields(tool.args_schema).get(name)
        alias = getattr(field, "validation_alias", None) or getattr(field, "alias", None)
        first = getattr(alias, "choices", [alias])[0]  # of an AliasChoices
        found[first if isinstance(first, str) else name] = value
    return found


def as_typed(tool: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values to the declared types of a tool's arguments, without the validators of its schema."""
    types = argument_types(tool)
    try:
        return {name: TypeAdapter(types.get(name, Any)).validate_python(value) for name, value in values.items()}
    except Exception as error:  # such as a type that pydantic knows only inside of the schema
        raise InvalidCall(error_text(error)) from error


def copy_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Copy arguments, so that a failed attempt cannot change those of the next."""
    try:
        return copy.deepcopy(dict(values))
    except Exception:  # noqa: BLE001 — a value may refuse in any way; the digest reveals a change
        return dict(values)


def kinds_in(value: object) -> set[type]:
    items: Any = [*value, *value.values()] if isinstance(value, dict) else value
    items = items if isinstance(items, list | tuple | set | frozenset) else ()
    return {type(value)}.union(*map(kinds_in, items))


def has_factory(tool: Any, name: str) -> bool:
    return getattr(_fields(tool.args_schema).get(name), "default_factory", None) is not None


def injected_names(tool: Any) -> set[str]:
    """Return the parameters that LangChain fills in. It drops a model's values for them."""
    names = {*_taken_names(tool), *getattr(tool, "_injected_args_keys", ())}
    if isinstance(tool.args_schema, type):
        names |= _fields(tool.args_schema).keys() - _fields(tool.tool_call_schema).keys()
    return names


def _taken_names(tool: Any) -> set[str]:
    """Return the argument names that LangChain or LangGraph reserves, even in a tool's schema."""
    names = set(FILTERED_ARGS)
    if getattr(type(tool), "_run", None) in (StructuredTool._run, Tool._run):
        names.add("config")  # a parameter of their `_run`, which does not pass it on
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    declared = {*_fields(getattr(tool, "args_schema", None)), *getattr(function, "__annotations__", ())}
    if "runtime" in declared:
        names.add("runtime")  # LangGraph injects by this name, whatever the type
    return names


def _call_schema(tool: Any) -> Any:
    """Return the schema of the arguments that a call passes to the function; None where the tool has none."""
    schema: Any = getattr(tool, "tool_call_schema", None)
    taken = _taken_names(tool)
    if isinstance(schema, dict):
        required, properties = schema.get("required"), _properties(schema)
        return {
            **schema,
            "properties": {name: declared for name, declared in properties.items() if name not in taken},
            "required": [name for name in required if name not in taken] if isinstance(required, list) else [],
        }
    absent: dict[str, Any] = dict.fromkeys(taken & getattr(schema, "model_fields", {}).keys(), (Any, None))
    return create_model(schema.__name__, __base__=schema, **absent) if absent else schema


def is_injected(declared: Any) -> bool:
    """Return whether LangChain or LangGraph fills in parameters of this type.

    A union with RunnableConfig does not count: LangChain leaves such a parameter of a tool to the model.
    """
    if typing.get_origin(declared) in {typing.Union, types.UnionType}:
        return any(each is not RunnableConfig and is_injected(each) for each in typing.get_args(declared))
    if _is_injected_arg_type(declared):
        return True
    plain = declared.__origin__ if hasattr(declared, "__metadata__") else declared
    kind = typing.get_origin(plain) or plain
    if kind is RunnableConfig:
        return True
    places = {"langgraph.runtime": "Runtime", "langgraph.store.base": "BaseStore"}
    held = [getattr(sys.modules.get(module), name, None) for module, name in places.items()]
    known = (BaseCallbackManager, BaseRunManager, *(each for each in held if isinstance(each, type)))
    return isinstance(kind, type) and issubclass(kind, known)


def injected_values(tool: Any, tool_input: Mapping[str, Any], tool_call_id: str | None) -> dict[str, Any]:
    """Return the parameters that LangChain filled in for a call, validated as by the tool."""
    schema, injected = tool.args_schema, injected_names(tool) - {"config", *FILTERED_ARGS}
    filled_in = {name: value for name, value in tool_input.items() if name in injected}
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return filled_in
    fields: dict[str, Any] = {
        name: (field.rebuild_annotation(), field) for name, field in schema.model_fields.items() if name in injected
    }
    only = create_model(schema.__name__, __config__={"arbitrary_types_allowed": True}, **fields)
    return BaseTool._parse_input(tool.model_copy(update={"args_schema": only}), filled_in, tool_call_id)  # type: ignore[return-value]


def with_parser(tool: Any, parse: Parse, starts: Callable[[], None]) -> Any:
    """Return a stand-in of the same class that parses its arguments by `parse` and runs the tool itself."""

    def _filter_injected_args(tool_input: dict[str, Any]) -> Any:
        starts()
        injected = injected_names(tool)
        return {name: value for name, value in tool._filter_injected_args(tool_input).items() if name not in injected}

    def _parse_input(tool_input: Any, tool_call_id: str | None) -> Any:
        return parse(tool._parse_input, tool_input, tool_call_id)

    own = {
        "_filter_injected_args": _filter_injected_args,
        "_parse_input": _parse_input,
        "_run": tool._run,
        "_arun": tool._arun,
    }
    # A subclass may run code of the tool's class when it is defined, and a copy would not share the tool's own counters.
    held = object.__new__(type(tool))
    object.__setattr__(held, "__dict__", {**tool.__dict__, **own})
    for name in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        object.__setattr__(held, name, getattr(tool, name))
    if any(getattr(held, name) is not attribute for name, attribute in own.items()):
        raise NotHeld("its class replaces how its attributes are found, so that it may run with other arguments")
    return held


def _fields(schema: Any) -> Mapping[str, Any]:
    found = getattr(schema, "model_fields", None)  # __fields__ of a model of pydantic 2 is deprecated
    return getattr(schema, "__fields__", {}) if found is None else found
