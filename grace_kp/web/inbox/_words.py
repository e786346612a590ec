"""Functions for the templates of the inbox: arguments as HTML, times with their distance, sentences about requests, and addresses.

`grace_kp.pages.visible` is for prose. Arguments are shown complete, with carriage returns, tabs, special blanks and trailing blanks made visible.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import json
import math
import pathlib
import re
import unicodedata
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from grace_kp.approvals import (
    actor_text,
    consents,
    constraint_texts,
    deadline_text,
    event_text,
    fact_text,
    json_text,
    process_text,
    remarks_of,
    rule_text,
    unheld_text,
)
from grace_kp.gating import approval_alarms, approval_places, flat, view
from grace_kp.pages import APPROVAL_STATES, badge, confidence_html, printable, safe, span_text, with_fallbacks
from grace_kp.web._site import trust_html, when

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from grace_kp.approvals import Approval


MAX_CHARACTERS = 2_000_000
"""Characters of one argument on a page, which is twice what a request can hold."""
FOLDED, FOLDED_LINES = 600, 12
"""Characters and lines above which a value can be folded; it is open at first."""
IN_SENTENCE = 48
"""Characters of one argument within a sentence."""
LINE = 72
"""Characters up to which a list or an object is written on one line."""
_CODE = re.compile(r"⟨U\+([0-9A-F]{4,6})⟩")
_LITERAL = re.compile(r"⟨(?=U\+)")
_NAME = re.compile(r"`([\w.\[\]-]+)`")
_BLANKS = " \u3000"
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_SPACE = "\u3000"
_KINDS: Mapping[type, str] = {
    str: "text", bool: "true or false", int: "integer", float: "number", type(None): "no value", list: "list", dict: "object", tuple: "tuple",
    set: "set", frozenset: "set", bytes: "bytes", bytearray: "bytes", decimal.Decimal: "decimal number", dt.date: "date",
    dt.datetime: "date and time", dt.time: "time", dt.timedelta: "duration", uuid.UUID: "UUID",
}  # fmt: skip


def write_codes(text: str, *, keep: str = "\n\t") -> str:
    """Return a string for a form field, with invisible characters but `keep` as codes such as ⟨U+202E⟩; `read_codes` reverses it exactly."""
    return printable(_LITERAL.sub("⟨U+27E8⟩", text), keep=f"{keep}{_SPACE}", replace=_code)


def read_codes(text: str) -> str:
    """Reverse `write_codes`."""
    return _CODE.sub(_character, text)


def _code(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


def _character(match: re.Match[str]) -> str:
    number = int(match[1], 16)
    return chr(number) if number <= 0x10FFFF else match[0]


def member_of(approval: Approval, name: str) -> str:
    """Return an argument that is a member of an enum as `shop.Currency.EUR = "EUR"`; empty for any other.

    Without the declared types of the action such an argument stays encoded, and an object may have the same keys: only the encoding tells.
    """
    encoded = approval.encoded.get(name)
    if not isinstance(encoded, dict) or set(encoded) != {"$model", "name", "value"}:
        return ""
    return _escape_hidden(f"{encoded['$model']}.{encoded['name']} = {json.dumps(encoded['value'], ensure_ascii=False)}")


def kind_of(value: object) -> str:
    """Return the kind of a value in words; the name of its class for any other."""
    if isinstance(value, pathlib.PurePath):
        return "path"
    return _KINDS.get(type(value), "sealed" if repr(value) == "[SEALED]" else type(value).__name__)


def value_html(value: object) -> Markup:
    """Return a value as HTML, complete; a long one is open and can be folded."""
    if type(value) is str:
        return _block(_text(value), value, f"{len(value):,} characters")
    text = "\n".join(_lines(value))
    return _block(escape(text), text, f"{text.count(chr(10)) + 1:,} lines")


def opaque_parts(value: object) -> list[str]:
    return view(value, max_characters=MAX_CHARACTERS).opaque


def flat_text(value: object, length: int = IN_SENTENCE) -> str:
    """Return a value on one line; a cut is marked by an ellipsis."""
    text = _escape_hidden(flat(view(value, 1_000, 10_000).root))
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def call_parts(approval: Approval) -> list[tuple[str, str]]:
    """Return names and values of the arguments for a sentence, key fields first."""
    names = [name for name in approval.key_fields if name in approval.arguments]
    names += [name for name in approval.arguments if name not in names]
    members = ((name, member_of(approval, name).partition(" = ")[2]) for name in names)
    parts = [(name, member or flat_text(approval.arguments[name])) for name, member in members]
    return parts + [(name, "…") for name in approval.unencoded if name not in approval.arguments]


def _block(shown: Markup, text: str, size: str) -> Markup:
    order = _order(text)
    if len(text) <= FOLDED and text.count("\n") < FOLDED_LINES:
        return Markup('<pre class="value">{}</pre>{}').format(shown, order)
    return Markup('<details open class="whole"><summary>{}</summary><pre class="value" tabindex="0">{}</pre></details>{}').format(
        size, shown, order
    )  # fmt: skip


def _text(text: str) -> Markup:
    """Mark each invisible character and each trailing blank of a string."""
    if not text:
        return Markup('<span class="soft">an empty string</span>')
    lines = text.split("\n")
    marked = []
    for line in lines:
        body = line.rstrip(_BLANKS)
        marked.append(Markup("").join([*_mark_hidden(body), *_marks(line[len(body) :])]))
    if len(lines) > 1 and not lines[-1]:
        marked[-2:] = [Markup("").join([marked[-2], *_marks("\n")])]
    return Markup("\n").join(marked)


def _mark_hidden(line: str) -> Iterator[Markup]:
    shown = printable(line, keep=_SPACE, replace="\0")
    for is_hidden, run in itertools.groupby(zip(shown, line, strict=True), key=lambda pair: pair[0] == "\0"):
        piece = "".join(character for _, character in run)
        yield from _marks(piece) if is_hidden else (escape(piece),)


def _marks(characters: str) -> Iterator[Markup]:
    for character, run in itertools.groupby(characters):
        count = sum(1 for _ in run)
        name = unicodedata.name(character, "control character").lower()
        times = f" × {count:,}" if count > 1 else ""
        yield Markup('<mark class="code-point" title="{}">U+{}{}</mark>').format(name, f"{ord(character):04X}", times)


def _order(text: str) -> Markup:
    """Return the characters in their stored order if a browser may reorder them."""
    if text.isascii() or not any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return Markup("")
    return Markup('<p class="small note warn">Read from right to left. In their order, the characters are: <code>{}</code></p>').format(
        json.dumps(text)
    )  # fmt: skip


def _lines(value: object) -> Iterator[str]:
    """Yield the lines of a value: like JSON, with the names of classes and the kinds of brackets of Python."""
    stack: list[tuple[int, str, object, str]] = [(0, "", view(value, max_characters=MAX_CHARACTERS).root, "")]
    while stack:
        depth, before, node, after = stack.pop()
        pad = "  " * depth
        if isinstance(node, str):
            yield f"{pad}{node}{after}"
            continue
        line = _escape_hidden(flat(node))  # type: ignore[arg-type]
        children = node.children  # type: ignore[attr-defined]
        if not children or len(line) <= LINE:
            yield f"{pad}{before}{line}{after}"
            continue
        yield f"{pad}{before}{_escape_hidden(node.label)}{node.brackets[0]}"  # type: ignore[attr-defined]
        stack.append((depth, "", node.closing, after))  # type: ignore[attr-defined]
        for number in range(len(children) - 1, -1, -1):
            key, child = children[number]
            name = "" if key is None else f"{_escape_hidden(flat(key))}{node.separator}"  # type: ignore[attr-defined]
            stack.append((depth + 1, name, child, "," if number < len(children) - 1 else ""))


def _escape_hidden(text: str) -> str:
    return printable(text, keep=_SPACE, replace=lambda character: json.dumps(character)[1:-1])


_STATE_KINDS: Mapping[str, str] = {
    "done": "good", "edited": "good", "approved": "good", "claimed": "warn", "pending": "warn",
    "not_done": "bad", "rejected": "bad", "failed": "bad", "unknown": "bad",
}  # fmt: skip


def moment(at: float | None, now: float, otherwise: str = "no deadline") -> Markup:
    """Return seconds since the epoch, None for never, as a time with its distance from now, which the script of the pages keeps up to date."""
    if at is None or not math.isfinite(at):
        return Markup('<span class="soft">{}</span>').format(otherwise)
    distance = f"in {span_text(at - now)}" if at > now else f"{span_text(now - at)} ago"
    return Markup('{} <span class="distance" data-distance="{}">{}</span>').format(when(at), f"{at:.3f}", distance)


def state_badge(state: str) -> Markup:
    return trust_html(badge(APPROVAL_STATES[state], _STATE_KINDS.get(state, "")))


def confidence(approval: Approval) -> Markup:
    return trust_html(
        confidence_html(
            approval.score,
            breakdown=with_fallbacks(approval.breakdown, approval.facts.get("fallbacks")),
            penalties=approval.penalties,
        )
    )


def sentence_html(sentence: str) -> Markup:
    """Return a sentence of a gate as HTML, with the names in backticks as code."""
    return trust_html(_NAME.sub(r"<code>\1</code>", safe(sentence)))


def request_path(approval_id: str) -> str:
    return f"/approvals/{quote(approval_id, safe='')}"


def run_path(run_id: str) -> str:
    return f"/runs/{quote(run_id, safe=':')}"


def query(values: Mapping[str, object], **changes: object) -> str:
    """Return a query string with some values replaced and without empty ones."""
    kept = {name: value for name, value in {**values, **changes}.items() if value not in {"", None, 0}}
    return f"?{urlencode(kept)}" if kept else ""


WORDS: Mapping[str, Callable[..., Any]] = {
    "actor": actor_text,
    "alarms": approval_alarms,
    "call": call_parts,
    "confidence": confidence,
    "consents": consents,
    "constraints": constraint_texts,
    "deadline": deadline_text,
    "event": event_text,
    "fact": fact_text,
    "flat": flat_text,
    "json": json_text,
    "kind": kind_of,
    "member": member_of,
    "moment": moment,
    "opaque": opaque_parts,
    "own": escape,  # a field repeats a submitted string character by character
    "places": approval_places,
    "process": process_text,
    "query": query,
    "remarks": remarks_of,
    "request_path": request_path,
    "rule": rule_text,
    "run_path": run_path,
    "sentence": sentence_html,
    "state": state_badge,
    "unheld": unheld_text,
    "value": value_html,
}
"""The functions by the names under which templates call them, such as `words.moment(…)`."""
