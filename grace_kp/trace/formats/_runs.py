"""A recorded run in a document: the place of its chat, and the other fields of the document.

`_openai_messages` turns the chat into a trace; `_jsonl` reads the documents from files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from grace_kp.errors import InvalidTrace, brief
from grace_kp.trace._rules import MAX_TAGS, label
from grace_kp.trace.formats._messages import decode, is_message
from grace_kp.trace.formats._openai_messages import FORMAT, ChatFacts, build_trace, instant_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.trace._model import ReasoningTrace

MAX_NESTING = 4

_CHATS = (
    "messages", "traj", "trajectory", "conversation", "conversations", "chat", "chat_history", "chatHistory",
    "message_history", "history", "dialog", "dialogue", "turns", "transcript", "contents", "items", "events", "thread",
    "log", "steps",
)  # fmt: skip
_ASKED = (
    "request", "input", "inputs", "prompt", "instruction", "question", "query", "input_messages", "gen_ai.input.messages",
)  # fmt: skip
_ANSWERED = (
    "response", "output", "outputs", "completion", "choices", "candidates", "generations", "preferred_output", "reply", "answer",
    "output_messages", "gen_ai.output.messages", "output_text", "message",
)  # fmt: skip
_INSIDE = ("data", "body", "run", "state", "values", "channel_values", "kwargs", "payload", "sample", "row", "trace", "attributes", "json")  # fmt: skip
_MANY = (
    "simulations", "runs", "traces", "trajectories", "samples", "records", "rows", "results", "conversations", "data",
    "examples",
)  # fmt: skip
_TEXT_KEYS = ("text", "content", "output_text", "output", "answer", "response", "completion", "question", "query", "input", "prompt")  # fmt: skip
_NOT_KEPT = frozenset({*_CHATS, *_ASKED, *_ANSWERED, *_INSIDE, "tools", "functions", "tool_definitions"})
_SUCCESS = ("success", "is_success", "successful", "resolved", "solved", "passed", "is_correct", "correct")
_LABELS = ("label", "labels", "outcome", "evaluation", "eval", "result", "info", "metadata", "report", "test_result")
_WORDS = {
    "true": True, "false": False, "success": True, "failure": False, "succeeded": True,
    "failed": False, "pass": True, "passed": True, "fail": False, "resolved": True, "unresolved": False,
    "correct": True, "incorrect": False, "right": True, "wrong": False,
}  # fmt: skip
_SOLVED = 1 - 1e-6
_TIMED = ("response", "request", "metadata", "info")
"""Objects that may hold the time of the run, after the document itself."""
_ATTRIBUTES = {
    "user": ("user", "user_id", "userId"),
    "session": ("session", "session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId"),
}
_SPAN_FORMATS = {
    "Langfuse trace or observation export": ("parentobservationid", "traceid observationid", "traceid completionstarttime", "observations timestamp", "trace observations", "htmlpath", "bookmarked timestamp", "sessionid userid totalcost input"),
    "LangSmith runs": ("runid parentids", "dottedorder", "parentrunid", "childrunids", "runtype traceid", "runtype inputs"),
    "OpenAI agents SDK traces": ("spandata", "workflowname groupid"),
    "MLflow traces": ("tracelocation", "experimentid requestid", "experimentid traceid", "attributesmlflow"),
    "OpenInference spans (Phoenix)": ("attributesopeninference", "contexttraceid spankind", "parentid spankind"),
    "OTLP/JSON spans": ("resourcespans", "scopespans", "instrumentationlibraryspans", "traceid starttimeunixnano"),
    "Braintrust logs": ("spanparents", "rootspanid"),
    "Helicone requests": ("heliconesessionid", "propertiesheliconesessionid", "requestbody responsebody requestcreatedat"),
    "W&B Weave calls": ("opname", "weaveversion traceid"),
    "Inspect log": ("eval samples", "eval plan", "event spanid uuid"),
    "Claude Code session": ("parentuuid", "loglines"),
    "Opik traces": ("feedbackscores", "spanfeedbackscores"),
    "Zipkin or Jaeger spans": ("traceid localendpoint", "traceid operationname", "traceid spanid references"),
    "OpenTelemetry spans": ("contexttraceid", "spancontexttraceid", "traceid spanid attributes"),
}  # fmt: skip
"""Formats of spans, each with sets of fields that identify it, in the spelling of `_letters_of`."""
_SPAN_IDS = tuple(map(re.compile, (r".*(trace|root[a-z]*|operation)id", r".*parent([a-z]*?(ids?|uuid|context)|span|run|observation)?", r".*(span|observation)(id)?", r"start(time|ed).*")))  # fmt: skip
_HOLDERS = frozenset({"context", "span_context", "spanContext", "trace", "span", "parent", "attributes", "metadata", "info", "extra", "properties"})  # fmt: skip
_CONTENTS = frozenset({"input", "inputs", "output", "outputs", "content", "parts", "arguments", "args", "kwargs", "parameters", "properties", "tools", "functions", "tool_definitions"})  # fmt: skip
"""Fields with data of people, models and tools, which may hold ids of any kind."""


def read_run(
    document: object,
    *,
    fallback_domain: str = "default",
    fallback_created_at: str | None = None,
    use_label: bool = True,
) -> ReasoningTrace:
    """Read a recorded run from the document that holds its chat.

    The document may be a bare list of messages; an object with such a list under a usual name (`messages`, `traj`, `conversations`,
    `history`, …), also one level down or as JSON text; or a request with its response, as chat completions are logged. Domain, success
    (`label`, `success`, `reward` of 1, …) and time are taken from the document if it names them. Its other short fields are kept under
    `grace.source`.

    Args:
        fallback_created_at: when the run began, as ISO 8601 in UTC, for a document that names no time; for example its file's time.
    """
    chat, place = _chat_of(document)
    about = document if isinstance(document, dict) else {}
    around, inner = about, about  # with the fields of the objects in it that hold the chat; the outer ones win
    for name in place.split(".")[:-1]:
        inner = value if isinstance(value := _decode(inner.get(name)), dict) else {}
        around = {**inner, **around}
    _, success, success_from = _success_in(around if use_label else {})
    times = (about, *(part for field in _TIMED if isinstance(part := about.get(field), dict)))
    kept = [(field, value) for field, value in about.items() if field not in _NOT_KEPT and value is not None]
    kept.sort(key=lambda item: isinstance(item[1], dict | list))  # short ones first, because a cut removes the last
    facts = ChatFacts(
        domain=_text(about, "domain", "task_domain") or fallback_domain,
        success=success,
        success_from=success_from,
        created_at=next(filter(None, map(instant_of, times)), None),
        created_from="document",
        fallback_created_at=fallback_created_at,
        objective=_text(about, "objective"),
        framework=_text(about, "framework") or FORMAT,
        source=dict(kept),
        attributes=_attributes_in(around, success if success_from != "assumed" else None),
        identity={name: value for name, value in about.items() if name not in _CHATS},
    )
    return build_trace(chat, facts, place)


def runs_in(document: object) -> tuple[str, list[Any]] | None:
    """Return the runs of a document with several, and their key ("" for a list); None for a single run."""
    if isinstance(document, list):
        return ("", document) if not _is_chat(document) and not _is_nested_chat(document) else None
    if not isinstance(document, dict) or _find(document, 0) is not None:
        return None
    for field in _MANY:
        value: Any = document.get(field)
        for item in value[:3] if isinstance(value, list) else ():
            if is_native(item) or (_find(item, 1) if isinstance(item, dict) else _is_chat(item)):
                return field, value
    return None


def is_native(document: object) -> bool:
    """Return whether the document is meant to be a ReasoningTrace."""
    return isinstance(document, dict) and ("@type" in document or ("metadata" in document and "steps" in document))


def span_format(document: object) -> tuple[str, str] | None:
    """Return the format of the first span in a document, and its path; None without one.

    A span is a part of a run. Read as a whole run, it would falsify counts and scores. It carries the id of its trace and that of its
    parent. Valid traces and the contents of messages may hold any ids.
    """
    waiting: list[tuple[Any, str]] = [(document, "")] if isinstance(document, dict | list) else []
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, list):
            is_chat = _is_chat(value)
            below = [(item, f"{path}[{index}]") for index, item in enumerate(value)]
            spans = ((name, at) for item, at in below if is_chat and (name := _span_name(item, ids_alone=True)))
        elif is_native(value) and ("@type" in value or str(value.get("id")).startswith("kp:trace:")):
            continue
        else:
            is_chat = any(_is_chat(_decode(value[field])) for field in _CHATS if field in value)
            held = ((field, _decode(item)) for field, item in value.items() if field not in _CONTENTS)
            below = [(item, f"{path}.{field}".lstrip(".")) for field, item in held]
            spans = ((name, path) for name in [_span_name(value, ids_alone=is_chat)] if name)
        found = next(spans, None)
        if found is not None:
            return found
        if not (is_chat and isinstance(value, list)):
            waiting += reversed([(item, at) for item, at in below if isinstance(item, dict | list)])
    return None


def _span_name(value: object, *, ids_alone: bool) -> str | None:
    """Return the format of a span; None for anything else. With `ids_alone`, only the ids of trace and parent make a span."""
    names = list(_names_in(value)) if isinstance(value, dict) else []
    if ids_alone and not any("parent" in name.lower() for name in names):
        return None
    spelled = {letters: name for name in names for letters in _letters_of(name)}
    found = [next((spelled[name] for name in spelled if pattern.fullmatch(name)), None) for pattern in _SPAN_IDS]
    trace, parent, span, start = found
    linked = (trace and parent) or "parentuuid" in spelled
    is_span = linked or (not ids_alone and ((span and (trace or parent)) or (parent and start)))
    for name, sets in _SPAN_FORMATS.items():
        if (is_span or not ids_alone) and any(spelled.keys() >= {*fields.split()} for fields in sets):
            return name
    fields = [field for field in found if field is not None][:2]
    return f"a span format with the fields {' and '.join(fields)}" if is_span else None


def _names_in(value: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the fields of an object, and of those in its context, attributes and the like."""
    for field, item in value.items():
        if field != "parent" or isinstance(item, str):
            yield field
        if field in _HOLDERS and isinstance(item, dict):
            yield from (f"{field}.{name}" for name in item)


