"""From a call to a consent: one engine that does no I/O and says what is to be done next; drivers do it, sync or async.

This is where a gate fails closed: whatever an asked person, a missing one or a broken part comes to, the engine ends in an exception
unless the consent that the level asks for was given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from grace_kp.errors import ActionCancelled, ActionDenied, ActionRedirected, ActionTimedOut
from grace_kp.gating._case import Case, Consent
from grace_kp.gating._digest import NotCheckable
from grace_kp.gating._hidden import for_reviewer, recorded_arguments, unseen_problem
from grace_kp.gating._modification import modified
from grace_kp.gating._notice import record_notice
from grace_kp.gating._policy import strictest_level
from grace_kp.gating._request import InterventionRequest, InterventionResponse, frozen, new_request_id
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.trace import error_text, redact_text, render_text

if TYPE_CHECKING:
    from grace_kp.confidence import ActionDecision, ConfidenceScore, Thresholds
    from grace_kp.gating._ledger import Again

MAX_RETRIES = 3
MAX_MODIFICATIONS = 3
MAX_WORDS = 1_000_000
"""Characters of a reviewer's words that reach the agent."""


class GateScope(Protocol):
    """What a gated call needs to know of the run around it. `record` must not raise."""

    thresholds: Thresholds
    reviewer: Any
    on_notify: Any
    timeout: float | None

    @property
    def run_id(self) -> str | None:
        """The trace that the decision will stand in."""
        ...

    @property
    def objective(self) -> str | None:
        """What the run is for."""
        ...

    @property
    def waits(self) -> bool:
        """Whether assessing may wait for a model, and so must not be done on an event loop."""
        ...

    def assess(self, case: Case) -> ConfidenceScore | Kept:
        """The confidence of the run so far, as the gate of this call asks for it, or what was decided before."""
        ...

    @property
    def again(self) -> Again | None:
        """How the call is known again, where the program around it may be run again; None where it is not."""
        ...

    def record(self, entry: dict[str, Any]) -> None:
        """Keep the gate's entry; it is filled in further until the action has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Kept:
    """Assessed before: the decision that was made then holds."""

    decision: ActionDecision
    confidence: ConfidenceScore | None


@dataclass(frozen=True, slots=True)
class Assess:
    """To do: compute the confidence."""


@dataclass(frozen=True, slots=True)
class Notify:
    """To do: tell that the action goes ahead."""

    request: InterventionRequest


@dataclass(frozen=True, slots=True)
class Ask:
    """To do: ask, and give up after the request's timeout."""

    request: InterventionRequest
    reviewer: Any


Todo: TypeAlias = Assess | Notify | Ask


