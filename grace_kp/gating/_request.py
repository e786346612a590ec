"""What a reviewer is asked and what it answers, as frozen values; and the digest that ties a decision to its arguments."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from grace_kp.levels import InterventionAction, InterventionLevel

if TYPE_CHECKING:
    from grace_kp.confidence import ActionDecision, ConfidenceScore


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionRequest:
    """One question to a reviewer: an action, its arguments, and why a person is asked. Made once and never changed."""

    id: str
    action: str
    """Name of the action."""
    arguments: Mapping[str, Any]
    """What it would be called with, by parameter name; the values themselves, not a rendering of them."""
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
    """Seconds the reviewer has; None is for ever."""
    run_id: str | None = None
    objective: str | None = None
    created_at: float = 0.0
    """Seconds since the epoch."""
    problem: str = ""
    """What was wrong with the answer before, when this is asked again for that."""
    hidden: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Arguments that this request does not show in full, by name, with the number of characters that were removed.

    Empty for a console, a callback and a gated tool call. A reviewer whose channel must not carry secrets gets redacted arguments; a
    plain PROCEED is then refused.
    """


@dataclass(frozen=True, slots=True)
class InterventionResponse:
    """A reviewer's answer.

    Raises:
        ValueError: an unknown action, or `modified` that is no mapping from parameter name to value.
    """

    action: InterventionAction | str
    user_input: str | None = None
    """Words for the agent, with INPUT."""
    modified: Mapping[str, Any] | None = None
    """Arguments that replace those of the request, with MODIFY."""
    selected_option: str | None = None
    timeout_reached: bool = False
    """Nobody answered; the action stands for what happens then."""
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


def frozen(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """A view of the arguments that cannot be changed by name; the values are the caller's."""
    return MappingProxyType(dict(arguments))


def digest_of(arguments: Mapping[str, Any], *, lasting: bool = False) -> str:
    """SHA-256 over the arguments' full structure.

    Containers count by content (sets and dicts in a canonical order), objects by class and attributes, anything opaque by
    identity. Two calls give the same digest as long as nothing inside was changed in between.

    Args:
        arguments: what is passed, by name.
        lasting: let opaque objects count by their class alone, so that the same call in another process gives the same digest.
    """
    digest = hashlib.sha256()
    _feed(digest, dict(arguments), lasting)
    return digest.hexdigest()


def _feed(digest: Any, root: Any, lasting: bool) -> None:
    """Depth first with a stack of its own; an object that was met before is named by when it was met."""
    met: dict[int, int] = {}
    keep: list[Any] = []  # so that no id is used again while we look
    stack: list[Any] = [root]
    put = digest.update
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind is str:
            put(b"s%d:" % len(value) + value.encode("utf-8", "surrogatepass"))
        elif value is None or kind is bool or kind is int or kind is float or kind is complex:
            put(
                b"n" + repr(value).encode() + b";"
                if kind is not int
                else b"i%x;" % value
                if value >= 0
                else b"j%x;" % -value
            )
        elif kind is bytes or kind is bytearray:
            put(b"b%d:" % len(value) + bytes(value))
        elif id(value) in met:
            put(b"@%d;" % met[id(value)])
        else:
            met[id(value)] = len(met)
            keep.append(value)
            _open(put, stack, value, kind, lasting)


def _open(put: Any, stack: list[Any], value: Any, kind: type, lasting: bool) -> None:
    from grace_kp.trace._render import attributes

    put(f"<{kind.__module__}.{kind.__qualname__}".encode())
    if issubclass(kind, dict):
        items = list(dict.items(value))
        put(b"d%d;" % len(items))
        if all(type(key) is str for key, _ in items):
            items.sort(key=lambda item: item[0])
        stack.extend(part for item in reversed(items) for part in reversed(item))
    elif issubclass(kind, list | tuple):
        parts = list(list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value))
        put(b"l%d;" % len(parts))
        stack.extend(reversed(parts))
    elif issubclass(kind, set | frozenset):
        parts = sorted(digest_of({"": part}, lasting=lasting) for part in value)
        put(b"e%d;" % len(parts) + "".join(parts).encode())
    else:
        fields = attributes(value, kind)
        data = getattr(value, "tobytes", None) if kind.__module__.partition(".")[0] == "numpy" else None
        if data is not None:
            put(b"a" + repr(getattr(value, "shape", "")).encode() + data())
        elif fields:
            put(b"o%d;" % len(fields))
            stack.extend(part for item in sorted(fields.items(), reverse=True) for part in reversed(item))
        elif lasting:
            put(b"x;")
        else:
            put(b"x%x;" % id(value))
