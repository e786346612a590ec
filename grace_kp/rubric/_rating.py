"""Ratings: judgements of an output by two raters, how disputes are settled, and how far the raters agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from grace_kp.errors import GraceError
from grace_kp.rubric._variants import Detection, Run, Variant, check_count, detections_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from grace_kp.rubric._variants import Document, TestSet

ORDER = (Detection.MISSED, Detection.PARTIAL, Detection.DETECTED)
_NO_REASON = "no reason given"


class NotRated(GraceError):
    """No rater could judge a problem. The message says which problem, and why."""


@dataclass(frozen=True, slots=True)
class Rating:
    """The judgements of one rater about one output.

    Raises:
        ValueError: a judgement or a count cannot be used.
    """

    judgements: Mapping[str, Detection]
    """By problem id; a problem that the rater could not judge is missing."""
    bonuses: int = 0
    """Findings beyond the key that are true, useful and in scope."""
    penalties: int = 0
    """Findings that are certainly out of scope or wrong."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By problem id, the reason of the judgement, or why there is none."""
    rater: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "judgements", detections_of(self.judgements))
        check_count("bonuses", self.bonuses)
        check_count("penalties", self.penalties)


class Rater(Protocol):
    """A person or model that judges an output by the answer key of its document."""

    name: str

    def rate(self, document: Document, output: str, *, scope: str = "") -> Rating:
        """Judge an output.

        Args:
            document: the document, whose problems hold the answer key.
            output: the findings of a variant about the document.
            scope: the subjects that findings may be about.
        """
        ...


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters agree on the problems that both judged."""

    kappa: float | None
    """Cohen's kappa, −1 to 1; None where it is undefined: nothing was judged twice, or both raters gave every problem the same judgement."""
    observed: float | None
    """The share of the problems on which they agree; None where nothing was judged twice."""
    problems: int
    """How many problems were judged twice, counted for each run."""
    counts: Mapping[str, int]
    """How often each pair of judgements occurs, such as `○△` (first and second rater)."""


def agreement_of(pairs: Iterable[tuple[Detection, Detection]]) -> Agreement:
    """Return the agreement of pairs of judgements, with Cohen's kappa: (observed − expected) / (1 − expected).

    The expected agreement follows from how often each rater gives each judgement.
    """
    counts = Counter(pairs)
    total = sum(counts.values())
    if not total:
        return Agreement(None, None, 0, {})
    observed = sum(count for (first, second), count in counts.items() if first is second) / total
    firsts, seconds = Counter[Detection](), Counter[Detection]()
    for (first, second), count in counts.items():
        firsts[first] += count
        seconds[second] += count
    # In whole numbers, so that agreement by necessity is recognised exactly.
    expected = sum(firsts[member] * seconds[member] for member in ORDER)
    kappa = None if expected == total**2 else (observed - expected / total**2) / (1 - expected / total**2)
    by_symbols = {
        first.symbol + second.symbol: counts[first, second]
        for first in reversed(ORDER)
        for second in reversed(ORDER)
        if counts[first, second]
    }
    return Agreement(kappa, observed, total, by_symbols)


@dataclass(frozen=True, slots=True)
class Output:
    """The findings of a variant about a document in one run, with their ratings, if any."""

    document: str
    text: str | None = None
    """None where only judgements are known."""
    ratings: tuple[Rating, ...] = ()


@dataclass(frozen=True, slots=True)
class Dispute:
    """A problem that two raters judged differently."""

    run: int
    """Counted from 1."""
    document: str
    problem: str
    first: Detection
    second: Detection
    settled: Detection
    reasons: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Gap:
    """Problems that a rater or the referee was asked to judge and did not judge."""

    run: int
    """Counted from 1."""
    document: str
    rater: str
    problems: tuple[str, ...]
    reason: str
    """The reason for the first of the problems."""


@dataclass(frozen=True, slots=True)
class Rated:
    """A variant whose outputs have been judged."""

    variant: Variant
    outputs: tuple[Output, ...]
    """With all ratings."""
    agreement: Agreement
    disputes: tuple[Dispute, ...]
    gaps: tuple[Gap, ...] = ()
    """Missing judgements; where the other rater gave a judgement, it stands alone."""


