"""Failures that a tool reports in its result instead of raising an exception: of MCP, of tool messages, and by a `failed=` of the program.

A result is read without running its code: entries of dicts, instance attributes and slots, never properties.
"""

from __future__ import annotations

import contextlib
from itertools import islice
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from grace_kp.record._guard import attempt
from grace_kp.trace import SCALARS, render_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOOL_ERROR = "ToolError"
"""The kind of an error that a result reports."""
MAX_PARTS = 100
_MARKS = ("isError", "is_error", "tool_call_id")
_READ = (*_MARKS, "status", "content", "text", "update", "__pydantic_extra__")
_HEAP_TYPE = 1 << 9
"""Set for the classes of `class` statements. Instances of others have no attributes of their own, unless they have a dict."""
# Not through the class: a metaclass may override these names.
_flags = type.__dict__["__flags__"].__get__
_dict_offset = type.__dict__["__dictoffset__"].__get__
_mro = type.__dict__["__mro__"].__get__
_namespace = type.__dict__["__dict__"].__get__


def reported_failure(result: object, failed: Callable[[Any], object] | None = None) -> str | None:
    """Return the message of the failure that a result reports; None if it reports none.

    Args:
        result: the value that a tool returned, or the last one that it yielded.
        failed: decides alone, if it is not None. It returns whether the result is a failure, or a text that says why. If it raises, it is
            unknown whether the call succeeded, so the call counts as failed.
    """
    if failed is not None:
        verdict = attempt("failed=", lambda: _verdict(failed(result), result))
        return "its failed= raised, so that it is unknown whether it succeeded" if verdict is None else verdict or None
    kind = type(result)
    if kind in SCALARS or (kind is dict and not any(map(result.__contains__, _MARKS))):  # type: ignore[attr-defined]
        return None
    return attempt("the failure that a result reports", lambda: _failure(result))


def _verdict(answer: object, result: object) -> str:
    """Return the message of the failure that `failed=` found; empty if it found none."""
    if isinstance(answer, str):
        return answer
    return _message_of(result) if answer else ""


def _failure(result: object) -> str | None:
    if _is_sequence(type(result)):
        # Among rows of data a flag is an entry like any other, so a list reports failures only if it consists of messages of tools.
        found = [_failed_message(item) for item in _items(result)]
        return None if None in found else next(filter(None, found), None)
    fields = _fields(result)
    in_dict = issubclass(type(result), dict)
    if fields.get("isError") is True or (fields.get("is_error") is True and (not in_dict or "content" in fields)):
        return _message_of(result)
    return _failed_message(result) or None


def _failed_message(item: object) -> str | None:
    """Return the text of a message of a tool that reports a failure, "" for one that reports none, None for anything else."""
    fields = _fields(item)
    if type(item).__name__ == "Command":
        update = fields.get("update")
        messages = _fields(update).get("messages") if issubclass(type(update), dict) else update
        found = [_failed_message(message) for message in _items(messages)]
        return next((text for text in reversed(found) if text is not None), "")
    if "tool_call_id" not in fields:
        return None
    status = fields.get("status")
    return _message_of(item) if type(status) is str and status == "error" else ""


def _message_of(result: object) -> str:
    """Return the texts in the content of a result; the whole result where there are none."""
    content = _fields(result).get("content")
    parts = list(_items(content)) if _is_sequence(type(content)) else [content]
    texts = (part if type(part) is str else _fields(part).get("text") for part in parts)
    return "\n".join(text for text in texts if type(text) is str) or render_text(result)


def _is_sequence(kind: type) -> bool:
    return issubclass(kind, list | tuple) and not hasattr(kind, "_fields")


def _items(value: Any) -> Iterator[Any]:
    """Return the first items of a list or tuple; none of anything else."""
    kind = type(value)
    base: Any = list if issubclass(kind, list) else tuple
    return islice(base.__iter__(value), MAX_PARTS) if issubclass(kind, list | tuple) else iter(())


def _fields(value: Any) -> dict[str, Any]:
    """Return the entries of a dict, or what an object holds under the names that are read here."""
    kind = type(value)
    if kind is dict:
        return value  # type: ignore[no-any-return]  # it is one
    if issubclass(kind, dict):
        return dict(dict.items(value))
    if not _flags(kind) & _HEAP_TYPE and not _dict_offset(kind):
        return {}
    if issubclass(kind, tuple):
        return dict(zip(getattr(kind, "_fields", ()), tuple.__iter__(value), strict=False))
    fields: dict[str, Any] = {}
    for base in _mro(kind):
        space = _namespace(base)
        if "__slots__" in space:
            for name in _READ:
                if type(member := space.get(name)) is MemberDescriptorType:
                    with contextlib.suppress(AttributeError):
                        fields[name] = member.__get__(value)
    with contextlib.suppress(AttributeError):
        own = object.__getattribute__(value, "__dict__")
        fields.update({name: own[name] for name in _READ if name in own})
    extra = fields.get("__pydantic_extra__")
    return {**extra, **fields} if type(extra) is dict else fields
