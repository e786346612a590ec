"""The engine of every gate: from a call to a consent to an outcome, for functions and for tool calls of frameworks.

It is a generator without I/O: it yields the next step, and a sync or async driver performs it. Without the consent that the level requires it
ends without running the action, whatever fails.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.errors import (
    ActionCancelled,
    ActionDenied,
    ActionPending,
    ActionRedirected,
    ActionTimedOut,
    ApprovalError,
    brief,
)
from grace_kp.gating._call import StandingCall
from grace_kp.gating._case import Consent, HeldRefusal, consent_to_changes
from grace_kp.gating._decision import FACTS, Decision
from grace_kp.gating._digest import NotCheckable
from grace_kp.gating._drivers import Ask, Await, Failed, NoAnswer, Notify, RunAction, Work
from grace_kp.gating._drivers import attempt as attempted
from grace_kp.gating._inquiry import Inquiry, response_from
from grace_kp.gating._ledger import DECIDED, DONE, FAILED, RUNNING, EarlierRun, LedgerEntry
from grace_kp.gating._outcome import (
    CANCELLED,
    DENIED,
    SKIPPED,
    NotRun,
    NotStarted,
    PendingAnswer,
    Raised,
    RanBefore,
    Returned,
)
from grace_kp.gating._paused import file_and_wait, inquiry_of
from grace_kp.gating._request import (
    InterventionRequest,
    InterventionResponse,
    alarm_places,
    answer_to_keep,
    for_reviewer,
    name_of,
    new_request_id,
    read_alarms,
    record_notice,
    response_of,
    unseen_problem,
)
from grace_kp.gating.reviewers._inbox import InboxReviewer
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.record import HOST, SEALED
from grace_kp.trace import error_text, redact_text, redacted_error, render_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.gating._case import GatedCall, Resumable
    from grace_kp.gating._decision import Rules, RunConfidence
    from grace_kp.gating._drivers import Steps
    from grace_kp.gating._ledger import AtMostOnce
    from grace_kp.gating._outcome import GateEntry, Outcome
    from grace_kp.gating._request import Reviewer


OTHER_CALL = "the earlier answer belongs to another call; decide about this one"
_LETS_RUN = frozenset({InterventionAction.PROCEED, InterventionAction.MODIFY})
MAX_RETRIES = 3
MAX_MODIFICATIONS = 3
STATED = ("level", "score", "reason", "policy_version", "floor", "digest", "attempt", "evidence_gaps", "evaluation")
"""Fields of an entry that state its decision, besides the facts."""
MAX_WORDS = 1_000_000
"""Characters of a reviewer's words that reach the agent."""


def gated_call(case: GatedCall) -> Steps[Outcome]:
    """Get the consent that a call needs, and run the action with it, at most once."""
    try:
        consent = yield from consent_to(case)
    except ActionPending:
        if case.handed_over is None:
            raise
        return Returned(PendingAnswer(case.handed_over))
    if consent.bound is None:
        return NotRun()
    return (yield from execution(FunctionCall(case, consent)))


def consent_to(case: GatedCall) -> Steps[Consent]:
    """Get the consent that a call needs."""
    try:
        if case.program is not None:
            waited = yield Await(case.program.wait, case.program.wait_async)
            if isinstance(waited, Failed):
                raise waited.error
        return (yield from _get_consent(case))
    except BaseException as error:
        case.entry.state_exit(error)
        raise
    finally:
        if case.program is not None:
            case.program.end()


def _get_consent(case: GatedCall) -> Steps[Consent]:
    refusal = case.scope.refusal() if case.program is None or not case.program.interrupts else None
    case.scope.record(case.entry.fields)
    if (error := _find_held_error(case, refusal)) is not None:
        raise error
    for attempt in range(1, MAX_RETRIES + 2):
        decision = yield from _decision(case)
        request = _request(case, decision, attempt)
        if case.policy.denies:
            yield from _forbidden(case, request)
            raise case.entry.refusal(DENIED, ActionDenied, f"{case.action} is forbidden by its policy", request)
        if request.level.asks and not request.digest:
            message = (
                f"{case.action} was not run: {case.entry.fields['unchecked']}, so that a change after the decision would go "
                "unnoticed; name what identifies the argument with @grace.gate(identity={...}), or pass plain data"
            )
            raise case.entry.refusal(CANCELLED, ActionCancelled, message, request)
        if not request.level.asks:
            if request.level is InterventionLevel.NOTIFY:
                sealed = () if case.terms is None else case.terms.sealed
                shown = {name: SEALED if name in sealed else value for name, value in request.arguments.items()}
                notice = replace(request, arguments=shown)  # it may be kept in a log
                if case.program is None or case.program.interrupts:
                    record_notice(case.entry.fields, notice, (yield Notify(notice, case.scope.on_notify)))
                else:
                    case.notice = notice
            return Consent(case.bound, request.digest, is_fresh=request.level is InterventionLevel.SILENT)
        consent = yield from _answer(case, request, decision)
        if consent is not None:
            return consent
    message = f"{case.action} was not run: its reviewer asked to decide again more than {MAX_RETRIES} times"
    raise case.entry.refusal(CANCELLED, ActionCancelled, message, request)


