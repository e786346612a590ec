"""What a run did before an action, and the features of the next action.

What tools, documents and the agent write can only make an action look worse: no text or message makes a feature of `LOWERING` smaller. Only
the user's words, the tool, the form of the call and successful reads before it may make it look better.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from threading import RLock
from typing import TYPE_CHECKING, Any

from grace_kp.confidence._argument_values import leaves_of, normal_form, words_of
from grace_kp.confidence._provenance import ActionAlarm, ProvenanceIndex
from grace_kp.confidence._wording import count_phrases, plain
from grace_kp.levels import UNSETTLED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.confidence._provenance import ValuePlaces
    from grace_kp.trace import ReasoningTrace

    Entry = Mapping[str, Any]
_WORDS = json.loads(files("grace_kp.confidence").joinpath("features.json").read_text(encoding="utf-8"))
LOWERING: dict[str, str] = _WORDS["lowering"]
"""Features that can only lower a confidence, each with the words for its presence or a high value."""
FREE: dict[str, str] = _WORDS["free"]
"""The other features, with their words."""
LOW_WORDS: dict[str, str] = _WORDS["low"]
"""For each feature the words for its absence or a low value."""
ACTION_FEATURES = (*LOWERING, *FREE)
"""The names of an action's features, in the order of their values."""
_YES = re.compile(
    r"\b(?:yes|yeah|yep|sure|confirm(?:ed)?|correct|go ahead|proceed|please do|ok|okay|agreed?|ja|genau|oui|sí|si|claro|sim)\b|はい|お願い|是的|好的|확인|네"
)
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W_A-Za-z]+")
ENOUGH_READS = 6
"""Different reads before an action beyond which more do not count."""
MAX_AMOUNT = 1e12
"""Upper bound of an amount. Larger numbers, infinity and NaN count as this."""


@dataclass(frozen=True, slots=True)
class ActionFeatures:
    """What is known before one action."""

    tool: str
    values: tuple[float, ...]
    """In the order of `ACTION_FEATURES`."""
    alarms: tuple[ActionAlarm, ...] = ()
    places: tuple[ValuePlaces, ...] = ()
    model: str = ""
    """The model of the agent; empty where it is not stated, or several are."""

    def as_dict(self) -> dict[str, float]:
        """Return the values by name."""
        return dict(zip(ACTION_FEATURES, self.values, strict=True))

    def as_repeated(self) -> ActionFeatures:
        """Return the same of a call that repeats one which succeeded."""
        alarms = dict.fromkeys((*self.alarms, ActionAlarm("repeat", tool=self.tool)))
        return replace(self, values=tuple((self.as_dict() | {"repeats": 1.0}).values()), alarms=tuple(alarms))


