"""From a consent to an outcome: the second half of the engine. What was consented to runs, unchanged, and once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.errors import ApprovalError
from grace_kp.gating._ledger import EarlierRun
from grace_kp.gating._outcome import CANCELLED, NotRun, NotStarted, Raised, RanBefore, Returned
from grace_kp.gating._reviewer import record_notice
from grace_kp.gating._steps import Await, Failed, Notify, RunAction, Work
from grace_kp.record import HOST
from grace_kp.trace import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from grace_kp.gating._case import Case, Consent
    from grace_kp.gating._ledger import AtMostOnce, Awaited
    from grace_kp.gating._outcome import GateEntry, Outcome
    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._steps import Step


class Execution:
    """One call that was consented to. Frameworks derive their kind of call from it."""

    action: str
    entry: GateEntry
    consent: Consent
    ledger_entry: AtMostOnce | None = None
    """Where the program around may be run again, or a request waits in an inbox."""
    inquiry: Awaited | None = None
    """The request in an inbox, where there is one."""
    operation: str = ""
    """What the idempotency key of the action is derived from."""
    again_after_failure: bool
    """Whether the consent allows another attempt after a failure: nobody was asked."""
    notice: InterventionRequest | None = None
    """The notice to give, where none has been given yet."""
    on_notify: Callable[[InterventionRequest], object] | None = None

    def is_changed(self) -> bool:
        """Return whether the arguments are no longer those that were consented to."""
        raise NotImplementedError

    def replaced(self) -> Mapping[str, object] | None:
        """Return the arguments by name, where a reviewer changed them."""
        return None

    def kept(self, result: object) -> tuple[object, bool]:
        """Return a result as the ledger keeps it, and whether it can be kept."""
        return result, True

    def has_started(self) -> bool:
        """Return whether the action itself was begun, and nothing else answered in its place."""
        return True

    def ended(self, outcome: Returned | Raised) -> Returned | Raised:
        """Return how the action ended, from what came of running it."""
        return outcome


class FunctionCall(Execution):
    """The call of a gated function."""

    def __init__(self, case: Case, consent: Consent) -> None:
        self.action = case.action
        self.entry = case.entry
        self.consent = consent
        self.ledger_entry = entry = case.ledger_entry
        self.inquiry = case.inquiry
        self.operation = case.operation if entry is None else entry.id
        if case.inquiry is not None:
            self.operation = case.inquiry.operation
        self.again_after_failure = not case.entry.was_answered
        self._case = case

    def is_changed(self) -> bool:
        """Return whether the arguments are no longer those that were consented to."""
        return self._case.is_changed(self.consent.bound, self.consent.digest)

    def replaced(self) -> Mapping[str, object] | None:
        """Return the arguments by name, where a reviewer changed them."""
        if not self.consent.modified or self.consent.bound is None:
            return None
        left_out = {self._case.hidden, *self._case.injected}
        return {name: value for name, value in self.consent.bound.arguments.items() if name not in left_out}


def changed_message(action: str) -> str:
    """Return why a call with changed arguments does not run."""
    return f"the arguments of {action} were changed while the decision was made; it was not run"


ANSWERED = "something else answered the call; its action did not run"


def execution(call: Execution) -> Generator[Step, Any, Outcome]:
    """Run a call that was consented to, at most once per consent."""
    entry, ledger_entry = call.entry, call.ledger_entry
    if call.is_changed():
        return _not_run(entry, changed_message(call.action))
    if ledger_entry is not None:
        earlier = yield from _claimed(call, ledger_entry)
        if isinstance(earlier, Failed):
            # What cannot be kept is not run.
            why = error_text(earlier.error)
            entry.state(CANCELLED, error=why)
            message = f"{call.action} was not run, because it could not be kept that it is about to: {why}"
            if isinstance(earlier.error, ApprovalError):
                message = f"{call.action} was not run: {earlier.error}"
            return NotRun(message, earlier.error)
        if earlier is not None:
            entry.state(earlier.outcome)
            return RanBefore(earlier)
    if call.notice is not None:
        try:
            delivered = yield Notify(call.notice, call.on_notify)
        except BaseException:
            yield from _take_back(call)
            raise
        record_notice(entry.fields, call.notice, delivered)
    if (ledger_entry is not None or call.notice is not None) and call.is_changed():
        yield from _take_back(call)
        return _not_run(entry, changed_message(call.action))
    entry.running(call.replaced())
    outcome: Returned | Raised = yield RunAction(call.consent, call.operation)
    if isinstance(outcome, Raised) and isinstance(outcome.error, NotStarted) and not call.has_started():
        yield from _take_back(call)
        return _not_run(entry, str(outcome.error))
    if isinstance(outcome, Returned) and not call.has_started():
        entry.state(CANCELLED, problem=ANSWERED)
        ended: Returned | Raised = outcome
    else:
        ended = call.ended(outcome)
        entry.ended(ended, call.consent.digest if call.consent.modified else None)
    if ledger_entry is not None:
        kept = call.kept(ended.value) if isinstance(ended, Returned) and ended is outcome else (None, False)
        settled = yield Work(lambda: _settle(ledger_entry, ended, kept), writes=True)
        if isinstance(settled, Failed):
            entry.not_recorded(settled.error)
    return outcome


def _claimed(call: Execution, entry: AtMostOnce) -> Generator[Step, Any, EarlierRun | Failed | None]:
    """Take the right to run; return the earlier execution that keeps the action from running, once it has ended if it is waited for."""
    taken: list[bool] = []

    def take() -> EarlierRun | None:
        earlier = entry.claim(again_after_failure=call.again_after_failure)
        taken.append(earlier is None)
        return earlier

    try:
        earlier = yield Work(take, writes=True)
        if isinstance(earlier, EarlierRun) and call.inquiry is not None and call.inquiry.may_wait:
            yield Await(call.inquiry)
            earlier = yield Work(take, writes=True)
    except BaseException:  # the caller was cancelled or interrupted, and the action does not begin
        if any(taken):
            yield from _take_back(call)
        raise
    return earlier  # type: ignore[no-any-return]


def _settle(entry: AtMostOnce, outcome: Returned | Raised, kept: tuple[object, bool]) -> None:
    """Record in the ledger how an action ended."""
    if isinstance(outcome, Returned):
        result, keep = kept
        entry.done(result, keep=keep)
    elif HOST.pauses(outcome.error):
        entry.release()
    elif HOST.hands_off(outcome.error):
        entry.done()
    elif isinstance(outcome.error, Exception):
        entry.failed(outcome.error)
    else:  # after a cancellation or an exit nobody knows what came of the action
        entry.unknown(outcome.error)


def _take_back(call: Execution) -> Generator[Step, Any, None]:
    """Release the claim. Where that fails the action counts as begun, and is not begun again."""
    if call.ledger_entry is not None:
        released = yield Work(call.ledger_entry.release, writes=True)
        if isinstance(released, Failed):
            call.entry.not_recorded(released.error)


def _not_run(entry: GateEntry, problem: str) -> NotRun:
    entry.state(CANCELLED, problem=problem)
    return NotRun(problem)
