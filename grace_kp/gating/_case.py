"""One gated call on its way to a consent, the consent, and what a gate needs to know of the run around the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from grace_kp.gating._call import Call
from grace_kp.gating._decision import Rules
from grace_kp.gating._digest import NotCheckable

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Mapping

    from grace_kp.approvals import Approval, Inbox
    from grace_kp.confidence import Thresholds
    from grace_kp.gating._decision import Assessment
    from grace_kp.gating._identity import Coverage
    from grace_kp.gating._ledger import AtMostOnce, Awaited, Ledger
    from grace_kp.gating._outcome import GateEntry
    from grace_kp.gating._policy import Policy
    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._resumable import Resumable
    from grace_kp.gating._reviewer import Reviewer
    from grace_kp.gating._terms import Terms
    from grace_kp.levels import InterventionLevel


@dataclass(frozen=True, slots=True)
class HeldRefusal:
    """A reviewer's answer that keeps a call from running: a refusal, or words in place of the action."""

    entry: Mapping[str, Any]
    """What the entry of the call states."""
    error: Exception
    """What the call raised, without its traceback."""
    digest: str
    """That of the arguments with their defaults: a default that is passed makes no other call."""
    turn: str | None = None
    """Id of the model's message that proposed the call; None for a call of a function."""


class GateScope(Protocol):
    """The run around a gated call. `record` must not raise."""

    thresholds: Thresholds
    reviewer: Reviewer | None
    on_notify: Callable[[InterventionRequest], object] | None
    timeout: float | None
    own_timeout: float | None
    """The timeout that was set for this very gate; None where it has that of the runtime."""
    unmeasured: str | None
    """The runtime's level for calls about which nothing was measured; None where none is stated."""

    @property
    def run_id(self) -> str | None:
        """The trace that the decision will stand in."""
        ...

    @property
    def objective(self) -> str | None:
        """The objective of the run."""
        ...

    @property
    def user(self) -> str | None:
        """The user of the run."""
        ...

    @property
    def waits(self) -> bool:
        """Whether assessing may wait for a model, and so must not be done on an event loop."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Where it is kept that an action runs.

        Raises:
            StoreError: the store cannot be opened.
        """
        ...

    @property
    def inbox(self) -> Inbox:
        """Where requests wait that outlive the process.

        Raises:
            StoreError: the store cannot be opened, or keeps no approvals.
        """
        ...

    def document(self) -> Mapping[str, Any] | None:
        """Return the trace of the run so far; None outside of a recorded run."""
        ...

    def assess(self, case: Case) -> Assessment:
        """Return the confidence of the run so far, as the gate of this call asks for it."""
        ...

    def record(self, entry: dict[str, Any]) -> None:
        """Keep the gate's entry with the run. It is filled in further until the action has ended."""
        ...

    def refusal(self) -> HeldRefusal | None:
        """Return the last refusal in the run; None if anything else has been recorded since."""
        ...

    def keep(self, refusal: HeldRefusal) -> None:
        """Have a refusal hold until anything else is recorded in the run."""
        ...


@dataclass(slots=True, kw_only=True)
class Case(Call):
    """One call of a gated action."""

    policy: Policy
    scope: GateScope
    entry: GateEntry
    coverage: Coverage
    """What a digest of the arguments covers."""
    program: Resumable | None = None
    """The program around, where it may be run again."""
    ledger_entry: AtMostOnce | None = None
    """The entry of this call in the ledger, once the engine has looked it up for the program; or its request in an inbox."""
    inquiry: Awaited | None = None
    """The request of this call in an inbox, once it is filed."""
    terms: Terms | None = None
    """How requests about the action are identified and kept; None where it cannot be asked about in an inbox."""
    schema: Callable[[], Mapping[str, Any]] = dict
    """Returns the JSON schema of the parameters, which edits in an inbox are checked with."""
    lookup: Callable[[], Policy] | None = None
    """Looks up the policy that is in force now."""
    operation: str = ""
    """Id of the last question about the call."""
    is_filed: bool = False
    """Whether the inbox decides about the call in a program that may be run again."""
    is_void: bool = False
    """Whether the first answer of the program around is to another question: it was there before this one was asked."""
    handed_over: Approval | None = None
    """The request that waits in the inbox while the program goes on without the action."""
    at_least: InterventionLevel | None = None
    """A level that this very call requires, whatever the confidence."""

    def policy_now(self) -> Policy:
        """Return the policy that is in force now, which may be another than when the call began."""
        return self.policy if self.lookup is None else self.lookup()

    @property
    def reviewer(self) -> Reviewer | None:
        """Who is asked, outside of a program that may be run again."""
        return self.policy.reviewer if self.policy.reviewer is not None else self.scope.reviewer

    @property
    def rules(self) -> Rules:
        """The rules for the call's level, before gaps in the evidence are known."""
        return self.rules_with(())

    def rules_with(self, gaps: tuple[str, ...]) -> Rules:
        """Return the rules for the call's level, with the gaps in the evidence."""
        return Rules(self.policy, self.scope.thresholds, gaps, self.at_least, self.scope.unmeasured)

    def digest(
        self, bound: inspect.BoundArguments | None = None, *, lasting: bool = False, ordered: bool | None = None
    ) -> str:
        """Return the digest of the call's arguments, or of those in their place.

        Raises:
            NotCheckable: a change of an argument would go unnoticed.
        """
        return self.coverage.digest((bound or self.bound).arguments, lasting=lasting, ordered=ordered)

    def is_changed(self, bound: inspect.BoundArguments | None, digest: str) -> bool:
        """Return whether arguments are no longer those with this digest; False where they could not be checked then, either."""
        if bound is None or not digest:
            return False
        try:
            return self.digest(bound) != digest
        except NotCheckable:
            return True


@dataclass(frozen=True, slots=True)
class Consent:
    """The action may run with these arguments; or, with None, it is skipped."""

    bound: inspect.BoundArguments | None
    digest: str
    """Empty where the arguments cannot be checked, which is only so where nobody was asked."""
    modified: bool = False
