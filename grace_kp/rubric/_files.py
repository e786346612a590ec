"""Test sets and variants in files, YAML or JSON. An error names the file, the line and the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from grace_kp.errors import GraceError, brief
from grace_kp.rubric._rating import Output, Rating
from grace_kp.rubric._variants import RUNS, Document, Problem, TestSet
from grace_kp.trace import SourceFields, SourceFile, problem_at, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        MissingExtra: PyYAML is not installed, and the file is not JSON.
    """
    source = SourceFile.read(path, _FEATURE, RubricFileError, names_as_written=True)
    fields = source.parse(_TestSetFields)
    documents: Any = fields.documents  # their validators have built them
    try:
        return TestSet(documents, fields.runs_per_document, fields.scope)
    except ValueError as error:
        raise source.error(str(error)) from None


def read_variant(path: str | Path, test_set: TestSet) -> tuple[str, list[Output]]:
    """Read a variant from a file: its `name` and its `runs`, each with `document`, `output` (or `file`) and its judgements, if any.

    `judgements` are symbols in the order of the problems, as a string or list, or an object by problem id. `bonuses` and `penalties` are
    counts. The judgements of a second rater are an object `second` with the same fields.

    Raises:
        RubricFileError: the file cannot be used.
        OSError: the file cannot be read.
        MissingExtra: PyYAML is not installed, and the file is not JSON.
    """
    source = SourceFile.read(path, _FEATURE, RubricFileError, names_as_written=True)
    fields = source.parse(_VariantFields, test_set=test_set)
    outputs: Any = fields.runs  # their validator has turned them into outputs
    return Path(path).stem if fields.name is None else fields.name, outputs


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


class _TextFields(SourceFields):
    """Fields of which one may be in a separate file."""

    text_field: ClassVar[str]
    file_field: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, data: object, info: ValidationInfo) -> object:
        if not isinstance(data, dict) or cls.file_field not in data:
            return data
        name = data[cls.file_field]
        if cls.text_field in data:
            raise problem_at(f"give either {cls.text_field} or {cls.file_field}, not both", cls.file_field)
        if not isinstance(name, str):
            return data
        try:
            text = (info.context["folder"] / name).read_text(encoding="utf-8")  # type: ignore[index]
        except (OSError, UnicodeDecodeError) as error:
            raise problem_at(
                f"{cls.file_field} {name}: {getattr(error, 'strerror', None) or error}", cls.file_field
            ) from None
        return {**data, cls.text_field: text}


class _ProblemFields(SourceFields):
    id: Any
    category: Any
    severity: Any
    kind: str | None = None
    key: str | None = None

    def problem(self) -> Problem:
        return Problem(self.id, self.category, self.severity, self.kind, self.key or "")


class _DocumentFields(_TextFields):
    text_field, file_field = "text", "file"
    id: Any
    domain: Any
    problems: list[Annotated[_ProblemFields, AfterValidator(_ProblemFields.problem)]] = Field(default_factory=list)
    bonus_candidates: Any = 0
    text: str = ""
    file: str = ""

    def document(self) -> Document:
        problems: Any = self.problems
        return Document(self.id, self.domain, problems, self.bonus_candidates, self.text)


class _TestSetFields(_TextFields):
    text_field, file_field = "scope", "scope_file"
    documents: list[Annotated[_DocumentFields, AfterValidator(_DocumentFields.document)]]
    scope: str = ""
    scope_file: str = ""
    runs_per_document: Any = RUNS


class _RatingFields(SourceFields):
    judgements: Any
    bonuses: Any = 0
    penalties: Any = 0
    reasons: dict[str, str] = Field(default_factory=dict)
    rater: str = ""

    def rating(self, document: Document) -> Rating:
        judgements = self.judgements
        if isinstance(judgements, str):
            judgements = list("".join(judgements.split()))
        if isinstance(judgements, list):
            judgements = document.judgements_of(judgements)
        if not isinstance(judgements, dict):
            raise ValueError(
                f"judgements are symbols in the order of the problems or an object by problem, not {brief(judgements)}"
            )
        known = [problem.id for problem in document.problems]
        unknown = [problem for problem in judgements if problem not in known]
        if unknown:
            raise ValueError(f"{document.id} has no problem {unknown[0]!r}")
        return Rating(judgements, self.bonuses, self.penalties, self.reasons, self.rater)


class _RunFields(_TextFields, _RatingFields):
    text_field, file_field = "output", "file"
    document: Any
    output: str | None = None
    file: str = ""
    judgements: Any = None
    second: _RatingFields | None = None


def _output(fields: _RunFields, info: ValidationInfo) -> Output:
    document = info.context["test_set"].document(str(fields.document))  # type: ignore[index]
    if fields.judgements is None and fields.second is not None:
        raise problem_at("a second rating needs a first", "second")
    ratings = [] if fields.judgements is None else [fields.rating(document)]
    if fields.second is not None:
        ratings.append(fields.second.rating(document))
    return Output(document.id, fields.output, tuple(ratings))


class _VariantFields(SourceFields):
    """Validated with the test set as the context."""

    name: str | None = None
    runs: list[Annotated[_RunFields, AfterValidator(_output)]]
