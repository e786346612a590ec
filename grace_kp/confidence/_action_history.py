"""The history of a run as far as it matters to its actions, and the features of an action that is about to be made.

What tools, documents and the agent write can only make an action look worse: no text or message makes a feature of `LOWERING` smaller. Only
the user's words, the tool, the form of the call and successful reads before it may make it look better.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_kp.confidence._argument_values import leaves_of, normal_form, words_of
from grace_kp.confidence._provenance import ProvenanceIndex
from grace_kp.confidence._wording import count_phrases, plain

if TYPE_CHECKING:
    from grace_kp.confidence._provenance import ActionAlarm, ValuePlaces

LOWERING = {
    "beside": "a value beside instructions",
    "unnamed_target": "an identifier or address that neither the user nor the policy named",
    "not_user": "values that the user did not name",
    "unnamed": "a tool that the user's words do not name",
    "unread": "a target that no earlier call used",
    "few_reads": "few different reads before",
    "repeats": "the same call already succeeded",
    "retries": "the same call already failed",
    "repeated_calls": "calls repeated before",
    "tool_errors": "errors of this tool",
    "errors": "errors before",
    "actions": "actions before",
    "tool_actions": "actions of this tool before",
    "parallel": "several calls at once",
    "since_user": "calls since the user spoke",
    "position": "a long run",
    "hedging": "hedging of the agent",
    "refusal": "words of refusal",
    "apologies": "apologies of the agent",
    "message_length": "a long message of the agent",
    "argument_length": "long arguments",
    "values": "many arguments",
    "schema_errors": "arguments that do not fit the schema",
}
"""Features that can only lower a confidence, each with the words for its presence or a high value."""
FREE = {
    "confirmed": "a confirmation by the user",
    "user_turns": "several messages of the user",
    "user_length": "many words of the user",
    "last_user_length": "a long last message of the user",
    "amount": "a large amount",
}
"""The other features, with their words."""
ACTION_FEATURES = (*LOWERING, *FREE)
"""The names of an action's features, in the order of their values."""
_YES = re.compile(
    r"\b(?:yes|yeah|yep|sure|confirm(?:ed)?|correct|go ahead|proceed|please do|ok|okay|agreed?|ja|genau|oui|sí|si|claro|sim)\b|はい|お願い|是的|好的|확인|네"
)
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W_A-Za-z]+")
ENOUGH_READS = 6
"""Different reads before an action beyond which more do not count."""
MAX_AMOUNT = 1e12
"""Larger numbers are not amounts."""


@dataclass(frozen=True, slots=True)
class ActionFeatures:
    """What is known before one action."""

    tool: str
    values: tuple[float, ...]
    """In the order of `ACTION_FEATURES`."""
    alarms: tuple[ActionAlarm, ...] = ()
    places: tuple[ValuePlaces, ...] = ()

    def as_dict(self) -> dict[str, float]:
        """Return the values by name."""
        return dict(zip(ACTION_FEATURES, self.values, strict=True))


@dataclass(slots=True)
class ActionHistory:
    """What happened in a run so far. Add everything in its order, and ask for the features of an action before it is made."""

    index: ProvenanceIndex = field(default_factory=ProvenanceIndex)
    _user: list[str] = field(default_factory=list)
    _longest: int = 0
    """Characters of the agent's longest message."""
    _phrases: Counter[str] = field(default_factory=Counter)
    _since_user: int = 0
    _steps: int = 0
    _errors: Counter[str] = field(default_factory=Counter)
    _actions: Counter[str] = field(default_factory=Counter)
    _calls: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _repeated: int = 0
    _used: set[str] = field(default_factory=set)
    """Values of arguments of calls that succeeded."""
    _reads: set[str] = field(default_factory=set)
    """Calls that succeeded and were no actions."""

    def add_user(self, text: str, *, step: int = -1, is_complete: bool = True) -> None:
        """Add words that the program declares as a person's."""
        self._user.append(self.index.add_user(text, step=step, is_complete=is_complete))
        self._since_user = 0
        self._steps += 1

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
        """Add an earlier call, before its result.

        Args:
            tool: the tool.
            arguments: the arguments, as JSON values.
            step: the number of its step.
            has_succeeded: None if its result is not known.
            is_action: whether it changes something, rather than reading.
        """
        self.index.add_call(tool, arguments, step=step, has_succeeded=has_succeeded)
        leaves = [normal_form(leaf) for _, leaf, _ in leaves_of(arguments, [])]
        call = f"{tool} {leaves}"
        self._repeated += call in self._calls
        self._calls.add(call)
        self._steps += 1
        self._since_user += 1
        if has_succeeded is False:
            self._errors[tool] += 1
            self._failed.add(call)
            return
        self._used.update(leaves)
        if is_action:
            self._actions[tool] += 1
        elif has_succeeded:
            self._reads.add(call)

    def add_result(
        self, tool: str, result: object, *, step: int = -1, has_failed: bool = False, is_complete: bool = True
    ) -> None:
        """Add what a tool returned."""
        self.index.add_result(tool, result, step=step, has_failed=has_failed, is_complete=is_complete)
        self._steps += 1

    def features(self, tool: str, arguments: object, *, parallel: int = 1, schema_errors: int = 0) -> ActionFeatures:
        """Return the features of an action that is about to be made.

        Args:
            tool: the tool.
            arguments: the arguments, as JSON values.
            parallel: number of calls that the agent asked for together with this one, and this one.
            schema_errors: number of required parameters that are missing and of unknown ones.
        """
        alarms, places = self.index.examine(tool, arguments)
        leaves = [(normal_form(leaf), is_number) for _, leaf, is_number in leaves_of(arguments, [])]
        shaped = list(zip(places, leaves, strict=False))
        weighty = [each for each in places if each.shape != "common"]
        targets = [(each, leaf) for each, (leaf, _) in shaped if each.shape in {"identifier", "address"}]
        amounts = [abs(float(leaf)) for each, (leaf, is_number) in shaped if is_number and each.shape != "identifier"]
        amount = max((value for value in amounts if value < MAX_AMOUNT), default=0.0)
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
            "few_reads": math.log1p(ENOUGH_READS) - math.log1p(min(len(self._reads), ENOUGH_READS)),
            "confirmed": bool(_YES.search(normal_form(last))),
        }
        counts = {
            "tool_errors": self._errors[tool],
            "errors": self._errors.total(),
            "actions": self._actions.total(),
            "tool_actions": self._actions[tool],
            "repeated_calls": self._repeated,
            "parallel": parallel - 1,
            "since_user": self._since_user,
            "position": self._steps,
            "hedging": self._phrases["hedges"],
            "refusal": self._phrases["refusals"],
            "apologies": self._phrases["apologies"],
            "message_length": self._longest,
            "argument_length": sum(len(leaf) for leaf, _ in leaves),
            "values": len(leaves),
            "schema_errors": schema_errors,
            "user_turns": len(self._user),
            "user_length": len(user_words),
            "last_user_length": len(last),
            "amount": amount,
        }
        found |= {name: math.log1p(count) for name, count in counts.items()}
        return ActionFeatures(tool, tuple(float(found[name]) for name in ACTION_FEATURES), alarms, places)


def _names_tool(tool: str, words: set[str]) -> bool:
    """Return whether the user's words name what a tool acts on: "hotel" for `reserve_hotel`, its plural or singular."""
    parts = [part.casefold() for part in _NAME_PARTS.findall(tool)]
    return any({part, f"{part}s", part.removesuffix("s")} & words for part in parts[1:] or parts)