def rate(
    name: str,
    outputs: Sequence[Output],
    test_set: TestSet,
    raters: Sequence[Rater] = (),
    *,
    referee: Rater | None = None,
) -> Rated:
    """Judge the outputs of a variant with up to two raters, and settle their disputes.

    The referee decides where two judgements of a problem differ; without a referee the lower one counts. Of the two counts of bonuses and of
    penalties, the smaller one counts, so that in doubt there is no penalty. A rater who judged nothing is left out of these counts. A missing
    judgement is reported as a gap; a problem that no rater judged is an error.

    Args:
        name: the name of the variant.
        outputs: one for each run. Outputs that have ratings keep them and are not judged again.
        test_set: the answer keys; the raters also get the texts of the documents and the scope.
        raters: at most two.
        referee: judges outputs with disputes.

    Raises:
        NotRated: an output has neither ratings nor a text, or no rater judged a problem.
        ValueError: there are more than two raters, or an output does not fit the test set.
    """
    if len(raters) > 2 or any(len(output.ratings) > 2 for output in outputs):
        raise ValueError("an output is judged by at most two raters; a third rater is the referee")
    runs, rated, pairs = [], [], []
    disputes: list[Dispute] = []
    gaps: list[Gap | None] = []
    for number, output in enumerate(outputs, 1):
        document = test_set.document(output.document)
        problems = [problem.id for problem in document.problems]
        ratings = output.ratings or _ask(output, number, document, raters, test_set.scope)
        rated.append(replace(output, ratings=ratings))
        gaps += [_gap(number, document, rating, problems) for rating in ratings]
        found = _disputes(number, document, ratings)
        if found and referee is not None and output.text is not None:
            third = referee.rate(document, output.text, scope=test_set.scope)
            gaps.append(_gap(number, document, third, [dispute.problem for dispute in found]))
            found = [replace(item, settled=third.judgements.get(item.problem, item.settled)) for item in found]
        disputes += found
        settled = {dispute.problem: dispute.settled for dispute in found}
        judgements = {problem: _judgement(number, problem, ratings, settled) for problem in problems}
        if len(ratings) == 2:
            first, second = (rating.judgements for rating in ratings)
            pairs += [
                (first[problem], second[problem]) for problem in problems if problem in first and problem in second
            ]
        counting = [rating for rating in ratings if rating.judgements or not problems]
        bonuses = min(rating.bonuses for rating in counting)
        penalties = min(rating.penalties for rating in counting)
        runs.append(Run(output.document, judgements, bonuses, penalties))
    variant = Variant(name, tuple(runs), test_set)
    return Rated(variant, tuple(rated), agreement_of(pairs), tuple(disputes), tuple(filter(None, gaps)))


def _gap(number: int, document: Document, rating: Rating, problems: Sequence[str]) -> Gap | None:
    missing = tuple(problem for problem in problems if problem not in rating.judgements)
    if not missing:
        return None
    return Gap(number, document.id, rating.rater or "a rater", missing, rating.reasons.get(missing[0], _NO_REASON))


def _ask(output: Output, number: int, document: Document, raters: Sequence[Rater], scope: str) -> tuple[Rating, ...]:
    if not raters:
        raise NotRated(f"run {number} ({output.document}) has no judgements, and there is no rater")
    if output.text is None:
        raise NotRated(f"run {number} ({output.document}) has neither judgements nor an output to judge")
    return tuple(rater.rate(document, output.text, scope=scope) for rater in raters)


def _disputes(number: int, document: Document, ratings: Sequence[Rating]) -> list[Dispute]:
    if len(ratings) < 2:
        return []
    disputes = []
    for problem in (problem.id for problem in document.problems):
        first, second = (rating.judgements.get(problem) for rating in ratings)
        if first is not None and second is not None and first is not second:
            reasons = (ratings[0].reasons.get(problem, ""), ratings[1].reasons.get(problem, ""))
            lower = min(first, second, key=ORDER.index)
            disputes.append(Dispute(number, document.id, problem, first, second, lower, reasons))
    return disputes


def _judgement(number: int, problem: str, ratings: Sequence[Rating], settled: Mapping[str, Detection]) -> Detection:
    if problem in settled:
        return settled[problem]
    for rating in ratings:
        if problem in rating.judgements:
            return rating.judgements[problem]
    reasons = "; ".join(dict.fromkeys(rating.reasons.get(problem, _NO_REASON) for rating in ratings))
    raise NotRated(f"run {number}: the problem {problem!r} could not be judged: {reasons}")
