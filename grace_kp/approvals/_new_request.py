"""What a gate asks the desk: a call that needs consent, with everything that a reviewer decides on."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def new_approval_id() -> str:
    """Return an id that no other approval has."""
    return f"ap-{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A request for approval before it has an answer. Texts in it are redacted before they are stored."""

    action: str
    version: str
    domain: str
    digest: str
    encoded: Mapping[str, Any]
    """The arguments as canonical JSON with type tags, unsealed. They are never stored."""
    stored: Mapping[str, Any]
    """The same with sealed values in place of secrets; sealed for `id` and `digest`."""
    id: str = field(default_factory=new_approval_id)
    """Id of the approval if a new one is created. Values are sealed for it, so that it exists before the request."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    not_covered: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    unencoded: tuple[str, ...] = ()
    key: str | None = None
    """Canonical JSON of domain, action and the named fields. Its digest is what requests are joined by."""
    key_fields: tuple[str, ...] = ()
    level: str = "confirm"
    score: float | None = None
    breakdown: Mapping[str, float | None] = field(default_factory=dict)
    penalties: tuple[str, ...] = ()
    reason: str = ""
    gaps: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    run_id: str | None = None
    objective: str | None = None
    user: str | None = None
    run: Mapping[str, Any] | None = None
    deadline_seconds: float | None = None
    """Seconds until the request is due; None for never."""
    use_within_seconds: float | None = None
    """Seconds after a decision within which the action must be claimed; None for ever."""
    on_deadline: str = "cancel"
    """`cancel`, `skip` or `escalate:GROUP`."""
    groups: tuple[str, ...] = ()
    quorum: int = 1
    identity: str = "authenticated"
    waits: str = "wait"
    """`wait`, `raise`, `hand_over` or `interrupt`. With `wait`, this process is recorded as the one that waits."""
    origin: str = "gate"
    note: Mapping[str, Any] = field(default_factory=dict)
