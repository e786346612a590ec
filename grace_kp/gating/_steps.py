"""The steps that the engine asks its driver to do, and what comes back where a step fails. The engine itself does no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.gating._case import Consent, Resumable
    from grace_kp.gating._ledger import Awaited
    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._reviewer import Reviewer


@dataclass(frozen=True, slots=True)
class WaitTurn:
    """Wait until the gated calls before this one have been decided on."""

    program: Resumable


@dataclass(frozen=True, slots=True)
class Work:
    """Compute the confidence, or read or write the ledger."""

    perform: Callable[[], object]
    blocks: bool = True
    """Whether this may take long, and so must not be done on an event loop."""
    writes: bool = False
    """Whether it comes to its end first where the caller is cancelled meanwhile, however often."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a reviewer, and give up after the request's timeout."""

    request: InterventionRequest
    reviewer: Reviewer


@dataclass(frozen=True, slots=True)
class AskBeside:
    """Ask a second reviewer about a request in the inbox, without waiting for the answer."""

    request: InterventionRequest
    reviewer: Reviewer
    inquiry: Awaited


@dataclass(frozen=True, slots=True)
class Await:
    """Wait for a decision in the inbox, or for an execution elsewhere to end."""

    inquiry: Awaited


@dataclass(frozen=True, slots=True)
class Notify:
    """Give notice that an action goes ahead."""

    request: InterventionRequest
    on_notify: Callable[[InterventionRequest], object] | None


@dataclass(frozen=True, slots=True)
class RunAction:
    """Run the action."""

    consent: Consent
    operation: str = ""
    """What the idempotency key is derived from: the same for each attempt under one approval or one entry in the ledger."""


Step: TypeAlias = WaitTurn | Work | Ask | AskBeside | Await | Notify | RunAction


@dataclass(frozen=True, slots=True)
class Failed:
    """The step failed with this error."""

    error: Exception


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nobody answered in time."""
