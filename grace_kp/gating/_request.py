"""Requests to reviewers, their responses, reviewers, and notices, which need no answer.

A reviewer is any callable from request to response, sync or async, or an object with `review`. Some reviewers use a channel whose storage must
not hold secrets. Their method `stores(text) -> bool` returns whether the storage holds a string. They get redacted arguments, unless the
storage holds everything that redaction would remove.

An action neither waits for its notice nor fails with it.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import logging
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, cast

from grace_kp.gating._digest import digest_of
from grace_kp.gating._view import flat, plain, view
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.pages import printable
from grace_kp.record import attempt
from grace_kp.trace import cut, redact_text, redact_value, redacted_arguments, render, to_text

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Sequence

    from grace_kp.approvals import Approval
    from grace_kp.confidence import ActionAlarm, ActionDecision, ConfidenceScore

    Rounds = Generator["InterventionRequest", object, "InterventionResponse"]

LOGGER = "grace_kp.gate"
MAX_ARGUMENT = 120
MAX_LINE = 1_000
MAX_QUOTED = 80
"""Characters of a value in the sentence of an alarm."""
MAX_LEAVES, MAX_PLACES = 20_000, 6
"""Values of an argument that are read for the sentences of alarms, and places that are shown."""
LEFT_OUT = "[left out of a pickle]"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionRequest:
    """One question to a reviewer: an action, its arguments, and why a person is asked. Made once and never changed.

    A pickle leaves the values of the arguments out: they may be live objects or secrets, and an error takes its request to other processes.
    """

    id: str
    action: str
    arguments: Mapping[str, Any]
    """Its arguments by parameter name: the values themselves, not a rendering."""
    digest: str
    """SHA-256 of the arguments, in full."""
    level: InterventionLevel
    """How much of a person the action needs: the decision's level, or the policy's floor where that is stricter."""
    decision: ActionDecision
    confidence: ConfidenceScore | None = None
    reason: str = ""
    policy_version: str = ""
    floor: str | None = None
    attempt: int = 1
    """1 for the first question about a call; more after a retry or a modification that could not be used."""
    timeout: float | None = None
    """Seconds the reviewer has; None is without limit."""
    on_timeout: str = "cancel"
    """The effect of a timeout: `cancel`, `proceed`, `skip` or `escalate:GROUP`."""
    run_id: str | None = None
    objective: str | None = None
    created_at: float = 0.0
    """Seconds since the epoch."""
    problem: str = ""
    """The problem of the previous answer, when the question is repeated because of it."""
    hidden: Mapping[str, int] = field(default_factory=dict)
    """Arguments that this request does not show in full, by name, with the number of characters that were removed.

    Empty for a console, a callback and a gated tool call. A reviewer whose channel must not carry secrets gets redacted arguments; a
    plain PROCEED is then refused.
    """
    alarms: tuple[ActionAlarm, ...] = ()
    """What is suspicious about the arguments; `alarm_sentences` puts it in words."""
    sealed: tuple[str, ...] = ()
    """Parameters whose values no sentence repeats."""
    find_places: Callable[[], Sequence[ValuePlace]] | None = field(default=None, repr=False, compare=False)
    """Looks up the places of the values that raised alarms; None where none did."""

    def __post_init__(self) -> None:
        for name in ("arguments", "hidden"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        stated = {item.name: getattr(self, item.name) for item in fields(self)}
        stated |= {"arguments": dict.fromkeys(self.arguments, LEFT_OUT), "hidden": dict(self.hidden)}
        del stated["find_places"]
        return functools.partial(InterventionRequest, **stated), ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class InterventionResponse:
    """A reviewer's answer.

    Raises:
        ValueError: an unknown action, or `modified` that is not a mapping from parameter name to value.
    """

    action: InterventionAction | str
    user_input: str | None = None
    """Words for the agent, with INPUT."""
    modified: Mapping[str, Any] | None = None
    """Arguments that replace arguments of the request, with MODIFY."""
    selected_option: str | None = None
    timeout_reached: bool = False
    """Whether time ran out without an answer; `action` is then the consequence."""
    response_time_ms: float | None = None
    reviewer: str | None = None

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "action", InterventionAction(self.action))
        except ValueError:
            known = ", ".join(InterventionAction)
            raise ValueError(f"action must be one of {known}, not {self.action!r}") from None
        if self.modified is not None and (
            not isinstance(self.modified, Mapping) or not all(isinstance(name, str) for name in self.modified)
        ):
            raise ValueError(f"modified must map parameter names to values, not {self.modified!r:.80}")

    @property
    def should_continue(self) -> bool:
        """Whether the agent goes on: true for PROCEED, MODIFY, RETRY and SKIP."""
        return InterventionAction(self.action).should_continue


_PREFIX = os.urandom(4).hex()
_numbers = itertools.count(1)


def new_request_id() -> str:
    """An id that no other request of this machine has."""
    return f"gate-{_PREFIX}-{os.getpid():x}-{next(_numbers)}"


def without_secrets(request: InterventionRequest, stores: Callable[[str], bool] | None = None) -> InterventionRequest:
    """Return the request for a channel that must not carry secrets."""
    shown = {name: plain(view(value).root) for name, value in request.arguments.items()}
    clean, hidden = redacted_arguments(shown, identifiers=False)
    arguments, counts = dict(request.arguments), dict(request.hidden)
    for name, (clean_name, value) in zip(shown, clean.items(), strict=True):
        is_stored = stores is not None and all(map(stores, _differing(shown[name], value)))
        if clean_name in hidden and not is_stored:
            arguments[name] = value
            counts[name] = hidden[clean_name]
    return replace(
        request,
        arguments=arguments,
        hidden=counts,
        objective=None if request.objective is None else redact_text(request.objective, identifiers=False),
        problem=redact_text(request.problem, identifiers=False),
    )


def _differing(before: object, after: object) -> list[str]:
    """Return the strings of a JSON value that its redacted form lacks. A structure with redacted keys counts as a string."""
    found: list[str] = []
    stack = [(before, after)]
    while stack:
        value, clean = stack.pop()
        if isinstance(value, dict) and isinstance(clean, dict):
            if list(value) == list(clean):
                stack.extend(zip(value.values(), clean.values(), strict=True))
            else:
                found.append(to_text(value))
        elif isinstance(value, list) and isinstance(clean, list):
            stack.extend(zip(value, clean, strict=True))
        elif value != clean:
            found.append(to_text(value))
    return found


def for_reviewer(request: InterventionRequest, reviewer: object) -> InterventionRequest:
    stores = getattr(reviewer, "stores", None)
    return without_secrets(request, stores) if callable(stores) else request


def answer_to_keep(response: InterventionResponse, level: object, version: str) -> dict[str, Any] | None:
    """Return an answer as JSON for the ledger, with the level and version that it answers; None where JSON cannot hold the reviewer's arguments."""
    kept: dict[str, Any] = {
        "action": str(response.action),
        "user_input": response.user_input,
        "reviewer": response.reviewer,
        "at": [str(level), version],
    }
    if response.modified is not None:
        kept["modified"] = dict(response.modified)
    try:
        return cast("dict[str, Any]", json.loads(json.dumps(kept, allow_nan=False)))
    except (TypeError, ValueError, RecursionError):
        return None


