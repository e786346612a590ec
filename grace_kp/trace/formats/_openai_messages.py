"""A recorded chat as a reasoning trace: which step each turn becomes, which call a result answers, how the run ended.

How the dialects write a turn is `_turns`, where in a document the chat stands is `_runs`. Secrets are not removed here:
whoever stores or sends the trace does that, as with every other trace.
"""

from __future__ import annotations

import json
import re
from collections import deque
from typing import TYPE_CHECKING, Any

from grace_kp.errors import InvalidTrace, brief
from grace_kp.trace._model import ReasoningTrace
from grace_kp.trace._render import MAX_TEXT, cut, render, storable
from grace_kp.trace._steps import Failure, Failures
from grace_kp.trace.formats._instants import UNKNOWN, instant_of
from grace_kp.trace.formats._parts import REFUSAL, Called, Returned, Said
from grace_kp.trace.formats._texts import plain
from grace_kp.trace.formats._turns import Turn, read_turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

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


def from_openai_messages(
    messages: Sequence[Any],
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
    """A run that was recorded elsewhere as chat messages, as a trace.

    An assistant's text is a thought, and so is its visible reasoning; a tool call is a tool_call; what a tool returned is an
    observation, linked to its call under `grace.calls`. The first thing the user says is the objective and no step. What
    the user says later is an observation: the agent learns it from outside, like a tool's result, and a long conversation
    is scored as the work that it was. A message of a role that is not known is an observation as well, and counted under
    `grace.unknown_roles`. System messages are no steps.

    A result that is marked as an error, or whose text begins with `Error` or a Python traceback, makes its call fail. If
    the run goes on after it, an error_recovery follows.

    Args:
        messages: OpenAI chat messages, or those of a related dialect; plain dicts or the objects of a client library.
        id: `kp:trace:…`; None makes one from the content, so that the same run always gets the same id.
        domain: selects the weights of the value score.
        success: whether the run succeeded. None assumes it did if it ended with an answer in words;
            `grace.success_from` says what it rests on.
        created_at: when the run began, as ISO 8601, a datetime, or seconds since the epoch. None takes it from the messages; if
            they do not say it is 1970-01-01, and `grace.created_from` is `unknown`.
        objective: what the agent was asked; None takes the user's first words. When given, these are kept as `grace.prompt`.
        framework: what the agent was built with, or where it was recorded.
        agent_id: `kp:agent:…`.
        extra: what else is known of the run; kept under `grace.source`, cut where it is long.
        max_text: characters kept of one text; a cut is made visible.

    Returns:
        The trace. Its confidence is a mere 0.5 and its value score 0, as `grace.unscored` says.

    Raises:
        InvalidTrace: something is no message, or no turn is the assistant's; the message names the place.
    """
    return build_trace(
        messages, id=id, domain=domain, success=success, created_at=created_at, objective=objective, framework=framework,
        agent_id=agent_id, source=extra, max_text=max_text,
    )  # fmt: skip


def build_trace(
    messages: Any,
    *,
    place: str = "messages",
    id: str | None = None,  # noqa: A002
    domain: str = "default",
    success: bool | None = None,
    success_from: str = "given",
    created_at: str | float | datetime | None = None,
    created_from: str = "given",
    fallback_created_at: str | None = None,
    objective: str | None = None,
    framework: str | None = None,
    agent_id: str | None = None,
    source: Mapping[str, Any] | None = None,
    identity: Any = None,
    max_text: int = MAX_TEXT,
) -> ReasoningTrace:
    """The same for a chat that was found in a document: where it stood, and what the document says beside it."""
    if not isinstance(messages, list | tuple):
        raise InvalidTrace(f"must be a list of messages (got {brief(messages)})", path=place)
    chat = _Chat(max_text)
    for index, message in enumerate(messages):
        chat.take(read_turn(message, f"{place}[{index}]"))
    chat.end(survived=success is True)
    if not chat.assistant_turns:
        raise InvalidTrace(f"has no turn of an assistant among its {len(messages):,} messages", path=place)
    instant, dated = _created(created_at, created_from, fallback_created_at, messages)
    goal = storable(cut(objective or chat.prompt or chat.instructions or NO_OBJECTIVE, max_text))
    grace: dict[str, Any] = {
        "status": "completed",
        "format": FORMAT,
        "unscored": True,
        "messages": len(messages),
        "success_from": success_from if success is not None else "assumed",
        "created_from": dated,
        "calls": chat.calls,
    }
    if objective and chat.prompt and chat.prompt != objective:
        grace["prompt"] = storable(cut(chat.prompt, max_text))
    grace.update(chat.oddities())
    if source:
        grace["source"] = render(dict(source), MAX_SOURCE)
    metadata: dict[str, Any] = {
        "created_at": instant,
        "task_domain": domain,
        "success": chat.ended_well if success is None else success,
        "quality_score": 0.0,
    }
    metadata.update({k: v for k, v in (("agent_id", agent_id), ("framework", framework)) if v is not None})
    return ReasoningTrace.model_validate(
        {
            "@context": "https://openknowledgepulse.org/schema/v1",
            "@type": "ReasoningTrace",
            "id": id if id is not None else _fingerprint(messages, identity or source or None),
            "metadata": metadata,
            "task": {"objective": goal},
            "steps": chat.steps or [{"step_id": 0, "type": "thought", "content": ""}],
            "outcome": {"result_summary": chat.answer or chat.last_observation, "confidence": 0.5},
            "grace": grace,
        }
    )


class _Chat:
    """A chat as far as it has been read: its steps, its calls, and the errors that nothing has followed yet."""

    def __init__(self, max_text: int) -> None:
        self.steps: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.prompt = ""
        self.instructions = ""
        self.answer = ""
        self.last_observation = ""
        self.assistant_turns = 0
        self.ended_well = False
        self._max_text = max_text
        self._open = _OpenCalls()
        self._failures = Failures()
        self._unknown_roles: dict[str, int] = {}
        self._unlinked = 0
        self._prompted = False

    def take(self, turn: Turn) -> None:
        """Take in the next turn."""
        if turn.side == "system":
            self._instructed(turn)
        elif turn.side == "assistant":
            self.assistant_turns += 1
        elif turn.side == "other":
            known = turn.role in self._unknown_roles or len(self._unknown_roles) < MAX_ROLES
            role = storable(turn.role) if known else "…"
            self._unknown_roles[role] = self._unknown_roles.get(role, 0) + 1
        for piece in turn.pieces:
            if isinstance(piece, Called):
                self._called(piece)
            elif isinstance(piece, Returned):
                self._returned(piece)
            else:
                self._said(piece, turn)
        self.ended_well = turn.side == "assistant" and _is_answer(turn)

    def end(self, *, survived: bool) -> None:
        """There is no more; a run that is known to have gone well has survived the errors that nothing followed."""
        if survived:
            self._went_on()

    def oddities(self) -> dict[str, Any]:
        """What did not fit, counted; empty where everything did."""
        found: dict[str, Any] = {}
        if self._unknown_roles:
            found["unknown_roles"] = self._unknown_roles
        if self._unlinked:
            found["unlinked_observations"] = self._unlinked
        return found

    def _instructed(self, turn: Turn) -> None:
        for piece in turn.pieces:
            if isinstance(piece, Said) and not self.instructions:
                self.instructions = piece.text.strip().splitlines()[0]

    def _said(self, piece: Said, turn: Turn) -> None:
        if turn.side == "system":
            return
        if turn.side == "user" and not self._prompted:
            self._prompted = True
            self.prompt = piece.text.strip()
            return
        self._went_on()
        text = self._text(piece.text)
        if turn.side != "assistant":
            self._add("observation", content=text)
            self.last_observation = text
            return
        self._add("thought", content=text)
        if not piece.reasoning:
            self.answer = text

    def _called(self, call: Called) -> None:
        self._went_on()
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
        self._open.add(entry, call)

    def _returned(self, result: Returned) -> None:
        text = self._text(result.text)
        step = self._add("observation", content=text)
        self.last_observation = text
        entry = self._open.answered_by(result)
        if entry is None:
            self._unlinked += 1
        else:
            entry["observation"] = step["step_id"]
            entry["status"] = "ok"
        if result.failed or result.text.startswith(("Error", _TRACEBACK)):
            error, name = _error(result.text), result.name or "a tool"
            if entry is not None:
                entry["status"], entry["error"], name = "error", error, entry["name"]
            name = storable(cut(name, MAX_NAME))
            self._failures.add(Failure(name, (error["type"], error["message"]), entry))

    def _went_on(self) -> None:
        self._failures.recover(lambda failure: self._add("error_recovery", content=failure.recovery))

    def _add(self, kind: str, **fields: Any) -> dict[str, Any]:
        step = {"step_id": len(self.steps), "type": kind, **fields}
        self.steps.append(step)
        return step

    def _text(self, text: str) -> str:
        return storable(cut(text, self._max_text))


def _is_answer(turn: Turn) -> bool:
    """Whether the turn ends in words that can end a run: no thinking, no refusal, and no call that waits for its result."""
    last = turn.pieces[-1] if turn.pieces else None
    if not isinstance(last, Said) or last.reasoning or last.text.startswith(REFUSAL):
        return False
    called = sum(isinstance(piece, Called) for piece in turn.pieces)
    return called <= sum(isinstance(piece, Returned) for piece in turn.pieces)


class _OpenCalls:
    """Calls that no result has answered yet, to be found by id, by name, or by their order.

    Ids repeat within a run, and results come without them, so the oldest open call that fits is the one that is answered.
    Each call waits in several queues and is dropped from the others when it comes up there: linear, however long the run.
    """

    def __init__(self) -> None:
        self._queues: dict[tuple[str | None, str | None], deque[dict[str, Any]]] = {}

    def add(self, entry: dict[str, Any], call: Called) -> None:
        for key in {(call.id, call.name), (call.id, None), (None, call.name), (None, None)}:
            self._queues.setdefault(key, deque()).append(entry)

    def answered_by(self, result: Returned) -> dict[str, Any] | None:
        keys: list[tuple[str | None, str | None]] = []
        if result.id is not None:
            keys = [(result.id, result.name)] if result.name is not None else []
            keys.append((result.id, None))
        if result.name is not None:
            keys.append((None, result.name))
        for key in keys or [(None, None)]:
            queue = self._queues.get(key)
            while queue:
                entry = queue.popleft()
                if entry["status"] == "unfinished":
                    return entry
        return None


def _error(text: str) -> dict[str, str]:
    """Type and message of an error as far as its text shows them."""
    line = text.strip().rpartition("\n")[2] if text.startswith(_TRACEBACK) else text.strip()
    found = _ERROR_TYPE.match(line)
    kind, message = (found[1], line[found.end() :]) if found else ("ToolError", line)
    return {"type": kind, "message": storable(cut(message, MAX_MESSAGE))}


def _created(given: Any, given_by: str, fallback_created_at: str | None, messages: Sequence[Any]) -> tuple[str, str]:
    if given is not None:
        instant = instant_of(given)
        if instant is None:
            raise InvalidTrace(f"must be an instant (got {brief(given)})", path="metadata.created_at")
        return instant, given_by
    instant = instant_of(messages[0]) if isinstance(messages[0], dict) else None
    if instant is not None:
        return instant, "messages"
    return (fallback_created_at, "file") if fallback_created_at is not None else (UNKNOWN, "unknown")


def _fingerprint(messages: Any, identity: Any) -> str:
    """An id that the same content always gets: a UUID made from its SHA-256."""
    import hashlib
    import uuid

    try:
        text = json.dumps([messages, identity], sort_keys=True, default=_opaque, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidTrace(f"cannot be written as JSON: {error}", path="messages") from None
    digest = hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()
    return f"kp:trace:{uuid.UUID(bytes=digest[:16], version=5)}"


def _opaque(value: Any) -> Any:
    known = plain(value)
    if known is not value:
        return known
    return str(value) if type(value).__module__ in {"datetime", "uuid", "decimal", "pathlib"} else type(value).__name__