@dataclass(frozen=True, slots=True)
class Failed:
    """Done, badly: this error came instead of a result."""

    error: Exception


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nobody answered in time."""


Engine: TypeAlias = Generator[Todo, Any, Consent]


def consent(case: Case) -> Engine:
    """Get the consent that the call needs.

    Returns:
        What may run.

    Raises:
        ActionDenied: the policy forbids it.
        ActionTimedOut: nobody answered.
        ActionCancelled: somebody said no, nobody can be asked, or asking failed.
        ActionRedirected: the reviewer gave words instead.
    """
    case.scope.record(case.entry)
    for attempt in range(1, MAX_RETRIES + 2):
        request = yield from _decided(case, attempt)
        if case.policy.denies:
            raise _end(case, "denied", ActionDenied, f"{case.action} is forbidden by its policy", request)
        if request.level.asks and not request.digest:
            message = (
                f"{case.action} was not run: {case.entry['unchecked']}, so that a change after the decision would go unnoticed; "
                "name what identifies the argument with @grace.gate(identity={...}), or pass plain data"
            )
            raise _end(case, "cancelled", ActionCancelled, message, request)
        if not request.level.asks:
            if request.level is InterventionLevel.NOTIFY:
                record_notice(case.entry, request, (yield Notify(request)))
            return Consent(case.bound, request.digest)
        answer = yield from _answered(case, request)
        if answer is not None:
            return answer
    message = f"{case.action} was not run: its reviewer asked to decide again more than {MAX_RETRIES} times"
    raise _end(case, "cancelled", ActionCancelled, message, request)


def _decided(case: Case, attempt: int) -> Generator[Todo, Any, InterventionRequest]:
    """Compute the confidence, decide on the level, and freeze both with the arguments."""
    from grace_kp.confidence import ActionDecision, decide

    score = yield Assess()
    thresholds = case.policy.thresholds or case.scope.thresholds
    if isinstance(score, Kept):
        decision, score = score.decision, score.confidence
    elif isinstance(score, Failed) and case.scope.again is not None:
        # What was decided cannot be looked up or kept, and an answer from before may be about something else.
        case.entry["error"] = error_text(score.error)
        if isinstance(score.error, ActionCancelled):
            case.entry["outcome"] = "cancelled"
            raise score.error
        message = f"{case.action} was not run, because the decision about it cannot be kept: {error_text(score.error)}"
        raise _end(case, "cancelled", ActionCancelled, message, None)
    elif isinstance(score, Failed):
        why = f"the confidence could not be computed: {error_text(score.error)}"
        decision = ActionDecision(InterventionLevel.ESCALATE, 0.0, why, "request_clarification")
        score = None
    else:
        decision = decide(score.score, thresholds)
    level, reason = strictest_level(decision.level, case.policy, case.gaps, decision.reason)
    frozen_decision = _with_level(decision, level, reason)
    request = InterventionRequest(
        id=new_request_id(),
        action=case.action,
        arguments=frozen(case.shown()),
        digest=_digest(case),
        level=level,
        decision=frozen_decision,
        confidence=score,
        reason=reason,
        policy_version=case.policy.version,
        floor=None if case.policy.floor is None else str(case.policy.floor),
        attempt=attempt,
        timeout=case.policy.timeout if case.policy.timeout is not None else case.scope.timeout,
        run_id=case.scope.run_id,
        objective=case.scope.objective,
        created_at=time.time(),
    )
    case.entry.update(
        level=str(level),
        score=decision.confidence_score,
        reason=reason,
        policy_version=request.policy_version,
        digest=request.digest,
        attempt=attempt,
    )
    if request.floor is not None:
        case.entry["floor"] = request.floor
    if case.gaps:
        case.entry["evidence_gaps"] = list(case.gaps)
    return request


def _digest(case: Case) -> str:
    """The digest of the arguments; empty where they cannot be checked, and then the entry says why."""
    try:
        return case.digest()
    except NotCheckable as error:
        case.entry["unchecked"] = str(error)[:500]
        return ""


def _with_level(decision: ActionDecision, level: InterventionLevel, reason: str) -> ActionDecision:
    if level is decision.level:
        return decision if reason == decision.reason else replace(decision, reason=reason)
    suggested = {"silent": "proceed", "notify": "proceed_with_status", "confirm": "ask_confirmation"}
    return replace(decision, level=level, reason=reason, suggested_action=suggested.get(level, "request_clarification"))


def _answered(case: Case, request: InterventionRequest) -> Generator[Todo, Any, Consent | None]:
    """Ask until there is an answer that can be used; None asks for a new decision."""
    reviewer = case.policy.reviewer if case.policy.reviewer is not None else case.scope.reviewer
    if case.scope.again is not None:
        reviewer = case.scope.again.reviewer
    for _ in range(MAX_MODIFICATIONS):
        asked = for_reviewer(request, reviewer)
        if reviewer is None:
            answer: Any = None
        else:
            started = time.perf_counter()
            answer = yield Ask(asked, reviewer)
            case.entry["waited_ms"] = round(case.entry.get("waited_ms", 0.0) + (time.perf_counter() - started) * 1e3, 3)
        response = _response(case, request, answer, reviewer)
        if response.action is InterventionAction.RETRY:
            return None
        if response.action is InterventionAction.MODIFY and not response.modified:
            message = f"{response.reviewer} modified {case.action} without giving arguments; it was not run"
            raise _end(case, "cancelled", ActionCancelled, message, request, response)
        problem = unseen_problem(asked, response)
        if not problem and response.action is not InterventionAction.MODIFY:
            return _consented(case, request, response)
        if not problem:
            check_unchanged(case, Consent(case.bound, request.digest))  # what the reviewer left as it was
            changed = _changed(case, request, response.modified or {})
            if isinstance(changed, Consent):
                return changed
            problem = changed
        case.entry["problem"] = problem
        request = replace(request, id=new_request_id(), problem=problem, attempt=request.attempt + 1)
    problem = redact_text(str(case.entry.get("problem")), identifiers=False)
    message = f"{case.action} was not run: the reviewer's arguments could not be used: {problem}"
    raise _end(case, "cancelled", ActionCancelled, message, request)


def _response(case: Case, request: InterventionRequest, answer: Any, reviewer: Any) -> InterventionResponse:
    """What the reviewer answered. Where there is no answer the action ends here, unless time ran out and its policy lets it go on."""
    from grace_kp.gating._reviewer import name_of

    if isinstance(answer, InterventionResponse) and not answer.timeout_reached:
        response = replace(
            answer,
            reviewer=name_of(reviewer) if answer.reviewer is None else render_text(answer.reviewer),
            user_input=None if answer.user_input is None else render_text(answer.user_input, MAX_WORDS),
        )
        case.entry["response"] = _told(response)
        return response
    timed_out = isinstance(answer, NoAnswer | InterventionResponse)
    proceeds = timed_out and case.policy.auto_proceed_on_timeout is True
    response = InterventionResponse(
        InterventionAction.PROCEED if proceeds else InterventionAction.CANCEL, timeout_reached=timed_out
    )
    case.entry["response"] = _told(response)
    if proceeds:
        return response
    if timed_out:
        within = "" if request.timeout is None else f" within {request.timeout:g} s"
        message = f"nobody answered{within} whether to run {case.action}; it was not run"
        raise _end(case, "timed_out", ActionTimedOut, message, request, response)
    if answer is None:
        message = f"{case.action} needs a person ({request.level}) and there is nobody to ask; it was not run"
    else:
        case.entry["error"] = error_text(answer.error)
        failure = redact_text(case.entry["error"], identifiers=False)  # the message may reach a model or a log
        message = f"asking about {case.action} failed ({failure}); it was not run"
    raise _end(case, "cancelled", ActionCancelled, message, request, response)


def _consented(case: Case, request: InterventionRequest, response: InterventionResponse) -> Consent:
    who = response.reviewer or "the reviewer"
    if response.action is InterventionAction.PROCEED:
        return Consent(case.bound, request.digest)
    if response.action is InterventionAction.SKIP:
        case.entry["outcome"] = "skipped"
        return Consent(None, request.digest)
    if response.action is InterventionAction.INPUT:
        words = response.user_input or ""
        error = ActionRedirected(
            f"{who} answered instead of running {case.action}: {words}",
            user_input=words,
            decision=request.decision,
            request=request,
            response=response,
        )
        case.entry["outcome"] = "redirected"
        raise error
    why = f": {response.user_input}" if response.user_input else ""
    raise _end(case, "cancelled", ActionCancelled, f"{who} refused {case.action}{why}", request, response)


def _changed(case: Case, request: InterventionRequest, changes: Mapping[str, Any]) -> Consent | str:
    """The consent to the call with the reviewer's arguments; or what is wrong with them."""
    bound, problem = modified(case, changes)
    if bound is None:
        return problem
    try:
        digest = case.digest(bound)
    except NotCheckable as error:
        return str(error)
    return Consent(bound, digest, modified=digest != request.digest)