def _forbidden(case: GatedCall, request: InterventionRequest) -> Steps[None]:
    """Cancel what was asked about the call before its policy forbade the action."""
    has_key = case.terms is not None and case.terms.key is not None
    if case.is_filed or (case.program is None and has_key):
        yield Work(inquiry_of(case, f"{request.attempt}.0").forbid, writes=True)


def decide_first(case: GatedCall) -> Steps[None]:
    """Decide on the level of a call before any call of its turn is asked about."""
    case.decided = yield from attempted(_decision(case))


def _decision(case: GatedCall) -> Steps[Decision]:
    """Decide on the level, or look up the decision where the program around is run again."""
    if (decided := case.decided) is not None:
        case.decided = None
        if isinstance(decided, Exception):
            raise decided
        return decided
    if case.program is not None:
        return (yield from _kept_decision(case, case.program))
    case.ledger_entry = None  # not a request whose reviewer wanted a new decision
    looks = (
        bool(case.policy.alarms) or case.scope.judges_actions
    )  # which may take long, off the event loop, while other tasks change the arguments
    before = _lasting_digest(case, ordered=True) if looks else ""
    assessed = yield Work(lambda: case.scope.assess(case), blocks=case.scope.waits or looks)
    if looks and before != _lasting_digest(case, ordered=True):
        raise case.entry.refusal(CANCELLED, ActionCancelled, changed_message(case.action), None)
    if isinstance(assessed, Failed):
        why = f"the confidence could not be computed: {error_text(assessed.error)}"
        return Decision.without_confidence(why, case.rules())
    return _decide(case, assessed, case.rules(assessed.gaps))


def _decide(case: GatedCall, assessment: RunConfidence, rules: Rules) -> Decision:
    if assessment.evaluation is not None:
        case.entry.fields["evaluation"] = assessment.evaluation
    return Decision.of(assessment, rules)


def _kept_decision(case: GatedCall, program: Resumable) -> Steps[Decision]:
    """Return the decision that the ledger holds for this call, or decide and keep that."""
    digest = _lasting_digest(case, ordered=True)
    case.ledger_entry = entry = LedgerEntry(lambda: case.scope.ledger, program.ledger_key(case.action))
    case.entry.fields["id"] = entry.id
    kept = _require(case, (yield Work(entry.decision)))
    case.is_void = kept is not None and kept.get("void") is True
    if kept is None:
        assessed = _require(case, (yield Work(lambda: case.scope.assess(case))))

        def keep() -> dict[str, Any]:
            # A person may have been asked by a process that is gone, whatever the level is now.
            was_asked = program.may_have_forgotten(case.scope.ledger)
            case.is_void = program.interrupts and not was_asked
            rules = replace(case.rules(), at_least=InterventionLevel.CONFIRM) if was_asked else case.rules()
            # From now on the inbox decides, also where the program is run again by a process whose reviewer is another.
            filed = {"filed": True} if isinstance(case.reviewer, InboxReviewer) and case.terms is not None else {}
            return entry.decide({**_decide(case, assessed, rules).to_dict(digest), "is_ordered": True, **filed})

        kept = _require(case, (yield Work(keep)))
    if kept["digest"] != (digest if kept.get("is_ordered") else _lasting_digest(case, ordered=False)):
        message = f"{case.action} is called with other arguments than were decided on; it was not run"
        error = case.entry.refusal(CANCELLED, ActionCancelled, message, None)
        case.entry.fields["error"] = error_text(error)
        raise error
    is_filed = kept.get("filed") is True or (not program.interrupts and isinstance(case.reviewer, InboxReviewer))
    case.is_filed = is_filed and case.terms is not None
    decision = case.rules().apply_again(Decision.from_dict(kept))
    if isinstance(program, StandingCall):
        program.own, program.answer = case.reviewer, response_of(kept.get("answer"))
        level, version = (kept.get("answer") or {}).get("at") or (decision.level, case.version)
        is_old = version != case.version or decision.level.at_least(InterventionLevel(level)) != level
        if is_old and program.answer is not None and program.answer.action in _LETS_RUN:
            message = (
                f"{case.action} was not run, because its version or its policy has changed since a person answered"
            )
            raise case.entry.refusal(CANCELLED, ActionCancelled, message, None)
    return decision


