"""Cases in a file of JSON lines: what was done, what was expected, and a name for each."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from grace_kp.errors import GraceError, brief
from grace_kp.scorers._edits import Block, EditExpectation, EditResult, Operation
from grace_kp.scorers._traces import result_from_trace
from grace_kp.trace import ReasoningTrace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

T = TypeVar("T")


class CaseError(GraceError, ValueError):
    """A case cannot be read. The message names file, line and field."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case."""

    id: str
    actual: EditResult
    expected: EditExpectation


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file, each line `{"id": …, "actual": {…}, "expected": {…}}`, with the fields of the records.

    Instead of `actual` a line may have a `trace`, and beside it `inputs`, which says what its tools call target, position, content and index.

    Raises:
        CaseError: a line cannot be read.
        OSError: the file cannot be read.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield _case(json.loads(line), number)
                except RecursionError:
                    raise CaseError(f"{path}:{number}: nested too deeply") from None
                except (ValueError, TypeError) as error:
                    raise CaseError(f"{path}:{number}: {error}") from None


def _case(document: Any, number: int) -> Case:
    given = _object(document, "the case", {"id", "actual", "trace", "inputs", "expected"})
    if "trace" in given:
        return Case(str(given.get("id", number)), _traced(given), expectation_from(given.get("expected")))
    actual = dict(_object(given.get("actual"), "actual", {one.name for one in fields(EditResult)}))
    for name in ("blocks_before", "blocks_after"):
        if name in actual:
            actual[name] = [_made(Block, one, f"actual.{name}") for one in _list(actual[name], f"actual.{name}")]
    actual["operations"] = _operations(actual, "actual")
    return Case(str(given.get("id", number)), EditResult(**actual), expectation_from(given.get("expected")))


def expectation_from(given: Any) -> EditExpectation:
    """What is expected, from an object with the fields of `EditExpectation`.

    Raises:
        ValueError: a field is unknown or cannot be used.
    """
    expected = dict(_object(given, "expected", {"operations", "patterns", "ignore_case"}))
    expected["operations"] = _operations(expected, "expected")
    return EditExpectation(**expected)


def _traced(given: Mapping[str, Any]) -> EditResult:
    if "actual" in given:
        raise ValueError("a case has either actual or trace, not both")
    names = _object(given.get("inputs", {}), "inputs", {"target", "position", "content", "index"})
    if not isinstance(given["trace"], dict):
        raise ValueError(f"trace must be an object, not {brief(given['trace'])}")
    return result_from_trace(ReasoningTrace.model_validate(given["trace"]), **names)


def _operations(part: Mapping[str, Any], place: str) -> list[Operation]:
    return [
        _made(Operation, one, f"{place}.operations") for one in _list(part.get("operations", []), f"{place}.operations")
    ]


def _object(value: Any, place: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{place} must be an object, not {brief(value)}")
    strange = [name for name in value if name not in known]
    if strange:
        raise ValueError(f"{place} has an unknown field {strange[0]!r}; known are {', '.join(sorted(known))}")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{place} must be a list, not {brief(value)}")
    return value


def _made(cls: type[T], value: Any, place: str) -> T:
    known = {one.name for one in fields(cls)}  # type: ignore[arg-type]
    return cls(**_object(value, place, known))
