"""Requests to reviewers and their responses, as frozen values; and which responses count where content is hidden.

Some reviewers use a channel whose storage must not hold secrets. Their method `stores(text) -> bool` returns whether the storage holds a string.
They get redacted arguments, unless the storage holds everything that redaction would remove.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from grace_kp.gating._view import flat, plain, view
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.trace import redact_text, redacted_arguments, to_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.confidence import ActionDecision, ConfidenceScore


LEFT_OUT = "[left out of a pickle]"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionRequest:
    """One question to a reviewer: an action, its arguments, and why a person is asked. Made once and never changed.

    A pickle leaves the values of the arguments out: they may be live objects or secrets, and an error takes its request to other processes.
    """

    id: str
    action: str
    """Name of the action."""
    arguments: Mapping[str, Any]
    """Its arguments by parameter name: the values themselves, not a rendering."""
    digest: str
    """SHA-256 of the arguments, in full."""
    level: InterventionLevel
    """How much of a person the action needs: the decision's level, or the policy's floor where that is stricter."""
    decision: ActionDecision
    confidence: ConfidenceScore | None = None
    reason: str = ""
    policy_version: str = ""
    floor: str | None = None
    attempt: int = 1
    """1 for the first question about a call; more after a retry or a modification that could not be used."""
    timeout: float | None = None
    """Seconds the reviewer has; None is without limit."""
    on_timeout: str = "cancel"
    """The effect of a timeout: `cancel`, `proceed`, `skip` or `escalate:GROUP`."""
    run_id: str | None = None
    objective: str | None = None
    created_at: float = 0.0
    """Seconds since the epoch."""
    problem: str = ""
    """The problem of the previous answer, when the question is repeated because of it."""
    hidden: Mapping[str, int] = field(default_factory=dict)
    """Arguments that this request does not show in full, by name, with the number of characters that were removed.

    Empty for a console, a callback and a gated tool call. A reviewer whose channel must not carry secrets gets redacted arguments; a
    plain PROCEED is then refused.
    """

    def __post_init__(self) -> None:
        for name in ("arguments", "hidden"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        stated = {item.name: getattr(self, item.name) for item in fields(self)}
        arguments = dict.fromkeys(self.arguments, LEFT_OUT)
        return _from_pickle, ({**stated, "arguments": arguments, "hidden": dict(self.hidden)},)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


def _from_pickle(stated: dict[str, Any]) -> InterventionRequest:
    return InterventionRequest(**stated)


@dataclass(frozen=True, slots=True)
class InterventionResponse:
    """A reviewer's answer.

    Raises:
        ValueError: an unknown action, or `modified` that is not a mapping from parameter name to value.
    """

    action: InterventionAction | str
    user_input: str | None = None
    """Words for the agent, with INPUT."""
    modified: Mapping[str, Any] | None = None
    """Arguments that replace arguments of the request, with MODIFY."""
    selected_option: str | None = None
    timeout_reached: bool = False
    """Whether time ran out without an answer; `action` is then the consequence."""
    response_time_ms: float | None = None
    reviewer: str | None = None

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "action", InterventionAction(self.action))
        except ValueError:
            known = ", ".join(InterventionAction)
            raise ValueError(f"action must be one of {known}, not {self.action!r}") from None
        if self.modified is not None and (
            not isinstance(self.modified, Mapping) or not all(isinstance(name, str) for name in self.modified)
        ):
            raise ValueError(f"modified must map parameter names to values, not {self.modified!r:.80}")

    @property
    def should_continue(self) -> bool:
        """Whether the agent goes on: true for PROCEED, MODIFY, RETRY and SKIP."""
        return InterventionAction(self.action).should_continue


_PREFIX = os.urandom(4).hex()
_numbers = itertools.count(1)


def new_request_id() -> str:
    """An id that no other request of this machine has."""
    return f"gate-{_PREFIX}-{os.getpid():x}-{next(_numbers)}"


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
        arguments=arguments,
        hidden=counts,
        objective=None if request.objective is None else redact_text(request.objective, identifiers=False),
        problem=redact_text(request.problem, identifiers=False),
    )


def _differing(before: object, after: object) -> list[str]:
    """Return the strings of a JSON value that its redacted form lacks. A structure with redacted keys counts as a string."""
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
        if name not in changes
        or changes[name] == request.arguments.get(name)
        or "[REDACTED:" in flat(view(changes[name]).root)
    ]
    if not missing:
        return ""
    sizes = sizes_text({name: request.hidden[name] for name in missing})
    return f"hidden content cannot be approved: {sizes}; supply these arguments with an edit, or reject"


def sizes_text(hidden: Mapping[str, int]) -> str:
    """Return which arguments are hidden, with the number of characters of each."""
    return ", ".join(f"{name} ({count:,} characters)" for name, count in hidden.items())
