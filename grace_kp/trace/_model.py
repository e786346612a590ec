"""The JSON contract of a reasoning trace (KnowledgePulse schema v1), its checks, and the messages about a document that breaks it.

It describes a finished run. `record/` produces traces, `value/` scores them. `_records` types what is stored under `grace`.
"""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from errno import EISDIR
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeGuard, overload

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from grace_kp.errors import InvalidTrace, brief, is_unit
from grace_kp.levels import PrivacyLevel, StepType, Visibility
from grace_kp.trace import _records
from grace_kp.trace._files import write_whole
from grace_kp.trace._json_text import refuse_constant
from grace_kp.trace._records import CallRecord, ErrorRecord, EvaluationRecord, ScoreRecord, ValueRecord
from grace_kp.trace._render import SCALARS

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from pydantic_core import ErrorDetails

    from grace_kp.trace._records import ConfidenceRecord, DecisionRecord


CONTEXT: Final = "https://openknowledgepulse.org/schema/v1"
TYPE: Final = "ReasoningTrace"

_INSTANT = re.compile(r"([0-9]{4})(-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2})(:[0-9]{2}(\.[0-9]+)?)?Z")


def _instant(text: str) -> str:
    # The string itself is kept, so that a document is written exactly as it was read.
    parts = _INSTANT.fullmatch(text)
    if parts is None or "T24" in text:
        raise ValueError("must be a UTC instant in ISO 8601 that ends in Z, for example 2026-01-02T03:04:05.000Z")
    try:
        # Python has no year 0; the schema has, and it is a leap year.
        datetime.fromisoformat(f"{parts[1] if parts[1] != '0000' else '2000'}{parts[2]}{(parts[3] or '')[:10]}")
    except ValueError as error:
        raise ValueError(f"must be an instant that exists: {error}") from None
    return text


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _names(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]  # accepted from earlier versions; the schema has lists only
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return list(value)
    raise ValueError("must be a list of strings")


# Numbers keep their type: 1 stays 1 and 1.0 stays 1.0, so that a document is written as it was read.
def _unit(value: object) -> int | float:
    if not is_unit(value):
        raise ValueError("must be a number from 0 to 1")
    return value


def _not_negative(value: Any) -> int | float:
    if not _is_number(value) or not 0 <= value < math.inf:
        raise ValueError("must be a number of at least 0")
    return value


def _whole(value: Any) -> int:
    if not _is_number(value) or value != value // 1:
        raise ValueError("must be a whole number")
    if value < 0:
        raise ValueError("must be at least 0")
    return value  # type: ignore[return-value]  # 1.0 is a whole number in JSON


