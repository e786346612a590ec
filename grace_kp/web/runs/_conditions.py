"""The filters of the list as a form, and the active ones as chips that can be taken away. They live in the address, and empty ones leave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from grace_kp.pages import spaced
from grace_kp.web._run_query import CONDITIONS, LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.store import Catalog

NAMES = tuple(item.name for item in CONDITIONS)
_LABELS = {
    "min_score": "score from", "max_score": "score to", "min_confidence": "confidence from", "max_confidence": "confidence to",
    "tags": "tag", "since": "began since", "until": "began until", "text": "contains", "scorer_passed": "scorer",
    "feedback": "labels", "roots": "nesting",
}  # fmt: skip
_WORDS = {
    ("scorer_passed", "true"): "passed", ("scorer_passed", "false"): "not passed", ("feedback", "true"): "labelled",
    ("feedback", "false"): "not labelled", ("roots", "true"): "outermost runs only", ("roots", "false"): "all runs", ("level", "none"): "no gate",
}  # fmt: skip
_CHOICES = {
    "level": LEVELS,
    "scorer_passed": ("true", "false"),
    "feedback": ("true", "false"),
    "roots": ("true",),
}
_FROM_CATALOG = {"agent": "agent", "domain": "domain", "status": "status", "tags": "tag", "scorer": "scorer"}
_FIRST = ("text", "agent", "status", "level")
"""Fields that are always seen; the others fold."""
_HINTS = {
    "since": "a day such as 2026-11-25, or 7d for the last seven days",
    "until": "a day such as 2026-11-25, or 2h for two hours ago",
}
_RANGE = {"min_score", "max_score", "min_confidence", "max_confidence"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """An active filter."""

    label: str
    value: str
    without: str
    """Query of the list without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of the form."""

    name: str
    label: str
    value: str
    problem: str
    options: tuple[tuple[str, str], ...] = ()
    """Values and words of a drop-down; empty for a text."""
    kept: tuple[str, ...] = ()
    """Values that stay beside the one that is chosen."""
    hint: str = ""
    number: bool = False
    first: bool = False


def stated(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the conditions that an address states, without empty ones and repeated ones."""
    return list(dict.fromkeys((name, value) for name, value in pairs if name in NAMES and value))


def chips(pairs: Sequence[tuple[str, str]]) -> list[Chip]:
    """Return the active filters."""
    return [
        Chip(label=_label(name), value=_word(name, value), without=urlencode([pair for pair in pairs if pair != (name, value)]))
        for name, value in pairs
    ]  # fmt: skip


def fields(catalog: Catalog, pairs: Sequence[tuple[str, str]], problems: Mapping[str, str]) -> list[Field]:
    """Return the fields of the form with what the address states.

    Args:
        catalog: knows the names that occur.
        pairs: the conditions in the address.
        problems: what is wrong with some of them, by name.
    """
    form = []
    for item in CONDITIONS:
        name = item.name
        values = [value for stated_name, value in pairs if stated_name == name]
        value = values[0] if values and not item.many else ""
        choices = list(_CHOICES.get(name, ()))
        if name in _FROM_CATALOG:
            choices = catalog.names(_FROM_CATALOG[name])
        if choices and value and value not in choices:
            choices.insert(0, value)
        options = tuple((choice, _word(name, choice)) for choice in choices if choice and choice not in values[1:])
        problem = problems.get(name, "")
        form.append(
            Field(
                name=name,
                label="add a tag" if item.many and values else "scorer result" if name == "scorer_passed" else _label(name),
                value=value,
                problem=problem,
                options=options if item.many or name in _CHOICES or options else (),
                kept=tuple(values) if item.many else (),
                hint=_HINTS.get(name, ""),
                number=name in _RANGE,
                first=name in _FIRST,
            )
        )  # fmt: skip
    form.sort(key=lambda field: _FIRST.index(field.name) if field.first else len(_FIRST))
    return form


def _label(name: str) -> str:
    return _LABELS.get(name, spaced(name))


def _word(name: str, value: str) -> str:
    return _WORDS.get((name, value), spaced(value) if name in {"status", "level"} else value)
