"""A proposed tool call as the gates' engine takes it, and the decision about it as the agent's state keeps it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolMessage
from pydantic import SecretStr
from pydantic_core import to_jsonable_python

from grace_kp.approvals import decode, encode
from grace_kp.confidence import ActionDecision
from grace_kp.errors import ActionCancelled, brief
from grace_kp.gating import (
    Coverage,
    Decision,
    GatedCall,
    GateEntry,
    InboxReviewer,
    InterventionRequest,
    NotCheckable,
    json_signature,
    plain,
    view,
)
from grace_kp.integrations.langchain._results import tool_result
from grace_kp.integrations.langchain._tool_guard import call_digest, keep_entry
from grace_kp.integrations.langchain._tool_schema import (
    InvalidCall,
    NotHeld,
    argument_names,
    argument_types,
    as_input,
    as_typed,
    edit_schema,
    has_factory,
    kinds_in,
    schema_problem,
    validate_arguments,
)
from grace_kp.levels import InterventionLevel
from grace_kp.record import current_run
from grace_kp.runtime import ActionScope, GateSpec, Scope

if TYPE_CHECKING:
    import inspect
    from collections.abc import Mapping, Sequence

    from grace_kp.confidence import RunEvidence
    from grace_kp.gating import HeldRefusal, Policy
    from grace_kp.integrations.langchain._node import RunningNode
    from grace_kp.runtime import Grace

    Values = Mapping[str, Any]

CONSENTED, NOT_NEEDED, REFUSED, INVALID = "given", "not needed", "refused", "invalid"
CHANGED = "It was changed since it was proposed."
STATED = ("level", "score", "reason", "policy_version", "digest", "floor", "evaluation", "evidence_gaps")
"""Fields of a decision that the entry in the trace states, besides the facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDecision:
    """The decision about one proposed tool call, in the form that checkpoints keep."""

    id: str
    name: str
    digest: str
    """SHA-256 of the call that the decision is about, with validated arguments where its tool validates them."""
    proposed: str | None = None
    """SHA-256 of the proposed call; None where its arguments were not validated before the decision."""
    validated: Mapping[str, Any] | None = None
    """The validated arguments, see `kept_values`; None where they equal the proposed ones."""
    problem: str | None = None
    """Why the call cannot be asked about, or what the model gets in place of its result."""
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
    """Further grounds of the decision; see `FACTS`."""
    names: Mapping[str, bool] | None = None
    """The tool's arguments, and whether each is required."""
    consent: str | None = None
    """`given`, `not needed` or `refused`; `invalid` for a call that its tool refuses; None until a person has decided."""
    args: Mapping[str, Any] | None = None
    """The reviewer's arguments, as JSON; None where the reviewer changed none."""
    run_values: Mapping[str, Any] | None = None
    """`args` after validation, see `kept_values`; None where they equal `args`."""
    run_digest: str | None = None
    """SHA-256 of the call with `args`."""
    message: str | None = None
    """The id of the model's message that proposes the call."""
    answers: bool | None = None
    """Whether `problem` is a reviewer's reply in place of a result, not an error."""
    filed: bool | None = None
    """Whether the call also has a request in the inbox."""

    @property
    def may_run(self) -> bool:
        return self.consent in {CONSENTED, NOT_NEEDED}

    @property
    def executed_digest(self) -> str:
        return self.digest if self.run_digest is None else self.run_digest

    @property
    def proposed_digest(self) -> str:
        return self.digest if self.proposed is None else self.proposed

    def to_dict(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields = {name: [*it] if type(it) is tuple else it for name, it in values.items() if it not in (None, ())}
        return {**fields, "penalties": list(self.penalties), "breakdown": dict(self.breakdown or {})}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> ToolDecision:
        known = {name: kept[name] for name in cls.__dataclass_fields__ if name in kept}
        for name in ("penalties", "evidence_gaps"):
            known[name] = tuple(kept.get(name) or ())
        return cls(**known)


def call_key(call: Mapping[str, Any], before: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the key of a call in its turn: its id, the start of its digest, and from the second equal call on its number."""
    name = f"{call.get('id') or ''}:{call_digest(call['name'], call['args'], ordered=False)[:16]}"
    equal = sum(call_key(each) == name for each in before if each.get("id") == call.get("id"))
    return f"{name}#{equal + 1}" if equal else name


def kept_values(base: Mapping[str, Any], values: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return validated arguments for a checkpoint: the ordered names, and the values that differ from `base`, with type tags."""
    changed = {name: value for name, value in values.items() if name not in base or not _is_equal(value, base[name])}
    if not changed and list(base) == list(values):
        return None
    # The checkpoint holds the call, and with it this secret. Only the name is kept, so no second copy is written.
    secret = [
        name
        for name, value in changed.items()
        if type(value) is SecretStr and value.get_secret_value() == _secret_in(base.get(name))
    ]
    encoded, problems = encode({name: value for name, value in changed.items() if name not in secret})
    if problems:
        name, problem = next(iter(problems.items()))
        raise ValueError(f"the checkpoint cannot keep the argument {name!r}: {problem}")
    decode(encoded, types)
    return {"names": list(values), "changed": encoded, "secret": secret}


def restored_values(base: Values, kept: Values | None, types: Values) -> dict[str, Any]:
    """Return the arguments that `kept_values` kept, without running a validator."""
    if kept is None:
        return dict(base)
    if "live" in kept:
        return dict(kept["live"])
    changed = {**decode(kept["changed"], types), **{name: SecretStr(_secret_in(base[name])) for name in kept["secret"]}}
    _fill_lazy_attributes(changed)
    return {name: changed[name] if name in changed else base[name] for name in kept["names"]}


def _secret_in(value: Any) -> Any:
    return value.get("_secret_value") if isinstance(value, dict) else value


def _fill_lazy_attributes(values: Mapping[str, Any]) -> None:
    for value in values.values():
        brief(value)  # printing computes lazy attributes, which would otherwise change the digest later


def json_values(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return arguments as JSON, and the names of the arguments that JSON cannot show in full."""
    shown: dict[str, Any] = {}
    unseen: list[str] = []
    for name, value in arguments.items():
        if _is_json(value):
            shown[name] = value
            continue
        seen = view(value)
        shown[name] = plain(seen.root)
        unseen += [name] if seen.opaque else []
    return shown, unseen


def _is_json(value: object) -> bool:
    try:
        return _is_equal(json.loads(json.dumps(value, allow_nan=False)), value)
    except (TypeError, ValueError, RecursionError):
        return False


def _is_equal(first: object, second: object) -> bool:
    try:
        return call_digest("", {"": first}) == call_digest("", {"": second})
    except ActionCancelled:
        return False


class ToolCase:
    """One gated tool call. The tool is None where none was found; `is_unknown` states that none exists."""

    def __init__(self, call: Mapping[str, Any], state_key: str, policy: Policy, tool: object, scope: ToolScope) -> None:
        self.name: str = call["name"]
        self.call, self.state_key, self.policy, self.tool, self.scope = call, state_key, policy, tool, scope
        self.arguments: dict[str, Any] = dict(call["args"])
        """The arguments that people see and that the tool runs with."""
        self.proposed = call_digest(self.name, call["args"], ordered=False)
        self.run = current_run()
        self.decision = ToolDecision(id=uuid4().hex, name=self.name, digest=self.proposed)
        self.is_shared = False
        """Whether another call of the turn has the same id, so that a message about one call would answer both."""
        self.is_unknown = False
        self._keeps = True
        self._edit: tuple[str, ToolEdit] | None = None

    def validate(self, *, keeps: bool) -> ToolDecision:
        """Let the tool validate the arguments, once, and return the decision so far."""
        base, self._keeps = self.decision, keeps
        if self.is_unknown:
            return replace(base, consent=INVALID, problem="no tool has this name")
        if self.tool is None:
            return base
        try:
            values = validate_arguments(self.tool, self.call["args"])
            _fill_lazy_attributes(values)
            types = argument_types(self.tool)
            kept = kept_values(self.call["args"], values, types) if keeps else {"live": values}
            self.arguments = restored_values(self.call["args"], kept, types)
            return replace(base, proposed=self.proposed, validated=kept, digest=call_digest(self.name, self.arguments))
        except InvalidCall as error:
            return replace(base, consent=INVALID, problem=str(error))
        except (NotHeld, ValueError) as error:
            return replace(base, problem=str(error))
        except ActionCancelled as error:
            return replace(base, problem=str(error.__cause__ or error))

    def ledger_key(self, program: RunningNode | None, message: str | None) -> str:
        return f"langchain|{getattr(program, 'thread', '')}|{message}|{self.decision.id}|{self.call.get('id')}"

    def change(self, **fields: Any) -> None:
        """Change fields of the decision."""
        self.decision = replace(self.decision, **fields)

    def question(self, arguments: Mapping[str, Any], digest: str) -> InterventionRequest:
        decision, level = self.decision, InterventionLevel(self.decision.level)
        return InterventionRequest(
            id=decision.id,
            action=self.name,
            arguments=arguments,
            digest=digest,
            level=level,
            decision=ActionDecision(level, decision.score, decision.reason),
            reason=decision.reason,
            policy_version=decision.policy_version,
            run_id=self.scope.run_id,
            objective=self.scope.objective,
            created_at=time.time(),
        )

    def entry(self, outcome: str = "undecided") -> GateEntry:
        """Return the trace entry of the decision; a new one where the run has none yet."""
        entry, run = self.scope.entry(self.name, self.arguments, self.decision.id, ()), self.run
        if run is None or all(entry.fields is not each for each in run.decisions):
            kept = self.decision.to_dict()
            entry.fields.update({name: kept[name] for name in STATED if kept.get(name) not in (None, "")})
            entry.fields.update(self.decision.facts or {}, outcome=outcome, attempt=1)
            keep_entry(entry.fields, run)
        return entry

    def take_up(self, decision: ToolDecision) -> None:
        self.decision = decision
        self.arguments = restored_values(self.call["args"], decision.validated, argument_types(self.tool))

    def apply_edit(self, changed: Mapping[str, Any]) -> ToolEdit:
        """Return the call with a reviewer's arguments, which are the values that the function itself receives.

        If the tool would change these values, the edit counts only where every validation changes them: then validation is a
        conversion, and the reviewer wrote its result. Otherwise a person is asked again.
        """
        digest = call_digest(self.name, changed)
        if self._edit is None or self._edit[0] != digest:
            own = {
                name: self.arguments[name]
                if name in self.arguments and is_shown_as(self.arguments[name], value)
                else value
                for name, value in changed.items()
            }
            try:
                values = self._validate_edit(own)
                types = argument_types(self.tool)
                as_json, _ = json_values(values)
                kept = kept_values(as_json, values, types) if self._keeps else {"live": values}
                edit = ToolEdit(restored_values(as_json, kept, types), "", as_json, kept)
            except (InvalidCall, NotHeld, ValueError) as error:
                edit = ToolEdit(own, str(error))
            self._edit = digest, edit
        return self._edit[1]

    def _validate_edit(self, wanted: dict[str, Any]) -> dict[str, Any]:
        tool, names = self.tool, self.decision.names
        written = {name: _as_written(value) for name, value in wanted.items()}
        problem = schema_problem(tool, written, names)
        if problem:
            raise InvalidCall(problem)
        if tool is None:
            return wanted
        found = validate_arguments(tool, as_input(tool, wanted))
        if gone := [name for name in wanted if name not in found]:
            raise InvalidCall(f"the tool has no argument {gone[0]!r}")
        unseen = []
        for name in sorted(found.keys() - wanted.keys()):
            if (
                name in self.arguments
                and not {name, *as_input(tool, {name: None})} & self.call["args"].keys()
                and has_factory(tool, name)
            ):
                # A new call of the factory could return another value than was shown.
                found[name] = self.arguments[name]
            elif name not in self.arguments or not _is_equal(found[name], self.arguments[name]):
                unseen.append(name)
        if unseen:
            raise InvalidCall(
                f"the edit lacks {', '.join(unseen)}, and the tool would run with {json_values(found)[0]}; state all arguments"
            )
        other = [name for name, value in wanted.items() if not is_shown_as(found[name], value)]
        if not other:
            return found
        again = validate_arguments(tool, as_input(tool, found))
        typed = as_typed(tool, {name: wanted[name] for name in other})
        if _is_equal(again, found) or not all(
            is_shown_as(typed[name], wanted[name]) and kinds_in(typed[name]) <= kinds_in(found[name]) for name in other
        ):
            raise InvalidCall(f"the tool would run with {json_values(found)[0]}")
        return {**found, **typed}

    def as_gated(self, *, knows_tool: bool = True, arguments: Mapping[str, Any] | None = None) -> GatedCall:
        arguments, problem = arguments or self.arguments, self.decision.problem
        names = argument_names(self.tool if knows_tool else None) or self.decision.names or ()
        signature = json_signature([*names, *arguments])
        return GatedCall(
            action=self.name,
            signature=signature,
            bound=signature.bind(**arguments),
            check=lambda changed: self.apply_edit(changed).problem,
            types=lambda: argument_types(self.tool),
            schema=lambda: edit_schema(self.tool, signature),
            own_schema=lambda: (
                {} if isinstance(getattr(self.tool, "args_schema", None), dict) else getattr(self.tool, "args", {})
            ),
            policy=self.policy,
            scope=self.scope,
            entry=GateEntry.new(self.name, self.arguments, entry_id=self.decision.id),
            coverage=Coverage(None, signature, None) if problem is None else _NotHeld(problem, signature),
        )

    def decide(self, *, is_changed: bool = False) -> ToolDecision:
        """Decide on the call with the evidence so far."""
        self.decision = so_far = self.validate(keeps=True)
        if so_far.consent == INVALID:
            return so_far
        case = self.as_gated()
        case.at_least = InterventionLevel.CONFIRM if is_changed else None
        assessment = self.scope.assess(case)
        decision = Decision.of(assessment, case.rules()).to_dict(so_far.digest)
        found = ToolDecision.from_dict(
            {
                **so_far.to_dict(),
                "filed": True if isinstance(case.reviewer, InboxReviewer) else None,
                **decision,
                "facts": {**(decision.get("facts") or {}), "tool_call_id": self.call.get("id")},
                "policy_version": self.policy.version,
                "floor": None if self.policy.floor is None else str(self.policy.floor),
                "names": argument_names(self.tool),
                "evaluation": assessment.evaluation,
            }
        )
        return replace(found, reason=f"{CHANGED} {found.reason}") if is_changed else found

    def raise_level(self, kept: ToolDecision) -> ToolDecision:
        """Return a kept decision at the level that the policy requires now, which is never milder."""
        now = self.as_gated().rules().apply_again(Decision.from_dict(kept.to_dict()))
        return kept if now.level == kept.level else replace(kept, level=str(now.level), reason=now.action.reason)


class _NotHeld(Coverage):
    """A call whose tool might run with other arguments than a person sees. It has no digest, so no reviewer is asked."""

    def __init__(self, problem: str, signature: inspect.Signature) -> None:
        super().__init__(None, signature, None)
        self._problem = problem

    def digest(self, arguments: Mapping[str, object], *, lasting: bool = False, ordered: bool | None = None) -> str:  # noqa: ARG002
        raise NotCheckable(self._problem)


@dataclass(frozen=True, slots=True)
class ToolEdit:
    """The call with a reviewer's arguments, or the problem with them."""

    values: dict[str, Any]
    problem: str
    shown: Mapping[str, Any] | None = None
    kept: Mapping[str, Any] | None = None
    """See `kept_values`, with `shown` as the base."""


def is_shown_as(value: object, wanted: object) -> bool:
    """Return whether a value equals the reviewer's, directly or in its JSON form."""
    if _is_equal(value, wanted) or (type(wanted) is int and type(value) is float and value == wanted):
        return True
    return any(_is_equal(shown, wanted) for shown in (json_values({"": value})[0][""], _as_written(value)))


def _as_written(value: object) -> Any:
    """Return the JSON form of a value; the value itself where it has none."""
    try:
        return to_jsonable_python(value)
    except ValueError:
        return value


class ToolScope(ActionScope):
    """The run around a tool call. `turn` holds the evidence for all calls of the turn."""

    def __init__(self, grace: Grace, state: object, judge: str, turn: list[Any]) -> None:
        super().__init__(grace._gates(), GateSpec(judge=judge), current_run(), ("", ""), turn)
        self._state = state
        self._turn = next((it.id for it in reversed(messages_of(state)) if isinstance(it, AIMessage)), None)

    def evidence(self) -> RunEvidence:
        """Return the evidence of the run, and where no handler records it, the failures that its messages report.

        Callers may write messages, so no message raises a confidence: with a failure among them, successes do not count.
        """
        is_first, recorded = not self._snapshot, super().evidence()
        if not is_first or (self._run is not None and self._run.framework == "langchain"):
            return recorded
        outcomes = [ok for message in messages_of(self._state) if (ok := _outcome_in(message)) is not None]
        counted = recorded.factors()
        for _ in range(outcomes.count(False) - (counted.tool_execution_count - counted.tool_success_count)):
            recorded.call_finished("error", None)
        if self._run is None and all(outcomes):
            recorded.calls_succeeded(len(outcomes))
        return recorded

    def _is_known(self) -> bool:
        # Without a handler the results of tools are not recorded, so that no value would be found in any.
        return self._run is not None and self._run.framework == "langchain" and super()._is_known()

    def refusal(self) -> HeldRefusal | None:
        """Return the last refusal in this turn of the run. Unlike one of other frameworks, it ends with the model's message."""
        found = Scope.refusal(self)
        return found if found is not None and found.turn == self._turn else None

    def keep(self, refusal: HeldRefusal) -> None:
        Scope.keep(self, replace(refusal, turn=self._turn))


def _outcome_in(message: object) -> bool | None:
    """Return whether the tool of a tool message succeeded; None for any other message."""
    if isinstance(message, dict) and message.get("role", message.get("type")) == "tool":
        fields = {name: message.get(name) for name in ("content", "status", "artifact")}
        # A graph whose state has no message reducer keeps messages as plain dictionaries.
        message = SimpleNamespace(type="tool", tool_call_id="", **fields)
    return tool_result(message)[1] is None if isinstance(message, ToolMessage | SimpleNamespace) else None


def message_for(call: Mapping[str, Any], content: str, status: Any = "error") -> ToolMessage:
    return ToolMessage(content=content, name=call["name"], tool_call_id=call.get("id") or "", status=status)


def field_of(state: object, name: str) -> Any:
    return state.get(name) if isinstance(state, dict) else getattr(state, name, None)


def messages_of(state: object) -> list[Any]:
    found = state if isinstance(state, list) else field_of(state, "messages")
    return list(found or ())
