"""The outcome of one gated call, and its entry in the trace, with bounded arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import time_ns
from typing import TYPE_CHECKING, Any, TypeAlias

from grace_kp.errors import ActionCancelled, ActionOutcomeUnknown
from grace_kp.gating._decision import FACTS
from grace_kp.gating._request import new_request_id
from grace_kp.gating._view import flat, view
from grace_kp.record import HOST, current_run, instant
from grace_kp.trace import MAX_TEXT, error_text, render, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grace_kp.approvals import Approval
    from grace_kp.gating._decision import Decision
    from grace_kp.gating._ledger import EarlierRun
    from grace_kp.gating._request import InterventionRequest, InterventionResponse


UNDECIDED, WAITING, APPROVED, RUNNING = "undecided", "waiting", "approved", "running"
CANCELLED, DENIED, SKIPPED = "cancelled", "denied", "skipped"
EXECUTED, EXECUTED_MODIFIED, FAILED = "executed", "executed_modified", "failed"
_ENDED = frozenset({EXECUTED, EXECUTED_MODIFIED, FAILED})
"""Outcomes of an execution. Only another execution under the same decision replaces them, and no attempt that is refused."""


class NotStarted(ActionCancelled):
    """The action was kept from starting, by a check closer to it than the gate."""


class OutcomeUnknown(BaseException):
    """The run of a call ended before the call's outcome was reported."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The action ran and returned."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Raised:
    """The action ran and raised."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class RanBefore:
    """The action was begun before, and was not begun again."""

    earlier: EarlierRun


@dataclass(frozen=True, slots=True)
class NotRun:
    """The action did not run."""

    problem: str = ""
    """Why; empty where a reviewer skipped it."""
    error: Exception | None = None


Outcome: TypeAlias = Returned | Raised | RanBefore | NotRun


def raise_or_return(outcome: Outcome, action: str) -> Any:
    """Return what a gated call returns to its caller."""
    if isinstance(outcome, Returned):
        return outcome.value
    if isinstance(outcome, Raised):
        raise outcome.error
    if isinstance(outcome, RanBefore):
        earlier = outcome.earlier
        if earlier.outcome == "executed_before" and earlier.has_result:
            return earlier.result
        raise ActionOutcomeUnknown(earlier.describe(action), state=earlier.state)
    if not outcome.problem:
        return None
    raise ActionCancelled(outcome.problem) from outcome.error


class PendingAnswer(str):
    """A message for the model in place of a result; the action has not run yet."""

    approval: Approval

    __slots__ = ("approval",)

    def __new__(cls, approval: Approval) -> PendingAnswer:
        answer = super().__new__(
            cls,
            f"{approval.action} has not run yet: it waits for the approval {approval.id} by a person. If it is approved it will be carried out "
            "later, without another call. Do not call it again for the same purpose, and do not report it as done.",
        )
        answer.approval = approval
        return answer

    def __reduce__(self) -> Any:
        return PendingAnswer, (self.approval,)


MAX_RECORDED = 65_536
"""Characters that the arguments of a call share; after them each argument is cut to `MIN_TEXT`."""
MIN_TEXT = 64
MAX_COUNTED = 5_000
"""Values of an argument whose characters are counted. With more, `hidden` is a lower bound, which keeps calls fast."""
_CUT = re.compile(
    r"… \[cut: [\d,]+ of [\d,]+ characters kept\]|… [\d,]+ more|[\d,]+ more|<\w+: (?:not shown(?:, too deep)?|[\d,]+ bytes)>"
)


def recorded_arguments(arguments: Mapping[str, object], *, executed: bool = False) -> dict[str, Any]:
    """Return the fields of a gate's entry that hold arguments."""
    rendered: dict[str, Any] = {}
    left = MAX_RECORDED
    for name, value in arguments.items():
        rendered[name] = render(value, min(MAX_TEXT, max(left, MIN_TEXT)))
        left -= len(to_text(rendered[name]))
    hidden = {name: count for name, value in arguments.items() if (count := _missing(value, rendered[name]))}
    prefix = "executed_" if executed else ""
    fields: dict[str, Any] = {f"{prefix}arguments": rendered}
    if hidden:
        fields[f"{prefix}hidden"] = hidden
    return fields


def _missing(value: object, rendered: object) -> int:
    """Number of characters of a value that its rendered form does not have."""
    if value is rendered:
        return 0
    text = to_text(rendered)
    marks = sum(map(len, _CUT.findall(text)))
    if not marks:
        return 0
    size = len(value) if isinstance(value, str) else len(flat(view(value, MAX_COUNTED).root))
    return max(size - (len(text) - marks), 1)