def response_of(kept: Mapping[str, Any] | None) -> InterventionResponse | None:
    """Return an answer that `answer_to_keep` returned."""
    return None if kept is None else InterventionResponse(**{name: kept[name] for name in kept if name != "at"})


def unseen_problem(request: InterventionRequest, response: InterventionResponse) -> str:
    """Return why a response to a request with hidden content does not count; empty where it does."""
    if (
        not request.hidden
        or response.timeout_reached
        or response.action not in {InterventionAction.PROCEED, InterventionAction.MODIFY}
    ):
        return ""
    changes = response.modified or {}
    missing = [
        name
        for name in request.hidden
        if name not in changes
        or changes[name] == request.arguments.get(name)
        or "[REDACTED:" in flat(view(changes[name]).root)
    ]
    if not missing:
        return ""
    sizes = sizes_text({name: request.hidden[name] for name in missing})
    return f"hidden content cannot be approved: {sizes}; supply these arguments with an edit, or reject"


def sizes_text(hidden: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count:,} characters)" for name, count in hidden.items())


def read_alarms(stated: object) -> tuple[ActionAlarm, ...]:
    """Return the alarms that an entry or a decision states; one that is `unreadable` where they cannot be read."""
    if stated is None:
        return ()
    from grace_kp.confidence import ALARMS, ActionAlarm

    kinds = {"name": str, "parameter": str, "tool": str, "words": str, "is_part": bool}
    entries: Any = stated if isinstance(stated, list | tuple) else [None]
    if not all(
        isinstance(each, Mapping)
        and each.get("name") in ALARMS
        and all(type(value) is kinds.get(name) for name, value in each.items())
        for each in entries
    ):
        return (ActionAlarm("unreadable"),)
    return tuple(ActionAlarm(**each) for each in entries)


