"""Actions that a framework calls by name: their policy, their calls, and the decisions about the calls of one turn.

Adapters use `Grace.action`, `LiveRun.decide` and what they return, and nothing else of the gates.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import string
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from grace_kp.approvals import canonical
from grace_kp.errors import ActionCancelled, ActionRedirected, GateError, brief
from grace_kp.gating import (
    GatedCall,
    GateEntry,
    HeldRefusal,
    InboxReviewer,
    InterventionResponse,
    JsonCoverage,
    LedgerEntry,
    Place,
    Policy,
    PolicySet,
    StandingCall,
    Terms,
    Verdict,
    decide_all,
    drive,
    drive_async,
    edit_problem,
    editable_schema,
    json_copy,
    json_signature,
    removes_argument,
)
from grace_kp.levels import InterventionLevel
from grace_kp.record import current_run, nearest, root_of, shielded
from grace_kp.runtime._gates import GateSpec, Scope, held_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from grace_kp.confidence import RunEvidence
    from grace_kp.gating import Reviewer, Steps
    from grace_kp.record import Run
    from grace_kp.runtime._gates import Gates

_VERSION, MAX_TOOLS = 1, 1_000
_log = logging.getLogger("grace_kp.gate")
_REFUSALS = {"cancel": ActionCancelled, "input": ActionRedirected}


class Call:
    """One call that a framework is about to make.

    Args:
        action: the `Action` from `Grace.action`.
        arguments: the arguments by name, JSON values; they are copied.
        id: the call id, or a tuple that ends with it: `(session, call_id)`, `(session, turn, call_id)` or
            `(framework, session, turn, call_id)`. What it leaves out comes from the run. Models choose call ids, so state the session, and
            a turn that is the same when the program is resumed, such as the number of the model's message. Without a call id each call is
            a new one, which only its verdict finds again.

    Raises:
        GateError: an argument is not JSON, or the id is none of these.
    """

    __slots__ = ("action", "arguments", "id")

    def __init__(self, action: Action, arguments: Mapping[str, Any], id: object = None) -> None:  # noqa: A002 — the framework's word
        if not isinstance(action, Action):
            raise GateError(f"a Call takes an action from grace.action, not {brief(action)}")
        if not isinstance(arguments, Mapping):
            raise GateError(f"the arguments of {action.name} are a mapping by name, not {brief(arguments)}")
        parts = id if isinstance(id, tuple) else (id,)
        if not 1 <= len(parts) <= 4 or any(type(part) not in {str, int, type(None)} for part in parts):
            raise GateError(
                "the id of a call is a string, or (session, call_id), (session, turn, call_id) or "
                f"(framework, session, turn, call_id) of strings and numbers, not {brief(id)}"
            )
        self.action = action
        self.arguments: dict[str, Any] = json_copy(arguments)
        framework, session, turn, call_id = (None,) * (4 - len(parts)) + parts
        if len(parts) == 2:
            session, turn = turn, None
        self.id = framework, session, turn, call_id


class Action:
    """An action that a framework calls by name, with arguments that a JSON schema describes. See `Grace.action`.

    Attributes:
        name: its name, which policies match.
        schema: the JSON schema of its arguments; empty where it is unknown.
        failed: decides whether a result reports a failure; see `Grace.tool`.
    """

    def __init__(
        self,
        gates: Callable[[], Gates],
        name: str,
        spec: GateSpec,
        schema: Mapping[str, Any] | None,
        *,
        failed: Callable[[Any], object] | None,
        is_stated: bool,
    ) -> None:
        self.name, self.failed = name, failed
        self.schema: dict[str, Any] = json_copy(schema or {}, "schema")
        self._gates, self._spec, self._is_stated = gates, spec, is_stated
        stated = dict(spec.stated)
        properties = self.schema.get("properties")
        names = list(properties) if isinstance(properties, dict) else _named_in(stated)
        stated["version"] = stated.get("version") or _version(names, self.schema.get("required") or ())
        terms = Terms.of(Action, json_signature(names), None, stated)
        self.terms = replace(terms, place=f"tool:{name}")
        self._names = names
        self._policy_for = held_policy(gates, spec)

    def __repr__(self) -> str:
        return f"Action({self.name!r})"

    @property
    def policy(self) -> Policy:
        """The policy in force: its own combined with what the runtime's policies state for its name."""
        return self._policy_for(self.name)

    @property
    def gated(self) -> bool:
        """Whether a policy was stated for it, here or in the runtime's policies."""
        return self._is_stated or self._gates().entry_for(self.name) is not None

    @property
    def reviewer(self) -> Reviewer | None:
        """Who is asked."""
        stated = self.policy.reviewer, self._spec.reviewer, self._gates().reviewer
        return next((each for each in stated if each is not None), None)

    @property
    def pauses(self) -> bool:
        """Whether a question may outlive the process, because an inbox is asked; then pass `wait=False` where the framework can pause."""
        return isinstance(self.reviewer, InboxReviewer)

    def decide(
        self, arguments: Mapping[str, Any], *, call_id: object = None, run: Any = None, wait: bool | None = None
    ) -> Verdict:
        """Decide on one call; see `LiveRun.decide`.

        Args:
            arguments: the arguments by name, JSON values.
            call_id: the id of the call; see `Call`.
            run: the run that the call belongs to; the current one when None.
            wait: False never asks and never waits: the verdict is pending where a person is needed. None asks the reviewer, and waits for an
                inbox as that says. True waits for an inbox in any case.

        Raises:
            GateError: the arguments or the id cannot be used.
        """
        return decide_calls(run, [Call(self, arguments, call_id)], wait)[0]

    async def adecide(
        self, arguments: Mapping[str, Any], *, call_id: object = None, run: Any = None, wait: bool | None = None
    ) -> Verdict:
        """`decide` without blocking the event loop."""
        return (await adecide_calls(run, [Call(self, arguments, call_id)], wait))[0]

    def verdict(
        self, kept: Mapping[str, Any], *, run: Any = None, arguments: Mapping[str, Any] | None = None
    ) -> Verdict:
        """Return the verdict about the call of a kept one as it is now; see `Verdict.from_dict`."""
        return decide_calls(run, *self._restored(kept, arguments))[0]

    async def averdict(
        self, kept: Mapping[str, Any], *, run: Any = None, arguments: Mapping[str, Any] | None = None
    ) -> Verdict:
        """`verdict` without blocking the event loop."""
        return (await adecide_calls(run, *self._restored(kept, arguments)))[0]

    def _restored(self, kept: Mapping[str, Any], arguments: Mapping[str, Any] | None) -> tuple[Any, ...]:
        """Return what `decide_calls` takes about the call of a kept verdict."""
        try:
            if kept["version"] != _VERSION or kept["action"] != self.name:
                raise GateError(f"the kept verdict is about {brief(kept['action'])}, not about {self.name}")
            if arguments is None and kept.get("sealed"):
                raise GateError(f"{', '.join(kept['sealed'])} is sealed; pass the arguments of the call")
            call = Call(self, kept["arguments"] if arguments is None else arguments)
            place = Place(**kept["place"])
            hash(place)  # raises for parts that are not strings or numbers
            # Where the decision cannot be found any more, a new one is not milder.
            return [call], False, place, InterventionLevel(kept.get("level") or "confirm")
        except GateError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GateError("this is not a verdict that to_dict returned") from error

    def case(self, call: Call, place: Place, run: Run | None, wait: bool | None, snapshot: list[Any]) -> GatedCall:
        """Return a call as the engine takes it."""
        gates, policy = self._gates(), self.policy
        coverage = JsonCoverage(self.terms.ignore)
        digest = coverage.digest(call.arguments)
        stated, problem = "", None
        if self.terms.key is not None:
            try:
                values = {**dict.fromkeys(self.terms.key.fields), **call.arguments}
                stated = self.terms.key.key(gates.recorder.domain, self.name, values)
            except ValueError as error:
                problem = ActionCancelled(f"{self.name} was not run: {error}")
        key = place.key(gates.recorder.domain, self.name, digest, stated)
        signature = json_signature([*self._names, *call.arguments])
        scope = ActionScope(gates, self._spec, run, (self.name, digest), snapshot)
        entry_id = LedgerEntry(gates.in_memory, key).id
        case = GatedCall(
            action=self.name,
            signature=signature,
            bound=signature.bind(**call.arguments),
            check=edit_problem(self.schema, self.name, call.arguments, self.terms.sealed),
            removes=lambda name: removes_argument(self.schema, name),
            policy=policy,
            scope=scope,
            entry=GateEntry({}),
            coverage=coverage,
            program=StandingCall(place, key, wait),
            terms=self.terms,
            schema=lambda: editable_schema(self.schema),
            own_schema=lambda: self.schema,
            lookup=lambda: self.policy,
            decided=problem,
        )
        case.entry = scope.entry(self.name, case.shown_arguments(), entry_id, self.terms.sealed)
        return case


