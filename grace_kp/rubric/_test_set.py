"""Test sets: documents with planted problems, and whether they are balanced as SPEC §9 requires."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_kp.errors import brief
from grace_kp.rubric._judgement import check_count

if TYPE_CHECKING:
    from collections.abc import Iterable

SEVERITIES = ("critical", "medium", "minor")
KINDS = ("main", "adjacent", "subtle")
_JAPANESE = {
    "重大": "critical",
    "中": "medium",
    "軽微": "minor",
    "主要観点": "main",
    "隣接領域": "adjacent",
    "微妙な問題": "subtle",
}
"""The terms of the source document."""
DOCUMENTS = 2
PROBLEMS = 10
SEVERITY_COUNTS = {"critical": 3, "medium": 4, "minor": 3}
KIND_COUNTS = {"main": (6, 7), "adjacent": (2, 2), "subtle": (1, 2)}
BONUSES = (3, 5)
RUNS = 2


def _name(value: object, field_name: str) -> str:
    """Return a name that is a non-empty text, or a whole number as text."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{field_name} must be a text that is not empty, not {brief(value)}")
    return text


def _refuse_duplicates(ids: Iterable[str], message: str) -> None:
    for name, count in Counter(ids).items():
        if count > 1:
            raise ValueError(message.format(name))


@dataclass(frozen=True, slots=True)
class Problem:
    """A planted problem of a document.

    Raises:
        ValueError: the id or category is empty, or the severity or kind is unknown.
    """

    id: str
    category: str
    """Detection rates are computed by category."""
    severity: str
    """`critical`, `medium` or `minor`."""
    kind: str | None = None
    """`main`, `adjacent` or `subtle`: how close the problem is to the perspective. The category, where that is one of these."""
    key: str = ""
    """What a finding must contain to count as detected."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", _name(self.id, "the id of a problem"))
        object.__setattr__(self, "category", _name(self.category, f"the category of {self.id}"))
        object.__setattr__(self, "severity", _JAPANESE.get(self.severity, self.severity))
        object.__setattr__(self, "kind", _JAPANESE.get(self.kind or "", self.kind))
        if self.severity not in SEVERITIES:
            raise ValueError(f"the severity of {self.id} must be one of {', '.join(SEVERITIES)}, not {self.severity!r}")
        category = _JAPANESE.get(self.category, self.category)
        if self.kind is None and category in KINDS:
            object.__setattr__(self, "kind", category)
        if self.kind is not None and self.kind not in KINDS:
            raise ValueError(f"the kind of {self.id} must be one of {', '.join(KINDS)}, not {self.kind!r}")


@dataclass(frozen=True, slots=True)
class Document:
    """A document with planted problems.

    Raises:
        ValueError: a field cannot be used, or two problems have the same id.
    """

    id: str
    domain: str
    problems: tuple[Problem, ...]
    bonus_candidates: int = 0
    """The number of true findings beyond the key that the document is known to allow; a list of them is counted."""
    text: str = field(default="", compare=False)
    """The text that variants read, for raters; not part of the history."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "problems", tuple(self.problems))
        object.__setattr__(self, "id", _name(self.id, "the id of a document"))
        if not isinstance(self.domain, str):
            raise ValueError(f"the domain of {self.id} must be a text, not {brief(self.domain)}")
        candidates: object = self.bonus_candidates
        if isinstance(candidates, list | tuple):
            object.__setattr__(self, "bonus_candidates", len(candidates))
        check_count(f"the bonus candidates of {self.id}", self.bonus_candidates)
        _refuse_duplicates((problem.id for problem in self.problems), f"document {self.id} has the problem {{}} twice")


@dataclass(frozen=True, slots=True)
class TestSet:
    """The documents that every variant is run on.

    Raises:
        ValueError: two documents have the same id, or the number of runs cannot be used.
    """

    __test__ = False  # pytest takes a class of this name for tests

    documents: tuple[Document, ...]
    runs_per_document: int = RUNS
    scope: str = field(default="", compare=False)
    """The subjects that findings may be about, for raters; not part of the history."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", tuple(self.documents))
        check_count("the runs for each document", self.runs_per_document)
        _refuse_duplicates((document.id for document in self.documents), "the document {} is there twice")

    def document(self, id: str) -> Document:  # noqa: A002
        """Return the document of this id.

        Raises:
            ValueError: there is no such document.
        """
        for document in self.documents:
            if document.id == id:
                return document
        known = ", ".join(document.id for document in self.documents) or "none"
        raise ValueError(f"there is no document {id!r}; there are {known}")

    @property
    def categories(self) -> tuple[str, ...]:
        """All categories, in the order in which they first appear."""
        return tuple(dict.fromkeys(problem.category for document in self.documents for problem in document.problems))

    def check(self) -> list[str]:
        """Return a sentence for each departure from the balance of SPEC §9. A departure is no error."""
        count = len(self.documents)
        warnings = []
        if count != DOCUMENTS:
            warnings.append(f"there should be {DOCUMENTS} documents, not {count}")
        if count > 1 and len({document.domain for document in self.documents}) < count:
            warnings.append("the documents should be of different domains")
        if self.runs_per_document != RUNS:
            warnings.append(f"there should be {RUNS} runs for each document and variant, not {self.runs_per_document}")
        for document in self.documents:
            warnings += [f"document {document.id}: {departure}" for departure in _departures(document)]
        return warnings


def _departures(document: Document) -> list[str]:
    departures = []
    if len(document.problems) != PROBLEMS:
        departures.append(f"there should be {PROBLEMS} problems, not {len(document.problems)}")
    severities = Counter(problem.severity for problem in document.problems)
    for severity, count in SEVERITY_COUNTS.items():
        if severities[severity] != count:
            departures.append(f"{count} problems should be {severity}, not {severities[severity]}")
    kinds = Counter(problem.kind for problem in document.problems)
    if kinds[None]:
        departures.append(f"{kinds[None]} problems have no kind (main, adjacent or subtle)")
    for kind, (low, high) in KIND_COUNTS.items():
        if not low <= kinds[kind] <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            departures.append(f"{wanted} problems should be {kind}, not {kinds[kind]}")
    low, high = BONUSES
    if not low <= document.bonus_candidates <= high:
        departures.append(f"there should be {low} to {high} bonus candidates, not {document.bonus_candidates}")
    return departures
