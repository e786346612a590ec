"""Test sets and variants in files, YAML or JSON. An error names the file, the line and the field.

The pydantic models of the files are in `_file_fields`, which is loaded when a file is read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.errors import GraceError
from grace_kp.trace import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.rubric._rating import Output, Rating
    from grace_kp.rubric._test_set import TestSet

_FEATURE = "test sets and variants in YAML"


class RubricFileError(GraceError, ValueError):
    """A test set or variant cannot be read. The message names the file, the line and the field."""


def read_test_set(path: str | Path) -> TestSet:
    """Read a test set from a file.

    The file has `documents`, each with `id`, `domain`, `problems`, `bonus_candidates` and `text` (or `file`), and besides `scope` (or
    `scope_file`) and `runs_per_document`.

    Raises:
        RubricFileError: the file cannot be used.
        OSError: the file cannot be read.
        MissingExtra: PyYAML is not installed, and the file is no JSON.
    """
    from grace_kp.rubric._file_fields import TestSetFields
    from grace_kp.trace import SourceFile

    source = SourceFile.read(path, _FEATURE, RubricFileError, names_as_written=True)
    fields = source.parse(TestSetFields)
    try:
        return fields.test_set()
    except ValueError as error:
        raise source.error(str(error)) from None


def read_variant(path: str | Path, test_set: TestSet) -> tuple[str, list[Output]]:
    """Read a variant from a file: its `name` and its `runs`, each with `document`, `output` (or `file`) and its judgements, if any.

    `judgements` are symbols in the order of the problems, as a text or list, or an object by problem id. `bonuses` and `penalties` are
    counts. The judgements of a second rater are an object `second` with the same fields.

    Raises:
        RubricFileError: the file cannot be used.
        OSError: the file cannot be read.
        MissingExtra: PyYAML is not installed, and the file is no JSON.
    """
    from grace_kp.rubric._file_fields import VariantFields
    from grace_kp.trace import SourceFile

    source = SourceFile.read(path, _FEATURE, RubricFileError, names_as_written=True)
    fields = source.parse(VariantFields, test_set=test_set)
    return Path(path).stem if fields.name is None else fields.name, fields.outputs()


def write_variant(path: Path, name: str, outputs: Sequence[Output], test_set: TestSet) -> None:
    """Write a variant with its ratings as JSON that `read_variant` reads back; the file is replaced as a whole.

    Raises:
        OSError: the file cannot be written.
    """
    runs = []
    for output in outputs:
        run: dict[str, Any] = {"document": output.document}
        problems = [problem.id for problem in test_set.document(output.document).problems]
        for number, rating in enumerate(output.ratings):
            fields = _rating_dict(rating, problems)
            run.update(fields if number == 0 else {"second": fields})
        if output.text is not None:
            run["output"] = output.text
        runs.append(run)
    write_whole(path, json.dumps({"name": name, "runs": runs}, ensure_ascii=False, indent=2) + "\n")


def _rating_dict(rating: Rating, problems: Sequence[str]) -> dict[str, Any]:
    judgements = {problem: rating.judgements[problem].symbol for problem in problems if problem in rating.judgements}
    fields: dict[str, Any] = {"judgements": judgements, "bonuses": rating.bonuses, "penalties": rating.penalties}
    reasons = {problem: reason for problem, reason in rating.reasons.items() if reason}
    return fields | ({"reasons": reasons} if reasons else {}) | ({"rater": rating.rater} if rating.rater else {})