class GateTable:
    """The gates that an adapter states by tool, and the tools that it has met; see `Grace.tool_gates`."""

    def __init__(self, grace: Any, gates: Mapping[str, Policy | str] | None, title: str) -> None:
        self._grace, self._title = grace, title
        self._policies = PolicySet(gates)
        self._actions: dict[str, Action] = {}
        self._offered: set[str] = set()
        self._warned: set[str] = set()
        runtime = grace._gates()
        for name in self._policies.names:  # groups without a common one are an error now
            runtime.policies.for_action(name, self._policies.entry_for(name))
        runtime.others.add(self._policies)
        grace.recorder.is_gated = True

    def action(
        self, tool: str, schema: Mapping[str, Any] | None = None, *, failed: Callable[[Any], object] | None = None
    ) -> Action:
        """Return the action of a tool, with the policy that the table states for its name or for one that it looks like."""
        found = self._actions.get(tool)
        if found is None or (schema is not None and found.schema != schema):
            policy = self._policies.stated_for(tool, lambda: self._offered)
            if len(self._actions) >= MAX_TOOLS:  # a model may call tools by any name
                self._actions.clear()
            found = self._actions[tool] = self._grace.action(tool, schema=schema, policy=policy, failed=failed)
        return found

    def offer(self, tools: Iterable[str]) -> None:
        """State tools that the model is offered.

        Raises:
            GateError: an entry matches none of them and is spelt nearly like one.
        """
        if (names := {*tools}) <= self._offered:
            return
        for stated, tool in self._policies.misspelt(self._offered | names).items():
            raise GateError(
                f"{self._title}(gates={{{stated!r}: ...}}): no tool is called {stated!r}; did you mean {tool!r}? If not, leave it out"
            )
        self._offered |= names
        self._grace._gates().tools.update(names)

    def refuse(self, tools: Iterable[str], why: str) -> None:
        """State tools that no hook sees: a warning for each, once.

        Raises:
            GateError: one of them is gated, which cannot be enforced.
        """
        for tool in tools:
            if self.action(tool).gated:
                raise GateError(f"{self._title} cannot gate {tool!r}: {why}; remove the tool or the gate")
            self._warn(f"{self._title} neither records nor gates {tool!r}: {why}")

    def warn_unmatched(self) -> None:
        """Warn of entries that match no tool that was offered so far, each once."""
        for stated, near in self._policies.unmatched(self._offered).items():
            hint = f" (nearest: {near})" if near else ""
            self._warn(f"{self._title}(gates=...): no tool offered so far is called {stated!r}{hint}")

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            _log.warning("%s", message)


