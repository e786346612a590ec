"""The typed records of a trace: confidence, value, decisions, calls, scores, judgements. `read` takes them from the JSON under `grace`.

Traces written by other programs may hold anything there. A record that lacks a required field counts as missing, and any other field
of the wrong type as absent; `trace.grace` still shows both.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from grace_kp.errors import is_unit
from grace_kp.levels import InterventionLevel
from grace_kp.trace._rules import number_of

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """A recorded exception."""

    type: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceRecord:
    """The GRACE confidence of a finished run, with its parts."""

    score: float
    """The computed confidence, 0 to 1. A confidence that the run set itself is in `own` and in `trace.outcome.confidence`."""
    level: str | None = None
    """`high`, `medium`, `low` or `very_low`."""
    profile: str | None = None
    """The confidence profile."""
    reason: str = ""
    breakdown: Mapping[str, float | None] = field(default_factory=dict)
    """The parts, 0 to 1 each; None for a part that was not evaluated."""
    penalties: tuple[str, ...] = ()
    """The penalties that were applied, in order."""
    not_evaluated: tuple[str, ...] = ()
    """Names of the factors without evidence."""
    not_scored: tuple[str, ...] = ()
    """Those among them of something that was made and not scored: a search whose results carry no score."""
    fallbacks: Mapping[str, float] = field(default_factory=dict)
    """Those among `not_evaluated` that count all the same, with their value: 0.5 in the profile `grace`."""
    own: float | None = None
    """The confidence that the run set itself, 0 to 1."""
    run_failed: bool = False
    """Whether the run ended without success; `reason` then begins with the status."""
    contributions: Mapping[str, float] = field(default_factory=dict)
    """Contribution of each feature of a learned profile to the log odds."""
    fallback: bool = False
    """Whether the learned profile failed, so that the formula `grace` was used."""
    mismatches: tuple[str, ...] = ()
    """Differences between the run and those that the profile was learned from."""

    def _repr_html_(self) -> str:
        """Return the confidence with its parts for a notebook."""
        from grace_kp.pages import notebook
        from grace_kp.trace.html import confidence_of

        record = json.loads(json.dumps(dataclasses.asdict(self)))  # tuples as the lists of a document
        return notebook(confidence_of({}, {"confidence": record}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRecord:
    """The value score of a finished run and its parts, 0 to 1 each."""

    score: float
    complexity: float | None = None
    novelty: float | None = None
    tool_diversity: float | None = None
    outcome_confidence: float | None = None
    profile: str | None = None
    """The domain of the weights."""
    overrides: tuple[str, ...] = ()
    """Names of the rules that changed the weighted mean, in order."""
    novelty_fallback: str | None = None
    """Why novelty is only a fallback; None if it was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRecord:
    """A reviewer's answer."""

    action: str
    """`proceed`, `modify`, `skip`, `retry`, `input` or `cancel`."""
    reviewer: str | None = None
    user_input: str | None = None
    modified: Mapping[str, Any] | None = None
    """The reviewer's arguments, without secrets."""
    hidden: Mapping[str, int] = field(default_factory=dict)
    """As `DecisionRecord.hidden`, for the reviewer's arguments."""
    selected_option: str | None = None
    timeout_reached: bool = False
    response_time_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRecord:
    """The notice of an action that ran at the level NOTIFY."""

    text: str
    to: str | None = None
    """`terminal`, `log` or `on_notify`; None if it could not be delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """The decision about one call of a gated action: level, reviewer, answer and outcome."""

    action: str
    id: str | None = None
    """Names the action in labels: `grace.feedback(trace_id, correct, action=id)`. None in traces of earlier versions."""
    outcome: str
    """`executed`, `executed_modified`, `failed`, `skipped`, `redirected`, `cancelled`, `timed_out`, `denied`, `waiting`, `approved`,
    `running` or `undecided`; `executed_before`, `failed_before` or `running_before` if an earlier execution counts;
    `ungated` where a gated tool ran without a decision."""
    level: InterventionLevel | None = None
    score: float | None = None
    """The confidence behind the decision, 0 to 1."""
    reason: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the call, without secrets."""
    evidence_gaps: tuple[str, ...] = ()
    """Why evidence is missing or unusable; with any gap the gate requires at least CONFIRM."""
    hidden: Mapping[str, int] = field(default_factory=dict)
    """Number of characters that redaction or a cut removed from each argument."""
    digest: str | None = None
    """SHA-256 of the arguments at the time of the decision."""
    executed_digest: str | None = None
    """SHA-256 of the arguments of the execution; None without one."""
    floor: str | None = None
    policy_version: str | None = None
    attempt: int | None = None
    asked_at: str | None = None
    """When the call reached its gate, ISO 8601 in UTC; `decided_at` is when the gate had decided, before the action ran."""
    decided_at: str | None = None
    waited_ms: float | None = None
    """Milliseconds until the reviewer answered."""
    response: ResponseRecord | None = None
    """The answer; None if no reviewer was asked."""
    error: str | None = None
    problem: str | None = None
    """The problem with the reviewer's arguments; or that an earlier refusal of the same call holds."""
    executed_arguments: Mapping[str, Any] | None = None
    """Arguments of the execution, without secrets, if a reviewer changed them."""
    unchecked: str | None = None
    """Why changes of the arguments could not be detected; None if they could."""
    notice: NoticeRecord | None = None
    """The notice; None at other levels."""
    evaluation: EvaluationRecord | None = None
    """How a model judged the run before the gate; None if the gate asked none."""
    step: int | None = None
    """Number of steps of the run before the decision."""
    profile: str | None = None
    """The learned profile behind the score; None for a formula."""
    fallback: bool = False
    """Whether that profile failed, so that the score is that of the formula `grace`."""
    mismatches: tuple[str, ...] = ()
    """Differences between the run and those that the profile was learned from."""
    audit: Mapping[str, Any] | None = None
    """The draw of an action that ran without asking: `rate`, and whether it was `selected` for a check by a person."""
    shadow: Mapping[str, Any] | None = None
    """The decision of a second profile: `profile`, with `score` and `level`, or with the `error` instead of a score."""
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The whole entry of the trace."""

    @property
    def was_executed(self) -> bool:
        """Whether the action completed, in this run or before."""
        return self.outcome in {"executed", "executed_modified", "executed_before"}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableScore:
    """A score that cannot be used, with the reason."""

    value: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRecord:
    """The results of a retriever."""

    count: int
    scores: tuple[float, ...] = ()
    """The usable scores as similarities, 0 to 1."""
    sources: tuple[str, ...] = ()
    kind: str | None = None
    """Declared kind of the scores; None if not declared."""
    unusable_scores: int = 0
    """Number of results with an unusable score."""
    unusable: tuple[UnusableScore, ...] = ()
    """The first unusable scores, each with its reason."""
    note: str | None = None
    """Note about results that could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call of a tool."""

    name: str
    status: str
    """`ok`, `error`, `cancelled`, `closed`, `suspended`, `unfinished`, …"""
    call_id: str | None = None
    tool_call: int | None = None
    """Number of the step with the call."""
    observation: int | None = None
    """Number of the step with the result; None without one."""
    latency_ms: float | None = None
    error: ErrorRecord | None = None
    search: SearchRecord | None = None
    """The results, if the tool is a retriever."""
    parent: str | None = None
    """Id of the call around this call."""
    child: str | None = None
    """Id of the trace of the nested run."""
    usage: Mapping[str, int] = field(default_factory=dict)
    """Tokens of the nested run, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRecord:
    """The result of a scorer or suite."""

    name: str
    score: float | None
    """0 to 1; None if the scorer was skipped or failed."""
    passed: bool | None = None
    threshold: float | None = None
    suite: str | None = None
    """The suite of this score."""
    diagnosis: tuple[str, ...] = ()
    error: str | None = None
    skipped: str | None = None
    """Why the scorer was skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgementRecord:
    """The judgement of a run by a model or a measurement."""

    score: float
    """0 to 1; 0.5 for a fallback."""
    fallback: bool = False
    reason: str = ""
    error: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRecord:
    """How a model judged a run."""

    mode: str | None = None
    """`always`, `when_needed` or `never`."""
    skipped: str | None = None
    """Why nothing was judged; None if something was."""
    self_evaluation: JudgementRecord | None = None
    coverage: JudgementRecord | None = None
    source_agreement: JudgementRecord | None = None
    calls: int = 0
    """Number of calls of the judge."""
    tokens: int | None = None


def read(kind: type[R], part: object) -> R | None:
    """Return the JSON object `part` as a record of this class; None if it is not an object or lacks a required field."""
    if not isinstance(part, Mapping):
        return None
    values: dict[str, Any] = {}
    for name, reader, is_nullable, is_required in _FIELDS[kind]:
        value = reader(part.get(name))
        if value is not None or is_nullable:
            values[name] = value
        elif is_required:
            return None
    return kind(**values)


def read_all(kind: type[R], part: object) -> list[R]:
    """Return the records of a JSON list, without the entries that are none."""
    return [record for entry in part if (record := read(kind, entry)) is not None] if isinstance(part, list) else []


def read_confidence(part: object) -> ConfidenceRecord | None:
    """Return `grace.confidence`; a part that was not evaluated is None in the breakdown, whatever its number."""
    record = read(ConfidenceRecord, part)
    if record is None:
        return None
    breakdown = {name: None if name in record.not_evaluated else value for name, value in record.breakdown.items()}
    return dataclasses.replace(record, breakdown=breakdown)


def read_decisions(part: object) -> list[DecisionRecord]:
    """Return `grace.decisions`, each with the whole entry in `data`."""
    entries = (
        [{**entry, "data": entry} for entry in part if isinstance(entry, Mapping)] if isinstance(part, list) else []
    )
    return read_all(DecisionRecord, entries)


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def texts_of(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def object_of(value: object) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) else None


def counts_of(value: object) -> Mapping[str, int]:
    return {name: count for name, item in (object_of(value) or {}).items() if (count := _whole_of(item)) is not None}


def _parts_of(value: object) -> Mapping[str, float | None]:
    return {name: number_of(item) for name, item in (object_of(value) or {}).items()}


def _whole_of(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_SHARES = frozenset({"score", "own"})
"""Fields whose numbers are from 0 to 1."""
# By the annotation of a field.
_READERS: dict[str, Callable[[object], Any]] = {
    "share": lambda value: value if is_unit(value) else None,
    "str": text_of,
    "int": _whole_of,
    "float": number_of,
    "bool": lambda value: value if isinstance(value, bool) else None,
    "tuple[str, ...]": texts_of,
    "tuple[float, ...]": lambda part: tuple(
        number for item in (part if isinstance(part, list) else ()) if (number := number_of(item)) is not None
    ),
    "tuple[UnusableScore, ...]": lambda part: tuple(read_all(UnusableScore, part)),
    "Mapping[str, Any]": object_of,
    "Mapping[str, int]": counts_of,
    "Mapping[str, float]": lambda part: {name: item for name, item in _parts_of(part).items() if item is not None},
    "Mapping[str, float | None]": _parts_of,
    "InterventionLevel": lambda value: next((level for level in InterventionLevel if level.value == value), None),
    **{
        kind.__name__: partial(read, kind)
        for kind in (ErrorRecord, EvaluationRecord, JudgementRecord, NoticeRecord, ResponseRecord, SearchRecord)
    },
}


def _fields_of(kind: type[Any]) -> tuple[tuple[str, Callable[[object], Any], bool, bool], ...]:
    """Return each field of a record: its name, its reader, whether it may be None, and whether a record must have it."""
    found = []
    for item in dataclasses.fields(kind):
        annotation = str(item.type)
        reader = _READERS["share" if item.name in _SHARES else annotation.removesuffix(" | None")]
        is_required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        found.append((item.name, reader, annotation.endswith(" | None"), is_required))
    return tuple(found)


_FIELDS: dict[type, tuple[tuple[str, Callable[[object], Any], bool, bool], ...]] = {
    kind: _fields_of(kind)
    for kind in (
        ErrorRecord, ConfidenceRecord, ValueRecord, ResponseRecord, NoticeRecord, DecisionRecord, UnusableScore, SearchRecord,
        CallRecord, ScoreRecord, JudgementRecord, EvaluationRecord,
    )
}  # fmt: skip
