"""The fields of test set files and variant files as pydantic models. Imported when a file is read, because pydantic takes its time."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from grace_kp.errors import brief
from grace_kp.rubric._rating import Output, Rating
from grace_kp.rubric._test_set import RUNS, Document, Problem, TestSet
from grace_kp.trace import SourceFields, problem_at


class _TextFields(SourceFields):
    """Fields of which one text may stand in a file of its own."""

    text_field: ClassVar[str]
    file_field: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, data: object, info: ValidationInfo) -> object:
        if not isinstance(data, dict) or cls.file_field not in data:
            return data
        name = data[cls.file_field]
        if cls.text_field in data:
            raise problem_at(f"there is either {cls.text_field} or {cls.file_field}, not both", cls.file_field)
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


class TestSetFields(_TextFields):
    """A test set file."""

    text_field, file_field = "scope", "scope_file"
    documents: list[Annotated[_DocumentFields, AfterValidator(_DocumentFields.document)]]
    scope: str = ""
    scope_file: str = ""
    runs_per_document: Any = RUNS

    def test_set(self) -> TestSet:
        """Return the test set.

        Raises:
            ValueError: a document occurs twice, or the number of runs cannot be used.
        """
        documents: Any = self.documents
        return TestSet(documents, self.runs_per_document, self.scope)


class _RatingFields(SourceFields):
    judgements: Any
    bonuses: Any = 0
    penalties: Any = 0
    reasons: dict[str, str] = Field(default_factory=dict)
    rater: str = ""

    def rating(self, document: Document) -> Rating:
        judgements = self.judgements
        problems = [problem.id for problem in document.problems]
        if isinstance(judgements, str):
            judgements = list("".join(judgements.split()))
        if isinstance(judgements, list):
            if len(judgements) != len(problems):
                raise ValueError(f"{document.id} has {len(problems)} problems, and {len(judgements)} are judged")
            judgements = dict(zip(problems, judgements, strict=True))
        if not isinstance(judgements, dict):
            raise ValueError(
                f"judgements are symbols in the order of the problems or an object by problem, not {brief(judgements)}"
            )
        unknown = [problem for problem in judgements if problem not in problems]
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
        raise problem_at("there is a second rating and no first", "second")
    ratings = [] if fields.judgements is None else [fields.rating(document)]
    if fields.second is not None:
        ratings.append(fields.second.rating(document))
    return Output(document.id, fields.output, tuple(ratings))


class VariantFields(SourceFields):
    """A variant file; validated with the test set as its context."""

    name: str | None = None
    runs: list[Annotated[_RunFields, AfterValidator(_output)]]

    def outputs(self) -> list[Output]:
        """Return the runs, which their validator has turned into outputs."""
        outputs: Any = self.runs
        return outputs  # type: ignore[no-any-return]
