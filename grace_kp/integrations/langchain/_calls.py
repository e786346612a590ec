"""One proposed tool call on its way through a gate: what is decided about it, who is asked, and how it ends without having run."""

from __future__ import annotations

import inspect
import keyword
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.messages import ToolMessage

from grace_kp.confidence import Evidence, decide
from grace_kp.errors import ActionDenied, ActionNotApproved, ActionRedirected, ActionTimedOut
from grace_kp.gating import (
    Case,
    Consent,
    Coverage,
    InterventionResponse,
    Unknown,
    problem_with,
    recorded_arguments,
    strictest_level,
)
from grace_kp.integrations.langchain._tool_guard import call_digest
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.record import current_run, evidence_of, gaps_of, material_of, note
from grace_kp.runtime import Scope, frozen_decision

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from grace_kp.confidence import ConfidenceScore
    from grace_kp.gating import Policy
    from grace_kp.runtime import Grace


_JSON_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "array": list | tuple,
    "object": dict,
    "null": type(None),
}


def digest_of_call(call: Mapping[str, Any]) -> str:
    """SHA-256 of a call's name and arguments.

    Raises:
        ActionCancelled: a change of an argument would go unnoticed.
    """
    return call_digest(call["name"], call["args"])


def call_key(call: Mapping[str, Any]) -> str:
    """Tells a call from the others of its turn: its id, and what it says."""
    return f"{call.get('id') or ''}:{digest_of_call(call)[:16]}"


class ToolCase:
    """One gated call of a tool."""

    def __init__(self, grace: Grace, call: Any, policy: Policy, state: Any, *, tool: Any, judge: str) -> None:
        self.grace = grace
        self.call = call
        self.name: str = call["name"]
        self.arguments: dict[str, Any] = dict(call["args"])
        self.policy = policy
        self.tool = tool
        self.key = call_key(call)
        self.digest = digest_of_call(call)
        self.judge = judge
        self.told: dict[str, Any] = {}
        self.entry: dict[str, Any] | None = None
        self.run = current_run()
        self._state = state

    # What a judge is shown is worked out from these two, as for a gated function.

    @property
    def action(self) -> str:
        """The tool's name."""
        return self.name

    def shown(self) -> dict[str, Any]:
        """The arguments."""
        return self.arguments

    def decide(self, *, at_least: InterventionLevel | None = None, why: str = "") -> dict[str, Any]:
        """Decide on the call as things are now: what is kept of it, as plain data."""
        gates = self.grace._gates()
        thresholds = self.policy.thresholds or gates.thresholds
        evidence = self._evidence()
        gaps = self._gaps(evidence)

        def level_of(score: float) -> InterventionLevel:
            level = strictest_level(decide(score, thresholds).level, self.policy, gaps)[0]
            return level if at_least is None else level.at_least(at_least)

        score, evaluation = gates.judge().before_gate(
            self.judge,
            evidence.factors(),
            level_of,
            lambda: material_of(self.run, self),
            None if self.run is None else self.run.id,
        )
        level = level_of(score.score)
        told = frozen_decision(score, decide(score.score, thresholds), level, self.digest, self.policy, gaps)
        if why:
            told["reason"] = f"{why} {told['reason']}"
        told.update(id=uuid4().hex, name=self.name, policy_version=self.policy.version, names=argument_names(self.tool))
        if self.policy.floor is not None:
            told["floor"] = str(self.policy.floor)
        if self.judge != "never":
            told["evaluation"] = evaluation
        return told

    def _gaps(self, evidence: Evidence) -> tuple[str, ...]:
        """Why evidence is missing or cannot be used. A run that no handler records has that of its messages, and lacks none."""
        recorder = self.grace.recorder
        return () if self.run is None and recorder.enabled else gaps_of(self.run, recorder, evidence)

    def _evidence(self) -> Evidence:
        """The evidence of the run; where none is recorded, of the tool messages."""
        if self.run is not None:
            return evidence_of(self.run)
        evidence = Evidence()
        messages = (
            self._state.get("messages") if isinstance(self._state, dict) else getattr(self._state, "messages", ())
        )
        for message in messages or ():
            if isinstance(message, ToolMessage):
                evidence.tool_finished(message.status != "error")
        return evidence

    def for_reviewer(self) -> Case:
        """The call as the gate of a function would see it, for the runtime's reviewer."""
        gates = self.grace._gates()
        parameters = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=inspect.Parameter.empty)
            for name in dict.fromkeys([*(argument_names(self.tool) or ()), *self.arguments])
            if _is_parameter_name(name)
        ]
        given = {parameter.name for parameter in parameters if parameter.name in self.arguments}
        defaults = argument_defaults(self.tool)
        parameters = [
            item if item.name in given else item.replace(default=defaults.get(item.name, Unknown))
            for item in parameters
        ]
        others = [name for name in self.arguments if name not in given]
        if others:
            free = _free_name([parameter.name for parameter in parameters])
            parameters.append(inspect.Parameter(free, inspect.Parameter.VAR_KEYWORD))
        signature = inspect.Signature(parameters)
        bound = signature.bind(**self.arguments)
        scope = ToolScope(self, gates)
        self.told = {"id": uuid4().hex, "name": self.name, "digest": self.digest}
        self.entry = {"id": self.told["id"], "action": self.name, "outcome": "undecided"}
        self.entry.update(recorded_arguments(self.arguments))

        def check(changed: Mapping[str, Any]) -> str:
            return schema_problem(self.tool, self.told, _flat(changed, signature))

        coverage = Coverage(None, signature, None)
        return Case(
            self.name,
            signature,
            bound,
            check=check,
            policy=self.policy,
            scope=scope,
            entry=self.entry,
            coverage=coverage,
        )

    def consented(self, given: Consent) -> Any:
        """What the reviewer let run, as a response."""
        entry = self.entry or {}
        self.told.update(
            level=entry.get("level", "confirm"), score=entry.get("score", 0.0), reason=entry.get("reason", "")
        )
        self.told.update(breakdown={}, penalties=[])
        if given.bound is None:
            return refusal(self.name, "skipped", f"`{self.name}` was skipped by the reviewer; it was not run.")
        if given.modified:
            return InterventionResponse(InterventionAction.MODIFY, modified=given.bound.kwargs)
        return InterventionResponse(InterventionAction.PROCEED)

    def refused(self, error: Exception) -> Any:
        """Why the call may not run, as its end."""
        self.told.setdefault("level", "confirm")
        if isinstance(error, ActionRedirected):
            return InterventionResponse(InterventionAction.INPUT, user_input=error.user_input)
        if not isinstance(error, ActionNotApproved):
            return refusal(
                self.name, "cancelled", f"`{self.name}` was not run: the gate failed ({type(error).__name__})."
            )
        outcome = "denied" if isinstance(error, ActionDenied) else "cancelled"
        return refusal(self.name, "timed_out" if isinstance(error, ActionTimedOut) else outcome, f"{error}.")


