"""The document of a trace for reading, in which every field may be missing or hold anything, and the links of its HTML to other pages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from grace_kp.errors import is_unit
from grace_kp.pages import duration_text, safe, spaced

if TYPE_CHECKING:
    from collections.abc import Callable


KINDS = {
    "thought": "thought",
    "tool_call": "call",
    "observation": "result",
    "error_recovery": "recovered",
    "human_input": "person",
}


class HasDocument(Protocol):
    """A `ReasoningTrace`: what has the document of a trace."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document."""
        ...


def document_of(run: HasDocument | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document of a trace, which may be one already."""
    document: Mapping[str, Any] = run if isinstance(run, Mapping) else run.to_dict()
    return document


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def number(value: object) -> float | None:
    """Return the value if it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def share(value: object) -> float | None:
    """Return the value if it is a number from 0 to 1, else None."""
    return float(value) if is_unit(value) else None


def text(value: object) -> str:
    """Return a text as it is, None as nothing, and any other value as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else as_json(value)


def as_json(value: object, indent: int | None = None) -> str:
    """Return a value as JSON that people read."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    except (ValueError, RecursionError):
        return "<a value that JSON cannot hold>"


class RecordedSteps:
    """The steps of a run, each with the records that belong to it, and the decisions of gates by the number of steps before them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        grace = mapping(document.get("grace"))
        self.steps = items(document.get("steps"))
        self.decisions = decisions_by_place(items(grace.get("decisions")), len(self.steps))
        self._records: list[dict[object, dict[str, Any]]] = [
            {entry[field]: entry for entry in map(mapping, items(grace.get(name))) if type(entry.get(field)) is int}
            for name, field in (("model_calls", "step"), ("calls", "tool_call"), ("calls", "observation"))
        ]

    def at(self, place: int) -> tuple[dict[str, Any], ...]:
        """Return a step, its model call, the call of a tool that it begins, and the one that it ends; each may be empty."""
        step = mapping(self.steps[place])
        number = step.get("step_id")
        number = number if type(number) is int else place
        return step, *(records.get(number, {}) for records in self._records)


def decisions_by_place(decisions: list[Any], count: int) -> dict[int, list[dict[str, Any]]]:
    """Return the decisions by the number of steps before them; those that do not state it stand at the end."""
    found: dict[int, list[dict[str, Any]]] = {}
    for decision in map(mapping, decisions):
        place = decision.get("step")
        found.setdefault(place if type(place) is int and 0 <= place <= count else count, []).append(decision)
    return found


def kind_of(step: dict[str, Any], model: dict[str, Any]) -> str:
    """Return the kind of a step in a word."""
    kind = text(step.get("type"))
    return "model" if model else KINDS.get(kind, spaced(kind) or "step")


def measures_of(step: dict[str, Any], *usages: Mapping[str, Any]) -> list[str]:
    """Return tokens and duration in words; a call and its result have the same duration, which is shown at the call."""
    took = "" if text(step.get("type")) == "observation" else duration_of(step)
    return [*(words for usage in usages for words in tokens(usage)), *filter(None, [took])]


def duration_of(entry: Mapping[str, Any], field: str = "latency_ms") -> str:
    """Return a duration of the document in words; empty without one."""
    took = number(entry.get(field))
    return "" if took is None else duration_text(took)


def error_words(error: Mapping[str, Any]) -> str:
    """Return type and message of an error."""
    return ": ".join(filter(None, (text(error.get("type")), text(error.get("message")))))


def tokens(entry: Mapping[str, Any]) -> list[str]:
    """Return the tokens of a model call or a run in words: `1,200 input tokens`."""
    return [
        f"{value:,} {name.replace('_', ' ')}"
        for name, value in entry.items()
        if name.endswith("_tokens") and isinstance(value, int) and not isinstance(value, bool)
    ]


def instant_of(value: object) -> str:
    """Return a time of the document as HTML, in UTC; a text that is no time as it is."""
    stated = text(value)
    try:
        moment = datetime.fromisoformat(stated).astimezone(UTC)
    except (ValueError, OverflowError):
        return safe(stated[:100])
    exact = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f'<time datetime="{exact}">{moment:%Y-%m-%d %H:%M:%S} UTC</time>'


_ALLOWED = re.compile(r"[#?]|https?://|/(?![/\\])")


def _nowhere(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Functions from ids to addresses. Each may return None, and then the id is shown as text.

    The ids are those of the document, and may be any text: the functions quote them.
    """

    run: Callable[[str], str | None] = _nowhere
    """Address of a run."""
    step: Callable[[str, int], str | None] = _nowhere
    """Address of a step, by the id of its run and its number."""
    approval: Callable[[str], str | None] = _nowhere
    """Address of a request for approval."""


ALONE = Links()
"""No other pages."""


def anchor(address: str | None, content: str) -> str:
    """Return HTML as a link; unchanged without an address."""
    if address is None or not _ALLOWED.match(address):
        return content
    return f'<a href="{safe(address)}">{content}</a>'


def run_anchor(name: str, links: Links) -> str:
    """Return the id of a run as HTML, linked to that run."""
    return anchor(links.run(name), f'<span class="mono">{safe(name[:200])}</span>')