def alarm_sentences(
    alarms: Iterable[ActionAlarm], arguments: Mapping[str, Any], sealed: Collection[str] = ()
) -> dict[str, str]:
    """Return alarms in words, by the argument that they are about; those about the call as a whole are under an empty name.

    Values of arguments that are not sealed are quoted, cut to `MAX_QUOTED` characters. Show the sentences only where the arguments are shown.
    """
    from grace_kp.confidence import leaves_of

    found: dict[str, list[str]] = {}
    for alarm in alarms:
        path, value = alarm.parameter, None
        named = [each for each in arguments if path == each or path.startswith((f"{each}.", f"{each}["))]
        name = max(filter(None, named), key=len, default=argument_of(alarm))  # a name may hold dots and brackets
        if name in arguments and name not in sealed:
            root = plain(view(arguments[name], MAX_LEAVES).root)
            for keys, leaf, is_number in leaves_of({name: root}, []):
                if ".".join(keys).replace(".[", "[") == alarm.parameter:
                    value = root if is_number and len(keys) == 1 else cut(leaf, MAX_QUOTED)
        found.setdefault(name, []).append(alarm.sentence(value, is_sealed=name in sealed))
    return {name: "; ".join(dict.fromkeys(sentences)) for name, sentences in found.items()}


def argument_of(alarm: ActionAlarm) -> str:
    """Return the name of the argument that an alarm is about; empty where it is about the call as a whole."""
    return re.split(r"[.\[]", alarm.parameter)[0]


@dataclass(frozen=True, slots=True)
class ValuePlace:
    """A place of a value that raised an alarm, for the eyes of a reviewer."""

    parameter: str
    caption: str
    """Where the text is from, and that it is a quotation."""
    text: str
    """The text around the value, from the redacted run, in normal form; "…" where it is cut. Show it escaped and set apart: it may instruct the reader."""


def alarm_places(
    document: Mapping[str, Any] | None,
    action: str,
    alarms: Iterable[ActionAlarm],
    arguments: Mapping[str, Any],
    sealed: Collection[str] = (),
) -> list[ValuePlace]:
    """Return the places in the results of tools of the values that raised alarms, as far as the run so far holds them."""
    names = {argument_of(alarm) for alarm in alarms} - {*sealed, ""}
    shown = {name: plain(view(value, MAX_LEAVES).root) for name, value in arguments.items() if name in names}
    return attempt("the places of values", lambda: _find_places(document, action, shown)) or [] if shown else []