def _is_parameter_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _free_name(taken: Collection[str]) -> str:
    """A name for the arguments whose own names no Python parameter can have, such as `from`."""
    name = "other_arguments"
    while name in taken:
        name += "_"
    return name


def _flat(arguments: Mapping[str, Any], signature: inspect.Signature) -> dict[str, Any]:
    """Arguments with those that are gathered in `**` among the others."""
    out: dict[str, Any] = {}
    for name, value in arguments.items():
        gathered = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        out.update(value if gathered else {name: value})
    return out


class ToolScope(Scope):
    """The run around a tool call; asked are people, never the graph."""

    def __init__(self, case: ToolCase, gates: Any) -> None:
        super().__init__(gates, reviewer=None, timeout=None, judge=case.judge)
        self.again = None
        self._case = case

    def _assessed(self, case: Case) -> ConfidenceScore:
        if self._run is not None:
            return super()._assessed(case)
        evidence = self._case._evidence()
        case.gaps = self._case._gaps(evidence)
        return self._gates.calculator.calculate(evidence.factors())


def refusal(name: str, outcome: str, text: str) -> dict[str, str]:
    """The end of a call that is not run."""
    return {"name": name, "outcome": outcome, "text": text}


def end_of(case: ToolCase, response: Any, entry: dict[str, Any] | None) -> ToolMessage | None:
    """What a response comes to: None where the call may run, and then `case.told` says how; else the message that is its end."""
    told, name = case.told, case.name
    entry = entry if entry is not None else case.entry
    if isinstance(response, dict):
        return _ended(case, entry, response["outcome"], response["text"], "error")
    if entry is not None and "response" not in entry and response.reviewer is not None:
        entry["response"] = {"action": str(response.action), "timeout_reached": False, "reviewer": response.reviewer}
        if response.user_input is not None:
            entry["response"]["user_input"] = response.user_input
        if response.modified is not None:
            recorded = recorded_arguments(response.modified)
            entry["response"]["modified"] = recorded.pop("arguments")
            entry["response"].update(recorded)
    if response.action is InterventionAction.PROCEED:
        asks = InterventionLevel(told["level"]).asks
        told["consent"] = "given" if asks else "not needed"
        if entry is not None:
            entry["outcome"] = "approved" if asks else "undecided"
        return None
    if response.action is InterventionAction.MODIFY:
        told["consent"], changed = "given", dict(response.modified or {})
        digest = digest_of_call({"name": name, "args": changed})
        if digest != told["digest"]:  # else the reviewer returned the call as it was
            told["args"], told["run_digest"] = changed, digest
        if entry is not None:
            entry["outcome"] = "approved"
        return None
    if response.action is InterventionAction.INPUT:
        return _ended(case, entry, "redirected", response.user_input or "", "success")
    why = f": {response.user_input}" if response.user_input else ""
    text = (
        f"The reviewer rejected `{name}`{why}. It was not run; do not call it like this again unless you are asked to."
    )
    return _ended(case, entry, "cancelled", text, "error")


