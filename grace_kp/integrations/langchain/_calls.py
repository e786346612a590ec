"""A proposed tool call as the gates' engine takes it, and the decision about it as the agent's state keeps it."""

from __future__ import annotations

import hashlib
import inspect
import keyword
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolMessage

from grace_kp.confidence import Evidence
from grace_kp.errors import ActionDenied, ActionNotApproved, ActionRedirected, ActionTimedOut
from grace_kp.gating import (
    FACTS,
    Case,
    Consent,
    Coverage,
    Decision,
    GateEntry,
    InboxReviewer,
    InterventionResponse,
    Unknown,
)
from grace_kp.integrations.langchain._tool_guard import call_digest
from grace_kp.integrations.langchain._tool_schema import argument_defaults, argument_names, schema_problem
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.record import current_run, note
from grace_kp.runtime import GateSpec, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.gating import HeldRefusal, Policy
    from grace_kp.runtime import Grace

CONSENTED, NOT_NEEDED, REFUSED = "given", "not needed", "refused"
CHANGED = "It was changed since it was proposed."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDecision:
    """What was decided about one proposed tool call, in the form that checkpoints keep."""

    id: str
    name: str
    digest: str
    """SHA-256 of the call as it was decided on."""
    level: str = "confirm"
    score: float = 0.0
    breakdown: Mapping[str, float | None] | None = None
    penalties: tuple[str, ...] = ()
    reason: str = ""
    evidence_gaps: tuple[str, ...] = ()
    policy_version: str = ""
    floor: str | None = None
    evaluation: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] | None = None
    """What the decision rests on, beside the score and the gaps; see `FACTS`."""
    names: Mapping[str, bool] | None = None
    """The tool's arguments, and whether each is required."""
    consent: str | None = None
    """`given`, `not needed` or `refused`; None until a person was asked."""
    args: Mapping[str, Any] | None = None
    """The arguments that a reviewer put in place of the call's own."""
    run_digest: str | None = None
    """SHA-256 of the call with these arguments."""
    message: str | None = None
    """The id of the model's message that proposes the call."""
    filed: bool | None = None
    """Whether people decide about the call in the inbox, too."""

    @property
    def may_run(self) -> bool:
        """Whether the call has the consent that its level asks for."""
        return self.consent in {CONSENTED, NOT_NEEDED}

    @property
    def executed_digest(self) -> str:
        """SHA-256 of the call that may run."""
        return self.digest if self.run_digest is None else self.run_digest

    def reasons(self) -> dict[str, Any]:
        """Return what a person sees of the decision."""
        kept = self.to_dict()
        return {name: kept[name] for name in ("level", "score", "breakdown", "penalties", "reason")}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a checkpoint."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields = {name: value for name, value in values.items() if value is not None and value != ()}
        fields.update(penalties=list(self.penalties), breakdown=dict(self.breakdown or {}))
        if self.evidence_gaps:
            fields["evidence_gaps"] = list(self.evidence_gaps)
        return fields

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> ToolDecision:
        """Return a decision that a checkpoint kept."""
        known = {name: kept[name] for name in cls.__dataclass_fields__ if name in kept}
        for name in ("penalties", "evidence_gaps"):
            known[name] = tuple(kept.get(name) or ())
        return cls(**known)


def call_key(call: Mapping[str, Any]) -> str:
    """Return the name of a call among the decisions of its turn: its id, and the start of its digest."""
    return f"{call.get('id') or ''}:{call_digest(call['name'], call['args'])[:16]}"


