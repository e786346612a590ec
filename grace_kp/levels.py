"""The closed vocabularies of the library: what a step is, how far an action is gated, what a person answered.

Nothing here decides anything; the enums are plain strings in JSON and on the command line.
"""

from __future__ import annotations

from enum import StrEnum


class InterventionLevel(StrEnum):
    """How much of a person an action needs, from none to help. Ordered by `severity`."""

    SILENT = "silent"
    """Go ahead, tell nobody."""
    NOTIFY = "notify"
    """Go ahead, and tell."""
    CONFIRM = "confirm"
    """Go ahead only after a person agrees."""
    ESCALATE = "escalate"
    """Go ahead only with a person's help."""

    @property
    def severity(self) -> int:
        """0 for SILENT to 3 for ESCALATE."""
        return _SEVERITY[self.value]

    @property
    def asks(self) -> bool:
        """Whether this level waits for a person."""
        return self.severity >= 2

    def at_least(self, floor: InterventionLevel) -> InterventionLevel:
        """The stricter of this level and `floor`."""
        return self if self.severity >= floor.severity else floor


_SEVERITY = {"silent": 0, "notify": 1, "confirm": 2, "escalate": 3}


class RunStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    """An exception ended it."""
    CANCELLED = "cancelled"
    """Its task was cancelled, or the user interrupted it."""
    CLOSED = "closed"
    """Its generator was closed before it was exhausted."""
    EXITED = "exited"
    """The program was ended in it."""
    INTERRUPTED = "interrupted"
    """Its process died."""
    NOT_APPROVED = "not_approved"
    """A gate did not let its action run."""
    SUSPENDED = "suspended"
    """It waits for a person."""


class InterventionAction(StrEnum):
    """What a person answers when a gate asks."""

    PROCEED = "proceed"
    """Run the action as it was shown."""
    MODIFY = "modify"
    """Run the action with the reviewer's arguments."""
    CANCEL = "cancel"
    """Do not run the action."""
    INPUT = "input"
    """Do not run the action; give the agent these words instead."""
    RETRY = "retry"
    """Compute the confidence again and decide again."""
    SKIP = "skip"
    """Do not run the action, and let the agent go on without its result."""

    @property
    def should_continue(self) -> bool:
        """Whether the agent goes on: true for PROCEED, MODIFY, RETRY and SKIP."""
        return self in _CONTINUING


_CONTINUING = frozenset(
    {InterventionAction.PROCEED, InterventionAction.MODIFY, InterventionAction.RETRY, InterventionAction.SKIP}
)


class StepType(StrEnum):
    """What a step of a trace is."""

    THOUGHT = "thought"
    TOOL_CALL = "tool_call"
    OBSERVATION = "observation"
    ERROR_RECOVERY = "error_recovery"


class PrivacyLevel(StrEnum):
    """What redaction removes: secrets always, identifiers from `aggregated` and `federated` on."""

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