def _ended(case: ToolCase, entry: dict[str, Any] | None, outcome: str, text: str, status: Any) -> ToolMessage:
    case.told["consent"] = "refused"
    entry = entry if entry is not None else entry_of(case, outcome=outcome)
    entry["outcome"] = outcome
    return ToolMessage(content=text, name=case.name, tool_call_id=case.call["id"] or "", status=status)


def entry_of(case: ToolCase, *, outcome: str) -> dict[str, Any]:
    """The gate's entry in the trace of the run; kept with the run, if there is one."""
    told = case.told
    entry: dict[str, Any] = {
        "id": told.get("id"),
        "action": case.name,
        **recorded_arguments(case.arguments),
        "outcome": outcome,
        "attempt": 1,
    }
    for field in ("level", "score", "reason", "policy_version", "digest", "floor", "evaluation", "evidence_gaps"):
        if field in told:
            entry[field] = told[field]
    keep_entry(entry)
    return entry


def keep_entry(entry: dict[str, Any]) -> None:
    """Keep a gate's entry with the run that this context is in."""
    run = current_run()
    if run is None:
        note("gate entry", "decided outside of any recorded run")
    else:
        run.decisions.append(entry)


def argument_names(tool: Any) -> dict[str, bool] | None:
    """The arguments of a tool that a model may give, and whether they must be given; None where that cannot be told."""
    schema = getattr(tool, "tool_call_schema", None)
    if isinstance(schema, dict):
        required = schema.get("required") or ()
        return {name: name in required for name in schema.get("properties") or {}}
    fields = getattr(schema, "model_fields", None)
    if not isinstance(fields, dict):
        return None
    return {field.alias or name: field.is_required() for name, field in fields.items()}


def argument_defaults(tool: Any) -> dict[str, Any]:
    """What a tool runs with where an argument is not given, as far as its schema says so."""
    schema = getattr(tool, "tool_call_schema", None)
    if isinstance(schema, dict):
        properties = schema.get("properties") or {}
        return {name: item["default"] for name, item in properties.items() if "default" in item}
    fields = getattr(schema, "model_fields", None)
    if not isinstance(fields, dict):
        return {}
    return {
        field.alias or name: field.default
        for name, field in fields.items()
        if not field.is_required() and field.default_factory is None
    }


def schema_problem(tool: Any, told: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What is wrong with arguments for a tool; empty where nothing is.

    The tool's own schema is asked where the tool is at hand; in a process that has not met it yet, only the names are.
    """
    names = argument_names(tool) or told.get("names")
    if names:
        unknown = [name for name in arguments if name not in names]
        if unknown and not _takes_more(tool):
            return f"there is no argument {unknown[0]!r}; there are {', '.join(names)}"
        missing = [name for name, required in names.items() if required and name not in arguments]
        if missing:
            return f"the argument {missing[0]!r} is missing"
    schema = getattr(tool, "tool_call_schema", None)
    if isinstance(schema, dict):
        return _json_schema_problem(schema, arguments)
    return "" if schema is None else problem_with(dict(arguments), schema)


def _json_schema_problem(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What is wrong with the types of arguments for a JSON schema, as far as it names plain types."""
    properties = schema.get("properties") or {}
    for name, value in arguments.items():
        kinds = properties.get(name, {}).get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds or []
        if kinds and not any(_has_json_type(value, kind) for kind in kinds):
            return f"{name}: must be {' or '.join(kinds)}, not {type(value).__name__}"
    return ""


def _has_json_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and kind == "integer":
        return value.is_integer()
    return isinstance(value, _JSON_TYPES.get(kind, object))


def _takes_more(tool: Any) -> bool:
    schema = getattr(tool, "tool_call_schema", None)
    if isinstance(schema, dict):
        return bool(schema.get("additionalProperties", False))
    config = getattr(schema, "model_config", None)
    return isinstance(config, dict) and config.get("extra") == "allow"
