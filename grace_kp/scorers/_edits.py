"""Records that scorers compare: operations on blocks, the result of a run, and the expectation of a case; and the protocol of a scorer.

A trace can be scored like an edit: its tool calls become operations, and its answer a page.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeGuard, TypeVar

from grace_kp.errors import brief
from grace_kp.scorers._patterns import compiled_by_page, patterns_by_page

T = TypeVar("T")
Record = TypeVar("Record", bound="Operation | Block")
INSERT, DELETE = "insert", "delete"
MOVES = frozenset({"move", "reorder"})
"""Types that change the place of a block and not its content."""
_EXPECTATION_FIELDS = frozenset({"operations", "patterns", "ignore_case"})


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an editing agent.

    Raises:
        ValueError: a field has another type.
    """

    type: str
    """For example `insert`, `update`, `delete` or `move`."""
    target_block_id: str | None = None
    target_index: int | None = None
    position: Any = None
    """The place of an `insert`, such as `before`, `after` or a number."""
    content: str | None = None

    def __post_init__(self) -> None:
        _check(self.type, str, "an operation's type must be a string")
        _check(self.target_block_id, str | None, "target_block_id must be a string or None")
        _check(self.target_index, int | None, "target_index must be a whole number or None")
        _check(self.content, str | None, "an operation's content must be a string or None")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are not None."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) is not None}


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a document, such as a paragraph.

    Raises:
        ValueError: the id or the content is not a string.
    """

    id: str
    content: str

    def __post_init__(self) -> None:
        _check(self.id, str, "a block's id must be a string")
        _check(self.content, str, "a block's content must be a string")


@dataclass(frozen=True, slots=True)
class EditResult:
    """The edits of a run, and the documents before and after.

    Raises:
        ValueError: a field has another type, `applied` has another length than `operations`, or two blocks have the same id.
    """

    operations: Sequence[Operation]
    applied: Sequence[bool] | None = None
    """Whether each operation could be applied; None where that is unknown."""
    blocks_before: Sequence[Block] | None = ()
    """The document before the run; None where it is unknown."""
    blocks_after: Sequence[Block] | None = ()
    pages: Mapping[str, str] | None = None
    """The content of each page after the run, by title."""
    duration_ms: float | None = None

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Return the result that a JSON object with the fields of this class describes.

        Raises:
            ValueError: a field is unknown or cannot be used; the message names it as a field of `actual`.
        """
        fields = dict(checked_object(data, "actual", cls.__slots__))
        for name in ("blocks_before", "blocks_after"):
            if fields.get(name) is not None:
                fields[name] = _parse_items(Block, fields[name], f"actual.{name}")
        fields["operations"] = _parse_items(Operation, fields.get("operations", []), "actual.operations")
        return cls(**fields)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", _all_of(Operation, self.operations, "operations"))
        for name in ("blocks_before", "blocks_after"):
            if getattr(self, name) is not None:
                blocks = _all_of(Block, getattr(self, name), name)
                ids = [block.id for block in blocks]
                if len(set(ids)) < len(ids):
                    double = next(block_id for block_id in ids if ids.count(block_id) > 1)
                    raise ValueError(f"{name}: two blocks have the id {brief(double)}")
                object.__setattr__(self, name, blocks)
        object.__setattr__(self, "pages", _pages(self.pages))
        if self.applied is not None:
            object.__setattr__(self, "applied", _all_of(bool, self.applied, "applied"))
            if len(self.applied) != len(self.operations):
                raise ValueError(f"applied has {len(self.applied)} values for {len(self.operations)} operations")
        if self.duration_ms is not None and not is_number(self.duration_ms):
            raise ValueError(f"duration_ms must be a number or None, not {brief(self.duration_ms)}")


