"""The arguments of recorded calls by name, as JSON values, and the texts in what a run recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._call import Call
from grace_kp.record._events import ModelCall, Note
from grace_kp.trace import texts_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Set


def texts_of(events: Iterable[object], texts: list[str]) -> list[str]:
    """Add the texts of events, which are redacted one by one later; texts that are derived from them are not known yet."""
    last: object = None
    for event in events:
        if event is last:  # the end of a call directly after its beginning
            continue
        last = event
        if isinstance(event, Call):
            if type(event.args) is list:
                texts_in(event.args, texts)
            else:
                for value in event.args:
                    if type(value) is str:
                        texts.append(value)  # noqa: PERF401 — a comprehension costs more
            if event.kwargs:
                texts_in(event.kwargs, texts)
            if type(event.result) is str:
                texts.append(event.result)
            elif event.result is not None:
                texts_in(event.result, texts)
            if event.hits is not None:
                texts += event.hits.texts
                texts += event.hits.sources
        elif isinstance(event, Note | ModelCall):
            texts.append(event.text)
    return texts


def plain_input(names: tuple[str, ...] | None, args: object, harmless: Set[str]) -> dict[str, Any] | None:
    """Return the arguments of a call by name if they need neither redaction nor rendering, else None."""
    if names is None or type(args) is not tuple or len(args) > len(names):
        return None
    for value in args:
        kind = type(value)
        if kind is str:
            if value not in harmless:
                return None
        elif not (value is None or kind is int or kind is bool):
            return None
    # Without `strict`, which costs more than all the rest.
    return {names[0]: args[0]} if len(args) == 1 else dict(zip(names, args))  # noqa: B905


def named(call: Call) -> dict[str, Any]:
    """Return the arguments of a call by name, as JSON values."""
    args = call.args
    if type(args) is list:  # rendered already
        return call.spec.bind(args, call.kwargs)
    names = call.spec.positional
    # Without `strict`, which costs more than all the rest.
    is_simple = len(args) <= len(names) and not call.spec.injected
    named = dict(zip(names, args)) if is_simple else call.spec.bind(args, None)  # noqa: B905
    if float in map(type, args):
        for key, value in named.items():
            if type(value) is float and value - value != 0:
                named[key] = str(value)
    return named
