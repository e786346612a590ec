"""Failures that a tool reports in its result instead of raising an exception: of MCP, of tool messages, and by a `failed=` of the program.

A result is read without running its code: entries of dicts, instance attributes, slots and fields of named tuples, never properties.
"""

from __future__ import annotations

import contextlib
from collections import namedtuple
from types import GetSetDescriptorType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

from grace_kp.record._guard import attempt
from grace_kp.trace import class_mro, class_namespace, render_text

if TYPE_CHECKING:
    from collections.abc import Callable

TOOL_ERROR = "ToolError"
"""The kind of an error that a result reports."""
MAX_PARTS = 100


_READ = ("isError", "is_error", "tool_call_id", "status", "content", "text", "update", "__pydantic_extra__")
_SLOTS = (GetSetDescriptorType, MemberDescriptorType, type(vars(namedtuple("_Row", "field"))["field"]))
_HEAP_TYPE = 1 << 9
"""Set for the classes of `class` statements. Instances of others have no attributes of their own, unless they have a dict."""
# Not through the class: a metaclass may override these names.
_flags, _dict_offset, _name = (type.__dict__[name].__get__ for name in ("__flags__", "__dictoffset__", "__name__"))


def reported_failure(result: Any, failed: Callable[[Any], object] | None = None) -> str | None:
    """Return the message of the failure that a result reports; None if it reports none."""
    if failed is not None:
        verdict = attempt("failed=", lambda: _verdict(failed(result), result))
        return "its failed= raised, so that it is unknown whether it succeeded" if verdict is None else verdict or None
    kind = type(result)
    first = result[0] if (kind is list or kind is tuple) and result else result
    kind = type(first)
    # Most results report nothing, and looking closer would take longer than recording them.
    if kind is dict:
        if not ("isError" in first or "is_error" in first or "tool_call_id" in first):
            return None
    elif not (_flags(kind) & _HEAP_TYPE or _dict_offset(kind)) or not _may_report(first, kind):
        return None
    return attempt("the failure that a result reports", lambda: _failure(result))


def _may_report(value: object, kind: type) -> bool:
    for base in class_mro(kind):
        space = class_namespace(base)
        own = space.get("__dict__")
        own = own.__get__(value) if type(own) is GetSetDescriptorType or type(own) is MemberDescriptorType else ()
        if "isError" in own or "is_error" in own or "tool_call_id" in own or "__slots__" in space or base is dict:
            return True
    return False


def _slot(space: Any, name: str, value: object) -> Any:
    """Return what an instance keeps under a name of its class; None where that is a property, another object, or nothing."""
    member = space.get(name)
    return member.__get__(value) if type(member) in _SLOTS else None


def _verdict(answer: object, result: object) -> str:
    """Return the message of the failure that `failed=` found; empty if it found none."""
    if isinstance(answer, str):
        return answer
    return _message_of(result) if answer else ""


def _failure(result: Any) -> str | None:
    if type(result) is list or type(result) is tuple:
        # Among rows of data a flag is an entry like any other, so a list reports failures only if it consists of messages of tools.
        found = [_failed_message(item) for item in result[:MAX_PARTS]]
        return None if None in found else next(filter(None, found), None)
    fields = _fields(result)
    is_result = "content" in fields or not issubclass(type(result), dict)
    if fields.get("isError") is True or (fields.get("is_error") is True and is_result):
        return _message_of(result)
    return _failed_message(result) or None


def _failed_message(item: object) -> str | None:
    """Return the content of a tool message that reports a failure, "" for one that reports none, None for anything else."""
    fields = _fields(item)
    if _name(type(item)) == "Command":
        update = fields.get("update")
        messages: Any = update.get("messages") if type(update) is dict else update
        found = [_failed_message(message) for message in messages[:MAX_PARTS]] if type(messages) is list else []
        return next((text for text in reversed(found) if text is not None), "")
    if "tool_call_id" not in fields:
        return None
    status = fields.get("status")
    return _message_of(item) if type(status) is str and status == "error" else ""


def _message_of(result: object) -> str:
    """Return the strings in the content of a result; the whole result if there are none."""
    content: Any = _fields(result).get("content")
    parts = content[:MAX_PARTS] if type(content) is list or type(content) is tuple else [content]
    texts = (part if type(part) is str else _fields(part).get("text") for part in parts)
    return "\n".join(text for text in texts if type(text) is str) or render_text(result)


def _fields(value: Any) -> dict[str, Any]:
    """Return the entries of a dict, or what an object holds under the names that are read here."""
    kind = type(value)
    if issubclass(kind, dict):
        return dict(dict.items(value))
    fields: dict[str, Any] = {}
    for base in class_mro(kind):
        space = class_namespace(base)
        own = _slot(space, "__dict__", value) or {}
        fields.update({name: own[name] for name in _READ if name in own})
        for name in _READ if "__slots__" in space else ():
            with contextlib.suppress(AttributeError):
                if (kept := _slot(space, name, value)) is not None:
                    fields.setdefault(name, kept)
    extra = fields.get("__pydantic_extra__")
    return {**extra, **fields} if type(extra) is dict else fields
