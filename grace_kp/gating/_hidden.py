"""What a record or a channel must not show in full: what it shows instead, how much is hidden, and which answers count then.

A reviewer whose channel is stored where secrets must not be has a method `stores(text) -> bool`: whether a text is stored there already.
It gets redacted arguments, except where everything that redaction would remove is stored already.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from grace_kp.gating._request import frozen
from grace_kp.gating._tree import flat, plain
from grace_kp.gating._view import view
from grace_kp.levels import InterventionAction
from grace_kp.trace import MAX_TEXT, redact_text, redacted_arguments, render, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.gating._request import InterventionRequest, InterventionResponse

MAX_RECORDED = 65_536
"""Characters of all arguments of a call after which each further one is cut to `MIN_TEXT`."""
MIN_TEXT = 64
MAX_COUNTED = 5_000
"""Values inside an argument up to which its characters are counted; beyond, `hidden` is a lower bound, so that no call waits for it."""
_CUT = re.compile(
    r"… \[cut: [\d,]+ of [\d,]+ characters kept\]|… [\d,]+ more|[\d,]+ more|<\w+: (?:not shown(?:, too deep)?|[\d,]+ bytes)>"
)


def recorded_arguments(arguments: Mapping[str, Any], *, executed: bool = False) -> dict[str, Any]:
    """The fields of a gate's entry that hold arguments.

    Args:
        arguments: by parameter name.
        executed: they are those that the action runs with, after a modification.

    Returns:
        `arguments`, rendered within bounds. Where that cuts something, also `hidden`: the number of characters that are missing, by name.
        With `executed` the fields are `executed_arguments` and `executed_hidden`.
    """
    rendered: dict[str, Any] = {}
    left = MAX_RECORDED
    for name, value in arguments.items():
        rendered[name] = render(value, min(MAX_TEXT, max(left, MIN_TEXT)))
        left -= len(to_text(rendered[name]))
    hidden = {name: count for name, value in arguments.items() if (count := _cut(value, rendered[name]))}
    prefix = "executed_" if executed else ""
    fields: dict[str, Any] = {f"{prefix}arguments": rendered}
    if hidden:
        fields[f"{prefix}hidden"] = hidden
    return fields


def _cut(value: Any, rendered: Any) -> int:
    if value is rendered:
        return 0
    text = to_text(rendered)
    marks = sum(map(len, _CUT.findall(text)))
    if not marks:
        return 0
    size = len(value) if isinstance(value, str) else len(flat(view(value, MAX_COUNTED).root))
    return max(size - (len(text) - marks), 1)


def without_secrets(request: InterventionRequest, stores: Callable[[str], bool] | None = None) -> InterventionRequest:
    """The request for a channel that must not carry secrets.

    Args:
        request: the request with the real arguments.
        stores: whether the channel's storage holds a text already; such texts may be shown.

    Returns:
        The request; arguments that held secrets are redacted JSON values, and `hidden` names them. All others are the real objects.
    """
    shown = {name: plain(view(value).root) for name, value in request.arguments.items()}
    clean, hidden = redacted_arguments(shown, identifiers=False)
    arguments, counts = dict(request.arguments), dict(request.hidden)
    for name, (clean_name, value) in zip(shown, clean.items(), strict=True):
        is_stored = stores is not None and all(map(stores, _differing(shown[name], value)))
        if clean_name in hidden and not is_stored:
            arguments[name] = value
            counts[name] = hidden[clean_name]
    return replace(
        request,
        arguments=frozen(arguments),
        hidden=MappingProxyType(counts),
        objective=None if request.objective is None else redact_text(request.objective, identifiers=False),
        problem=redact_text(request.problem, identifiers=False),
    )


def _differing(before: Any, after: Any) -> list[str]:
    """The texts in a JSON value that its redacted form does not have; a structure whose keys were redacted counts as one text."""
    found: list[str] = []
    stack = [(before, after)]
    while stack:
        value, clean = stack.pop()
        if isinstance(value, dict) and isinstance(clean, dict):
            if list(value) == list(clean):
                stack.extend(zip(value.values(), clean.values(), strict=True))
            else:
                found.append(to_text(value))
        elif isinstance(value, list) and isinstance(clean, list):
            stack.extend(zip(value, clean, strict=True))
        elif value != clean:
            found.append(to_text(value))
    return found


def for_reviewer(request: InterventionRequest, reviewer: Any) -> InterventionRequest:
    """The request as this reviewer may show it."""
    stores = getattr(reviewer, "stores", None)
    return without_secrets(request, stores) if callable(stores) else request


def _has_mark(value: Any) -> bool:
    """Whether a value still has a mark of redaction somewhere, so that it is no value of the reviewer's."""
    return "[REDACTED:" in flat(view(value).root)


def unseen_problem(request: InterventionRequest, response: InterventionResponse) -> str:
    """Why a response to a request with hidden content does not count; empty where it does."""
    if (
        not request.hidden
        or response.timeout_reached
        or response.action not in {InterventionAction.PROCEED, InterventionAction.MODIFY}
    ):
        return ""
    changes = response.modified or {}
    missing = [
        name
        for name in request.hidden
        if name not in changes or changes[name] == request.arguments.get(name) or _has_mark(changes[name])
    ]
    if not missing:
        return ""
    listed = ", ".join(f"{name} ({request.hidden[name]:,} characters)" for name in missing)
    return f"hidden content cannot be approved: {listed}; supply these arguments with an edit, or reject"
