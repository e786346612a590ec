"""Problems of a document as one line for people: pydantic's findings in terms of JSON, and values that JSON cannot hold.

The schema itself is in `_model`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from grace_kp.errors import InvalidTrace, brief

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MAX_DEPTH = 200
"""Nesting of objects and lists; deeper documents overflow the stack of JSON readers."""
MAX_BITS = 14_000
"""About 4,200 decimal digits; Python refuses to print or parse integers of more than 4,300."""

_WORDS = {
    "missing": "is missing",
    "string_type": "must be a text",
    "too_short": "must have at least one item",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}


def invalid(error: ValidationError, what: str) -> InvalidTrace:
    """Return the error for the first problem of a `what`: the value found, and the number of other wrong fields."""
    problems = error.errors(include_url=False)
    first = problems[0]
    path = location_text(first["loc"])
    message = _message(first)
    if first["type"] != "missing":
        message += f" (got {brief(first['input'])})"
    others = len({location_text(problem["loc"]) for problem in problems} - {path})
    if others:
        message += f"; {others} more {'field is' if others == 1 else 'fields are'} wrong"
    return InvalidTrace(message if path else f"a {what} {message}", path=path)


def refuse_what_json_cannot_hold(document: object) -> None:
    """Check every value of a document, also where the schema allows any.

    Raises:
        InvalidTrace: a value or key has no form in JSON, or the nesting exceeds MAX_DEPTH; the message names the place.
    """
    waiting: list[tuple[Any, tuple[int | str, ...]]] = [(document, ())]
    while waiting:
        value, place = waiting.pop()
        if len(place) > MAX_DEPTH:
            raise InvalidTrace(f"is nested more than {MAX_DEPTH} levels deep", path=location_text(place[:6]) + "…")
        if isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str):
                    raise InvalidTrace(f"has a key that is not a text: {brief(key)}", path=location_text(place))
                if type(item) is not str:
                    waiting.append((item, (*place, key)))
        elif isinstance(value, list):
            waiting.extend((item, (*place, index)) for index, item in enumerate(value))
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise InvalidTrace(f"must be a finite number (got {value!r})", path=location_text(place))
        elif isinstance(value, int):
            if value.bit_length() > MAX_BITS:
                raise InvalidTrace(
                    "must be a number that can be written out (got a very large one)", path=location_text(place)
                )
        elif value is not None and not isinstance(value, str):
            raise InvalidTrace(
                f"must be a JSON value (got one of type {type(value).__name__})", path=location_text(place)
            )


def problem_text(problem: ErrorDetails) -> str:
    """Return one of pydantic's findings with the value found, unless the message names the value itself."""
    names_value = problem["type"] in {"missing", "value_error", "problem_at"}
    return _message(problem) + ("" if names_value else f", not {brief(problem['input'])}")


def _message(problem: ErrorDetails) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in {"enum", "literal_error"}:
        return f"must be {context['expected']}"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}"
    if kind == "value_error":
        return str(context["error"])
    return problem["msg"][:1].lower() + problem["msg"][1:]


def location_text(location: tuple[int | str, ...]) -> str:
    """Return a location as a path such as `steps[2].tool`."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            name = part if len(part) <= 60 else part[:57] + "..."
            path += f".{name}" if path else name
    return path
