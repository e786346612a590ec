"""Variants of a prompt: the test set they run on, the judgements and score of each run, and the summary of all runs (SPEC §9)."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from grace_kp.errors import brief, check_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


BONUS = 0.5
PENALTY = 0.5
MAX_BONUSES = 5
MAX_COUNT = 1_000_000


class Detection(Enum):
    """How completely a problem was found. Values are the scores of SPEC §9."""

    DETECTED = 1.0
    """○: the findings contain everything that the key asks for."""
    PARTIAL = 0.5
    """△: a finding is related, but misses the core of the problem."""
    MISSED = 0.0
    """×: no finding is about the problem."""

    @property
    def symbol(self) -> str:
        """○, △ or ×."""
        return _SYMBOLS[self]

    @classmethod
    def of(cls, value: object) -> Detection:
        """Return the judgement that a member, a symbol (○ △ ×) or a word (detected, partial, missed) means.

        Raises:
            ValueError: the value is none of these.
        """
        if isinstance(value, cls):
            return value
        detection = _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
        if detection is None:
            raise ValueError(f"a judgement must be one of ○ △ × detected partial missed, not {brief(value)}")
        return detection


_SYMBOLS = {Detection.DETECTED: "○", Detection.PARTIAL: "△", Detection.MISSED: "×"}
# The symbols have several forms, and keyboards offer some of them more readily than others.
_WORDS = {
    **dict.fromkeys(("○", "◯", "〇", "o", "detected", "yes", "found", "検出"), Detection.DETECTED),
    **dict.fromkeys(("△", "▲", "partial", "partly", "部分検出"), Detection.PARTIAL),
    **dict.fromkeys(("×", "✕", "✗", "x", "missed", "no", "未検出"), Detection.MISSED),
}


def extra_points(bonuses: int, penalties: int) -> float:
    """Return the points that bonuses and penalties add to the score of a run."""
    return BONUS * min(bonuses, MAX_BONUSES) - PENALTY * penalties


def run_score(judgements: Iterable[object], bonuses: int = 0, penalties: int = 0) -> float:
    """Return the score of one run: `Σ judgements + 0.5·min(bonuses, 5) − 0.5·penalties` (SPEC §9).

    Args:
        judgements: one per problem, in any form that `Detection.of` accepts.
        bonuses: further findings that are true, useful and in scope; those after the fifth add nothing.
        penalties: findings that are out of scope or wrong, without a limit. In doubt, do not count a finding.

    Raises:
        ValueError: a judgement is unknown, or a count is not a whole number from 0.
    """
    check_count("bonuses", bonuses)
    check_count("penalties", penalties)
    return sum(Detection.of(judgement).value for judgement in judgements) + extra_points(bonuses, penalties)


def detections_of(judgements: Mapping[str, object]) -> dict[str, Detection]:
    """Return judgements by problem id as members."""
    return {str(problem): Detection.of(judgement) for problem, judgement in judgements.items()}


def check_count(name: str, value: object) -> None:
    """Refuse a value that is not a whole number from 0 to 1,000,000."""
    check_whole(name, value, 0)
    if isinstance(value, int) and value > MAX_COUNT:
        raise ValueError(f"{name} must be at most {MAX_COUNT:,}, not {brief(value)}")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a variant over one document.

    Raises:
        ValueError: a judgement or a count cannot be used.
    """

    document: str
    """The id of the document."""
    judgements: Mapping[str, Detection]
    """By problem id, in any form that `Detection.of` accepts."""
    bonuses: int = 0
    penalties: int = 0
    score: float = field(init=False)
    """The score of the run, from `run_score`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "judgements", detections_of(self.judgements))
        object.__setattr__(self, "score", run_score(self.judgements.values(), self.bonuses, self.penalties))


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
SEVERITY_COUNTS = {"critical": (3, 3), "medium": (4, 4), "minor": (3, 3)}
KIND_COUNTS = {"main": (6, 7), "adjacent": (2, 2), "subtle": (1, 2)}
BONUSES = (3, 5)
RUNS = 2


def _name(value: object, field_name: str) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{field_name} must be a string that is not empty, not {brief(value)}")
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
    """The content that a finding needs to count as detected."""

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
            raise ValueError(f"the domain of {self.id} must be a string, not {brief(self.domain)}")
        candidates: object = self.bonus_candidates
        if isinstance(candidates, list | tuple):
            object.__setattr__(self, "bonus_candidates", len(candidates))
        check_count(f"the bonus candidates of {self.id}", self.bonus_candidates)
        _refuse_duplicates((problem.id for problem in self.problems), f"document {self.id} has the problem {{}} twice")

    def judgements_of(self, symbols: Sequence[Any]) -> dict[str, Any]:
        """Return judgements in the order of the problems by problem id.

        Raises:
            ValueError: there are more or fewer judgements than problems.
        """
        if len(symbols) != len(self.problems):
            raise ValueError(f"{self.id} has {len(self.problems)} problems, and {len(symbols)} are judged")
        return {problem.id: symbol for problem, symbol in zip(self.problems, symbols, strict=True)}


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
            ValueError: the document is unknown.
        """
        for document in self.documents:
            if document.id == id:
                return document
        known = ", ".join(document.id for document in self.documents) or "none"
        raise ValueError(f"the document {id!r} is unknown; known are {known}")

    @property
    def categories(self) -> tuple[str, ...]:
        """All categories, in the order in which they first appear."""
        return tuple(dict.fromkeys(problem.category for document in self.documents for problem in document.problems))

    def check(self) -> list[str]:
        """Return a sentence for each departure from the balance of SPEC §9. A departure is not an error."""
        count = len(self.documents)
        warnings = _departures((count, DOCUMENTS, DOCUMENTS, "there should be {} documents"))
        if count > 1 and len({document.domain for document in self.documents}) < count:
            warnings.append("the documents should be of different domains")
        runs = "there should be {} runs for each document and variant"
        warnings += _departures((self.runs_per_document, RUNS, RUNS, runs))
        for document in self.documents:
            severities = Counter(problem.severity for problem in document.problems)
            kinds = Counter(problem.kind for problem in document.problems)
            departures = _departures(
                (len(document.problems), PROBLEMS, PROBLEMS, "there should be {} problems"),
                *(
                    (severities[name], *bounds, f"{{}} problems should be {name}")
                    for name, bounds in SEVERITY_COUNTS.items()
                ),
                *((kinds[name], *bounds, f"{{}} problems should be {name}") for name, bounds in KIND_COUNTS.items()),
                (document.bonus_candidates, *BONUSES, "there should be {} bonus candidates"),
            )
            if kinds[None]:
                departures.append(f"{kinds[None]} problems have no kind (main, adjacent or subtle)")
            warnings += [f"document {document.id}: {departure}" for departure in departures]
        return warnings