def _lasting_digest(case: GatedCall, *, ordered: bool) -> str:
    try:
        return case.digest(lasting=True, ordered=ordered)
    except NotCheckable:
        return ""  # the call is refused where a person would have to be asked about it


def _require(case: GatedCall, answer: Any) -> Any:
    if not isinstance(answer, Failed):
        return answer
    case.entry.fields["error"] = error_text(answer.error)
    why = redacted_error(answer.error)  # a model reads it
    message = f"{case.action} was not run, because the decision about it cannot be kept: {why}"
    raise case.entry.refusal(CANCELLED, ActionCancelled, message, None)


def _request(case: GatedCall, decision: Decision, attempt: int) -> InterventionRequest:
    """Return the question about the call, with its arguments as they are now."""
    if decision.level.asks:
        # A repr may fill in attributes. Later, when the question is printed, that would look like a change of the arguments.
        for value in case.shown_arguments().values():
            brief(value)
    try:
        digest = case.digest()
    except NotCheckable as error:
        digest = ""
        case.entry.fields["unchecked"] = str(error)[:500]
    alarms = _alarm_fields(case, decision)
    proceeds = case.policy.auto_proceed_on_timeout is True and not alarms
    request = InterventionRequest(
        id=new_request_id() if attempt > 1 or case.program is not None else case.entry.fields["id"],
        action=case.action,
        arguments=case.shown_arguments(),
        digest=digest,
        level=decision.level,
        decision=decision.action,
        confidence=decision.confidence,
        reason=decision.action.reason,
        policy_version=case.policy.version,
        floor=None if case.policy.floor is None else str(case.policy.floor),
        attempt=attempt,
        timeout=case.policy.timeout if case.policy.timeout is not None else case.scope.timeout,
        on_timeout="proceed" if proceeds else "cancel",
        run_id=case.scope.run_id,
        objective=case.scope.objective,
        created_at=time.time(),
        **alarms,
    )
    case.entry.state_decision(request, decision)
    case.operation = request.id
    return request


def _alarm_fields(case: GatedCall, decision: Decision) -> dict[str, Any]:
    alarms = read_alarms(decision.facts.get("alarms"))
    if not alarms:
        return {}
    sealed, shown = () if case.terms is None else case.terms.sealed, case.shown_arguments()
    places = lambda: alarm_places(case.scope.document(), case.action, alarms, shown, sealed)  # noqa: E731
    has_values = any(alarm.parameter for alarm in alarms)
    return {"alarms": alarms, "sealed": sealed, "find_places": places if has_values else None}


def _answer(case: GatedCall, request: InterventionRequest, decision: Decision) -> Steps[Consent | None]:
    """Ask until there is an answer that can be used; return None where the reviewer wants a new decision."""
    is_filed = case.is_filed if case.program is not None else isinstance(case.reviewer, InboxReviewer)
    if is_filed and case.terms is not None:
        return (yield from _filed_answer(case, request, decision))
    reviewer = case.reviewer if case.program is None else case.program.reviewer
    for _ in range(MAX_MODIFICATIONS):
        asked = for_reviewer(request, reviewer)
        answer: Any = None
        if reviewer is not None:
            started = time.perf_counter()
            answer = yield Ask(asked, reviewer)
            if case.is_void and isinstance(case.ledger_entry, LedgerEntry) and not isinstance(answer, Failed):
                _require(case, (yield Work(case.ledger_entry.void)))
                case.is_void = False
                answer = yield Ask(replace(asked, problem=OTHER_CALL), reviewer)
            case.entry.add_wait((time.perf_counter() - started) * 1e3)
        response = _response(case, request, answer, reviewer)
        if response.action is InterventionAction.MODIFY and not response.modified:
            message = f"{response.reviewer} modified {case.action} without giving arguments; it was not run"
            raise case.entry.refusal(CANCELLED, ActionCancelled, message, request, response)
        consent: Consent | str | None = unseen_problem(asked, response)
        if not consent and response.action is InterventionAction.MODIFY:
            consent = _consent_from(case, request, response)
        if not isinstance(consent, str) or not consent:  # only an answer that counts is kept
            response = yield from _keep_answer(case, response)
            consent = _consent_from(case, request, response)
        if not isinstance(consent, str):
            return consent
        case.entry.fields["problem"] = problem = consent
        request = replace(request, id=new_request_id(), problem=problem, attempt=request.attempt + 1)
    raise _unusable(case, str(case.entry.fields.get("problem")), request)