def _named_in(stated: Mapping[str, Any]) -> list[str]:
    """Return the parameters that `key`, `ignore` and `sealed` name, for an action whose schema names none."""
    names = [*(stated.get("ignore") or ()), *(stated.get("sealed") or ())]
    try:
        names += [field for _, field, _, _ in string.Formatter().parse(stated.get("key") or "") if field]
    except (ValueError, TypeError):
        return names  # the key is refused later, with the reason
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def _version(names: Iterable[str], required: Iterable[str]) -> str:
    text = canonical([sorted(names), sorted(map(str, required))])
    return f"schema:{hashlib.sha256(text).hexdigest()[:16]}"


class ActionScope(Scope):
    """The run around a call of a framework. All calls of a turn see the evidence as of the first."""

    def __init__(
        self, gates: Gates, spec: GateSpec, run: Run | None, called: tuple[str, str], snapshot: list[Any]
    ) -> None:
        super().__init__(gates, spec)
        self._run = run
        self._called, self._snapshot = called, snapshot

    def evidence(self) -> RunEvidence:
        """Return the evidence of the run as of the first call of the turn."""
        if not self._snapshot:
            super().evidence()
            self._snapshot.append(self._survey)
        self._survey = self._snapshot[0]
        return cast("RunEvidence", self._survey.evidence)

    def gaps(self, evidence: RunEvidence) -> tuple[str, ...]:
        """Return why evidence is missing; nothing for a call outside of any run, about which nothing was measured."""
        return () if self._run is None and self._gates.recorder.enabled else super().gaps(evidence)

    def entry(self, action: str, shown: Mapping[str, Any], entry_id: str, sealed: Sequence[str]) -> GateEntry:
        """Return the entry of the call; the one that the run holds where the call was decided on before."""
        for fields in reversed([] if self._run is None else self._run.decisions):
            if fields.get("id") == entry_id:
                return GateEntry(fields)
        return GateEntry.new(action, shown, entry_id=entry_id, sealed=sealed)

    def record(self, entry: dict[str, Any]) -> None:
        """Keep the gate's entry with the run, once."""
        if self._run is not None and all(entry is not each for each in self._run.decisions):
            super().record(entry)

    def refusal(self) -> HeldRefusal | None:
        """Return the refusal of the same call that holds in the run, or in one around, inside or before it, until a person writes again."""
        return None if self._run is None else _refusals_of(self._run).get(self._called)

    @shielded
    def keep(self, refusal: HeldRefusal) -> None:
        """Let a refusal hold for this call under any id."""
        if self._run is not None:
            _refusals_of(self._run)[self._called] = refusal