def _departures(*figures: tuple[int, int, int, str]) -> list[str]:
    return [
        f"{words.format(low if low == high else f'{low} to {high}')}, not {count}"
        for count, low, high, words in figures
        if not low <= count <= high
    ]


HIGH, MEDIUM = 0.5, 1.0
TOLERANCE = 1e-9
"""Figures that differ by less are equal, so that 0.15 is 0.15 (SPEC §9)."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a variant."""

    mean: float
    """Of the scores of all runs."""
    sd: float
    """Standard deviation of the sample (n − 1); 0 for a single run."""
    cross_doc_gap: float
    """The largest mean of a document less the smallest; 0 for a single document."""
    category_rates: Mapping[str, float]
    """By category, 0 to 1: (Σ○ + 0.5·Σ△) / (problems of the category × runs)."""
    balance: float
    """The smallest category rate divided by the largest; 0 where the largest is 0."""
    document_means: Mapping[str, float]
    runs: int

    @property
    def stability(self) -> str:
        """`high` up to a standard deviation of 0.5, `medium` up to 1.0, otherwise `low`."""
        if self.sd <= HIGH + TOLERANCE:
            return "high"
        return "medium" if self.sd <= MEDIUM + TOLERANCE else "low"

    @property
    def figures(self) -> tuple[float | str, ...]:
        """What tables show: mean, SD, stability, gap and balance."""
        return self.mean, self.sd, self.stability, self.cross_doc_gap, self.balance


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of an agent or prompt, with its runs over a test set.

    Raises:
        ValueError: the name is empty, runs are missing, or a run does not fit the test set.
    """

    name: str
    runs: tuple[Run, ...]
    test_set: TestSet

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", tuple(self.runs))
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"a variant needs a name, not {brief(self.name)}")
        if not self.runs:
            raise ValueError(f"the variant {self.name} has no runs")
        for number, run in enumerate(self.runs, 1):
            document = self.test_set.document(run.document)
            known = {problem.id for problem in document.problems}
            unknown = [problem for problem in run.judgements if problem not in known]
            if unknown:
                raise ValueError(
                    f"run {number} of {self.name} judges {unknown[0]!r}, which {document.id} does not have"
                )
            missing = known - run.judgements.keys()
            if missing:
                raise ValueError(f"run {number} of {self.name} does not judge {min(missing)!r} of {document.id}")

    @property
    def scores(self) -> tuple[float, ...]:
        """The scores of the runs, in order."""
        return tuple(run.score for run in self.runs)

    @property
    def summary(self) -> Summary:
        """The figures of this variant."""
        by_document: dict[str, list[float]] = {}
        by_category: dict[str, list[float]] = {category: [] for category in self.test_set.categories}
        for run in self.runs:
            by_document.setdefault(run.document, []).append(run.score)
            for problem in self.test_set.document(run.document).problems:
                by_category[problem.category].append(run.judgements[problem.id].value)
        means = {document: _mean(scores) for document, scores in by_document.items()}
        rates = {category: _mean(values) for category, values in by_category.items() if values}
        largest = max(rates.values(), default=0.0)
        return Summary(
            mean=_mean(self.scores),
            sd=statistics.stdev(self.scores) if len(self.runs) > 1 else 0.0,
            cross_doc_gap=max(means.values()) - min(means.values()),
            category_rates=rates,
            balance=min(rates.values()) / largest if largest > 0 else 0.0,
            document_means=means,
            runs=len(self.runs),
        )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
