"""What variants are tested with: documents with planted problems, and whether they are balanced as SPEC §9 asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from grace_kp.errors import brief
from grace_kp.rubric._judgement import counted

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
"""As the source document has them."""
DOCUMENTS = 2
PROBLEMS = 10
SEVERITY_COUNTS = {"critical": 3, "medium": 4, "minor": 3}
KIND_COUNTS = {"main": (6, 7), "adjacent": (2, 2), "subtle": (1, 2)}
BONUSES = (3, 5)
RUNS = 2


def _text(value: Any, what: str) -> str:
    """A name that is a text, or a number, which becomes one."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{what} is a text that is not empty, not {brief(value)}")
    return text


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that is in a document.

    Raises:
        ValueError: an unknown severity or kind.
    """

    id: str
    category: str
    """What kind of problem it is; detection rates are told by it."""
    severity: str
    """`critical`, `medium` or `minor`."""
    kind: str | None = None
    """`main`, `adjacent` or `subtle`: how near to the perspective it is. The category, where that is one of these."""
    key: str = ""
    """What a finding must say to count as detected."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", _text(self.id, "the id of a problem"))
        object.__setattr__(self, "category", _text(self.category, f"the category of {self.id}"))
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
    """A document with planted problems."""

    id: str
    domain: str
    problems: tuple[Problem, ...]
    bonus_candidates: int = 0
    """How many true findings beyond the key it is known to allow; they may be given themselves, and are counted."""
    text: str = field(default="", compare=False)
    """What the variants read, for whoever judges; no part of the history."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "problems", tuple(self.problems))
        object.__setattr__(self, "id", _text(self.id, "the id of a document"))
        if not isinstance(self.domain, str):
            raise ValueError(f"the domain of {self.id} is a text, not {brief(self.domain)}")
        candidates: Any = self.bonus_candidates
        if isinstance(candidates, list | tuple):
            object.__setattr__(self, "bonus_candidates", len(candidates))
        counted(f"the bonus candidates of {self.id}", self.bonus_candidates)
        doubles = [name for name, count in Counter(problem.id for problem in self.problems).items() if count > 1]
        if doubles:
            raise ValueError(f"document {self.id} has the problem {doubles[0]} twice")


@dataclass(frozen=True, slots=True)
class TestSet:
    """The documents that all variants are run on, always the same ones."""

    __test__ = False  # no test class, whatever its name makes pytest think

    documents: tuple[Document, ...]
    runs_per_document: int = RUNS
    scope: str = field(default="", compare=False)
    """What findings may be about, for whoever judges; no part of the history."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", tuple(self.documents))
        counted("the runs for each document", self.runs_per_document)
        doubles = [name for name, count in Counter(one.id for one in self.documents).items() if count > 1]
        if doubles:
            raise ValueError(f"the document {doubles[0]} is there twice")

    def document(self, id: str) -> Document:  # noqa: A002
        """The document of this id.

        Raises:
            ValueError: there is none.
        """
        for one in self.documents:
            if one.id == id:
                return one
        known = ", ".join(one.id for one in self.documents) or "none"
        raise ValueError(f"there is no document {id!r}; there are {known}")

    @property
    def categories(self) -> tuple[str, ...]:
        """All categories, in the order in which they first appear."""
        return tuple(dict.fromkeys(problem.category for one in self.documents for problem in one.problems))

    def check(self) -> list[str]:
        """How the test set departs from SPEC §9, a sentence each; empty where it does not. A departure is no error."""
        warnings = []
        if len(self.documents) != DOCUMENTS:
            warnings.append(f"there should be {DOCUMENTS} documents, not {len(self.documents)}")
        if len(self.documents) > 1 and len({one.domain for one in self.documents}) < len(self.documents):
            warnings.append("the documents should be of different domains")
        if self.runs_per_document != RUNS:
            warnings.append(f"there should be {RUNS} runs for each document and variant, not {self.runs_per_document}")
        for one in self.documents:
            warnings += [f"document {one.id}: {what}" for what in _departures(one)]
        return warnings


def _departures(document: Document) -> list[str]:
    found = []
    if len(document.problems) != PROBLEMS:
        found.append(f"there should be {PROBLEMS} problems, not {len(document.problems)}")
    severities = Counter(problem.severity for problem in document.problems)
    for severity, count in SEVERITY_COUNTS.items():
        if severities[severity] != count:
            found.append(f"{count} problems should be {severity}, not {severities[severity]}")
    kinds = Counter(problem.kind for problem in document.problems)
    if kinds[None]:
        found.append(f"{kinds[None]} problems do not say whether they are main, adjacent or subtle")
    for kind, (low, high) in KIND_COUNTS.items():
        if not low <= kinds[kind] <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            found.append(f"{wanted} problems should be {kind}, not {kinds[kind]}")
    if not BONUSES[0] <= document.bonus_candidates <= BONUSES[1]:
        found.append(f"there should be {BONUSES[0]} to {BONUSES[1]} bonus candidates, not {document.bonus_candidates}")
    return found
