"""Arguments that a record or a channel must not show in full: their shortened form, the size of what is hidden, and the answers that count.
For a page about a request: the arguments that an edit has changed, and those that cannot be shown in full.

Some reviewers use a channel that is stored where secrets must not be. They have a method `stores(text) -> bool`: whether the text is stored
there already. They get redacted arguments, except where everything that redaction would remove is stored already.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from grace_kp.gating._request import frozen
from grace_kp.gating._view import flat, plain, view
from grace_kp.levels import InterventionAction
from grace_kp.trace import MAX_TEXT, redact_text, redacted_arguments, render, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.approvals import Approval
    from grace_kp.gating._request import InterventionRequest, InterventionResponse


MAX_RECORDED = 65_536
"""Characters that the arguments of a call share; after them each argument is cut to `MIN_TEXT`."""
MIN_TEXT = 64
MAX_COUNTED = 5_000
"""Values inside an argument up to which its characters are counted; beyond, `hidden` is a lower bound, so that no call waits for it."""
_CUT = re.compile(
    r"… \[cut: [\d,]+ of [\d,]+ characters kept\]|… [\d,]+ more|[\d,]+ more|<\w+: (?:not shown(?:, too deep)?|[\d,]+ bytes)>"
)


def recorded_arguments(arguments: Mapping[str, object], *, executed: bool = False) -> dict[str, Any]:
    """Return the fields of a gate's entry that hold arguments."""
    rendered: dict[str, Any] = {}
    left = MAX_RECORDED
    for name, value in arguments.items():
        rendered[name] = render(value, min(MAX_TEXT, max(left, MIN_TEXT)))
        left -= len(to_text(rendered[name]))
    hidden = {name: count for name, value in arguments.items() if (count := _missing(value, rendered[name]))}
    prefix = "executed_" if executed else ""
    fields: dict[str, Any] = {f"{prefix}arguments": rendered}
    if hidden:
        fields[f"{prefix}hidden"] = hidden
    return fields


def _missing(value: object, rendered: object) -> int:
    """Number of characters of a value that its rendered form does not have."""
    if value is rendered:
        return 0
    text = to_text(rendered)
    marks = sum(map(len, _CUT.findall(text)))
    if not marks:
        return 0
    size = len(value) if isinstance(value, str) else len(flat(view(value, MAX_COUNTED).root))
    return max(size - (len(text) - marks), 1)


def without_secrets(request: InterventionRequest, stores: Callable[[str], bool] | None = None) -> InterventionRequest:
    """Return the request for a channel that must not carry secrets."""
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


def _differing(before: object, after: object) -> list[str]:
    """The texts of a JSON value that its redacted form lacks; a structure with redacted keys counts as a text."""
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


def for_reviewer(request: InterventionRequest, reviewer: object) -> InterventionRequest:
    """Return the request as this reviewer may show it."""
    stores = getattr(reviewer, "stores", None)
    return without_secrets(request, stores) if callable(stores) else request


def _has_mark(value: object) -> bool:
    return "[REDACTED:" in flat(view(value).root)


def unseen_problem(request: InterventionRequest, response: InterventionResponse) -> str:
    """Return why a response to a request with hidden content does not count; empty where it does."""
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
    sizes = sizes_text({name: request.hidden[name] for name in missing})
    return f"hidden content cannot be approved: {sizes}; supply these arguments with an edit, or reject"


def sizes_text(hidden: Mapping[str, int]) -> str:
    """Return which arguments are hidden, with the number of characters of each."""
    return ", ".join(f"{name} ({count:,} characters)" for name, count in hidden.items())


def changed_arguments(approval: Approval) -> list[str]:
    """Return the parameters that an edit has changed, by comparing the values with those that were asked about."""
    asked = approval.asked
    if asked is None:
        return []
    names = dict.fromkeys([*approval.arguments, *asked])
    return [name for name in names if _flat(approval.arguments, name) != _flat(asked, name)]


def unshown_arguments(approval: Approval, max_characters: int) -> list[str]:
    """Return the arguments that cannot be shown in full, so that a plain consent to them does not count."""
    seen = {name: view(value, max_characters=max_characters) for name, value in approval.arguments.items()}
    return [*(name for name, found in seen.items() if found.opaque), *approval.unencoded]


def _flat(arguments: Mapping[str, object], name: str) -> str:
    return flat(view(arguments[name]).root) if name in arguments else ""