def _require(holds: Callable[[Any], bool], problem: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(problem)
        return value

    return check


UnitInterval = Annotated[int | float, PlainValidator(_unit)]
Milliseconds = Annotated[int | float, PlainValidator(_not_negative)]
Names = Annotated[list[str], PlainValidator(_names)]
WholeNumber = Annotated[int, PlainValidator(_whole)]
# Not pydantic's rules for strings: they refuse half a surrogate pair, which agents produce and JSON can hold.
NonEmpty = Annotated[str, AfterValidator(_require(bool, "must not be empty"))]
TraceId = Annotated[str, AfterValidator(_require(lambda it: it.startswith("kp:trace:"), "must begin with 'kp:trace:'"))]
Instant = Annotated[str, AfterValidator(_instant)]


class _JsonObject(BaseModel):
    """A JSON object of the contract: strict types, unknown keys kept, absent optionals left out when written.

    A null where the schema has an optional field is taken as its absence.
    """

    model_config = ConfigDict(extra="allow", strict=True, validate_default=False)

    # Attribute, JSON name, and whether None is left out when written; cached, because pydantic's own table is slow.
    _json_names: ClassVar[tuple[tuple[str, str, bool], ...]] = ()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        fields = cls.model_fields.items()
        cls._json_names = tuple((name, field.alias or name, field.default is None) for name, field in fields)

    @classmethod
    def model_validate(cls, obj: Any, **kwargs: Any) -> Self:
        """Read a document of dicts and lists.

        Raises:
            InvalidTrace: the document breaks the schema, or holds a value without a form in JSON; the message names the first such field.
        """
        if isinstance(obj, dict):
            refuse_what_json_cannot_hold(obj)
        try:
            return super().model_validate(obj, **kwargs)
        except ValidationError as error:
            raise invalid(error, cls.__name__) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **kwargs: object) -> Self:
        """Read a document of JSON text.

        Raises:
            InvalidTrace: the input is not JSON, or the document breaks the schema.
        """
        try:
            # Not pydantic's own parser: it accepts NaN, and a single entry point applies a single set of rules.
            document = json.loads(json_data, parse_constant=refuse_constant)
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidTrace(f"is not JSON: {error}") from None
        return cls.model_validate(document, **kwargs)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the exact JSON form as dicts and lists. Absent optionals are left out; unknown keys are kept."""
        values = self.__dict__
        out: dict[str, Any] = {}
        for name, json_name, optional in self._json_names:
            value = values[name]
            if value is not None or not optional:
                out[json_name] = _dump(value)
        for name, value in (self.__pydantic_extra__ or {}).items():
            out[name] = _dump(value)
        return out


def _dump(value: object) -> Any:
    if type(value) in SCALARS:
        return value
    if isinstance(value, _JsonObject):
        return value.to_dict()
    if isinstance(value, list):
        return [_dump(item) for item in value]
    if isinstance(value, dict):
        return {key: _dump(item) for key, item in value.items()}
    return value.value if isinstance(value, StepType | Visibility | PrivacyLevel) else value


class Metadata(_JsonObject):
    """Facts about a run as a whole."""

    created_at: Instant
    """When the run began: ISO 8601, UTC, ending in Z."""
    agent_id: str | None = None
    """Any string. Recorded runs have `kp:agent:` and the name of the agent."""
    framework: str | None = None
    task_domain: NonEmpty
    """Selects the weights of the value score; any non-empty string."""
    success: bool
    quality_score: UnitInterval = 0.0
    """The value score, 0 to 1."""
    visibility: Annotated[Visibility, Field(strict=False)] = Visibility.PRIVATE
    privacy_level: Annotated[PrivacyLevel, Field(strict=False)] = PrivacyLevel.PRIVATE
    validated_by: Names | None = None


class Task(_JsonObject):
    """The agent's task."""

    objective: NonEmpty
    input_schema: dict[str, Any] | None = None


class ToolRef(_JsonObject):
    """The tool that a step used."""

    name: str
    mcp_server: str | None = None


class Step(_JsonObject):
    """One step of a run."""

    step_id: WholeNumber
    type: Annotated[StepType, Field(strict=False)]
    content: str | None = None
    tool: ToolRef | None = None
    input: dict[str, Any] | None = None
    """Arguments of the tool, by parameter name."""
    output_summary: str | None = None
    started_ms: Milliseconds | None = None
    """Time from the beginning of the run, or of its continuation, to the thought."""
    latency_ms: Milliseconds | None = None


class Outcome(_JsonObject):
    """How the run ended."""

    result_summary: str
    confidence: UnitInterval
    """The GRACE confidence, or the confidence that the run set itself; 0 to 1."""


class Entity(_JsonObject):
    """An entity that the run learned about."""

    name: str
    type: str


class Relationship(_JsonObject):
    """A fact that the run learned, and since when it is valid."""

    fact: str
    valid_from: str


class KnowledgeGraphDelta(_JsonObject):
    """Additions of the run to a knowledge graph."""

    entities: list[Entity]
    relationships: list[Relationship]