def check_unchanged(case: Case, given: Consent) -> None:
    """Right before the action runs: what was decided on must still be what is there.

    Raises:
        ActionCancelled: the arguments were changed in between.
    """
    if given.bound is None or not given.digest:
        return
    try:
        changed = case.digest(given.bound) != given.digest
    except NotCheckable:
        changed = True
    if changed:
        message = f"the arguments of {case.action} were changed while the decision was made; it was not run"
        raise _end(case, "cancelled", ActionCancelled, message, None)


def _told(response: InterventionResponse) -> dict[str, Any]:
    told: dict[str, Any] = {"action": str(response.action), "timeout_reached": response.timeout_reached}
    for name in ("reviewer", "response_time_ms", "user_input", "selected_option"):
        if getattr(response, name) is not None:
            told[name] = getattr(response, name)
    if response.modified is not None:
        recorded = recorded_arguments(response.modified)
        told["modified"] = recorded.pop("arguments")
        told.update(recorded)
    return told


def _end(
    case: Case,
    outcome: str,
    error: Callable[..., Exception],
    message: str,
    request: InterventionRequest | None,
    response: InterventionResponse | None = None,
) -> Exception:
    case.entry["outcome"] = outcome
    decision = None if request is None else request.decision
    return error(message, decision=decision, request=request, response=response)
