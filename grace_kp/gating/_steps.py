"""The steps that the engine asks its driver to do, and what comes back where a step fails. The engine itself does no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from grace_kp.gating._ledger import LedgerEntry
from grace_kp.gating._outcome import Raised, Returned
from grace_kp.record import HOST

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.gating._case import Case, Consent
    from grace_kp.gating._decision import Assessment
    from grace_kp.gating._ledger import EarlierRun
    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._resumable import Resumable
    from grace_kp.gating._reviewer import Reviewer


@dataclass(frozen=True, slots=True)
class Failed:
    """The step failed with this error."""

    error: Exception


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nobody answered in time."""


@dataclass(frozen=True, slots=True)
class WaitTurn:
    """Wait until the gated calls before this one have been decided on."""

    program: Resumable


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a reviewer, and give up after the request's timeout."""

    request: InterventionRequest
    reviewer: Reviewer


@dataclass(frozen=True, slots=True)
class Notify:
    """Give notice that an action goes ahead."""

    request: InterventionRequest
    on_notify: Callable[[InterventionRequest], object] | None


@dataclass(frozen=True, slots=True)
class Run:
    """Run the action."""

    consent: Consent


@dataclass(frozen=True, slots=True)
class Assess:
    """Compute the confidence."""

    case: Case

    @property
    def blocks(self) -> bool:
        """Whether this may take long."""
        return self.case.scope.waits or self.case.program is not None

    def perform(self) -> Assessment:
        """Return the assessment."""
        return self.case.scope.assess(self.case)


@dataclass(frozen=True, slots=True)
class LookUp:
    """Look up what was decided about a call in a program that is run again."""

    case: Case
    program: Resumable
    blocks = True

    def perform(self) -> tuple[LedgerEntry, dict[str, Any] | None]:
        """Return the call's entry in the ledger, and the decision in it."""
        entry = LedgerEntry(lambda: self.case.scope.ledger, self.program.ledger_key(self.case.action))
        return entry, entry.decision()


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep a decision in the ledger."""

    case: Case
    program: Resumable
    entry: LedgerEntry
    decide: Callable[[bool], dict[str, Any]]
    """From whether a person may have been asked about the call before, to the decision as it is kept."""
    blocks = True

    def perform(self) -> dict[str, Any]:
        """Return the decision that was kept first."""
        forgotten = self.program.may_have_forgotten(self.case.scope.ledger)
        return self.entry.decide(self.decide(forgotten))


@dataclass(frozen=True, slots=True)
class Claim:
    """Record that an action is about to run."""

    entry: LedgerEntry
    again_after_failure: bool
    blocks = True

    def perform(self) -> EarlierRun | None:
        """Return the earlier execution that keeps it from running."""
        return self.entry.claim(again_after_failure=self.again_after_failure)


@dataclass(frozen=True, slots=True)
class Release:
    """Record that an action did not run after all."""

    entry: LedgerEntry
    blocks = True

    def perform(self) -> None:
        """Write the ledger."""
        self.entry.release()


@dataclass(frozen=True, slots=True)
class Settle:
    """Record how an action ended."""

    entry: LedgerEntry
    outcome: Returned | Raised
    kept: tuple[object, bool]
    """A result, and whether it can stand in the ledger."""
    blocks = True

    def perform(self) -> None:
        """Write the ledger."""
        if isinstance(self.outcome, Returned):
            result, keep = self.kept
            self.entry.done(result, keep=keep)
        elif HOST.pauses(self.outcome.error):
            self.entry.release()
        elif HOST.hands_off(self.outcome.error):
            self.entry.done()
        else:
            self.entry.failed(self.outcome.error)


Work: TypeAlias = Assess | LookUp | Keep | Claim | Release | Settle
Step: TypeAlias = WaitTurn | Ask | Notify | Run | Work