class ReasoningTrace(_JsonObject):
    """A finished run, in the form that is stored, exported and scored.

    Read a trace with `ReasoningTrace.model_validate(document)` and write it with `to_dict()`; the two are inverse to each other.
    Invalid input raises one `InvalidTrace` that names the field. Keys outside the schema are kept.
    """

    context: Annotated[Literal["https://openknowledgepulse.org/schema/v1"], Field(alias="@context")] = CONTEXT
    type_: Annotated[Literal["ReasoningTrace"], Field(alias="@type")] = TYPE
    id: TraceId
    source_skill: str | None = None
    metadata: Metadata
    task: Task
    steps: Annotated[list[Step], Field(min_length=1)]
    outcome: Outcome
    knowledge_graph_delta: KnowledgeGraphDelta | None = None
    grace: dict[str, Any] | None = None
    """Our data beyond the public schema, as JSON. The properties below return it with types."""

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the document as JSON text; a single line unless `indent` is set.

        Raises:
            InvalidTrace: a value without a form in JSON was put into the trace after it was read; the message names it.
        """
        document = self.to_dict()
        refuse_what_json_cannot_hold(document)
        separators = None if indent else (",", ":")
        text = json.dumps(document, ensure_ascii=False, indent=indent, separators=separators)
        try:
            text.encode()
        except UnicodeEncodeError:  # half a surrogate pair, which JSON holds only as an escape
            text = json.dumps(document, indent=indent, separators=separators)
        return text

    @overload
    def to_html(self, path: None = None) -> str: ...
    @overload
    def to_html(self, path: str | os.PathLike[str]) -> Path: ...
    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | Path:
        """Write the run as one HTML file that can be mailed, or return its HTML.

        The file needs no network and runs no script. It holds everything that the trace holds: figures, steps with arguments and results,
        decisions, durations and the JSON; very long texts are cut with a note. Recording has removed the secrets that it recognised. A trace
        that another program wrote is shown as it is.

        Args:
            path: the file to write, replaced as a whole if it exists; a new file is readable by its owner only (setting `file_mode`). The HTML
                is returned when None.

        Returns:
            The path, or the HTML if `path` is None.

        Raises:
            IsADirectoryError: the path is a folder.
            OSError: the file cannot be written.
        """
        from grace_kp.trace.html import run_page

        if path is None:
            return run_page(self)
        if Path(path).is_dir():
            raise IsADirectoryError(EISDIR, "is a folder; name a file in it, such as run.html", str(path))
        write_whole(path, run_page(self))
        return Path(path)

    def _repr_html_(self) -> str:
        """Return the run for a notebook: its figures, and its steps as far as the notebook stays small."""
        from grace_kp.pages import notebook
        from grace_kp.trace.html import run_excerpt

        return notebook(run_excerpt(self))

    @property
    def tool_names(self) -> list[str]:
        """The distinct tool names in the order in which they first appear."""
        return list(dict.fromkeys(step.tool.name for step in self.steps if step.tool is not None))

    # The data under `grace`, typed. Top-level keys of foreign documents with these names are kept in the JSON and in `model_extra`.

    def _part(self, name: str) -> Any:
        return (self.grace or {}).get(name)

    @property
    def status(self) -> str | None:
        """How the run ended: `completed`, `failed`, `cancelled`, `not_approved`, `suspended`, `interrupted`, …; None if not recorded."""
        return _records.text_of(self._part("status"))

    @property
    def name(self) -> str | None:
        """Name of the agent or run; None if not recorded."""
        return _records.text_of(self._part("name"))

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the run, in order."""
        return _records.texts_of(self._part("tags"))

    @property
    def user(self) -> str | None:
        """The user of the run; None if not recorded."""
        return _records.text_of(self._part("user"))

    @property
    def session(self) -> str | None:
        """The session of the run; None if not recorded."""
        return _records.text_of(self._part("session"))

    @property
    def run_metadata(self) -> Mapping[str, Any]:
        """The metadata of the run, by name; the property `metadata` belongs to the public schema."""
        return _records.object_of(self._part("metadata")) or {}

    @property
    def confidence(self) -> ConfidenceRecord | None:
        """The computed confidence with its parts, penalties and reason; None if there is none.

        `outcome.confidence` is the effective confidence: this score, or the one that the run set itself.
        """
        return _records.read_confidence(self._part("confidence"))

    @property
    def value(self) -> ValueRecord | None:
        """The value score with its parts; None if the run was not scored."""
        return _records.read(ValueRecord, self._part("value"))

    @property
    def decisions(self) -> list[DecisionRecord]:
        """The decisions about gated actions, in the order in which the actions were called."""
        return _records.read_decisions(self._part("decisions"))

    @property
    def calls(self) -> list[CallRecord]:
        """The calls of tools, in the order in which they started."""
        return _records.read_all(CallRecord, self._part("calls"))

    @property
    def scores(self) -> list[ScoreRecord]:
        """The results of `Grace(scorers=…)`."""
        return _records.read_all(ScoreRecord, self._part("scores"))

    @property
    def evaluation(self) -> EvaluationRecord | None:
        """How a model judged the run, or why none did; None if not recorded."""
        return _records.read(EvaluationRecord, self._part("evaluation"))

    @property
    def usage(self) -> Mapping[str, int]:
        """Tokens of all model calls, nested runs included, by kind such as `input_tokens`; empty if none were reported."""
        return _records.counts_of(self._part("usage"))

    @property
    def error(self) -> ErrorRecord | None:
        """The exception that ended the run; None without one."""
        return _records.read(ErrorRecord, self._part("error"))

    @property
    def parent_id(self) -> str | None:
        """Id of the trace that this run was nested in; None for a root run."""
        parent = self._part("parent")
        return _records.text_of(parent.get("trace_id")) if isinstance(parent, dict) else None

    @property
    def children(self) -> tuple[str, ...]:
        """Ids of the traces of nested runs."""
        return _records.texts_of(self._part("children"))

    @property
    def awaits(self) -> tuple[str, ...]:
        """Parts that are added later: "judgement", "value" or "scores"; empty for a complete trace."""
        return _records.texts_of(self._part("awaits"))


