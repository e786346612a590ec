"""Runs recorded as OpenAI chat messages, and the dialects that look like them, read as reasoning traces.

What a trace needs and messages do not say is marked: the confidence is not computed yet (`grace.unscored`), and `grace.success_from`
says what success rests on. Secrets are still in it; whoever stores it redacts it first.
"""

from __future__ import annotations

import hashlib
from collections import deque
from datetime import UTC, datetime
from typing import Any

from grace_kp.errors import InvalidTrace
from grace_kp.trace._model import ReasoningTrace
from grace_kp.trace._render import cut, render, storable
from grace_kp.trace.formats._content import MAX_TEXT, as_json, calls_of, is_result, text_of

UNKNOWN_TIME = "1970-01-01T00:00:00.000Z"
_ASSISTANT = frozenset({"assistant", "ai", "model", "bot", "agent", "gpt", "AIMessageChunk"})
_USER = frozenset({"user", "human"})
_SYSTEM = frozenset({"system", "developer"})
_TOOL = frozenset({"tool", "function", "tool_result", "ipython", "environment", "observation"})
_CONTAINERS = (
    "messages",
    "traj",
    "trajectory",
    "conversation",
    "conversations",
    "history",
    "chat",
    "turns",
    "dialog",
    "dialogue",
    "input",
)
_ERRORS = ("Error", "Traceback (most recent call last)")


def from_openai_messages(
    messages: list[Any],
    *,
    id: str | None = None,  # noqa: A002 — the name of the field
    domain: str = "default",
    success: bool | None = None,
    created_at: str | None = None,
    objective: str | None = None,
    agent_id: str | None = None,
    framework: str = "openai_messages",
    source: dict[str, Any] | None = None,
) -> ReasoningTrace:
    """A chat as a trace: assistant text is a thought, a tool call and its message a tool_call and an observation.

    Later messages of the user are observations, as what comes from outside. System messages are no steps. A tool message that is
    marked as an error, or begins with "Error", is a failed call; if the run went on, an error_recovery follows it.

    Args:
        messages: in any dialect: `content` as text, null or parts; `tool_calls` with `function.arguments` as JSON text, or with
            `args` as an object; content blocks of the tool_use and tool_result kinds; `function_call`; any role.
        id: the trace's id; made of the content when None, so that reading the same chat twice gives the same id.
        domain: the task domain.
        success: whether the run succeeded; when None, whether it ended with the assistant's own words after no open failure.
        created_at: ISO 8601 in UTC; the epoch when None.
        objective: what the run was for; the first message of the user when None.
        agent_id: `kp:agent:…`.
        framework: where the run was recorded.
        source: small facts about where the run comes from, kept under `grace.source`.

    Raises:
        InvalidTrace: a message is no message, or the assistant did nothing; the message names `messages[i]`.
    """
    if not isinstance(messages, list):
        raise InvalidTrace(f"must be a list, not {type(messages).__name__}", path="messages")
    reading = _Reading()
    for number, message in enumerate(messages):
        reading.take(message, number)
    reading.finish()
    if not reading.steps:
        raise InvalidTrace("has no assistant or tool message, so there is no run in it", path="messages")
    solved = reading.ended_well if success is None else success
    grace: dict[str, Any] = {
        "status": "completed",
        "format": "openai_messages",
        "unscored": True,
        "success_from": "assumed" if success is None else "given",
        "calls": reading.calls,
    }
    if reading.unknown_roles:
        grace["unknown_roles"] = dict(sorted(reading.unknown_roles.items())[:20])
    if source:
        grace["source"] = render(source)
    document: dict[str, Any] = {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": id or _id_of(messages, source),
        "metadata": {
            "created_at": created_at or UNKNOWN_TIME,
            "framework": framework,
            "task_domain": storable(domain),
            "success": solved,
            "quality_score": 0.0,
            "visibility": "private",
            "privacy_level": "private",
        },
        "task": {"objective": _text(objective or reading.objective) or "(no objective)"},
        "steps": reading.steps,
        "outcome": {"result_summary": _text(reading.result), "confidence": 0.5},
        "grace": grace,
    }
    if agent_id is not None:
        document["metadata"]["agent_id"] = agent_id
    return ReasoningTrace.model_validate(document)