class ToolCase:
    """One gated call of a tool."""

    def __init__(
        self, grace: Grace, call: Mapping[str, Any], policy: Policy, tool: object, *, state: object, judge: str
    ) -> None:
        self.name: str = call["name"]
        self.call = call
        self.arguments: dict[str, Any] = dict(call["args"])
        self.policy = policy
        self.tool = tool
        self.state_key = call_key(call)
        self.digest = call_digest(self.name, call["args"])
        self.run = current_run()
        self.scope = ToolScope(grace, state, judge)
        self.decision = ToolDecision(id=uuid4().hex, name=self.name, digest=self.digest)

    def gated(
        self,
        *,
        at_least: InterventionLevel | None = None,
        knows_tool: bool = True,
        arguments: Mapping[str, Any] | None = None,
    ) -> Case:
        """Return the call as the engine takes it.

        Args:
            at_least: a level that this call requires, whatever the confidence.
            knows_tool: whether the tool's schema counts. Without it the call is the same in a process that does not know the tool yet.
            arguments: arguments in place of the call's own.
        """
        signature, arguments = self._signature(self.tool if knows_tool else None, arguments or self.arguments)
        return Case(
            action=self.name,
            signature=signature,
            bound=signature.bind(**arguments),
            check=lambda changed: schema_problem(self.tool, _flat(changed, signature), self.decision.names),
            policy=self.policy,
            scope=self.scope,
            entry=GateEntry.new(self.name, self.arguments, entry_id=self.decision.id),
            coverage=Coverage(None, signature, None),
            at_least=at_least,
        )

    def decide(self, *, message: str | None = None) -> ToolDecision:
        """Decide on the call as things are now.

        Args:
            message: the id of the message whose call was changed after it was proposed; a person is asked about such a call.
        """
        case = self.gated(at_least=None if message is None else InterventionLevel.CONFIRM)
        assessment = self.scope.assess(case)
        decision = Decision.of(assessment, case.rules).to_dict(self.digest)
        found = ToolDecision.from_dict(
            {
                "filed": True if isinstance(case.reviewer, InboxReviewer) else None,
                **decision,
                "id": self.decision.id,
                "name": self.name,
                "policy_version": self.policy.version,
                "floor": None if self.policy.floor is None else str(self.policy.floor),
                "names": argument_names(self.tool),
                "evaluation": assessment.evaluation,
            }
        )
        if message is None:
            return found
        # The same id when this is decided again, so that the question and the outcome are one entry.
        same = hashlib.sha256(f"{message}|{self.state_key}".encode()).hexdigest()[:32]
        return replace(found, id=same, reason=f"{CHANGED} {found.reason}")

    def raised(self, kept: ToolDecision) -> ToolDecision:
        """Return a kept decision at the level that the policy requires now, which is never milder."""
        now = self.gated().rules.apply_again(Decision.from_dict(kept.to_dict()))
        return kept if now.level == kept.level else replace(kept, level=str(now.level), reason=now.action.reason)

    def _signature(self, tool: object, arguments: Mapping[str, Any]) -> tuple[inspect.Signature, Mapping[str, Any]]:
        """Return a signature that takes the arguments of the tool and of the call, and the call's arguments."""
        names = dict.fromkeys([*(argument_names(tool) or self.decision.names or ()), *arguments])
        usable = [name for name in names if name.isidentifier() and not keyword.iskeyword(name)]
        defaults = {**dict.fromkeys(usable, Unknown), **argument_defaults(tool)}
        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if name in arguments else defaults[name],
            )
            for name in usable
        ]
        if any(name not in usable for name in arguments):  # such as `from`, which no parameter can be called
            rest = "other_arguments"
            while rest in usable:
                rest += "_"
            parameters.append(inspect.Parameter(rest, inspect.Parameter.VAR_KEYWORD))
        return inspect.Signature(parameters), arguments


def _flat(arguments: Mapping[str, Any], signature: inspect.Signature) -> dict[str, Any]:
    """Return arguments with those that are gathered in `**` among the others."""
    flat: dict[str, Any] = {}
    for name, value in arguments.items():
        gathered = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        flat.update(value if gathered else {name: value})
    return flat


class ToolScope(Scope):
    """The run around a tool call."""

    def __init__(self, grace: Grace, state: object, judge: str) -> None:
        super().__init__(grace._gates(), GateSpec(judge=judge))
        self._enabled = grace.recorder.enabled
        self._state = state
        self._turn = next((it.id for it in reversed(messages_of(state)) if isinstance(it, AIMessage)), None)

    def evidence(self) -> Evidence:
        """Return the evidence of the run, and where no handler records it, the failures that its messages report.

        A caller may write messages. So no message raises a confidence: with a failure among them, successes do not count.
        """
        recorded = super().evidence()
        if self._run is not None and self._run.framework == "langchain":
            return recorded
        outcomes = [ok for message in messages_of(self._state) if (ok := _outcome_in(message)) is not None]
        counted = recorded.factors()
        evidence = Evidence()
        evidence.merge(recorded)
        for _ in range(outcomes.count(False) - (counted.tool_execution_count - counted.tool_success_count)):
            evidence.tool_finished(False)
        if self._run is None and all(outcomes):
            evidence.calls_succeeded(len(outcomes))
        return evidence

    def gaps(self, evidence: Evidence) -> tuple[str, ...]:
        """Return why evidence is missing. A run that no handler records lacks none: nothing was measured in it."""
        return () if self._run is None and self._enabled else super().gaps(evidence)

    def refusal(self) -> HeldRefusal | None:
        """Return the last refusal in the run and in this turn: another message of the model is something else, also without a handler."""
        found = super().refusal()
        return found if found is not None and found.turn == self._turn else None

    def keep(self, refusal: HeldRefusal) -> None:
        """Have a refusal hold in this turn."""
        super().keep(replace(refusal, turn=self._turn))