def _refusals_of(run: Run) -> dict[Any, HeldRefusal]:
    """Return the refusals that hold in a tree of runs, by action and digest, those from before it was resumed among them."""
    root = root_of(run)
    if root.refusals is None:
        root.refusals = 0, False, _earlier_refusals(root)
    read, was_heard, found = root.refusals
    news = root.events[read:]
    if any(type(event).__name__ == "UserMessage" for event in news):
        was_heard, found = True, {}
    root.refusals = read + len(news), was_heard, found
    if run is not root and run.refusals is None and run.id and run.earlier is not None:
        run.refusals = ()  # those of its own earlier part are added once
        found.update({} if was_heard else _earlier_refusals(run))
    return cast("dict[Any, HeldRefusal]", found)


def _earlier_refusals(root: Run) -> dict[Any, HeldRefusal]:
    documents = [root.earlier, *(each for found in (root.earlier_nested or {}).values() for each in found)]
    found = {}
    for document in documents:
        for entry in ((document or {}).get("grace") or {}).get("decisions") or ():
            response = entry.get("response") or {}
            kind = _REFUSALS.get(response.get("action", ""))
            if kind is None or response.get("timeout_reached") or not entry.get("digest"):
                continue
            who, words = response.get("reviewer") or "the reviewer", response.get("user_input") or ""
            answer = InterventionResponse(response["action"], user_input=words, reviewer=who)
            more = {"user_input": words} if kind is ActionRedirected else {}
            error = kind(f"{who} refused {entry['action']}: {words}".removesuffix(": "), response=answer, **more)
            found[entry["action"], entry["digest"]] = HeldRefusal(entry, error, entry["digest"])
    return found


def decide_calls(run: Any, calls: Sequence[Call], wait: bool | None, *kept: Any) -> list[Verdict]:
    """Decide on the calls of one turn with one snapshot of the evidence; see `LiveRun.decide`."""
    return drive(_deciding(run, calls, wait, *kept))


async def adecide_calls(run: Any, calls: Sequence[Call], wait: bool | None, *kept: Any) -> list[Verdict]:
    """`decide_calls` without blocking the event loop."""
    around = current_run() if run is None else _recorded(run)
    if around is not None and around.lacks_past:
        await asyncio.to_thread(lambda: around.id)  # may read the store
    return await drive_async(_deciding(run, calls, wait, *kept))


def _deciding(
    live: Any,
    calls: Sequence[Call],
    wait: bool | None,
    at: Place | None = None,
    at_least: InterventionLevel | None = None,
) -> Steps[list[Verdict]]:
    """Return the steps that decide on calls. `live` is a `LiveRun`, a `Run`, or None for the current run."""
    if wait is not None and not isinstance(wait, bool):
        raise GateError(f"wait is True, False or None, not {brief(wait)}")
    live = current_run() if live is None else live
    run = None if live is None else _recorded(live)
    equal: Counter[Any] = Counter()
    snapshot: list[Any] = []
    cases, places = [], []
    for call in calls:
        place = at or _place_of(call, live, run)
        if at is None:
            same = place, call.action.name, json.dumps(call.arguments, sort_keys=True)
            equal[same] += 1
            place = replace(place, number=equal[same])
        places.append(place)
        case = call.action.case(call, place, run, wait, snapshot)
        case.at_least = at_least
        cases.append(case)
    verdicts = yield from decide_all(cases, [{"version": _VERSION, "place": place.to_dict()} for place in places])
    if live is not None and live.claims is None:
        live.claims = set()
    for verdict, call, place in zip(verdicts, calls, places, strict=True):
        if live is not None:
            verdict._claims, verdict._is_open = live.claims, lambda: bool(live.open)
        verdict._failed = call.action.failed
        again = [call], False, place, verdict.level
        verdict._again = lambda again=again: decide_calls(live, *again)[0]
    return verdicts


def _recorded(live: Any) -> Run:
    """Return the run of a `LiveRun`, which records nothing where recording is off."""
    return cast("Run", getattr(live, "frame", None) or live.run)


def _place_of(call: Call, live: Any, run: Run | None) -> Place:
    framework, session, turn, call_id = call.id
    if framework is None:
        framework = "grace_kp" if live is None else live.framework or "grace_kp"
    if session is None and live is not None:
        session = getattr(live, "session", None) or (None if run is None else nearest(run, "session"))
    if session is None:
        # Without one, only this very call is found again: another conversation may use the same ids.
        session = f"run:{run.id}" if run is not None else f"call:{uuid4().hex}"
    if call_id is None:
        call_id = f"once:{uuid4().hex}"  # a call without an id is another one each time
    return Place(framework=str(framework), session=str(session), turn=turn, call_id=call_id)