class _Reading:
    """A chat on its way to steps."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.objective = ""
        self.result = ""
        self.ended_well = False
        self.unknown_roles: dict[str, int] = {}
        self._system = ""
        self._observed = ""
        self._waiting: dict[Any, deque[int]] = {}
        self._open: dict[int, None] = {}
        self._failed: list[tuple[int, str]] = []

    def take(self, message: Any, number: int) -> None:
        path = f"messages[{number}]"
        if not isinstance(message, dict):
            raise InvalidTrace(f"must be an object, not {type(message).__name__}", path=path)
        role = next(
            (
                message[key]
                for key in ("role", "type", "from", "speaker", "author")
                if isinstance(message.get(key), str)
            ),
            None,
        )
        if role is None and isinstance(message.get("author"), dict):
            role = message["author"].get("role")
        if not isinstance(role, str) or not role:
            raise InvalidTrace("is missing or no text", path=f"{path}.role")
        body = message if "content" in message or "value" not in message else {**message, "content": message["value"]}
        if role in _ASSISTANT:
            self._assistant(body)
        elif role in _SYSTEM:
            self._system = self._system or text_of(body.get("content"))
        elif role in _TOOL or role == "function_call_output":
            self._tool(body)
        elif role == "function_call":
            self._called(calls_of({"tool_calls": [body]}))
        elif role in _USER:
            self._user(body)
        else:
            self.unknown_roles[role[:80]] = self.unknown_roles.get(role[:80], 0) + 1
            self._observe(text_of(body.get("content")))

    def finish(self) -> None:
        if not self.objective:
            self.objective = self._system.strip().partition("\n")[0]
        if not self.result:
            self.result = self._observed
        if self.ended_well:
            self._went_on()

    def _add(self, kind: str, content: str | None, **fields: Any) -> int:
        step: dict[str, Any] = {"step_id": len(self.steps), "type": kind, **fields}
        if content is not None:
            step["content"] = _text(content)
        self.steps.append(step)
        return len(self.steps) - 1

    def _assistant(self, message: dict[str, Any]) -> None:
        calls = calls_of(message)
        thinking = text_of(message.get("reasoning_content") or message.get("reasoning"))
        said = text_of(message.get("content"))
        if not said and isinstance(message.get("refusal"), str):
            said = message["refusal"]
        for text in (thinking, said):
            if text.strip():
                self._went_on()
                self._add("thought", text)
        if said.strip():
            self.result = said
        self.ended_well = bool(said.strip()) and not calls
        self._called(calls)

    def _called(self, calls: list[dict[str, Any]]) -> None:
        for call in calls:
            self._went_on()
            self.ended_well = False
            shown = render(call["input"])
            step = self._add(
                "tool_call", None, tool={"name": _text(call["name"])[:200] or "(unnamed tool)"}, input=shown
            )
            number = len(self.calls)
            self.calls.append(
                {
                    "call_id": f"c{number}",
                    "name": self.steps[step]["tool"]["name"],
                    "tool_call": step,
                    "status": "unfinished",
                }
            )
            self._open[number] = None
            for key in (call["id"], ("name", call["name"])):
                if key is not None:
                    self._waiting.setdefault(key, deque()).append(number)

    def _tool(self, message: dict[str, Any]) -> None:
        content = message.get("content")
        if isinstance(content, list) and any(is_result(part) for part in content):
            self._user(message)
            return
        if "content" not in message:
            content = message.get("output", message.get("result"))
        identity = next(
            (
                message[key]
                for key in ("tool_call_id", "call_id", "tool_use_id", "id")
                if isinstance(message.get(key), str | int)
            ),
            None,
        )
        self._returned(identity, message.get("name"), text_of(content), _says_error(message))

    def _returned(self, identity: Any, name: Any, text: str, failed: bool) -> None:
        number = self._answered(identity, name)
        step = self._add("observation", text)
        self._observed = text
        self.ended_well = False
        failed = failed or text.lstrip().startswith(_ERRORS)
        if number is None:
            if failed:
                self._failed.append((-1, text))
            return
        call = self.calls[number]
        call["observation"] = step
        call["status"] = "error" if failed else "ok"
        if failed:
            first = _text(text.strip().partition("\n")[0])
            call["error"] = {"type": "ToolError", "message": first}
            self._failed.append((number, first))

    def _answered(self, identity: Any, name: Any) -> int | None:
        """The oldest call that waits for this: by id, else by name, else the only one there is."""
        for key in (identity, ("name", name) if isinstance(name, str) else None):
            queue = self._waiting.get(key) if key is not None else None
            while queue:
                number = queue.popleft()
                if number in self._open:
                    del self._open[number]
                    return number
        if identity is None and not isinstance(name, str) and self._open:
            number = next(iter(self._open))
            del self._open[number]
            return number
        return None

    def _user(self, message: dict[str, Any]) -> None:
        content = message.get("content")
        if isinstance(content, list):
            for part in content:
                if is_result(part):
                    identity = part.get("tool_use_id") or part.get("call_id") or part.get("tool_call_id")
                    inner = part.get("content", part.get("output"))
                    self._returned(identity, part.get("name"), text_of(inner), _says_error(part))
        text = text_of(content)
        if not text.strip():
            return
        if not self.objective:
            self.objective = text
        else:
            self._observe(text)

    def _observe(self, text: str) -> None:
        if text.strip() and self.steps:
            self._went_on()
            self._add("observation", text)

    def _went_on(self) -> None:
        for number, text in self._failed:
            name = self.calls[number]["name"] if number >= 0 else "a tool"
            step = self._add("error_recovery", f"Recovered from {name}: {text}")
            if number >= 0:
                self.calls[number]["recovery"] = step
        self._failed.clear()


def _says_error(message: dict[str, Any]) -> bool:
    return (
        message.get("is_error") is True or message.get("status") in {"error", "failed"} or message.get("error") is True
    )


def _text(text: str) -> str:
    return storable(cut(text, MAX_TEXT))


def _id_of(*parts: Any) -> str:
    text = hashlib.sha256(as_json(parts).encode("utf-8", "replace")).hexdigest()
    return f"kp:trace:{text[:8]}-{text[8:12]}-8{text[13:16]}-a{text[17:20]}-{text[20:32]}"


def read_run(document: Any, *, domain: str | None = None, created_at: str | None = None) -> ReasoningTrace:
    """A recorded run in one of the usual containers: a list of messages, or an object with one under `messages`, `traj` and the like.

    Beside the messages it looks for `label.success`, `success` or `reward` (1.0 is success), `domain`, ids and a time.

    Raises:
        InvalidTrace: there is no chat in it.
    """
    if isinstance(document, list):
        return from_openai_messages(document, domain=domain or "default", created_at=created_at)
    if not isinstance(document, dict):
        raise InvalidTrace(f"must be an object or a list of messages, not {type(document).__name__}")
    messages = _messages(document)
    success, success_from = _success(document)
    known = {
        key: value
        for key, value in document.items()
        if isinstance(value, str | int | float | bool) and len(str(value)) <= 300
    }
    own_domain = document.get("domain") or document.get("task_domain")
    trace = from_openai_messages(
        messages,
        domain=domain or (own_domain if isinstance(own_domain, str) and own_domain else "default"),
        success=success,
        created_at=created_at or _time(document),
        objective=_objective(document),
        source=dict(list(known.items())[:30]),
    )
    if trace.grace is not None and success is not None:
        trace.grace["success_from"] = success_from
    return trace


def _messages(document: dict[str, Any]) -> list[Any]:
    for holder in (
        document,
        document.get("request"),
        document.get("body"),
        document.get("inputs"),
        document.get("kwargs"),
    ):
        if not isinstance(holder, dict):
            continue
        for key in _CONTAINERS:
            if isinstance(holder.get(key), list):
                return [*holder[key], *_reply(document)]
    reply = _reply(document)
    if reply:
        return reply
    raise InvalidTrace(f"is neither a trace nor a chat: none of {', '.join(_CONTAINERS[:5])} is a list of messages")


def _reply(document: dict[str, Any]) -> list[Any]:
    """The answer that a log of chat completions keeps apart from the request."""
    for holder in (document.get("response"), document):
        choices = holder.get("choices") if isinstance(holder, dict) else None
        if (
            isinstance(choices, list)
            and choices
            and isinstance(choices[0], dict)
            and isinstance(choices[0].get("message"), dict)
        ):
            return [choices[0]["message"]]
    return []


def _success(document: dict[str, Any]) -> tuple[bool | None, str]:
    label = document.get("label")
    if isinstance(label, dict) and isinstance(label.get("success"), bool):
        return label["success"], "label"
    for key in ("success", "solved", "resolved", "is_correct", "passed"):
        if isinstance(document.get(key), bool):
            return document[key], key
    for holder in (document, document.get("info"), label):
        reward = holder.get("reward") if isinstance(holder, dict) else None
        if isinstance(reward, int | float) and not isinstance(reward, bool):
            return reward >= 1 - 1e-9, "reward"
    return None, "assumed"


def _objective(document: dict[str, Any]) -> str | None:
    for key in ("objective", "task", "instruction", "question"):
        value = document.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return None


def _time(document: dict[str, Any]) -> str | None:
    for key in ("created_at", "timestamp", "created", "start_time", "time"):
        value = document.get(key)
        try:
            if isinstance(value, int | float) and not isinstance(value, bool):
                moment = datetime.fromtimestamp(value / 1_000 if value > 1e11 else value, UTC)
            elif isinstance(value, str):
                moment = datetime.fromisoformat(value)
                moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
            else:
                continue
        except (ValueError, OverflowError, OSError):
            continue
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1_000:03d}Z"
    return None
