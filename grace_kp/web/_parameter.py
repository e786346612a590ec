"""Parameters of addresses: one description gives the checks, the value and the JSON schema. `CONDITIONS` are those of searches for runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from grace_kp.errors import brief
from grace_kp.levels import InterventionLevel
from grace_kp.store import CatalogQuery, moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.datastructures import QueryParams


AT_MOST_VALUES = 20
"""Values of a parameter that may be repeated."""


class Kind(StrEnum):
    """The kind of value of a parameter."""

    TEXT = "text"
    NUMBER = "number"
    WHOLE = "whole"
    FLAG = "flag"
    TIME = "time"
    """A date, a date and time (UTC where it names no zone), or how long ago, such as `2h`."""
    DAY = "day"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of an address."""

    name: str
    meaning: str
    kind: Kind = Kind.TEXT
    minimum: float = 0
    """Smallest number; ignored for other kinds."""
    maximum: float = 200
    """Largest number, or number of characters."""
    choices: tuple[str, ...] = ()
    many: bool = False
    """Whether it may be repeated."""
    pattern: str = ""
    """A pattern that the whole text must match."""
    required: bool = False
    default: Any = None
    example: Any = None

    def read(self, values: Sequence[str]) -> Any:
        """Return the value that an address states.

        Args:
            values: each occurrence of the parameter; at least one.

        Returns:
            A text, a number, a boolean, or a time as traces hold it; a tuple where the parameter may be repeated.

        Raises:
            ValueError: saying what is allowed, without the name of the parameter.
        """
        if self.many:
            if len(values) > AT_MOST_VALUES:
                raise ValueError(f"must be stated at most {AT_MOST_VALUES} times, not {len(values)} times")
            return tuple(map(self._read, values))
        if len(values) > 1:
            raise ValueError(f"must be stated once, not {len(values)} times")
        return self._read(values[0])

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""
        schema = self._schema()
        if self.many:
            schema = {"type": "array", "items": schema, "maxItems": AT_MOST_VALUES}
        return schema if self.default is None else {**schema, "default": self.default}

    def _read(self, text: str) -> Any:
        if self.choices and text not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}, not {brief(text)}")
        return _READERS[self.kind](self, text)

    def _schema(self) -> dict[str, Any]:
        if self.kind in {Kind.NUMBER, Kind.WHOLE}:
            name = "integer" if self.kind is Kind.WHOLE else "number"
            return {"type": name, "minimum": self.minimum, "maximum": self.maximum}
        if self.kind is Kind.TEXT:
            if self.choices:
                return {"type": "string", "enum": list(self.choices)}
            bounds = {"type": "string", "minLength": 1, "maxLength": int(self.maximum)}
            return {**bounds, "pattern": f"^(?:{self.pattern})$"} if self.pattern else bounds
        return dict(_SCHEMAS[self.kind])