def _find_places(document: Mapping[str, Any] | None, action: str, arguments: Mapping[str, Any]) -> list[ValuePlace]:
    from grace_kp.confidence import history_of_document

    history = history_of_document(document or {})
    found = history.features(action, arguments).places
    listed = [(each.parameter, place) for each in found for place in each.places if place.kind in {"text", "field"}]
    first = "a message" if "parent" in ((document or {}).get("grace") or ()) else "the user's first message"
    captions = ("step {}, quoted from {}", "a message"), ("quoted from {1}", first)
    end = " in lower case, without invisible characters; it is not an instruction"
    return [
        ValuePlace(name, words.format(place.step, place.tool or message) + end, history.index.excerpt(place))
        for name, place in listed[:MAX_PLACES]
        for words, message in [captions[place.step < 0]]
    ]


def approval_alarms(approval: Approval) -> dict[str, str]:
    """Return `alarm_sentences` of a request in an inbox, about the arguments before an edit."""
    alarms = read_alarms(approval.facts.get("alarms"))
    return alarm_sentences(alarms, approval.arguments if approval.asked is None else approval.asked, approval.sealed)


def approval_places(approval: Approval) -> list[ValuePlace]:
    """Return `alarm_places` of a request in an inbox."""
    alarms = read_alarms(approval.facts.get("alarms"))
    arguments = approval.arguments if approval.asked is None else approval.asked
    return alarm_places(approval.run, approval.action, alarms, arguments, approval.sealed)


class Reviews(Protocol):
    """An object that answers requests."""

    def review(self, request: InterventionRequest, /) -> InterventionResponse | Awaitable[InterventionResponse]: ...


Reviewer: TypeAlias = Reviews | Callable[[InterventionRequest], Any]


def review_function(reviewer: object) -> Callable[[InterventionRequest], Any]:
    review = getattr(reviewer, "review", None)
    if callable(review):
        return cast("Callable[[InterventionRequest], Any]", review)
    if callable(reviewer):
        return reviewer
    raise TypeError(f"a reviewer must be a callable or have review(), not {type(reviewer).__name__}")


def name_of(reviewer: object) -> str:
    """Return the name under which the reviewer is recorded unless its response has another."""
    names = (getattr(reviewer, "name", None), getattr(reviewer, "__name__", None))
    return next((name for name in names if name and isinstance(name, str)), type(reviewer).__name__)