def _keep_answer(case: GatedCall, response: InterventionResponse) -> Steps[InterventionResponse]:
    """Keep an answer with the decision about a call that may be decided on again; return the answer that was kept first."""
    program, entry = case.program, case.ledger_entry
    if not isinstance(program, StandingCall) or program.answer is not None or not isinstance(entry, LedgerEntry):
        return response
    if response.timeout_reached or response.action is InterventionAction.RETRY:
        return response
    sealed = () if case.terms is None else case.terms.sealed
    kept = answer_to_keep(response, case.entry.fields["level"], case.version)
    if kept is None or (sealed and not {*(response.modified or ())}.isdisjoint(sealed)):
        return response  # the ledger is not encrypted
    first = _require(case, (yield Work(lambda: entry.answer(kept), writes=True)))
    if first != kept and (earlier := response_of(first)) is not None:  # somebody else was asked at the same time
        case.entry.state_answer(earlier)
        return earlier
    return response


def _filed_answer(case: GatedCall, request: InterventionRequest, decision: Decision) -> Steps[Consent | None]:
    """Ask in the inbox. Its request then replaces the entry in the ledger, so that only its claim lets the action run."""
    inquiry = yield from file_and_wait(case, request, decision)
    if inquiry.approval.state.may_have_run:
        return Consent(case.bound, request.digest)  # its claim gives the execution that there has been
    response = yield from response_from(case, request, inquiry)
    case.entry.state_answer(response)
    consent = _consent_from(case, request, response)
    if isinstance(consent, str):
        yield Work(lambda: inquiry.withdraw(f"the edited arguments cannot be used: {consent}"))
        raise _unusable(case, consent, request, response)
    if consent is not None and consent.bound is not None:
        inquiry.bound = consent.bound
    return consent


def _unusable(
    case: GatedCall, problem: str, request: InterventionRequest, response: InterventionResponse | None = None
) -> Exception:
    problem = redact_text(problem, identifiers=False)
    message = f"{case.action} was not run: the reviewer's arguments could not be used: {problem}"
    return case.entry.refusal(CANCELLED, ActionCancelled, message, request, response)


def _response(
    case: GatedCall, request: InterventionRequest, answer: object, reviewer: Reviewer | None
) -> InterventionResponse:
    """Return the reviewer's answer. Without one the action ends here, unless time ran out and its policy lets it go on."""
    if isinstance(answer, InterventionResponse) and not answer.timeout_reached:
        response = replace(
            answer,
            reviewer=name_of(reviewer) if answer.reviewer is None else render_text(answer.reviewer),
            user_input=None if answer.user_input is None else render_text(answer.user_input, MAX_WORDS),
        )
        case.entry.state_answer(response)
        return response
    timed_out = isinstance(answer, NoAnswer | InterventionResponse)
    proceeds = timed_out and request.on_timeout == "proceed"
    response = InterventionResponse(
        InterventionAction.PROCEED if proceeds else InterventionAction.CANCEL, timeout_reached=timed_out
    )
    case.entry.state_answer(response)
    if proceeds:
        return response
    if timed_out:
        within = "" if request.timeout is None else f" within {request.timeout:g} s"
        message = f"no answer arrived{within} on whether to run {case.action}; it was not run"
        raise case.entry.refusal("timed_out", ActionTimedOut, message, request, response)
    if isinstance(answer, Failed):
        case.entry.fields["error"] = error_text(answer.error)
        failure = redacted_error(answer.error)  # the message may reach a model or a log
        message = f"asking about {case.action} failed ({failure}); it was not run"
    else:
        message = f"{case.action} needs a person ({request.level}) and no reviewer is available; it was not run"
    raise case.entry.refusal(CANCELLED, ActionCancelled, message, request, response)