def _letters_of(name: str) -> tuple[str, str]:
    """Return the letters of a name, and those of its first two parts."""
    parts = re.sub(r"[^a-z.]", "", name[:200].lower()).split(".")
    return "".join(parts), "".join(parts[:2])


def _chat_of(document: object) -> tuple[Any, str]:
    if isinstance(document, list):
        if _is_nested_chat(document):
            return document[0], "messages[0]"
        if not document:
            raise InvalidTrace("an empty list holds no messages")
        return document, "messages"
    if not isinstance(document, dict):
        raise InvalidTrace(f"must be an object or a list of messages (got {brief(document)})")
    found = _find(document, 0)
    if found is not None:
        return found.messages, found.path
    for field in _CHATS:
        value = _decode(document.get(field))
        if isinstance(value, list):
            if not value:
                raise InvalidTrace("must have at least one message", path=field)
            return value, field  # the error names its first message
        if field == "messages" and value is not None:
            raise InvalidTrace(f"must be a list of messages (got {brief(value)})", path=field)
    if is_message(document):
        raise InvalidTrace("is a single message, not a run; put the messages of a run into a list")
    keys = ", ".join(str(field)[:40] for field in list(document)[:6]) or "no keys"
    raise InvalidTrace(
        f"is neither a ReasoningTrace nor a run of chat messages under a key such as 'messages' (it has {keys})"
    )