@dataclass(frozen=True, slots=True)
class EditExpectation:
    """The expectation of a case: what an agent should have done.

    Raises:
        PatternError: a pattern is malformed, or the patterns are not lists by page title.
        ValueError: a field has another type.
        MissingExtra: there are patterns, and the package `regex` is not installed.
    """

    operations: Sequence[Operation] = ()
    patterns: Mapping[str, Sequence[str]] | None = None
    """Regular expressions that must be found on a page, by its title."""
    ignore_case: bool = True
    compiled: tuple[tuple[str, str, Any], ...] = field(init=False, repr=False, compare=False)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Return the expectation that a JSON object with the fields of this class describes.

        Raises:
            ValueError: a field is unknown or cannot be used; the message names it as a field of `expected`.
        """
        fields = dict(checked_object(data, "expected", _EXPECTATION_FIELDS))
        fields["operations"] = _parse_items(Operation, fields.get("operations", []), "expected.operations")
        return cls(**fields)

    def __post_init__(self) -> None:
        _check(self.ignore_case, bool, "ignore_case must be True or False")
        object.__setattr__(self, "operations", _all_of(Operation, self.operations, "operations"))
        patterns = patterns_by_page(self.patterns)
        object.__setattr__(self, "patterns", patterns)
        object.__setattr__(self, "compiled", compiled_by_page(patterns, ignore_case=self.ignore_case))


def checked_object(value: object, place: str, known: Collection[str]) -> Mapping[str, Any]:
    """Return a JSON object that has none but the known fields."""
    if not isinstance(value, dict):
        raise ValueError(f"{place} must be an object, not {brief(value)}")
    unknown = next((name for name in value if name not in known), None)
    if unknown is not None:
        raise ValueError(f"{place} has an unknown field {brief(unknown)}; known are {', '.join(sorted(known))}")
    return value


def _parse_items(cls: type[Record], items: object, place: str) -> list[Record]:
    if not isinstance(items, list):
        raise ValueError(f"{place} must be a list, not {brief(items)}")
    parsed: list[Record] = []
    try:
        parsed.extend(cls(**checked_object(item, "it", cls.__slots__)) for item in items)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{place}[{len(parsed)}]: {error}") from None
    return parsed


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number that a float can hold; True and False are not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def check_positive(name: str, value: object) -> float:
    """Return a number above 0."""
    if not is_number(value) or value <= 0:
        raise ValueError(f"{name} must be a number above 0, not {brief(value)}")
    return value


def _check(value: object, cls: Any, rule: str) -> None:
    if not isinstance(value, cls) or (isinstance(value, bool) and cls is not bool):
        raise ValueError(f"{rule}, not {brief(value)}")


def _all_of(cls: type[T], values: object, name: str) -> tuple[T, ...]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list, not {brief(values)}")
    items = tuple(values)
    for number, item in enumerate(items):
        if not isinstance(item, cls):
            raise ValueError(
                f"{name}[{number}] must be {'True or False' if cls is bool else f'of type {cls.__name__}'}, not {brief(item)}"
            )
    return items


def _pages(pages: object) -> dict[str, str]:
    if pages is None:
        return {}
    if not isinstance(pages, Mapping):
        raise ValueError(f"pages must be strings by title, not {brief(pages)}")
    for title, content in pages.items():
        _check(title, str, "a page title must be a string")
        _check(content, str, f"page {brief(title)} must be a string")
    return dict(pages)


if TYPE_CHECKING:
    from grace_kp.trace import ReasoningTrace

    Actual = EditResult | ReasoningTrace | Mapping[str, Any]
    """A result, or the trace of a run."""

ANSWER = "result"
"""The title of the page that holds the answer of a run."""


def operations_from_trace(
    trace: ReasoningTrace | Mapping[str, Any],
    target: str = "path",
    position: str = "position",
    content: str = "content",
    index: str = "index",
) -> list[Operation]:
    """Return the tool calls of a trace as operations, in order. The type is the tool's name; the rest is read from the tool's arguments.

    Args:
        trace: a trace, as model or in its dict form.
        target: the argument that names the target block; a call without it has no target.
        position: the argument with the position.
        content: the argument with the content.
        index: the argument with the index of the target.
    """
    operations = []
    for step in _tool_calls(_document(trace)):
        arguments = step.get("input") or {}
        number, block, text = arguments.get(index), arguments.get(target), arguments.get(content)
        operations.append(
            Operation(
                str((step.get("tool") or {}).get("name") or ""),
                None if block is None else str(block),
                number if isinstance(number, int) and not isinstance(number, bool) else None,
                arguments.get(position),
                text if isinstance(text, str) else None,
            )
        )
    return operations


def result_from_trace(trace: ReasoningTrace | Mapping[str, Any], **inputs: str) -> EditResult:
    """Return a trace as a result: operations, which of them succeeded, the duration, and the answer as the page `result`.

    A trace does not contain the blocks of a document, so they are unknown.

    Args:
        trace: a trace, as model or in its dict form.
        inputs: which tool arguments hold target, position, content and index, as `operations_from_trace` takes them.
    """
    document = _document(trace)
    grace = document.get("grace") or {}
    calls = grace.get("calls")  # a trace from elsewhere may hold any value here
    succeeded = {
        call["tool_call"]: call.get("status") == "ok"
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, Mapping) and isinstance(call.get("tool_call"), int | float)
    }
    numbers = [step.get("step_id") for step in _tool_calls(document)]
    duration = grace.get("duration_ms")
    return EditResult(
        operations_from_trace(document, **inputs),
        applied=[succeeded[number] for number in numbers] if all(number in succeeded for number in numbers) else None,
        blocks_before=None,
        blocks_after=None,
        pages={ANSWER: (document.get("outcome") or {}).get("result_summary") or ""},
        duration_ms=duration if isinstance(duration, int | float) and not isinstance(duration, bool) else None,
    )


def as_result(actual: Actual) -> EditResult:
    """Return a trace as a result, and any other value unchanged."""
    if isinstance(actual, Mapping):
        return result_from_trace(actual) if "steps" in actual else actual  # type: ignore[return-value]
    if not isinstance(actual, EditResult) and hasattr(actual, "steps") and hasattr(actual, "to_dict"):
        return result_from_trace(actual)
    return actual  # type: ignore[return-value]


def _document(trace: ReasoningTrace | Mapping[str, Any]) -> Mapping[str, Any]:
    return trace if isinstance(trace, Mapping) else trace.to_dict()


def _tool_calls(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [step for step in document.get("steps") or () if step.get("type") == "tool_call"]


Details = TypeVar("Details")


class Scorer(Protocol):
    """One aspect of what an agent did. A scorer is independent of others and stateless, so that many can run side by side.

    Two further members are used where a scorer has them: `score_with_details(actual, expected)`, which returns both from one evaluation,
    and `options`, a mapping from which `Suite.to_yaml` writes how the scorer was built.
    """

    type: str
    threshold: float
    """The lowest score that is good enough, 0 to 1."""

    def score(self, actual: Any, expected: Any) -> float:
        """Return the score, 0 to 1."""
        ...

    def details(self, actual: Any, expected: Any) -> Any:
        """Return a record that explains the score."""
        ...


class DetailedScorer(Generic[Details]):
    """A scorer of this library. Its methods raise a ValueError if the result lacks what the scorer looks at."""

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """Return the score, 0 to 1."""
        return self.score_with_details(actual, expected)[0]

    def details(self, actual: Actual, expected: EditExpectation) -> Details:
        """Return the record that explains the score."""
        return self.score_with_details(actual, expected)[1]

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, Details]:
        """Return score and details of one evaluation."""
        raise NotImplementedError