@dataclass(slots=True)
class ActionHistory:
    """What happened in a run so far. Add everything in its order, and ask for the features of an action before it is made."""

    index: ProvenanceIndex = field(default_factory=ProvenanceIndex)
    model: str = ""
    """The model of the agent; empty where it is not stated."""
    _user: list[str] = field(default_factory=list)
    _longest: int = 0
    """Characters of the agent's longest message."""
    _phrases: Counter[str] = field(default_factory=Counter)
    _since_user: int = 0
    _steps: int = 0
    _errors: Counter[str] = field(default_factory=Counter)
    _done: Counter[str] = field(default_factory=Counter)
    """Calls of each tool that did not fail."""
    _actions: set[str] = field(default_factory=set)
    """Names of tools that change something, rather than reading."""
    _calls: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _repeated: int = 0
    _used: set[str] = field(default_factory=set)
    """Values of arguments of calls that succeeded."""
    _succeeded: dict[str, set[str]] = field(default_factory=dict)
    """Calls of each tool that succeeded."""
    lock: RLock = field(default_factory=RLock, repr=False, compare=False)
    """Held while something is added to the history of a live run, or looked up in it."""

    def add_user(self, text: str, *, step: int = -1, is_complete: bool = True) -> None:
        """Add words that the program declares as a person's."""
        own = self.index.add_user(text, step=step, is_complete=is_complete)
        self._steps += 1
        if words_of(normal_form(own)):  # a blank message, or one of documents alone, is no turn of the user's
            self._user.append(own)
            self._since_user = 0

    def add_objective(self, text: object, name: object, *, is_agent: bool, is_document: bool = False) -> None:
        """Add the objective of a run as the user's words, if it is that of an agent, and not the value of a parameter that is named like a document."""
        if is_agent and isinstance(text, str) and text != name and not is_document:
            self.add_user(text)
        else:
            if is_agent and is_document:
                self.index.add_result("", text)
            self.index.add_gap("the user's words are not known", hides_results=False)

    def add_agent(self, text: str) -> None:
        """Add a message or thought of the agent."""
        self._longest = max(self._longest, len(text))
        words = plain(text)
        for kind in ("hedges", "refusals", "apologies"):
            self._phrases[kind] += count_phrases(words, kind)
        self._steps += 1

    def add_call(
        self,
        tool: str,
        arguments: object,
        *,
        step: int = -1,
        has_succeeded: bool | None = None,
        is_action: bool = False,
    ) -> None:
        """Add an earlier call, before its result; None for arguments, or a result, that are not known. All calls of an action's tool are actions."""
        leaves = [normal_form(leaf) for _, leaf, _ in leaves_of(arguments, [])]
        call = f"{tool} {leaves}"
        if arguments is None:
            self.index.add_gap("the arguments of calls are not captured", hides_results=False)
            call = f"{tool} {self._steps}"
        else:
            self.index.add_call(tool, arguments, step=step, has_succeeded=has_succeeded)
        self._repeated += call in self._calls
        self._calls.add(call)
        self._steps += 1
        self._since_user += 1
        if is_action:
            self._actions.add(tool)
        if has_succeeded is False:
            self._errors[tool] += 1
            self._failed.add(call)
            return
        self._used.update(leaves)
        self._done[tool] += 1
        if has_succeeded:
            self._succeeded.setdefault(tool, set()).add(call)

    def add_action(self, tool: str) -> None:
        """Add that a tool changes something, rather than reading: its calls are actions."""
        self._actions.add(tool)

    def add_result(
        self, tool: str, result: object, *, step: int = -1, has_failed: bool = False, is_complete: bool = True
    ) -> None:
        """Add what a tool returned."""
        self.index.add_result(tool, result, step=step, has_failed=has_failed, is_complete=is_complete)
        self._steps += 1

    def features(self, tool: str, arguments: object, *, schema: object = None) -> ActionFeatures:
        """Return the features of the next action.

        Args:
            tool: its name.
            arguments: JSON values.
            schema: the JSON schema of its parameters, if the author of the program wrote it: its constants are sources of values.
        """
        with self.lock:
            if schema is not None:
                self.index.add_schema(tool, schema)
            return self._features(tool, arguments)

    def _features(self, tool: str, arguments: object) -> ActionFeatures:
        alarms, places = self.index.examine(tool, arguments)
        leaves = [(normal_form(leaf), is_number) for _, leaf, is_number in leaves_of(arguments, [])]
        shaped = list(zip(places, leaves, strict=False))
        weighty = [each for each in places if each.shape != "common"]
        targets = [(each, leaf) for each, (leaf, _) in shaped if each.shape in {"identifier", "address"}]
        amounts = [abs(float(leaf)) for each, (leaf, is_number) in shaped if is_number and each.shape != "identifier"]
        amount = max((min(MAX_AMOUNT, value) for value in amounts), default=0.0)
        actions = {tool, *self._actions}
        reads = sum(len(calls) for name, calls in self._succeeded.items() if name not in actions)
        last = self._user[-1] if self._user else ""
        user_words = normal_form("\n".join(self._user))
        found = {
            "beside": any(each.is_beside and each.shape != "common" and each.kind != "user" for each in places),
            "unnamed_target": any(each.kind not in {"user", "policy", "schema"} for each, _ in targets),
            "not_user": sum(each.kind != "user" for each in weighty) / max(1, len(weighty)),
            "unnamed": not _names_tool(tool, set(words_of(user_words))),
            "unread": any(leaf not in self._used for _, leaf in targets),
            "repeats": any(alarm.name == "repeat" for alarm in alarms),
            "retries": f"{tool} {[leaf for leaf, _ in leaves]}" in self._failed,
            "few_reads": math.log1p(ENOUGH_READS) - math.log1p(min(reads, ENOUGH_READS)),
            "confirmed": bool(_YES.search(normal_form(last))),
        }
        counts = {
            "tool_errors": self._errors[tool],
            "errors": self._errors.total(),
            "actions": sum(self._done[name] for name in actions),
            "tool_actions": self._done[tool],
            "repeated_calls": self._repeated,
            "since_user": self._since_user,
            "position": self._steps,
            "hedging": self._phrases["hedges"],
            "refusal": self._phrases["refusals"],
            "apologies": self._phrases["apologies"],
            "message_length": self._longest,
            "argument_length": sum(len(leaf) for leaf, _ in leaves),
            "values": len(leaves),
            "user_turns": len(self._user),
            "user_length": len(user_words),
            "last_user_length": len(last),
            "amount": amount,
        }
        found |= {name: math.log1p(count) for name, count in counts.items()}
        return ActionFeatures(tool, tuple(float(found[name]) for name in ACTION_FEATURES), alarms, places, self.model)


