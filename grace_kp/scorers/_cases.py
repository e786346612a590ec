"""Cases in a file of JSON lines: what was done, what was expected, and a name for each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.errors import GraceError, MissingExtra, brief
from grace_kp.scorers._edits import EditExpectation, EditResult, checked_object
from grace_kp.scorers._traces import result_from_trace
from grace_kp.trace import object_without_duplicates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_CASE = frozenset({"id", "actual", "trace", "inputs", "expected"})
_INPUTS = frozenset({"target", "position", "content", "index"})


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
    for number, line in read_lines(path):
        yield parse_case(line, number, path)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not empty, with their numbers.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def parse_case(line: bytes, number: int, path: Path) -> Case:
    """The case in a line.

    Raises:
        CaseError: it cannot be read.
    """
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        return _case(json.loads(text, object_pairs_hook=object_without_duplicates), number)
    except MissingExtra:
        raise
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8: {error.reason} at byte {error.start + 1} of the line"
    except RecursionError:
        problem = "nested too deeply"
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as error:
        problem = " ".join(str(error).split())
    raise CaseError(f"{path}:{number}: {problem}")


def _case(document: Any, number: int) -> Case:
    given = checked_object(document, "the case", _CASE)
    if "trace" in given:
        return Case(str(given.get("id", number)), _traced(given), EditExpectation.from_dict(given.get("expected")))
    return Case(
        str(given.get("id", number)),
        EditResult.from_dict(given.get("actual")),
        EditExpectation.from_dict(given.get("expected")),
    )


def _traced(given: Mapping[str, Any]) -> EditResult:
    if "actual" in given:
        raise ValueError("a case has either actual or trace, not both")
    names = checked_object(given.get("inputs", {}), "inputs", _INPUTS)
    if not isinstance(given["trace"], dict):
        raise ValueError(f"trace must be an object, not {brief(given['trace'])}")
    from grace_kp.trace import ReasoningTrace

    return result_from_trace(ReasoningTrace.model_validate(given["trace"]), **names)
