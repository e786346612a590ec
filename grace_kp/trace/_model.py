"""The JSON contract of a reasoning trace (KnowledgePulse schema v1), and the only place that uses pydantic models.

It says what a finished run looks like. How a run becomes one is `record/`; what it is worth is `value/`.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, AllowInfNan, BaseModel, ConfigDict, Field, ValidationError

from grace_kp.errors import InvalidTrace
from grace_kp.levels import PrivacyLevel, StepType, Visibility

CONTEXT = "https://openknowledgepulse.org/schema/v1"
TYPE = "ReasoningTrace"

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")


def _instant(text: str) -> str:
    # The text itself is kept, so that a document reads back to the letter.
    if not _INSTANT.fullmatch(text):
        raise ValueError("must be a UTC instant in ISO 8601 that ends in Z, for example 2026-01-02T03:04:05.000Z")
    datetime.fromisoformat(text)
    return text


# `int | float` keeps 1 as 1 and 1.0 as 1.0, so that documents read back to the letter.
_Unit = Field(ge=0, le=1)
_NotNegative = Field(ge=0)
UnitInterval = Annotated[int, _Unit] | Annotated[float, _Unit, AllowInfNan(allow_inf_nan=False)]
Milliseconds = Annotated[int, _NotNegative] | Annotated[float, _NotNegative, AllowInfNan(allow_inf_nan=False)]
NonEmpty = Annotated[str, Field(min_length=1)]
Instant = Annotated[str, AfterValidator(_instant)]


class _Part(BaseModel):
    """A JSON object of the contract: strict types, unknown keys kept, absent optionals left out when written."""

    model_config = ConfigDict(extra="allow", strict=True, use_enum_values=True, validate_default=False)

    _optional: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls._optional = frozenset(name for name, field in cls.model_fields.items() if field.default is None)

    def to_dict(self) -> dict[str, Any]:
        """The exact JSON form as dicts and lists. Optionals that are absent are left out; unknown keys are kept."""
        cls = type(self)
        values, optional = self.__dict__, cls._optional
        out: dict[str, Any] = {}
        for name, field in cls.model_fields.items():
            value = values[name]
            if value is None and name in optional:
                continue
            out[field.alias or name] = _dump(value)
        if self.__pydantic_extra__:
            out.update(self.__pydantic_extra__)
        return out


def _dump(value: Any) -> Any:
    if isinstance(value, _Part):
        return value.to_dict()
    if type(value) is list:
        return [_dump(item) for item in value]
    return value.value if isinstance(value, StrEnum) else value


class Metadata(_Part):
    """What is known about a run apart from what it did."""

    created_at: Instant
    """When the run began: ISO 8601, UTC, ending in Z."""
    agent_id: Annotated[str, Field(pattern=r"^kp:agent:.+")] | None = None
    framework: str | None = None
    task_domain: NonEmpty
    """Selects the weights of the value score; any non-empty text."""
    success: bool
    quality_score: UnitInterval = 0.0
    """The value score, 0 to 1."""
    visibility: Annotated[Visibility, Field(strict=False)] = Visibility.PRIVATE
    privacy_level: Annotated[PrivacyLevel, Field(strict=False)] = PrivacyLevel.PRIVATE
    validated_by: list[str] | str | None = None


class Task(_Part):
    """What the agent was asked to do."""

    objective: NonEmpty
    input_schema: dict[str, Any] | None = None


class ToolRef(_Part):
    """The tool that a step used."""

    name: NonEmpty
    mcp_server: str | None = None


class Step(_Part):
    """One step of a run."""

    step_id: Annotated[int, Field(ge=0)]
    type: Annotated[StepType, Field(strict=False)]
    content: str | None = None
    tool: ToolRef | None = None
    input: dict[str, Any] | None = None
    """What the tool was called with, by parameter name."""
    output_summary: str | None = None
    latency_ms: Milliseconds | None = None


class Outcome(_Part):
    """How the run ended."""

    result_summary: str
    confidence: UnitInterval
    """The GRACE confidence, or the run's own where it set one; 0 to 1."""


class Entity(_Part):
    """Something the run learned about."""

    name: str
    type: str


class Relationship(_Part):
    """A fact the run learned, and since when it holds."""

    fact: str
    valid_from: str | None = None


class KnowledgeGraphDelta(_Part):
    """What the run adds to a knowledge graph."""

    entities: list[Entity]
    relationships: list[Relationship]


class ReasoningTrace(_Part):
    """A finished run, in the form that is stored, exported and scored.

    Read one with `ReasoningTrace.model_validate(document)`, write it with `to_dict()`; the two are each other's inverse.
    Bad input raises one `InvalidTrace` that names the field. Keys that the schema does not know are kept.
    """

    context: Annotated[Literal["https://openknowledgepulse.org/schema/v1"], Field(alias="@context")] = (
        "https://openknowledgepulse.org/schema/v1"
    )
    type_: Annotated[Literal["ReasoningTrace"], Field(alias="@type")] = "ReasoningTrace"
    id: Annotated[str, Field(pattern=r"^kp:trace:.+")]
    source_skill: str | None = None
    metadata: Metadata
    task: Task
    steps: Annotated[list[Step], Field(min_length=1)]
    outcome: Outcome
    knowledge_graph_delta: KnowledgeGraphDelta | None = None
    grace: dict[str, Any] | None = None
    """All that is ours beyond the public schema: status, calls, confidence and its parts, decisions, links."""

    @classmethod
    def model_validate(cls, obj: Any, **kwargs: Any) -> Self:
        """Read a document of dicts and lists.

        Raises:
            InvalidTrace: the document breaks the schema; the message names the first field that does.
        """
        try:
            return super().model_validate(obj, **kwargs)
        except ValidationError as error:
            raise _invalid(error) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **kwargs: Any) -> Self:
        """Read a document of JSON text.

        Raises:
            InvalidTrace: the text is not JSON, or the document breaks the schema.
        """
        try:
            return super().model_validate_json(json_data, **kwargs)
        except ValidationError as error:
            raise _invalid(error) from None

    def to_json(self, *, indent: int | None = None) -> str:
        """The document as JSON text; one line unless `indent` is given."""
        separators = None if indent else (",", ":")
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)

    @property
    def tool_names(self) -> list[str]:
        """The distinct tool names in the order in which they first appear."""
        return list(dict.fromkeys(step.tool.name for step in self.steps if step.tool is not None))


def _invalid(error: ValidationError) -> InvalidTrace:
    """The first problem as one line; how many more there are is said."""
    problems = error.errors(include_url=False, include_context=False)
    first = problems[0]
    more = len({_path(problem["loc"]) for problem in problems} - {_path(first["loc"])})
    message = first["msg"].removeprefix("Value error, ")
    seen = first.get("input")
    if first["type"] not in {"missing", "json_invalid"}:
        message += f" (got {_brief(seen)})"
    if more:
        message += f"; and {more} more"
    return InvalidTrace(message, path=_path(first["loc"]))


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part in _UNION_BRANCHES:
            continue
        else:
            path += f".{part}" if path else part
    return path


# pydantic adds the branch of a union to the location; it is no part of the document.
_UNION_BRANCHES = frozenset({"int", "float", "str", "list[str]", "constrained-int", "constrained-float"})


def _brief(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
