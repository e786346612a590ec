"""Cases in a file of JSON lines: a result, an expectation and a name for each."""

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
    """Yield the cases of a file, each line `{"id": …, "actual": {…}, "expected": {…}}`, with the fields of the records.

    Instead of `actual` a line may have a `trace`, and `inputs` with the names of the tool arguments that hold target, position, content and
    index.

    Raises:
        CaseError: a line cannot be read.
        OSError: the file cannot be read.
    """
    for number, line in read_lines(path):
        yield parse_case(line, number, path)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each line that is not blank.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def parse_case(line: bytes, number: int, path: Path) -> Case:
    """Return the case in a line; number and path are for its messages.

    Raises:
        CaseError: the line cannot be read.
    """
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        document = json.loads(text, object_pairs_hook=object_without_duplicates)
        fields = checked_object(document, "the case", _CASE)
        actual = _result_of_trace(fields) if "trace" in fields else EditResult.from_dict(fields.get("actual"))
        return Case(str(fields.get("id", number)), actual, EditExpectation.from_dict(fields.get("expected")))
    except MissingExtra:
        raise
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8: {error.reason} at byte {error.start + 1} of the line"
    except RecursionError:
        problem = "nested too deeply"
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as error:
        problem = " ".join(str(error).split())
    raise CaseError(f"{path}:{number}: {problem}")


def _result_of_trace(fields: Mapping[str, Any]) -> EditResult:
    from grace_kp.trace import ReasoningTrace

    if "actual" in fields:
        raise ValueError("a case has either actual or trace, not both")
    inputs = checked_object(fields.get("inputs", {}), "inputs", _INPUTS)
    if not isinstance(fields["trace"], dict):
        raise ValueError(f"trace must be an object, not {brief(fields['trace'])}")
    return result_from_trace(ReasoningTrace.model_validate(fields["trace"]), **inputs)
