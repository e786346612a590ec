"""Parameters of addresses as pydantic models. Each field states the meaning, the allowed values and the JSON schema of a parameter.

The list of runs and the API share `RunConditions`, the conditions of a search for runs.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from grace_kp.errors import brief
from grace_kp.store import CatalogQuery, moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import QueryParams

UNSTATED: Any = None
"""The default of a parameter that is absent from the values unless the address states it."""
AT_MOST_VALUES = 20
"""Values of a parameter that may be repeated."""
_DAY = "[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
_TIME = f"{_DAY}(?:T{_CLOCK}(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?|[0-9]{{1,4}}[smhdw]"


Text = Annotated[str, Field(min_length=1, max_length=200)]
Share = Annotated[float, Field(ge=0, le=1)]
Day = Annotated[
    str, Field(pattern=f"^{_DAY}$", json_schema_extra={"format": "date"}), AfterValidator(date.fromisoformat)
]
Time = Annotated[
    str,
    AfterValidator(lambda text: str(moment(text[:40], "it"))),
    WithJsonSchema({"type": "string", "pattern": f"^(?:{_TIME})$"}),
]
"""A date, a date and time (UTC where it names no zone), or how long ago, such as `2h`. The value is the time as traces hold it."""


class Parameters(BaseModel):
    """The parameters of an address, one field each."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    @classmethod
    def read(cls, items: Sequence[tuple[str, str]]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the valid values, and a problem (a sentence without its subject) for each other value, both by name."""
        stated: dict[str, list[str]] = {}
        for name, value in items:
            stated.setdefault(name, []).append(value)
        values = {name: found if cls.is_list(name) or len(found) > 1 else found[0] for name, found in stated.items()}
        problems: dict[str, str] = {}
        try:
            found = cls.model_validate(values)
        except ValidationError as error:
            problems = problems_in(error, cls)
            found = cls.model_validate({name: value for name, value in values.items() if name not in problems})
        return {name: value for name, value in found if value is not None}, problems

    @classmethod
    def is_list(cls, name: str) -> bool:
        return name in cls.model_fields and cls.model_fields[name].annotation == tuple[Text, ...]


def problems_in(error: ValidationError, model: type[BaseModel]) -> dict[str, str]:
    """Return the problems of parameters or a body by field, each a sentence without its subject."""
    texts = {
        "missing": "is missing",
        "extra_forbidden": f"is unknown; known are {', '.join(model.model_fields) or 'none'}",
    }
    problems: dict[str, str] = {}
    for found in error.errors(include_url=False, include_context=False):
        place = [str(part) for part in found["loc"]]
        name = (place[0] if issubclass(model, Parameters) else ".".join(place)) if place else "body"
        reason = found["msg"].removeprefix("Value error, ")
        value = "" if brief(found["input"]) in reason else f", not {brief(found['input'])}"
        problems.setdefault(name, texts.get(found["type"], f"cannot be used: {reason[:1].lower()}{reason[1:]}{value}"))
    return problems


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
    scorer_passed: bool = UNSTATED
    """Whether the run passed that scorer, or any."""
    tags: tuple[Text, ...] = Field(UNSTATED, max_length=AT_MOST_VALUES)
    """A tag of the run; repeat the parameter to require several tags."""
    user: Text = UNSTATED
    """User of the run."""
    session: Text = UNSTATED
    """Session of the run."""
    since: Time = Field(UNSTATED, examples=["7d"])
    """Runs that began at or after this time: a date, a date and time (UTC without a zone), or how long ago."""
    until: Time = Field(UNSTATED, examples=["2026-11-25T12:00:00Z"])
    """Runs that began at or before this time."""
    text: str = Field(UNSTATED, min_length=1, max_length=500)
    """A string that the run contains, ignoring case."""
    feedback: bool = UNSTATED
    """Only runs with feedback, or only runs without."""
    roots: bool = UNSTATED
    """Only runs that are not nested in another."""


def query_from(params: QueryParams) -> tuple[CatalogQuery, dict[str, str]]:
    """Return the conditions that an address states, without unusable ones, and the problems by field. Empty fields, as a form sends them, mean any."""
    items = [(name, value) for name, value in params.multi_items() if value and name in RunConditions.model_fields]
    values, problems = RunConditions.read(items)
    return CatalogQuery(**values), problems