class GateEntry:
    """The entry of one gated call in its trace. Its run holds `fields`, which are filled in until the action has ended."""

    __slots__ = ("_clock", "fields")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        run = current_run()
        self._clock = time_ns if run is None else run.owner.wall_clock

    @classmethod
    def new(
        cls, action: str, arguments: Mapping[str, Any], *, entry_id: str | None = None, sealed: Sequence[str] = ()
    ) -> GateEntry:
        """Return the entry of a call that is not decided on. The values of sealed arguments are removed before it is stored."""
        fields: dict[str, Any] = {"id": entry_id or new_request_id()}
        if sealed:
            fields["sealed"] = list(sealed)
        fields.update(action=action, outcome=UNDECIDED)
        fields.update(recorded_arguments(arguments))
        entry = cls(fields)
        fields["asked_at"] = instant(entry._clock())
        return entry

    @property
    def was_answered(self) -> bool:
        """Whether a reviewer was asked."""
        return "response" in self.fields

    def state_decision(self, request: InterventionRequest, decision: Decision) -> None:
        """State a decision and its basis."""
        if "attempt" in self.fields:
            for name in FACTS:  # of the decision before this one
                self.fields.pop(name, None)
        facts = {**decision.facts}
        if request.level.asks:
            facts.pop("audit", None)
        self.fields.update(
            level=str(request.level),
            score=request.decision.confidence_score,
            reason=request.reason,
            policy_version=request.policy_version,
            digest=request.digest,
            attempt=request.attempt,
            **facts,
        )
        if request.floor is not None:
            self.fields["floor"] = request.floor
        if decision.gaps:
            self.fields["evidence_gaps"] = list(decision.gaps)

    def state_answer(self, response: InterventionResponse) -> None:
        """State a reviewer's answer."""
        stated: dict[str, Any] = {"action": str(response.action), "timeout_reached": response.timeout_reached}
        for name in ("reviewer", "response_time_ms", "user_input", "selected_option"):
            if getattr(response, name) is not None:
                stated[name] = getattr(response, name)
        if response.modified is not None:
            recorded = recorded_arguments(response.modified)
            stated["modified"] = recorded.pop("arguments")
            stated.update(recorded)
        self.fields["response"] = stated

    def add_wait(self, milliseconds: float) -> None:
        """Add to the time for which reviewers were waited for."""
        self.fields["waited_ms"] = round(self.fields.get("waited_ms", 0.0) + milliseconds, 3)

    def state(self, outcome: str, *, problem: str = "", error: str = "") -> None:
        """State what happened, unless the call's execution has ended before."""
        if self.fields["outcome"] in _ENDED:
            return
        self._settle(outcome)
        if problem:
            self.fields["problem"] = problem
        if error:
            self.fields["error"] = error

    def _settle(self, outcome: str) -> None:
        self.fields["outcome"] = outcome
        if outcome not in {UNDECIDED, WAITING}:
            self.fields.setdefault("decided_at", instant(self._clock()))

    def refusal(
        self,
        outcome: str,
        error: Callable[..., Exception],
        message: str,
        request: InterventionRequest | None,
        response: InterventionResponse | None = None,
    ) -> Exception:
        """State the outcome of a call that does not run, and return the error for its caller."""
        self.state(outcome)
        decision = None if request is None else request.decision
        return error(message, decision=decision, request=request, response=response)

    def state_exit(self, error: BaseException) -> None:
        """State that an exception ended the way to a consent."""
        if HOST.pauses(error):
            self.state(WAITING)
        elif self.fields["outcome"] == UNDECIDED:
            self.state(CANCELLED, error=error_text(error))

    def state_start(self, replaced: Mapping[str, Any] | None) -> None:
        """State that the action begins, for the first time or again after a failure; a process that dies now leaves this outcome."""
        self._settle(RUNNING)
        self.fields.pop("error", None)  # of an attempt that failed
        if replaced is not None:
            self.fields.update(recorded_arguments(replaced, executed=True))

    def state_end(self, outcome: Returned | Raised, modified_digest: str | None) -> None:
        """State how the execution ended."""
        error = outcome.error if isinstance(outcome, Raised) else None
        if error is None or HOST.hands_off(error):
            self.state(EXECUTED if modified_digest is None else EXECUTED_MODIFIED)
        elif HOST.pauses(error):
            self.state(WAITING)
        elif isinstance(error, OutcomeUnknown):
            self.fields["error"] = error_text(error)  # it stays `running`, as after the death of the process
        else:
            self.state(FAILED, error=type(error).__name__)
        if modified_digest is not None:
            self.fields["executed_digest"] = modified_digest

    def state_ledger_error(self, error: Exception) -> None:
        """State that the ledger could not be written."""
        self.fields["ledger_error"] = error_text(error)
