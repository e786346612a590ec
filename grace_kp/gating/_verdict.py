"""The decision about a call of a framework as a value, and the claim under which the call runs.

A refusal is a value, too: adapters pass its message to the model. Only misuse raises. A claim is an execution that waits for the framework to
report how the call ended.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import idempotency_key_of
from grace_kp.errors import (
    ActionCancelled,
    ActionDenied,
    ActionNotApproved,
    ActionOutcomeUnknown,
    ActionPending,
    ActionRedirected,
    ActionTimedOut,
    GateError,
)
from grace_kp.gating._call import json_copy
from grace_kp.gating._case import Consent, consent_to_changes
from grace_kp.gating._drivers import Failed, RunAction, Work, attempt, drive, drive_async, until_action
from grace_kp.gating._engine import FunctionCall, consent_to, decide_first, execution
from grace_kp.gating._inquiry import Inquiry
from grace_kp.gating._ledger import DONE, EarlierRun, LedgerEntry
from grace_kp.gating._outcome import (
    APPROVED,
    NotRun,
    NotStarted,
    OutcomeUnknown,
    Raised,
    RanBefore,
    Returned,
    raise_or_return,
)
from grace_kp.gating._paused import StandingInquiry
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.record import reported_failure
from grace_kp.trace import error_text, redacted_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.approvals import Approval
    from grace_kp.gating._case import GatedCall
    from grace_kp.gating._drivers import Steps
    from grace_kp.gating._outcome import Outcome
    from grace_kp.gating._request import InterventionResponse

NOT_RUN = "Not run; do not call it again."
_RUNS = frozenset({"approved", "silent", "notify"})
_OUTCOMES = {
    ActionPending: "pending",
    ActionDenied: "denied",
    ActionTimedOut: "timed_out",
    ActionRedirected: "answered",
}


class ReportedFailure(Exception):
    """A call whose failure the framework states in words."""


class Verdict:
    """The decision about one call.

    Attributes:
        outcome: `approved`, `silent` or `notify` (the call runs), `pending` (it waits for a person), `denied`, `rejected`, `timed_out`,
            `skipped`, `answered` (a person answered in its place), `not_asked` (nobody could be asked, or the gate failed), `ran_before` or
            `unknown` (it was begun before, and whether it took effect is not known).
        message: what to tell the model in place of a result. It gives the reason and says that the call did not run and must not be repeated;
            for `answered` it is the reviewer's words, for `ran_before` the earlier result. Empty where the call runs.
        error: what a gated function would raise; None where it would return.
        problem: why an answer that was passed to `answer` does not settle the call; else empty.
        result: the earlier result, where `has_result` says that it was kept.
        id: the id of the decision, which traces state.
        level: how much of a person the call needed; None where it was not decided on.
    """

    def __init__(self, case: GatedCall, stated: dict[str, Any]) -> None:
        self._case, self._stated = case, stated
        self._consent: Consent | None = None
        self._claims: set[Claim] = set()
        """The open claims of the run, which end with it."""
        self._is_open: Callable[[], bool] = lambda: True
        """Whether the run goes on, so that its end will see a claim."""
        self._failed: Callable[[Any], object] | None = None
        self._again: Callable[[], Verdict] | None = None
        self.outcome = "not_asked"
        self.error: Exception | None = None
        self.message = self.problem = ""
        self.result: Any = None
        self.has_result = False
        self.id: str = case.entry.fields["id"]
        level = case.entry.fields.get("level")
        self.level = None if level is None else InterventionLevel(level)

    @property
    def runs(self) -> bool:
        """Whether the call may run, under a claim."""
        return self.outcome in _RUNS

    @property
    def waits(self) -> bool:
        """Whether the call waits for a person."""
        return self.outcome == "pending"

    @property
    def action(self) -> str:
        """The name of the action."""
        return self._case.action

    @property
    def approval(self) -> Approval | None:
        """The request in the inbox as of the decision; None without one."""
        entry = self._case.ledger_entry
        return entry.approval if isinstance(entry, Inquiry) and entry._approval is not None else None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that run, a reviewer's edits among them; those of the call where it does not run."""
        bound = None if self._consent is None else self._consent.bound
        return json_copy((bound or self._case.bound).arguments)  # type: ignore[no-any-return]

    @property
    def edited(self) -> bool:
        """Whether a reviewer changed the arguments."""
        return self._consent is not None and self._consent.modified

    def unwrap(self) -> Any:
        """Raise what a gated function would raise; else return the earlier result, or None.

        Raises:
            ActionNotApproved: one of its subclasses, see `error`.
        """
        if self.error is not None:
            raise self.error
        return self.result

    def __repr__(self) -> str:
        return f"Verdict({self.action!r}, {self.outcome!r})"

    # Kept forms

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON, for the state of a program. It entitles to nothing: `from_dict` looks the decision up again.

        Sealed arguments are not among it; pass the call's arguments to `from_dict` then.
        """
        sealed = () if self._case.terms is None else self._case.terms.sealed
        arguments = {name: value for name, value in self._case.bound.arguments.items() if name not in sealed}
        kept = {**self._stated, "action": self.action, "outcome": self.outcome, "message": self.message}
        kept.update(id=self.id, level=None if self.level is None else str(self.level), edited=self.edited)
        if len(arguments) < len(self._case.bound.arguments):
            kept["sealed"] = sorted({*self._case.bound.arguments} - {*arguments})
        approval = self.approval
        return {**kept, "arguments": json_copy(arguments), "approval": None if approval is None else approval.id}

    @classmethod
    def from_dict(
        cls, kept: Mapping[str, Any], action: Any, *, run: Any = None, arguments: Mapping[str, Any] | None = None
    ) -> Verdict:
        """Return the verdict about the call of a kept one as it is now. It neither asks nor waits.

        Args:
            kept: what `to_dict` returned.
            action: the `Action` of the call.
            run: the live run that the call belongs to; the current one when None.
            arguments: the arguments of the call; those in `kept` when None.

        Raises:
            GateError: `kept` is not such a dict, is about another action, or lacks sealed arguments.
        """
        return action.verdict(kept, run=run, arguments=arguments)  # type: ignore[no-any-return]

    # Running

    def run(self, function: Callable[[dict[str, Any]], Any]) -> Any:
        """Run the call under its claim: call `function` with the arguments, and return its result.

        What it raises passes through unchanged. A call that ran before returns its earlier result.

        Raises:
            ActionNotApproved: the call may not run, or was begun before, as a gated function would raise it.
        """
        if not self.runs:
            return self.unwrap()
        steps = execution(self._execution(None))
        return raise_or_return(drive(steps, lambda _consent: function(self.arguments)), self.action)

    async def arun(self, function: Callable[[dict[str, Any]], Any]) -> Any:
        """`run` with a coroutine function."""
        if not self.runs:
            return self.unwrap()
        steps = execution(self._execution(None))
        return raise_or_return(await drive_async(steps, lambda _consent: function(self.arguments)), self.action)

    def begin(self, arguments: Mapping[str, Any] | None = None) -> Claim:
        """Claim the call before something else runs it, and return the claim, which says whether the call may start.

        Args:
            arguments: what is about to run; it is compared with what was decided on. When None, `Verdict.arguments` must run.

        Raises:
            GateError: the verdict does not let the call run.
        """
        return drive(Claim(self, self._execution(arguments))._begin())

    async def abegin(self, arguments: Mapping[str, Any] | None = None) -> Claim:
        """`begin` without blocking the event loop."""
        return await drive_async(Claim(self, self._execution(arguments))._begin())

    def _execution(self, arguments: Mapping[str, Any] | None) -> CallExecution:
        if self._consent is None or not self.runs:
            raise GateError(f"the call of {self.action} may not begin: it is {self.outcome}")
        return CallExecution(self, self._consent, arguments)

    # Answers

    def answer(self, response: InterventionResponse) -> Verdict:
        """Settle a pending call by an answer that came through the framework, and return the verdict now.

        A request in the inbox is decided by it under the rules of the inbox: groups, quorum and deadline hold, and a decision that came
        first counts. `problem` of the result says why an answer did not settle the call.

        Raises:
            GateError: the call does not wait, or the answer states that time ran out.
        """
        return self._after(drive(self._answer(response)))

    async def aanswer(self, response: InterventionResponse) -> Verdict:
        """`answer` without blocking the event loop."""
        import asyncio

        problem = await drive_async(self._answer(response))
        return await asyncio.to_thread(self._after, problem)

    def _after(self, problem: str) -> Verdict:
        assert self._again is not None  # noqa: S101
        verdict = self._again()
        verdict.problem = problem
        return verdict

    def _answer(self, response: InterventionResponse) -> Steps[str]:
        if not self.waits:
            raise GateError(f"the call of {self.action} does not wait for an answer: it is {self.outcome}")
        if response.timeout_reached:
            raise GateError("a response with timeout_reached is not an answer; let the request expire, or cancel it")
        is_edit = response.action is InterventionAction.MODIFY
        if is_edit and not response.modified:
            return "the answer modifies the call without giving arguments"
        case, entry = self._case, self._case.ledger_entry
        request = self.error.request if isinstance(self.error, ActionPending) else None
        if isinstance(entry, StandingInquiry):
            deciding = yield Work(lambda: entry.decide_by(response, request), writes=True)
            return redacted_error(deciding.error) if isinstance(deciding, Failed) else deciding
        from grace_kp.gating._request import answer_to_keep

        if case.policy.groups or (case.policy.quorum or 1) > 1:
            return "the policy names a group or a quorum, which only an inbox checks"
        if is_edit and isinstance(misfit := consent_to_changes(case, response.modified or {}, ""), str):
            return misfit
        kept = answer_to_keep(response, self.level, case.version)
        if kept is None or not isinstance(entry, LedgerEntry):
            return "the answer holds arguments that are not JSON"
        sealed = () if case.terms is None else case.terms.sealed
        if not {*(response.modified or ())}.isdisjoint(sealed):
            return "a sealed argument is edited in an inbox only"
        if response.action is InterventionAction.RETRY:
            return ""  # it is asked again
        settled = yield Work(lambda: entry.answer(kept), writes=True)
        if isinstance(settled, Failed):
            return redacted_error(settled.error)
        return "" if settled == kept else "another answer came first"


class CallExecution(FunctionCall):
    """The execution of a call that a framework runs."""

    def __init__(self, verdict: Verdict, consent: Consent, arguments: Mapping[str, Any] | None) -> None:
        super().__init__(verdict._case, consent)
        self._arguments, self._failed = arguments, verdict._failed
        self.was_started = True

    def is_changed(self) -> bool:
        """Return whether other arguments are about to run than were decided on."""
        if self._arguments is None or self.consent.bound is None:
            return super().is_changed()
        try:
            coverage: Any = self._case.coverage
            return super().is_changed() or coverage.digest(json_copy(self._arguments)) != self.consent.digest
        except GateError:
            return True

    def has_started(self) -> bool:
        """Return whether the framework began the call after its claim."""
        return self.was_started

    def settle_outcome(self, outcome: Returned | Raised) -> Returned | Raised:
        """Return the outcome to record: a result that reports a failure counts as one."""
        if isinstance(outcome, Returned) and (failure := reported_failure(outcome.value, self._failed)) is not None:
            return Raised(ReportedFailure(failure))
        return super().settle_outcome(outcome)


class Claim:
    """The right to run one call once. Report how the call ended; what is open when its run ends counts as unknown.

    Attributes:
        started: whether the call may run now. If not, `result` (where `has_result`), `message` and `error` say why.
        key: the idempotency key of the call, for the service that it calls.
    """

    def __init__(self, verdict: Verdict, call: CallExecution) -> None:
        self._verdict, self._call = verdict, call
        self._engine = execution(call)
        self._lock = threading.Lock()
        self.started = self.has_result = self._is_open = False
        self.result: Any = None
        self.message = ""
        self.error: Exception | None = None
        self.key = idempotency_key_of(call.operation)

    def _begin(self) -> Steps[Claim]:
        self._take((yield from until_action(self._engine)))
        if self.started and not self._verdict._is_open():  # its end may not have seen the claim
            self.started = False
            yield from attempt(self._ending(Raised(NotStarted("its run has ended"))))
            self._take(NotRun(f"{self._verdict.action} was not run: its run has ended"))
        return self

    def _take(self, outcome: Outcome | RunAction) -> None:
        if isinstance(outcome, RunAction):
            self.key = idempotency_key_of(outcome.operation)
            self.started = self._is_open = True
            self._verdict._claims.add(self)
        elif isinstance(outcome, RanBefore):
            stated = describe_earlier(outcome.earlier, self._verdict.action)
            self.result, self.has_result, self.message, self.error = stated
        elif isinstance(outcome, NotRun):
            self.error = ActionCancelled(outcome.problem)
            self.error.__cause__ = outcome.error
            self.message = refusal_text(outcome.problem)

    def done(self, result: object = None) -> None:
        """Report that the call returned. A result that is JSON is kept, for a call that comes again."""
        drive(self._ending(Returned(result)))

    def failed(self, error: BaseException | str) -> None:
        """Report that the call failed, with its exception or in words."""
        drive(self._ending(_raised(error)))

    def unknown(self) -> None:
        """Report that nothing is known of how the call ended: it is not run again, and a person has to find out."""
        drive(self._ending(Raised(OutcomeUnknown("its outcome was not reported"))))

    def release(self) -> None:
        """Report that the call did not start after all, so that it may be claimed again."""
        drive(self._ending(Raised(NotStarted(f"{self._verdict.action} was not started"))))

    async def adone(self, result: object = None) -> None:
        """`done` without blocking the event loop."""
        await drive_async(self._ending(Returned(result)))

    async def afailed(self, error: BaseException | str) -> None:
        """`failed` without blocking the event loop."""
        await drive_async(self._ending(_raised(error)))

    async def aunknown(self) -> None:
        """`unknown` without blocking the event loop."""
        await drive_async(self._ending(Raised(OutcomeUnknown("its outcome was not reported"))))

    async def arelease(self) -> None:
        """`release` without blocking the event loop."""
        await drive_async(self._ending(Raised(NotStarted(f"{self._verdict.action} was not started"))))

    def _ending(self, outcome: Returned | Raised) -> Steps[object]:
        with self._lock:
            if not self._is_open:
                raise GateError(f"the claim of {self._verdict.action} has ended, or was never begun")
            self._is_open = False
        self._call.was_started = not (isinstance(outcome, Raised) and isinstance(outcome.error, NotStarted))
        self._verdict._claims.discard(self)
        return (yield from until_action(self._engine, outcome))


def _raised(error: BaseException | str) -> Raised:
    return Raised(ReportedFailure(error) if isinstance(error, str) else error)


def describe_earlier(earlier: EarlierRun, action: str) -> tuple[Any, bool, str, Exception | None]:
    """Return the result of an earlier execution, whether it was kept, what to tell the model, and what a gated function would raise."""
    described = earlier.describe(action)
    if earlier.state == DONE and earlier.has_result:
        result = earlier.result
        return result, True, result if isinstance(result, str) else json.dumps(result, ensure_ascii=False), None
    error = ActionOutcomeUnknown(described, state=earlier.state)
    return None, False, f"{described[:1].upper()}{described[1:]}. Do not call it again.", error


def refusal_text(reason: str) -> str:
    """Return a refusal for the model: the reason, that the call did not run, and that it must not be repeated."""
    return f"{reason.removesuffix('; it was not run').rstrip('. ')}. {NOT_RUN}"


def decide_all(cases: Sequence[GatedCall], stated: Sequence[dict[str, Any]]) -> Steps[list[Verdict]]:
    """Decide on the calls of one turn: on the level of each first, so that all see the same evidence, then ask."""
    for case in cases:
        yield from decide_first(case)
    verdicts = []
    for case, kept in zip(cases, stated, strict=True):
        verdicts.append((yield from _decide(case, kept)))
    return verdicts


def _decide(case: GatedCall, stated: dict[str, Any]) -> Steps[Verdict]:
    consent = yield from attempt(consent_to(case))
    entry, again = case.ledger_entry, not case.entry.was_answered
    # Also of a call that may not run now: no message denies that it ran.
    earlier = yield Work(lambda: None if entry is None else entry.earlier(again_after_failure=again))
    if isinstance(earlier, Failed) and isinstance(consent, Consent):
        consent = earlier.error
    verdict = Verdict(case, stated)
    if isinstance(earlier, EarlierRun):
        case.entry.state(earlier.outcome)
        verdict.outcome = "unknown" if earlier.outcome == "running_before" else "ran_before"
        verdict.result, verdict.has_result, verdict.message, verdict.error = describe_earlier(earlier, case.action)
    elif isinstance(consent, Consent):
        verdict._consent = consent
        _state_consent(case, verdict, consent)
    else:
        _state_refusal(case, verdict, consent)
    return verdict


def _state_consent(case: GatedCall, verdict: Verdict, consent: Consent) -> None:
    if consent.bound is None:
        verdict.outcome, verdict.message = "skipped", refusal_text(f"`{case.action}` was skipped by the reviewer")
    elif verdict.level is not None and not verdict.level.asks:
        verdict.outcome = str(verdict.level)
    else:
        verdict.outcome = "approved"
        case.entry.state(APPROVED)


def _state_refusal(case: GatedCall, verdict: Verdict, error: Exception) -> None:
    verdict.outcome, verdict.error = _outcome_of(error), error
    if not isinstance(error, ActionNotApproved):
        verdict.error = ActionCancelled(f"{case.action} was not run: its gate failed ({type(error).__name__})")
        verdict.error.__cause__ = error
        case.entry.state("cancelled", error=error_text(error))
    if isinstance(error, ActionRedirected):
        verdict.message = error.user_input or refusal_text(str(error))
    elif isinstance(error, ActionPending):
        case.entry.state("waiting")
        approval = verdict.approval
        where = "" if approval is None else f" (approval {approval.id})"
        verdict.message = f"`{case.action}` waits for a person{where}. {NOT_RUN} It runs once it is approved."
    else:
        verdict.message = refusal_text(str(verdict.error))


def _outcome_of(error: Exception) -> str:
    for kind, outcome in _OUTCOMES.items():
        if isinstance(error, kind):
            return outcome
    response = error.response if isinstance(error, ActionCancelled) else None
    # Without a reviewer the gate gave the response in its place.
    return "not_asked" if response is None or response.reviewer is None else "rejected"