def read_all(
    parameters: Sequence[Parameter], items: Sequence[tuple[str, str]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of parameters by name, and the problems by name.

    Args:
        parameters: those that are read. Others are ignored.
        items: names and values, as an address states them.
    """
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for parameter in parameters:
        stated = [value for name, value in items if name == parameter.name]
        if stated:
            try:
                values[parameter.name] = parameter.read(stated)
            except ValueError as error:
                problems[parameter.name] = str(error)
        elif parameter.required:
            problems[parameter.name] = "is missing"
        elif parameter.default is not None:
            values[parameter.name] = parameter.default
    return values, problems


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,20})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_DAY = "[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_LOCAL = rf"{_DAY}T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?"
_AGO = "[0-9]{1,4}[smhdw]"
_ZONE = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_TIME = re.compile(f"{_DAY}|{_LOCAL}{_ZONE}?|{_AGO}")
_SCHEMAS: Mapping[Kind, Mapping[str, Any]] = {
    Kind.FLAG: {"type": "boolean"},
    Kind.DAY: {"type": "string", "format": "date", "pattern": f"^{_DAY}$"},
    Kind.TIME: {"type": "string", "pattern": f"^(?:{_DAY}|{_LOCAL}{_ZONE}?|{_AGO})$"},
}


def _text(parameter: Parameter, text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    if len(text) > parameter.maximum:
        raise ValueError(f"must have at most {parameter.maximum:,g} characters, not {len(text):,}")
    if parameter.pattern and not re.fullmatch(parameter.pattern, text):
        raise ValueError(f"must match {parameter.pattern}, not {brief(text)}")
    return text


def _number(parameter: Parameter, text: str) -> float:
    whole = parameter.kind is Kind.WHOLE
    if not (_WHOLE if whole else _NUMBER).fullmatch(text):
        raise ValueError(f"must be a {'whole ' if whole else ''}number, not {brief(text)}")
    number = int(text) if whole else float(text)
    if not parameter.minimum <= number <= parameter.maximum:
        raise ValueError(f"must be from {parameter.minimum:g} to {parameter.maximum:.15g}, not {brief(text)}")
    return number


def _flag(_parameter: Parameter, text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(f"must be true or false, not {brief(text)}")
    return text == "true"


def _time(_parameter: Parameter, text: str) -> str:
    if not _TIME.fullmatch(text):
        raise ValueError(f"must be a time like 2026-01-02, 2026-01-02T03:04:05Z or 2h, not {brief(text)}")
    return _moment(text)


def _day(_parameter: Parameter, text: str) -> str:
    if not re.fullmatch(_DAY, text):
        raise ValueError(f"must be a day like 2026-01-02, not {brief(text)}")
    _moment(text)
    return text


def _moment(text: str) -> str:
    try:
        return str(moment(text, "it"))
    except ValueError:
        raise ValueError(f"must be a time that exists, not {brief(text)}") from None


_READERS = {
    Kind.TEXT: _text,
    Kind.NUMBER: _number,
    Kind.WHOLE: _number,
    Kind.FLAG: _flag,
    Kind.TIME: _time,
    Kind.DAY: _day,
}


LEVELS = (*(level.value for level in InterventionLevel), "none")
"""Levels of a run; `none` for runs without a gate."""
CONDITIONS = (
    Parameter(name="agent", meaning="Name of the agent or run.", example="refunds"),
    Parameter(name="domain", meaning="Domain of the task.", example="support"),
    Parameter(name="status", meaning="How the run ended.", example="completed"),
    Parameter(name="level", meaning="Strictest level of the gates of the run; `none` without a gate.", choices=LEVELS),
    Parameter(name="min_score", meaning="Smallest value score.", kind=Kind.NUMBER, maximum=1),
    Parameter(name="max_score", meaning="Largest value score.", kind=Kind.NUMBER, maximum=1),
    Parameter(name="min_confidence", meaning="Smallest confidence.", kind=Kind.NUMBER, maximum=1),
    Parameter(name="max_confidence", meaning="Largest confidence.", kind=Kind.NUMBER, maximum=1),
    Parameter(name="scorer", meaning="Name of a scorer or suite that has scored the run."),
    Parameter(name="scorer_passed", meaning="Whether the run passed that scorer, or any.", kind=Kind.FLAG),
    Parameter(name="tags", meaning="A tag of the run; repeat it for several, which must all be there.", many=True),
    Parameter(name="user", meaning="User of the run."),
    Parameter(name="session", meaning="Session of the run."),
    Parameter(
        name="since",
        meaning="Runs that began at or after this time: a date, a date and time (UTC without a zone), or how long ago.",
        kind=Kind.TIME,
        example="7d",
    ),
    Parameter(
        name="until", meaning="Runs that began at or before this time.", kind=Kind.TIME, example="2026-11-25T12:00:00Z"
    ),
    Parameter(name="text", meaning="A text that the run contains, in any case.", maximum=500),
    Parameter(name="feedback", meaning="Only runs with feedback, or only runs without.", kind=Kind.FLAG),
    Parameter(name="roots", meaning="Only runs that are nested in no other.", kind=Kind.FLAG),
)
"""The parameters, by the fields of `CatalogQuery`."""


def query_from(params: QueryParams) -> tuple[CatalogQuery, dict[str, str]]:
    """Return the conditions that an address states, and the problems by field.

    Args:
        params: `request.query_params`.

    Returns:
        The query without the fields that have a problem, and for each such field a sentence without a subject, such as
        `must be from 0 to 1, not '2'`.
    """
    values, problems = read_all(CONDITIONS, [(name, value) for name, value in params.multi_items() if value])
    return CatalogQuery(**values), problems
