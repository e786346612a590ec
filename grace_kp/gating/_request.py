"""What a reviewer is asked and what it answers, as frozen values."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from grace_kp.levels import InterventionAction, InterventionLevel

if TYPE_CHECKING:
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

    def __reduce__(self) -> tuple[Any, ...]:
        stated = {item.name: getattr(self, item.name) for item in fields(self)}
        arguments = dict.fromkeys(self.arguments, LEFT_OUT)
        return _from_pickle, ({**stated, "arguments": arguments, "hidden": dict(self.hidden)},)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


def _from_pickle(stated: dict[str, Any]) -> InterventionRequest:
    frozen_fields = {name: frozen(stated[name]) for name in ("arguments", "hidden")}
    return InterventionRequest(**{**stated, **frozen_fields})


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