def _consent_from(
    case: GatedCall, request: InterventionRequest, response: InterventionResponse
) -> Consent | str | None:
    """Return the consent in a response, or why its arguments cannot be used; None where the reviewer wants a new decision."""
    action, who = response.action, response.reviewer or "the reviewer"
    if action is InterventionAction.RETRY:
        return None
    if action is InterventionAction.SKIP:
        case.entry.state(SKIPPED)
        return Consent(None, request.digest)
    if action is InterventionAction.INPUT:
        words = response.user_input or ""
        case.entry.state("redirected")
        text = f"{who} answered instead of running {case.action}: {words}"
        error = ActionRedirected(text, user_input=words, decision=request.decision, request=request, response=response)
        raise _keep_refusal(case, error)
    if action not in _LETS_RUN:
        why = f": {response.user_input}" if response.user_input else ""
        message = f"{who} refused {case.action}{why}"
        raise _keep_refusal(case, case.entry.refusal(CANCELLED, ActionCancelled, message, request, response))
    is_edit = action is InterventionAction.MODIFY
    # An edit leaves some arguments as they were; the inbox has asked about all of them.
    if (is_edit or isinstance(case.ledger_entry, Inquiry)) and case.is_changed(case.bound, request.digest):
        raise case.entry.refusal(CANCELLED, ActionCancelled, changed_message(case.action), request, response)
    if not is_edit:
        return Consent(case.bound, request.digest)
    return consent_to_changes(case, response.modified or {}, request.digest)


def _keep_refusal(case: GatedCall, error: Exception) -> Exception:
    """Keep a refusal, so that a retry library that repeats the call gets it again without a question. Return the error to raise."""
    # A program that asks by an interrupt keeps its decisions itself.
    interrupts = case.program is not None and case.program.interrupts
    if not interrupts and not case.is_changed(case.bound, case.entry.fields["digest"]):
        case.scope.keep(HeldRefusal(case.entry.fields, copy(error), case.digest(case.whole())))
    return error


def _find_held_error(case: GatedCall, refusal: HeldRefusal | None) -> Exception | None:
    """Return the error of an earlier refusal of the same call, and state that it still applies."""
    try:
        if refusal is None or (case.action, case.digest(case.whole())) != (refusal.entry["action"], refusal.digest):
            return None
    except NotCheckable:
        return None  # it is refused where a person would have to be asked about it
    stated = {name: refusal.entry[name] for name in (*STATED, *FACTS) if name in refusal.entry}
    problem = "an earlier refusal holds: nothing else was recorded in the run since then"
    if case.program is not None:
        problem = "an earlier refusal of the same call holds in this run"
    case.entry.fields.update(stated, problem=problem)
    case.entry.state(refusal.entry["outcome"])
    case.scope.keep(refusal)
    return copy(refusal.error)


class Execution:
    """One call that was consented to. Frameworks derive their kind of call from it."""

    action: str
    entry: GateEntry
    consent: Consent
    ledger_entry: AtMostOnce | None = None
    """Where the program around may be run again, or a request waits in an inbox."""
    operation: str = ""
    again_after_failure: bool
    """Whether the consent allows another attempt after a failure, because no person was asked."""
    notice: InterventionRequest | None = None
    """The notice to give, where none has been given yet."""
    on_notify: Callable[[InterventionRequest], object] | None = None

    def is_changed(self) -> bool:
        """Return whether the arguments have changed since the consent."""
        raise NotImplementedError

    def replaced_arguments(self) -> Mapping[str, object] | None:
        """Return the arguments by name, where a reviewer changed them."""
        return None

    def result_to_keep(self, result: object) -> tuple[object, bool]:
        """Return the result for the ledger, and whether to keep it."""
        return result, True

    def has_started(self) -> bool:
        """Return whether the action began. A framework may answer in its place."""
        return True

    def settle_outcome(self, outcome: Returned | Raised) -> Returned | Raised:
        """Return the outcome to record, given the outcome of the run."""
        return outcome


