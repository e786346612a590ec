"""The enums of the library: types of steps, intervention levels, answers of reviewers, privacy.

In JSON and on the command line they are plain strings.
"""

from __future__ import annotations

from enum import StrEnum


class InterventionLevel(StrEnum):
    """How much a person is involved before an action runs. Ordered by `severity`."""

    SILENT = "silent"
    """Run the action without a notice."""
    NOTIFY = "notify"
    """Run the action and notify."""
    CONFIRM = "confirm"
    """Run the action only after a person agrees."""
    ESCALATE = "escalate"
    """Run the action only with a person's help."""

    @property
    def severity(self) -> int:
        """0 for SILENT to 3 for ESCALATE."""
        return _SEVERITY[self.value]

    @property
    def asks(self) -> bool:
        """Whether this level waits for a person."""
        return self.severity >= 2

    def at_least(self, floor: InterventionLevel) -> InterventionLevel:
        """Return the stricter of this level and `floor`."""
        return self if self.severity >= floor.severity else floor


_SEVERITY = {"silent": 0, "notify": 1, "confirm": 2, "escalate": 3}


class RunStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    """An exception ended the run."""
    CANCELLED = "cancelled"
    """The task was cancelled, or the user interrupted it."""
    CLOSED = "closed"
    """The generator was closed before it was exhausted."""
    EXITED = "exited"
    """The program exited during the run."""
    INTERRUPTED = "interrupted"
    """The process died."""
    NOT_APPROVED = "not_approved"
    """A gate stopped an action, which ended the run."""
    SUSPENDED = "suspended"
    """The run waits for a person."""
    WAITING = "waiting"
    """The run ended at a gate whose request for approval was pending."""


def waits(status: object) -> bool:
    """Return whether a run with this status waits for a person, so that it has neither succeeded nor failed."""
    return isinstance(status, str) and status in WAITS


UNSETTLED = frozenset({"undecided", "waiting", "approved", "running"})
"""Outcomes of a gated call whose action may still run."""
WAITS = (RunStatus.SUSPENDED.value, RunStatus.WAITING.value)


class InterventionAction(StrEnum):
    """A reviewer's answer to a gate."""

    PROCEED = "proceed"
    """Run the action as shown."""
    MODIFY = "modify"
    """Run the action with the reviewer's arguments."""
    CANCEL = "cancel"
    """Do not run the action."""
    INPUT = "input"
    """Do not run the action; give the agent instructions instead."""
    RETRY = "retry"
    """Compute the confidence again and decide again."""
    SKIP = "skip"
    """Do not run the action; the agent goes on without its result."""

    @property
    def should_continue(self) -> bool:
        """Whether the agent goes on: True for PROCEED, MODIFY, RETRY and SKIP."""
        return self in _CONTINUING


_CONTINUING = frozenset(
    {InterventionAction.PROCEED, InterventionAction.MODIFY, InterventionAction.RETRY, InterventionAction.SKIP}
)


class StepType(StrEnum):
    """Type of a step of a trace."""

    THOUGHT = "thought"
    TOOL_CALL = "tool_call"
    OBSERVATION = "observation"
    ERROR_RECOVERY = "error_recovery"


class PrivacyLevel(StrEnum):
    """Privacy of a trace. Redaction always removes secrets, and identifiers unless the level is `private`."""

    AGGREGATED = "aggregated"
    FEDERATED = "federated"
    PRIVATE = "private"

    @property
    def hides_identifiers(self) -> bool:
        """Whether e-mail addresses, phone numbers, IP addresses and home paths are removed too."""
        return self is not PrivacyLevel.PRIVATE


class Visibility(StrEnum):
    """Who may see a trace."""

    PRIVATE = "private"
    ORG = "org"
    NETWORK = "network"