def _names_tool(tool: str, words: set[str]) -> bool:
    """Return whether the user's words name what a tool acts on: "hotel" for `reserve_hotel`, its plural or singular."""
    parts = [part.casefold() for part in _NAME_PARTS.findall(tool)]
    return any({part, f"{part}s", part.removesuffix("s")} & words for part in parts[1:] or parts)


_NONE_KNOWN: dict[object, object] = {}
_FAILED = frozenset({"error", "cancelled", "exited"})
_EXECUTED = frozenset({"executed", "executed_modified", "executed_before"})
_GAPS = {
    "parent": "the run around this one is in another trace",
    "dropped_steps": "steps of this run were not recorded",
    "unscanned_texts": "texts of this run were removed unread",
    "evidence_gaps": "evidence of this run is missing",
    "model_calls": "the instructions that the model was given are not in the trace",
}
"""Fields under `grace`, and what is not known of a run that has them."""


class RunReader:
    """How far the steps of one run have been read into a history. Objective and messages are a user's in the outermost run only."""

    def __init__(self, history: ActionHistory, *, is_outermost: bool) -> None:
        self.history, self._is_outermost = history, is_outermost
        self._position = self._known = self._settled = 0
        self._calls: dict[object, Entry] = {}
        """Calls by their step, until it is read."""
        self._begun: dict[int, tuple[Entry, object, int]] = {}
        """Entry, arguments and place in the order of the calls that have not ended, by their step."""
        self.names: set[object] = set()
        """Names of the tools whose calls are recorded."""
        self._agents: set[object] = set()
        """Ids of calls that return what an agent wrote, because a nested run is inside."""
        self._decided: set[int] = set()

    def read(
        self, steps: Sequence[Entry], calls: Sequence[Entry], decisions: Sequence[Entry], inside: Callable[[Entry], bool | None],
        returned: Callable[[object], object] = _NONE_KNOWN.__getitem__,
    ) -> None:  # fmt: skip
        """Read what is new in the steps, calls and decisions of the run, in the form of a trace.

        `inside` reads the run nested in a call; it returns None for a call without one, and False if that run is not known. `returned` is
        called with the id of a decision, and returns the result of a gated function that is no tool; KeyError if it is not known.
        """
        history = self.history
        for call in calls[self._known :]:
            self._known += 1
            self._calls[call.get("tool_call")] = call
            self.names.add(call.get("name"))
        for entry in decisions[self._settled :]:
            history.add_action(str(entry.get("action")))
        # Executed actions of which only the gate is recorded, because they are no tools.
        alone = [
            (at, number)
            for number, entry in enumerate(decisions[self._settled :], self._settled)
            if entry.get("outcome") in _EXECUTED and number not in self._decided
            if entry.get("action") not in self.names and type(at := entry.get("step")) is int
        ]
        for number in range(self._position, len(steps) + 1):
            while alone and alone[0][0] <= number:
                self._take_action(decisions[alone[0][1]], *alone.pop(0), returned)
            if number < len(steps):
                self._position = number + 1
                self._take(steps[number], number, inside)
        end = alone[0][1] if alone else len(decisions)
        while self._settled < end and decisions[self._settled].get("outcome") not in UNSETTLED:
            self._settled += 1
        for call, _, _ in self._begun.values():
            self._look_inside(call, inside)

    def _take(self, step: Entry, number: int, inside: Callable[[Entry], bool | None]) -> None:
        history, kind, content, is_first = self.history, step.get("type"), step.get("content"), self._is_outermost
        text, is_text = (content, True) if isinstance(content, str) else ("", False)
        place = number if is_first else -1
        if kind == "tool_call" and (call := self._calls.pop(number, None)):
            self._begun[number] = call, step.get("input"), history.index.mark()
        elif kind == "observation":
            begun = next((at for at, (call, _, _) in self._begun.items() if call.get("observation") == number), None)
            if begun is None:
                if is_first and step.get("role") == "user":  # of a recorded chat
                    history.add_user(text, step=place, is_complete=is_text)
                else:
                    history.add_result("", text, step=place, is_complete=is_text)
                return
            call, arguments, order = self._begun.pop(begun)
            status, tool = call.get("status"), str(call.get("name"))
            has_failed = status in _FAILED
            succeeded = True if status == "ok" else False if has_failed else None
            self._look_inside(call, inside)
            history.index.at = order
            history.add_call(tool, arguments, step=begun if is_first else -1, has_succeeded=succeeded)
            history.index.at = None
            if call.get("call_id") in self._agents:
                history.index.add_unknown(tool, text, step=place)
            text = "" if call.get("call_id") in self._agents or status == "suspended" else text
            history.add_result(tool, text, step=place, has_failed=has_failed, is_complete=is_text)
        elif kind == "thought" and step.get("role") != "user":
            history.add_agent(text)
        elif kind == "thought" and is_first:
            history.add_user(text, step=place, is_complete=is_text)

    def _look_inside(self, call: Entry, inside: Callable[[Entry], bool | None]) -> None:
        found = inside(call)
        if found is not None or call.get("call_id") in self._agents:
            self._agents |= {call.get("call_id"), call.get("parent")} - {None}
        if found is False:
            self.history.index.add_gap("a run nested in this one is not known here")

    def _take_action(self, entry: Entry, step: int, number: int, returned: Callable[[object], object]) -> None:
        self._decided.add(number)
        arguments = entry.get("executed_arguments", entry.get("arguments"))
        tool = str(entry.get("action"))
        self.history.add_call(tool, arguments, step=step, has_succeeded=True)
        try:
            result = returned(entry.get("id"))
        except KeyError:
            self.history.index.add_gap("what a gated function returns is recorded only if it is a tool")
        else:
            self.history.index.add_result(tool, result, step=step)