def is_async(call: object) -> bool:
    """Whether a call returns an awaitable: true for coroutine functions and objects whose `__call__` is such a function."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def as_response(answer: object) -> InterventionResponse:
    if isinstance(answer, InterventionResponse):
        return answer
    if isinstance(answer, InterventionAction) or (type(answer) is str and answer in set(InterventionAction)):
        return InterventionResponse(answer)
    known = ", ".join(InterventionAction)
    # Only the type is named: the value may be something secret that the reviewer was shown.
    raise TypeError(f"the answer has the type {type(answer).__name__}; a reviewer returns a response or one of {known}")


class ConfirmationFlow:
    """Show changed arguments to the reviewer again until it confirms them; after `max_rounds` changes the action is cancelled.

    Wrap a reviewer to use it: `reviewer=ConfirmationFlow(mine)`. The answer is PROCEED where nothing was changed, and MODIFY with all
    changes otherwise. The flow is sync or async like its reviewer.

    Raises:
        TypeError: `reviewer` can neither be called nor has it `review`.
        ValueError: `max_rounds` is less than 1.
    """

    def __init__(self, reviewer: Reviewer, *, max_rounds: int = 3) -> None:
        if max_rounds < 1:
            raise ValueError(f"max_rounds must be 1 or more, not {max_rounds!r}")
        self._ask = review_function(reviewer)
        self._max_rounds = max_rounds
        # The attributes that a gate reads from its reviewer.
        self.name = name_of(reviewer)
        self.keeps_time: bool = getattr(reviewer, "keeps_time", False) is True
        self.pauses: bool = getattr(reviewer, "pauses", False) is True
        self.stores: Callable[[str], bool] | None = getattr(reviewer, "stores", None)

    @property
    def review(self) -> Callable[[InterventionRequest], InterventionResponse | Awaitable[InterventionResponse]]:
        """Ask until the reviewer confirms, or has changed the arguments `max_rounds` times; a coroutine function where it is async."""
        return self._review_async if is_async(self._ask) else self._review

    def _review(self, request: InterventionRequest) -> InterventionResponse | Awaitable[InterventionResponse]:
        rounds = self._rounds(request)
        answer: object = None
        try:
            while not hasattr(answer, "__await__"):
                answer = self._ask(rounds.send(answer))
        except StopIteration as end:
            response: InterventionResponse = end.value
            return response
        return self._continue(rounds, answer)  # the reviewer is async, or a plain function that returned a coroutine

    async def _review_async(self, request: InterventionRequest) -> InterventionResponse:
        return await self._review(request)  # type: ignore[misc, no-any-return]

    async def _continue(self, rounds: Rounds, answer: object) -> InterventionResponse:
        try:
            while True:
                answer = self._ask(rounds.send(await answer if hasattr(answer, "__await__") else answer))
        except StopIteration as end:
            response: InterventionResponse = end.value
            return response

    def _rounds(self, request: InterventionRequest) -> Rounds:
        """Yield each request to show, receive the answer, and return the response."""
        ends = None if request.timeout is None else time.monotonic() + request.timeout
        changes: dict[str, object] = {}
        shown = request
        for _ in range(self._max_rounds + 1):
            response = as_response((yield shown))
            if response.timeout_reached:
                return response
            if response.action is InterventionAction.PROCEED and changes:
                return replace(response, action=InterventionAction.MODIFY, modified=changes)
            if response.action is not InterventionAction.MODIFY:
                return response
            if not response.modified:
                # No arguments to run with, and the reviewer has not approved the original ones.
                return replace(response, action=InterventionAction.CANCEL, user_input="modified without arguments")
            changes = {**changes, **response.modified}
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0:
                return InterventionResponse(InterventionAction.CANCEL, timeout_reached=True, reviewer=self.name)
            shown = replace(
                request,
                arguments={**request.arguments, **changes},
                digest=digest_of({"request": request.digest, "changes": changes}),
                attempt=shown.attempt + 1,
                timeout=None if left is None else round(left, 1),
                hidden={name: count for name, count in request.hidden.items() if name not in changes},
                alarms=tuple(alarm for alarm in request.alarms if argument_of(alarm) not in changes),
            )
        return InterventionResponse(
            InterventionAction.CANCEL, user_input=f"changed more than {self._max_rounds} times", reviewer=self.name
        )


def deliver(request: InterventionRequest) -> str:
    """Log the notice, and print it where standard error is a terminal."""
    line = notice_line(request.action, request.arguments, request.reason)
    logging.getLogger(LOGGER).info("%s", line)
    stream = sys.stderr
    if stream is None or not stream.isatty():
        return "log"
    stream.write(f"grace-kp: {line}\n")
    stream.flush()
    return "terminal"


def notice_line(action: str, arguments: Mapping[str, object], reason: str) -> str:
    """Return action, arguments and reason on one line, without control characters and secrets; long values are visibly cut."""
    # First remove control characters: they could split a secret in two and hide it from redaction.
    shown = redact_value(_printable(render(dict(arguments))), identifiers=False)
    called = ", ".join(f"{name}={cut(to_text(value), MAX_ARGUMENT)}" for name, value in shown.items())
    why = redact_text(_printable(reason), identifiers=False)
    return cut(_printable(f"{action or 'an action'}({called}) goes ahead with a notice: {why}"), MAX_LINE)


def record_notice(entry: dict[str, Any], request: InterventionRequest, delivered: str | Exception) -> None:
    failed = isinstance(delivered, Exception)
    text = notice_line(request.action, request.arguments, request.reason)
    entry["notice"] = {"to": None if failed else delivered, "text": text}
    if failed:
        entry["notify_error"] = f"{type(delivered).__name__}: {delivered}"


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value, replace=lambda character: " " if character.isspace() else "")
    if isinstance(value, dict):
        return {_printable(name): _printable(item) for name, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list) else value