class FunctionCall(Execution):
    """The call of a gated function."""

    def __init__(self, case: GatedCall, consent: Consent) -> None:
        self.action = case.action
        self.entry = case.entry
        self.consent = consent
        self.ledger_entry = entry = case.ledger_entry
        self.operation = case.operation if entry is None else entry.id
        if isinstance(entry, Inquiry):
            self.operation = entry.operation
        self.again_after_failure = not case.entry.was_answered
        self.notice, self.on_notify = case.notice, case.scope.on_notify
        self._case = case

    def is_changed(self) -> bool:
        return self._case.is_changed(self.consent.bound, self.consent.digest)

    def replaced_arguments(self) -> Mapping[str, object] | None:
        if not self.consent.modified or self.consent.bound is None:
            return None
        left_out = {self._case.hidden, *self._case.injected}
        return {name: value for name, value in self.consent.bound.arguments.items() if name not in left_out}

    def result_to_keep(self, result: object) -> tuple[object, bool]:
        sealed = self._case.terms is not None and bool(self._case.terms.sealed)
        return result, not sealed or isinstance(self.ledger_entry, Inquiry)  # a result may repeat what is sealed

    def settle_outcome(self, outcome: Returned | Raised) -> Returned | Raised:
        if isinstance(outcome, Returned) and self._case.returned is not None:
            self._case.returned(self._case, self.consent.bound, outcome.value)
        return outcome


def changed_message(action: str) -> str:
    return f"the arguments of {action} were changed while the decision was made; it was not run"


ANSWERED = "something else answered the call; its action did not run"


def execution(call: Execution) -> Steps[Outcome]:
    """Run a call that was consented to, at most once per consent."""
    entry, ledger_entry = call.entry, call.ledger_entry
    if not call.consent.is_fresh and call.is_changed():
        return _not_run(entry, changed_message(call.action))
    if ledger_entry is not None:
        earlier = yield from _claim(call, ledger_entry)
        if isinstance(earlier, Failed):
            why = redacted_error(earlier.error)
            entry.state(CANCELLED, error=why)
            message = f"{call.action} was not run, because the claim could not be recorded: {why}"
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
    entry.state_start(call.replaced_arguments())
    outcome: Returned | Raised = yield RunAction(call.consent, call.operation)
    if isinstance(outcome, Raised) and isinstance(outcome.error, NotStarted) and not call.has_started():
        yield from _take_back(call)
        return _not_run(entry, str(outcome.error))
    if isinstance(outcome, Returned) and not call.has_started():
        entry.state(CANCELLED, problem=ANSWERED)
        ended: Returned | Raised = outcome
    else:
        ended = call.settle_outcome(outcome)
        entry.state_end(ended, call.consent.digest if call.consent.modified else None)
    if ledger_entry is not None:
        kept = call.result_to_keep(ended.value) if isinstance(ended, Returned) and ended is outcome else (None, False)
        # A result that is kept is redacted first, which may take long.
        takes_long = ledger_entry.blocks or kept[1]
        settled = yield Work(lambda: _settle(ledger_entry, ended, kept), takes_long, writes=True)
        if isinstance(settled, Failed):
            entry.state_ledger_error(settled.error)
    return outcome


def _claim(call: Execution, entry: AtMostOnce) -> Steps[EarlierRun | Failed | None]:
    """Claim the execution; return the earlier one that prevents it, after waiting for its end where the inquiry waits."""
    taken: list[bool] = []

    def take() -> EarlierRun | None:
        earlier = entry.claim(again_after_failure=call.again_after_failure)
        taken.append(earlier is None)
        return earlier

    try:
        earlier = yield Work(take, entry.blocks, writes=True)
        if isinstance(earlier, EarlierRun) and isinstance(entry, Inquiry) and entry.may_wait:
            yield Await(entry.wait, entry.wait_async)
            earlier = yield Work(take, writes=True)
    except BaseException:  # the caller was cancelled or interrupted, and the action does not begin
        if any(taken):
            yield from _take_back(call)
        raise
    return earlier  # type: ignore[no-any-return]


def _settle(entry: AtMostOnce, outcome: Returned | Raised, kept: tuple[object, bool]) -> None:
    if isinstance(outcome, Returned):
        entry.record(DONE, kept[0], keep=kept[1])
    elif HOST.pauses(outcome.error):
        entry.record(DECIDED)
    elif HOST.hands_off(outcome.error):
        entry.record(DONE)
    else:  # after a cancellation or an exit the outcome of the action is unknown
        state = FAILED if isinstance(outcome.error, Exception) else RUNNING
        entry.record(state, error=type(outcome.error).__name__)


def _take_back(call: Execution) -> Steps[None]:
    """Release the claim. If that fails, the action counts as begun and never runs again."""
    if (entry := call.ledger_entry) is not None:
        released = yield Work(lambda: entry.record(DECIDED), entry.blocks, writes=True)
        if isinstance(released, Failed):
            call.entry.state_ledger_error(released.error)


def _not_run(entry: GateEntry, problem: str) -> NotRun:
    entry.state(CANCELLED, problem=problem)
    return NotRun(problem)
