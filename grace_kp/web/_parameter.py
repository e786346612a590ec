"""Parameters of addresses as pydantic models: a field states what a parameter means and allows, and gives its value and its JSON schema.

`RunConditions` are those of a search for runs, which the list of runs and the API share.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from grace_kp.errors import brief
from grace_kp.store import CatalogQuery, moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails
    from starlette.datastructures import QueryParams

UNSTATED: Any = None
"""The default of a parameter that has no value where the address does not state it."""
AT_MOST_VALUES = 20
"""Values of a parameter that may be repeated."""
_NUMBER = r"-?(?:0|[1-9][0-9]{0,20})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,4})?"
_DAY = "[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_LOCAL = rf"{_DAY}T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?"
_ZONE = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_TIME = f"{_DAY}|{_LOCAL}{_ZONE}?|[0-9]{{1,4}}[smhdw]"


def _check_spelling(pattern: str, words: str) -> BeforeValidator:
    """Return a check of the text of a value. Pydantic alone would also read `1_0`, `yes` and `inf`."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"must be {words}, not {brief(text)}")
        return text

    return BeforeValidator(check)


def _moment(text: str) -> str:
    try:
        return str(moment(text, "it"))
    except ValueError:
        raise ValueError(f"must be a time that exists, not {brief(text)}") from None


def _day(text: str) -> str:
    _moment(text)
    return text


WHOLE = _check_spelling(r"-?(?:0|[1-9][0-9]{0,18})", "a whole number")
"""Completes the type of a whole number: `Annotated[int, Field(ge=1, le=200), WHOLE]`."""
Text = Annotated[str, Field(min_length=1, max_length=200)]
Share = Annotated[float, Field(ge=0, le=1), _check_spelling(_NUMBER, "a number")]
Flag = Annotated[bool, _check_spelling("true|false", "true or false")]
Time = Annotated[
    str,
    _check_spelling(_TIME, "a time like 2026-01-02, 2026-01-02T03:04:05Z or 2h"),
    AfterValidator(_moment),
    WithJsonSchema({"type": "string", "pattern": f"^(?:{_TIME})$"}),
]
"""A date, a date and time (UTC where it names no zone), or how long ago, such as `2h`. The value is the time as traces hold it."""
Day = Annotated[
    str,
    _check_spelling(_DAY, "a day like 2026-01-02"),
    AfterValidator(_day),
    WithJsonSchema({"type": "string", "format": "date", "pattern": f"^{_DAY}$"}),
]


class Parameters(BaseModel):
    """The parameters of an address, one field each."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    @classmethod
    def read(cls, items: Sequence[tuple[str, str]]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the values by name, and by name what is wrong with the others: a sentence without a subject, such as `must not be empty`."""
        stated: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for name, value in items:
            stated.setdefault(name, []).append(value)
        for name, values in stated.items():
            if name not in cls.model_fields:
                problems[name] = f"is no parameter; known are {', '.join(cls.model_fields) or 'none'}"
            elif cls.is_list(name):
                continue
            elif len(values) > 1:
                problems[name] = f"must be stated once, not {len(values)} times"
            else:
                stated[name] = values[0]
        usable = {name: value for name, value in stated.items() if name not in problems}
        try:
            found = cls.model_validate(usable)
        except ValidationError as error:
            for each in error.errors(include_url=False):
                name = str(each["loc"][0])
                problems.setdefault(name, _problem(each, cls.model_fields[name]))
            found = cls.model_validate({name: value for name, value in usable.items() if name not in problems})
        values = {name: value for name, value in found if value is not None and name not in problems}
        return values, {name: problems[name] for name in [*cls.model_fields, *stated] if name in problems}

    @classmethod
    def is_list(cls, name: str) -> bool:
        """Return whether a parameter may be repeated."""
        return cls.model_fields[name].annotation == tuple[Text, ...]


def _problem(error: ErrorDetails, field: FieldInfo) -> str:
    """Return an error of pydantic in the words of this library."""
    context, value = error.get("ctx", {}), error["input"]
    match error["type"]:
        case "string_too_short":
            return "must not be empty"
        case "string_too_long":
            return f"must have at most {context['max_length']:,} characters, not {len(value):,}"
        case "too_long":
            return f"must be stated at most {context['max_length']} times, not {len(value)} times"
        case "literal_error":
            return f"must be one of {', '.join(get_args(field.annotation))}, not {brief(value)}"
        case "greater_than_equal" | "less_than_equal":
            low, high = (
                next(getattr(each, end) for each in field.metadata if hasattr(each, end)) for end in ("ge", "le")
            )
            return f"must be from {low:g} to {high:.15g}, not {brief(value)}"
    return error["msg"].removeprefix("Value error, ")


class RunConditions(Parameters):
    """Conditions on runs, by the fields of `CatalogQuery`."""

    agent: Text = Field(UNSTATED, examples=["refunds"])
    """Name of the agent or run."""
    domain: Text = Field(UNSTATED, examples=["support"])
    """Domain of the task."""
    status: Text = Field(UNSTATED, examples=["completed"])
    """How the run ended."""
    level: Literal["silent", "notify", "confirm", "escalate", "none"] = UNSTATED
    """Strictest level of the gates of the run; `none` without a gate."""
    min_score: Share = UNSTATED
    """Smallest value score."""
    max_score: Share = UNSTATED
    """Largest value score."""
    min_confidence: Share = UNSTATED
    """Smallest confidence."""
    max_confidence: Share = UNSTATED
    """Largest confidence."""
    scorer: Text = UNSTATED
    """Name of a scorer or suite that has scored the run."""
    scorer_passed: Flag = UNSTATED
    """Whether the run passed that scorer, or any."""
    tags: tuple[Text, ...] = Field(UNSTATED, max_length=AT_MOST_VALUES)
    """A tag of the run; repeat it for several, which must all be there."""
    user: Text = UNSTATED
    """User of the run."""
    session: Text = UNSTATED
    """Session of the run."""
    since: Time = Field(UNSTATED, examples=["7d"])
    """Runs that began at or after this time: a date, a date and time (UTC without a zone), or how long ago."""
    until: Time = Field(UNSTATED, examples=["2026-11-25T12:00:00Z"])
    """Runs that began at or before this time."""
    text: str = Field(UNSTATED, min_length=1, max_length=500)
    """A text that the run contains, in any case."""
    feedback: Flag = UNSTATED
    """Only runs with feedback, or only runs without."""
    roots: Flag = UNSTATED
    """Only runs that are nested in no other."""


def query_from(params: QueryParams) -> tuple[CatalogQuery, dict[str, str]]:
    """Return the conditions that an address states, without unusable ones, and the problems by field. Empty fields, as a form sends them, mean any."""
    items = [(name, value) for name, value in params.multi_items() if value and name in RunConditions.model_fields]
    values, problems = RunConditions.read(items)
    return CatalogQuery(**values), problems