class _Found(NamedTuple):
    messages: list[Any]
    path: str
    is_text: bool = False
    """Whether it was a plain string, which is not a run by itself."""


def _find(document: dict[str, Any], depth: int, *, words_alone: bool = False) -> _Found | None:
    """Return the chat of an object; None without one.

    Text under `input` or `output` counts as half of an exchange only if the other half is present, or with `words_alone`.
    """
    for field in _CHATS:
        value = _decode(document.get(field))
        if isinstance(value, list) and _is_nested_chat(value):
            return _Found(value[0], f"{field}[0]")
        if _is_chat(value):
            return _Found(_add_reply(value, document, depth), field)
    if depth >= MAX_NESTING or is_message(document):
        return None
    asked = _side(document, _ASKED, "user", depth)
    answered = _side(document, _ANSWERED, "assistant", depth)
    if asked is not None and answered is not None:
        before, after = asked.messages, answered.messages
        return asked._replace(is_text=False, messages=after if after[: len(before)] == before else [*before, *after])
    half = asked or answered
    if half is not None and (words_alone or not half.is_text):
        return half
    for field in _INSIDE:
        value = _decode(document.get(field))
        if isinstance(value, dict):
            found = _find(value, depth + 1)
            if found is not None:
                return found._replace(path=f"{field}.{found.path}")
        elif _is_chat(value):
            return _Found(value, field)
    return None


def _side(document: dict[str, Any], keys: tuple[str, ...], role: str, depth: int) -> _Found | None:
    for field in keys:
        value = _decode(document.get(field))
        found = _messages_in(value, role, depth + 1)
        if found is None and value is not document.get(field):
            found = _messages_in(document[field], role, depth + 1)  # JSON, but not a chat: an answer in words
        if found is not None:
            return found._replace(path=field + found.path)
    return None