def _outcome_in(message: object) -> bool | None:
    """Return whether the tool of a tool message succeeded; None for any other message."""
    if isinstance(message, dict):  # as a state without a reducer of LangGraph's holds them
        is_tool, status = message.get("role", message.get("type")) == "tool", message.get("status")
    else:
        is_tool, status = isinstance(message, ToolMessage), getattr(message, "status", None)
    return status != "error" if is_tool else None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that is not run, and what the model gets in place of its result."""

    outcome: str
    text: str
    status: str = "error"


Answer: TypeAlias = InterventionResponse | Refusal


def answer_of(case: ToolCase, asked: Case, consent: Consent | Exception) -> Answer:
    """Return what the engine came back with as an answer, with the decision in `case`."""
    fields = asked.entry.fields
    case.decision = replace(
        case.decision,
        level=fields.get("level", "confirm"),
        score=fields.get("score", 0.0),
        reason=fields.get("reason", ""),
        facts={name: fields[name] for name in FACTS if name in fields} or None,
    )
    if isinstance(consent, Consent):
        if consent.bound is None:
            return Refusal("skipped", f"`{case.name}` was skipped by the reviewer; it was not run.")
        if consent.modified:
            return InterventionResponse(InterventionAction.MODIFY, modified=consent.bound.kwargs)
        return InterventionResponse(InterventionAction.PROCEED)
    if isinstance(consent, ActionRedirected):
        return Refusal("redirected", consent.user_input or "", "success")
    if not isinstance(consent, ActionNotApproved):
        return Refusal("cancelled", f"`{case.name}` was not run: the gate failed ({type(consent).__name__}).")
    timed_out = isinstance(consent, ActionTimedOut)
    outcome = "timed_out" if timed_out else "denied" if isinstance(consent, ActionDenied) else "cancelled"
    return Refusal(outcome, f"{consent}.")


def settle(case: ToolCase, answer: Answer, entry: GateEntry | None) -> ToolMessage | None:
    """Apply an answer to the decision in `case` and to its entry; return the message in place of a call that may not run."""
    if isinstance(answer, InterventionResponse):
        if entry is not None and not entry.was_answered and answer.reviewer is not None:
            entry.answered(answer)
        if answer.action in {InterventionAction.PROCEED, InterventionAction.MODIFY}:
            _approve(case, answer, entry)
            return None
        answer = _refusal(case.name, answer)
    case.decision = replace(case.decision, consent=REFUSED)
    entry = entry_for(case.decision, case.arguments) if entry is None else entry
    entry.state(answer.outcome)
    return ToolMessage(
        content=answer.text,
        name=case.name,
        tool_call_id=case.call["id"] or "",
        status="success" if answer.status == "success" else "error",
    )


def _approve(case: ToolCase, answer: InterventionResponse, entry: GateEntry | None) -> None:
    asks = answer.action is InterventionAction.MODIFY or InterventionLevel(case.decision.level).asks
    case.decision = replace(case.decision, consent=CONSENTED if asks else NOT_NEEDED)
    if answer.action is InterventionAction.MODIFY:
        changed = dict(answer.modified or {})
        digest = call_digest(case.name, changed)
        if digest != case.decision.digest:  # else the reviewer returned the call as it was
            case.decision = replace(case.decision, args=changed, run_digest=digest)
    if entry is not None and asks:
        entry.state("approved")


def _refusal(name: str, answer: InterventionResponse) -> Refusal:
    if answer.action is InterventionAction.INPUT:
        return Refusal("redirected", answer.user_input or "", "success")
    why = f": {answer.user_input}" if answer.user_input else ""
    text = (
        f"The reviewer rejected `{name}`{why}. It was not run; do not call it like this again unless you are asked to."
    )
    return Refusal("cancelled", text)


def entry_for(decision: ToolDecision, arguments: Mapping[str, Any], outcome: str = "undecided") -> GateEntry:
    """Return the entry of a decision in the trace of the run; a new one where the run has none yet."""
    run = current_run()
    for fields in reversed([] if run is None else run.decisions):
        if fields.get("id") == decision.id:
            return GateEntry(fields)
    entry = GateEntry.new(decision.name, arguments, entry_id=decision.id)
    fields = entry.fields
    fields["outcome"], fields["attempt"] = outcome, 1
    for name in ("level", "score", "reason", "policy_version", "digest", "floor", "evaluation", "evidence_gaps"):
        value = getattr(decision, name)
        if value not in (None, (), ""):
            fields[name] = list(value) if isinstance(value, tuple) else value
    fields.update(decision.facts or {})
    keep_entry(fields)
    return entry


def keep_entry(fields: dict[str, Any]) -> None:
    """Keep a gate's entry with the run that this context is in."""
    run = current_run()
    if run is None:
        note("gate entry", "decided outside of any recorded run")
    else:
        run.decisions.append(fields)


def field_of(state: object, name: str) -> Any:
    """Return a field of an agent's state; None where it has none of this name."""
    return state.get(name) if isinstance(state, dict) else getattr(state, name, None)


def messages_of(state: object) -> list[Any]:
    """Return the messages of an agent's state."""
    found = state if isinstance(state, list) else field_of(state, "messages")
    return list(found or ())