def history_of_document(
    document: Entry | ReasoningTrace, step: int | None = None, *, decisions: int | None = None
) -> ActionHistory:
    """Return what an agent had seen before a step of its run, as a trace holds it.

    It equals the history of the live run as far as the trace holds what was seen. What was not captured, redacted or cut, the system
    prompt, and runs nested in this one or around it are gaps.

    Args:
        document: the trace, or its dict form; of any program.
        step: the number of steps that exist; None for all.
        decisions: the number of decisions that were made; None for those before the step.
    """
    return RecordedRun(document).before(step, decisions)


class RecordedRun:
    """Reads a recorded run once, and gives the history before each of its actions."""

    def __init__(self, document: Entry | ReasoningTrace) -> None:
        self.document = document if isinstance(document, Mapping) else document.to_dict()
        self._grace = _mapping(self.document.get("grace"))
        self._steps, self._decisions = _entries(self.document, "steps"), _entries(self._grace, "decisions")
        self._calls = _entries(self._grace, "calls")
        self._placed = sorted((call for call in self._calls if type(call.get("tool_call")) is int), key=_begin_of)
        self._first = next((at for at, each in enumerate(self._steps) if each.get("type") == "tool_call"), math.inf)
        self._read = (0, 0)
        """Number of steps and decisions that were read."""
        self._reader: RunReader | None = None

    def before(self, step: int | None = None, decisions: int | None = None) -> ActionHistory:
        """Return the history, as `history_of_document` does. Asked for actions in their order, it is one object, which grows."""
        steps, decided = self._steps[:step], self._decisions[:decisions]
        if decisions is None and step is not None:
            decided = [entry for entry in decided if type(at := entry.get("step")) is int and at < step]
        ended, known = self._read
        late = (type(at := entry.get("step")) is int and at < ended for entry in decided[known:])
        if self._reader is None or decisions is None or len(steps) < ended or len(decided) < known or any(late):
            self._reader = self._begin()
        history = self._reader.history
        if self._first < len(steps) and not self._calls:
            history.index.add_gap("the calls of this run are not linked to its steps")
        calls = self._placed[: bisect_left(self._placed, len(steps), key=_begin_of)]
        self._reader.read(steps, calls, decided, lambda call: False if "child" in call else None)
        self._read = len(steps), len(decided)
        return history

    def _begin(self) -> RunReader:
        history, grace = ActionHistory(model=model_of(self.document)), self._grace
        for name in (name for name in _GAPS if grace.get(name)):
            history.index.add_gap(_GAPS[name])
        reader = RunReader(history, is_outermost="parent" not in grace)
        reader.names.update(call.get("name") for call in self._calls)
        if "parent" not in grace:
            firsts = [(call, "name") for call in self._calls[:1]] + [(entry, "action") for entry in self._decisions]
            alone = {each.get(key) for each, key in firsts}
            objective = _mapping(self.document.get("task")).get("objective")
            is_agent, is_document = str(grace.get("name")) not in alone, grace.get("objective_is_document") is True
            history.add_objective(objective, grace.get("name"), is_agent=is_agent, is_document=is_document)
            if isinstance(prompt := grace.get("prompt"), str):  # of a recorded chat whose objective is stated elsewhere
                history.add_user(prompt)
        return reader


def _begin_of(call: Entry) -> int:
    return int(call["tool_call"])


def model_of(document: Entry) -> str:
    """Return the model that the calls of a run, or its source, name; empty where none or several are named."""
    grace = _mapping(document.get("grace"))
    stated = [each.get("model") for each in [*_entries(grace, "model_calls"), _mapping(grace.get("source"))]]
    names = {name for name in stated if isinstance(name, str)}
    return names.pop() if len(names) == 1 else ""


def _mapping(part: object) -> Entry:
    return part if isinstance(part, Mapping) else {}


def _entries(part: Entry, name: str) -> list[Entry]:
    """Return the entries of a list; a trace of another program may hold lists and objects where names are expected, and these are left out."""
    found = part.get(name)
    return [
        {key: value for key, value in _mapping(each).items() if key in _VALUES or not isinstance(value, list | Mapping)}
        for each in (found if isinstance(found, list) else ())
    ]


_VALUES = frozenset({"input", "arguments", "executed_arguments"})
