"""A recorded chat as a reasoning trace: the step of each turn, the call of each result, the end of the run.

`_messages` reads the dialects, `_runs` finds the chat in a document. Secrets stay; they are removed when the trace is stored or sent.
"""

from __future__ import annotations

import json
import re
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from grace_kp.errors import InvalidTrace, brief
from grace_kp.trace._model import CONTEXT, TYPE, ReasoningTrace
from grace_kp.trace._render import MAX_TEXT, cut, render, storable
from grace_kp.trace._rules import Failure, Failures
from grace_kp.trace.formats._messages import REFUSAL, ChatTurn, ToolCall, ToolResult, Words, plain, read_turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


FORMAT = "openai_messages"
NO_OBJECTIVE = "(no objective)"
MAX_NAME = 200
MAX_SOURCE = 2_000
MAX_MESSAGE = 500
MAX_ROLES = 20

_TRACEBACK = "Traceback (most recent call last)"
_ERROR_TYPE = re.compile(
    r"([A-Za-z_][A-Za-z0-9_.]{0,99}(?:Error|Exception|Warning|Interrupt|Exit|Timeout)|Error)(?::\s*|$)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFacts:
    """Facts about a recorded run besides its messages. The parameters of `from_openai_messages` explain fields of the same name."""

    id: str | None = None
    domain: str = "default"
    success: bool | None = None
    success_from: str = "given"
    """Source of `success`: `given`, `label` or `reward`."""
    created_at: str | float | datetime | None = None
    created_from: str = "given"
    """Source of `created_at`: `given` or `document`."""
    fallback_created_at: str | None = None
    """Time for a run whose messages name none: that of its file."""
    objective: str | None = None
    framework: str | None = None
    agent_id: str | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] | None = None
    """Fields that distinguish the run from others with the same messages; `source` when None."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """User, session and tags of the run."""
    max_text: int = MAX_TEXT


def from_openai_messages(
    messages: Sequence[object],
    *,
    id: str | None = None,  # noqa: A002 — the name of the field in the trace
    domain: str = "default",
    success: bool | None = None,
    created_at: str | float | datetime | None = None,
    objective: str | None = None,
    framework: str | None = FORMAT,
    agent_id: str | None = None,
    extra: Mapping[str, Any] | None = None,
    max_text: int = MAX_TEXT,
) -> ReasoningTrace:
    """Read a run that was recorded elsewhere as chat messages.

    | in the chat | in the trace |
    |--|--|
    | an assistant's text or visible reasoning | a thought |
    | a tool call | a tool_call |
    | the result of a tool | an observation, linked to its call under `grace.calls` |
    | the user's first message | the objective, no step |
    | a later message of the user | an observation with the role `user` |
    | a message of an unknown role | an observation; `grace.unknown_roles` counts them |
    | a system message | no step |

    A result that is marked as an error, or whose text begins with `Error` or a Python traceback, makes its call fail. If
    the run goes on after it, an error_recovery follows.

    Args:
        messages: OpenAI chat messages, or those of a related dialect; plain dicts or the objects of a client library.
        id: `kp:trace:…`; None derives one from the content, so that the same run always gets the same id.
        domain: selects the weights of the value score.
        success: whether the run succeeded. None assumes success if the run ended with an answer in words;
            `grace.success_from` names the source.
        created_at: when the run began, as ISO 8601, a datetime, or seconds since the epoch. None takes the time from the messages, or
            else 1970-01-01 with `unknown` in `grace.created_from`.
        objective: the agent's task; None takes the user's first message, which is otherwise kept as `grace.prompt`.
        framework: the framework of the agent, or the tool that recorded the run.
        agent_id: `kp:agent:…`.
        extra: further facts about the run, kept under `grace.source` and cut if long.
        max_text: characters kept of each string; a cut is marked.

    Returns:
        The trace. Its confidence is 0.5 and its value score 0, as `grace.unscored` says.

    Raises:
        InvalidTrace: an item is not a message, or no message is the assistant's; the error names the place.
    """
    facts = ChatFacts(
        id=id, domain=domain, success=success, created_at=created_at, objective=objective, framework=framework,
        agent_id=agent_id, source=extra or {}, max_text=max_text,
    )  # fmt: skip
    return build_trace(messages, facts)


def build_trace(messages: object, facts: ChatFacts, place: str = "messages") -> ReasoningTrace:
    if not isinstance(messages, list | tuple):
        raise InvalidTrace(f"must be a list of messages (got {brief(messages)})", path=place)
    chat = _Chat(facts.max_text)
    for index, message in enumerate(messages):
        chat.take(read_turn(message, f"{place}[{index}]"))
    if facts.success is True:
        chat.recover()  # the run survived the errors at its end
    if not chat.assistant_turns:
        raise InvalidTrace(f"has no turn of an assistant among its {len(messages):,} messages", path=place)
    created_at, created_from = _creation_time(facts, messages)
    objective = facts.objective or chat.prompt or chat.instructions or NO_OBJECTIVE
    grace: dict[str, Any] = {
        "status": "completed",
        "format": FORMAT,
        "unscored": True,
        "messages": len(messages),
        "success_from": facts.success_from if facts.success is not None else "assumed",
        "created_from": created_from,
        "calls": chat.calls,
    }
    if facts.objective and chat.prompt and chat.prompt != facts.objective:
        grace["prompt"] = storable(cut(chat.prompt, facts.max_text))
    if chat.unknown_roles:
        grace["unknown_roles"] = chat.unknown_roles
    if chat.unlinked:
        grace["unlinked_observations"] = chat.unlinked
    grace.update(facts.attributes)
    if facts.source:
        grace["source"] = render(dict(facts.source), MAX_SOURCE)
    metadata: dict[str, Any] = {
        "created_at": created_at,
        "task_domain": facts.domain,
        "success": chat.ends_with_answer if facts.success is None else facts.success,
        "quality_score": 0.0,
    }
    optional = {"agent_id": facts.agent_id, "framework": facts.framework}
    metadata.update({name: value for name, value in optional.items() if value is not None})
    identity = facts.identity or facts.source or None
    return ReasoningTrace.model_validate(
        {
            "@context": CONTEXT,
            "@type": TYPE,
            "id": facts.id if facts.id is not None else _fingerprint(messages, identity),
            "metadata": metadata,
            "task": {"objective": storable(cut(objective, facts.max_text))},
            "steps": chat.steps or [{"step_id": 0, "type": "thought", "content": ""}],
            "outcome": {"result_summary": chat.answer or chat.last_observation, "confidence": 0.5},
            "grace": grace,
        }
    )


class _Chat:
    """A chat as far as it has been read: its steps, its calls, and the errors since the last step."""

    def __init__(self, max_text: int) -> None:
        self.steps: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.prompt = ""
        self.instructions = ""
        self.answer = ""
        self.last_observation = ""
        self.assistant_turns = 0
        self.ends_with_answer = False
        self._max_text = max_text
        self._open: dict[tuple[str | None, str | None], deque[dict[str, Any]]] = {}
        """Calls in order, by id and name, by id, by name, and by neither."""
        self._failures = Failures()
        self.unknown_roles: dict[str, int] = {}
        self.unlinked = 0
        """Observations without a call."""
        self._prompted = False

    def take(self, turn: ChatTurn) -> None:
        if turn.side == "system":
            words = (part.text for part in turn.parts if isinstance(part, Words))
            self.instructions = self.instructions or next((text.strip().splitlines()[0] for text in words), "")
        elif turn.side == "assistant":
            self.assistant_turns += 1
        elif turn.side == "other":
            known = turn.role in self.unknown_roles or len(self.unknown_roles) < MAX_ROLES
            role = storable(turn.role) if known else "…"
            self.unknown_roles[role] = self.unknown_roles.get(role, 0) + 1
        for part in turn.parts:
            if isinstance(part, ToolCall):
                self._add_call(part)
            elif isinstance(part, ToolResult):
                self._add_result(part)
            else:
                self._add_words(part, turn)
        self.ends_with_answer = turn.side == "assistant" and _is_answer(turn)

    def recover(self) -> None:
        """Add a recovery step for each error so far; call it when the run goes on."""
        self._failures.recover(lambda failure: self._add("error_recovery", content=failure.recovery))

    def _add_words(self, part: Words, turn: ChatTurn) -> None:
        if turn.side == "system":
            return
        if turn.side == "user" and not self._prompted:
            self._prompted = True
            self.prompt = part.text.strip()
            return
        self.recover()
        text = self._text(part.text)
        if turn.side != "assistant":
            self._add("observation", content=text, **({"role": "user"} if turn.side == "user" else {}))
            self.last_observation = text
            return
        self._add("thought", content=text)
        if not part.reasoning:
            self.answer = text

    def _add_call(self, call: ToolCall) -> None:
        self.recover()
        name = storable(cut(call.name, MAX_NAME))
        tool = {"name": name}
        if call.server is not None:
            tool["mcp_server"] = storable(cut(call.server, MAX_NAME))
        step = self._add("tool_call", tool=tool, input=render(call.input, self._max_text))
        entry: dict[str, Any] = {
            "call_id": f"c{len(self.calls)}",
            "name": name,
            "tool_call": step["step_id"],
            "status": "unfinished",
        }
        if call.id is not None:
            entry["source_id"] = storable(cut(call.id, MAX_NAME))
        self.calls.append(entry)
        for queue in {(call.id, call.name), (call.id, None), (None, call.name), (None, None)}:
            self._open.setdefault(queue, deque()).append(entry)

    def _add_result(self, result: ToolResult) -> None:
        text = self._text(result.text)
        step = self._add("observation", content=text)
        self.last_observation = text
        entry = self._find_call(result)
        if entry is None:
            self.unlinked += 1
        else:
            entry["observation"] = step["step_id"]
            entry["status"] = "ok"
        if result.failed or result.text.startswith(("Error", _TRACEBACK)):
            error, name = _error(result.text), result.name or "a tool"
            if entry is not None:
                entry["status"], entry["error"], name = "error", error, entry["name"]
            name = storable(cut(name, MAX_NAME))
            self._failures.add(Failure(name, (error["type"], error["message"]), entry))

    def _find_call(self, result: ToolResult) -> dict[str, Any] | None:
        """Return the oldest call without a result that fits this result; ids may repeat within a run, and results may lack them.

        A call is dropped from its other queues when it reaches their front, so the work is linear.
        """
        by_id, by_name = (result.id, None), (None, result.name)
        keys = [(result.id, result.name), by_id, by_name] if None not in (result.id, result.name) else []
        for key in keys or [by_name if result.id is None else by_id]:
            queue = self._open.get(key)
            while queue:
                entry = queue.popleft()
                if entry["status"] == "unfinished":
                    return entry
        return None

    def _add(self, kind: str, **fields: object) -> dict[str, Any]:
        step = {"step_id": len(self.steps), "type": kind, **fields}
        self.steps.append(step)
        return step

    def _text(self, text: str) -> str:
        return storable(cut(text, self._max_text))


def _is_answer(turn: ChatTurn) -> bool:
    """Return whether the turn ends with an answer: text that is neither reasoning nor refusal, without an open call."""
    last = turn.parts[-1] if turn.parts else None
    if not isinstance(last, Words) or last.reasoning or last.text.startswith(REFUSAL):
        return False
    called = sum(isinstance(part, ToolCall) for part in turn.parts)
    return called <= sum(isinstance(part, ToolResult) for part in turn.parts)


def _error(text: str) -> dict[str, str]:
    line = text.strip().rpartition("\n")[2] if text.startswith(_TRACEBACK) else text.strip()
    found = _ERROR_TYPE.match(line)
    kind, message = (found[1], line[found.end() :]) if found else ("ToolError", line)
    return {"type": kind, "message": storable(cut(message, MAX_MESSAGE))}


def _creation_time(facts: ChatFacts, messages: Sequence[object]) -> tuple[str, str]:
    """Return when the run began, and the source of that time."""
    if facts.created_at is not None:
        instant = instant_of(facts.created_at)
        if instant is None:
            raise InvalidTrace(f"must be an instant (got {brief(facts.created_at)})", path="metadata.created_at")
        return instant, facts.created_from
    instant = instant_of(messages[0]) if isinstance(messages[0], dict) else None
    if instant is not None:
        return instant, "messages"
    return (facts.fallback_created_at, "file") if facts.fallback_created_at is not None else (UNKNOWN, "unknown")


def _fingerprint(messages: object, identity: object) -> str:
    """Return an id derived from the content: a UUID from its SHA-256."""
    import hashlib
    import uuid

    try:
        text = json.dumps([messages, identity], sort_keys=True, default=_opaque, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidTrace(f"cannot be written as JSON: {error}", path="messages") from None
    digest = hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()
    return f"kp:trace:{uuid.UUID(bytes=digest[:16], version=5)}"


def _opaque(value: object) -> Any:
    known = plain(value)
    if known is not value:
        return known
    return str(value) if type(value).__module__ in {"datetime", "uuid", "decimal", "pathlib"} else type(value).__name__


UNKNOWN = "1970-01-01T00:00:00.000Z"
"""The time of a run whose document names none."""

_TIME_FIELDS = (
    "created_at", "createdAt", "created", "started_at", "startedAt", "start_time", "startTime", "timestamp", "create_time",
    "creationTime", "created_time", "started", "date", "datetime", "time",
)  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR_SECONDS = 31_536_000.0  # smaller numbers are durations or counters


def instant_of(value: object) -> str | None:
    """Return the value as ISO 8601 in UTC, to the millisecond; None if it is not an instant.

    Accepts ISO 8601 (UTC without a zone), datetimes, numbers of seconds, milli-, micro- or nanoseconds since the epoch, also
    as strings, and objects with one of these under a usual name.
    """
    if isinstance(value, dict):
        stated = (value.get(name) for name in _TIME_FIELDS)
        return next(filter(None, (instant_of(time) for time in stated if not isinstance(time, dict))), None)
    if isinstance(value, str):
        text = value.strip()[:64]
        try:
            value = float(text)
        except ValueError:
            with suppress(ValueError):
                value = datetime.fromisoformat(text)
    if isinstance(value, int | float) and not isinstance(value, bool) and _FIRST_YEAR_SECONDS <= value < 1e20:
        seconds = float(value)
        while seconds >= 1e11:
            seconds /= 1_000
        value = _EPOCH + timedelta(seconds=seconds)
    if not isinstance(value, datetime):
        return None
    try:
        moment = value.astimezone(UTC) if value.tzinfo else value
    except (ValueError, OverflowError):
        return None
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