def _messages_in(value: object, role: str, depth: int) -> _Found | None:
    """Return the messages of one side of an exchange, and the path below it."""
    if isinstance(value, str):
        return _Found([{"role": role, "content": value}], "", True) if value.strip() else None
    if depth > MAX_NESTING + 2:
        return None
    if isinstance(value, list) and value:
        if _is_chat(value):
            return _Found(value, "")
        # Choices, candidates, generations: the first is the one that was used.
        found = _messages_in(value[0], role, depth + 1) if isinstance(value[0], dict | list) else None
        return found._replace(path=f"[0]{found.path}") if found is not None else None
    if not isinstance(value, dict):
        return None
    if is_message(value):
        return _Found([value], "")
    inner = value.get("message")
    if isinstance(inner, dict) and "content" in inner:
        return _Found([{"role": role, **inner}], ".message")
    found = _find(value, depth, words_alone=True)
    if found is not None:
        return found._replace(path=f".{found.path}")
    text = _text(value, *_TEXT_KEYS)
    return _Found([{"role": role, "content": text}], "", True) if text else None


def _add_reply(chat: list[Any], document: dict[str, Any], depth: int) -> list[Any]:
    """Return the chat with the answer from another field, unless the chat holds that answer."""
    last = chat[-1]
    if isinstance(last, dict) and str(last.get("role", last.get("type"))).lower() in {"assistant", "ai", "model"}:
        return chat
    found = _side(document, ("response", "choices", "completion", "reply", "message", "output"), "assistant", depth)
    if found is None or found.is_text:
        return chat
    reply = found.messages
    if reply[: len(chat)] == chat:
        return reply
    known, names = reply[-1], ("content", "tool_calls", "role")
    held = (message for message in chat if isinstance(message, dict) and isinstance(known, dict))
    repeats = any(all(known.get(name) == message.get(name) for name in names) for message in held)
    return chat if repeats else [*chat, *reply]


def _is_chat(value: object) -> bool:
    return isinstance(value, list) and any(is_message(item) for item in value[:3])


def _is_nested_chat(value: list[Any]) -> bool:
    return len(value) == 1 and _is_chat(value[0])


def _decode(value: object) -> Any:
    return decode(value, value) if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"} else value


def success_field(about: dict[str, Any]) -> str | None:
    """Return the path of the field that states the success of a run under a usual name; None without one."""
    return _success_in(about)[0]


def _success_in(about: dict[str, Any]) -> tuple[str | None, bool | None, str]:
    """Return path, success and source (`label`, `reward` or `assumed`): a label wins over a reward; None without either."""
    label = about.get("label")
    flat = {field.removeprefix("label."): value for field, value in about.items() if field.startswith("label.")}
    places = [("label.", label if isinstance(label, dict) else flat), ("", about)]
    places += [(f"{field}.", value) for field in _LABELS[1:] if isinstance(value := about.get(field), dict)]
    for path, place in places:
        for field in _SUCCESS:
            known = verdict(place.get(field))
            if known is not None:
                return path + field, known, "label"
    if isinstance(about.get("target"), bool):
        return "target", about["target"], "label"
    known = verdict(label)
    if known is not None:
        return "label", known, "label"
    for field in ("reward_info", "reward"):
        places += [(f"{field}.", value)] if isinstance(value := about.get(field), dict) else []
    for path, place in places:
        reward = place.get("reward")
        if isinstance(reward, int | float):
            return f"{path}reward", reward >= _SOLVED, "reward"
    return None, None, "assumed"


def verdict(value: object) -> bool | None:
    """Return what a label states: a truth value, 0 or 1, or a word such as "passed" or "wrong"; None for anything else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else None


def _attributes_in(about: dict[str, Any], success: bool | None) -> dict[str, Any]:
    places = [about, *(part for name in ("metadata", "info", "request") if isinstance(part := about.get(name), dict))]
    found: dict[str, Any] = {"feedback": [{"correct": success, "source": "import:"}]} if success is not None else {}
    for place in reversed(places):
        stated = [(name, place.get(field)) for name, fields in _ATTRIBUTES.items() for field in reversed(fields)]
        found.update({name: label(str(value)) for name, value in stated if type(value) in {str, int} and value != ""})
        tags = [tags] if isinstance(tags := place.get("tags"), str) else tags
        if isinstance(tags, list):
            found["tags"] = [label(tag) for tag in tags if isinstance(tag, str)][:MAX_TAGS]
    return found


def _text(about: dict[str, Any], *keys: str) -> str | None:
    value = next((about[field] for field in keys if isinstance(about.get(field), str) and about[field].strip()), None)
    return value[:8_192] if value is not None else None