MAX_DEPTH = 200
"""Nesting of objects and lists; deeper documents overflow the stack of JSON readers."""
MAX_BITS = 14_000
"""About 4,200 decimal digits; Python refuses to print or parse integers of more than 4,300."""

_WORDS = {
    "missing": "is missing",
    "string_type": "must be a string",
    "too_short": "must have at least one item",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}


def invalid(error: ValidationError, what: str) -> InvalidTrace:
    """Return the error for the first problem of a `what`: the value found, and the number of other wrong fields."""
    problems = error.errors(include_url=False)
    first = problems[0]
    path = location_text(first["loc"])
    message = _message(first)
    if first["type"] != "missing":
        message += f" (got {brief(first['input'])})"
    others = len({location_text(problem["loc"]) for problem in problems} - {path})
    if others:
        message += f"; {others} more {'field is' if others == 1 else 'fields are'} wrong"
    return InvalidTrace(message if path else f"a {what} {message}", path=path)


def refuse_what_json_cannot_hold(document: object) -> None:
    """Check every value of a document, also where the schema allows any."""
    waiting: list[tuple[Any, tuple[int | str, ...]]] = [(document, ())]
    while waiting:
        value, place = waiting.pop()
        if len(place) > MAX_DEPTH:
            raise InvalidTrace(f"is nested more than {MAX_DEPTH} levels deep", path=location_text(place[:6]) + "…")
        if isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str):
                    raise InvalidTrace(f"has a key that is not a string: {brief(key)}", path=location_text(place))
                if type(item) is not str:
                    waiting.append((item, (*place, key)))
        elif isinstance(value, list):
            waiting.extend((item, (*place, index)) for index, item in enumerate(value))
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise InvalidTrace(f"must be a finite number (got {value!r})", path=location_text(place))
        elif isinstance(value, int):
            if value.bit_length() > MAX_BITS:
                problem = "must be a number that can be written out (got a very large one)"
                raise InvalidTrace(problem, path=location_text(place))
        elif value is not None and not isinstance(value, str):
            problem = f"must be a JSON value (got one of type {type(value).__name__})"
            raise InvalidTrace(problem, path=location_text(place))


def problem_text(problem: ErrorDetails) -> str:
    """Return one of pydantic's findings with the value found, unless the message names the value itself."""
    names_value = problem["type"] in {"missing", "value_error", "problem_at"}
    return _message(problem) + ("" if names_value else f", not {brief(problem['input'])}")


def _message(problem: ErrorDetails) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in {"enum", "literal_error"}:
        return f"must be {context['expected']}"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}"
    if kind == "value_error":
        return str(context["error"])
    return problem["msg"][:1].lower() + problem["msg"][1:]


def location_text(location: tuple[int | str, ...]) -> str:
    """Return a location as a path such as `steps[2].tool`."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            name = part if len(part) <= 60 else part[:57] + "..."
            path += f".{name}" if path else name
    return path
