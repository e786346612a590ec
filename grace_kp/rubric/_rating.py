"""Two judgements of each problem: who gives them, how they are settled, and how far they agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from grace_kp.errors import GraceError
from grace_kp.rubric._judgement import Detection, Run, counted
from grace_kp.rubric._summary import Variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from grace_kp.rubric._test_set import Document, TestSet

ORDER = (Detection.MISSED, Detection.PARTIAL, Detection.DETECTED)


class NotRated(GraceError):
    """A problem could not be judged by anybody. The message says which, and why."""


@dataclass(frozen=True, slots=True)
class Rating:
    """What one rater says of one output.

    Raises:
        ValueError: a judgement or a count cannot be used.
    """

    judgements: Mapping[str, Detection]
    """By problem id; a problem that the rater could not judge is not there."""
    bonuses: int = 0
    """Findings beyond the key that are true, useful and in scope."""
    penalties: int = 0
    """Findings that are out of scope or wrong, beyond doubt."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By problem id, why it is judged so, or why it could not be judged."""
    rater: str = ""

    def __post_init__(self) -> None:
        made = {str(problem): Detection.of(value) for problem, value in self.judgements.items()}
        object.__setattr__(self, "judgements", made)
        counted("bonuses", self.bonuses)
        counted("penalties", self.penalties)


class Rater(Protocol):
    """Somebody or something that judges an output by the answer key of its document."""

    name: str

    def rate(self, document: Document, output: str, *, scope: str = "") -> Rating:
        """Judge what a variant said of a document.

        Args:
            document: with its problems, whose keys say what counts as detected.
            output: what the variant said.
            scope: what findings may be about.
        """
        ...


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters agree on the problems that both judged."""

    kappa: float | None
    """Cohen's kappa, −1 to 1; None where it is not defined: nothing was judged twice, or both gave everything the same judgement."""
    observed: float | None
    """The share of the problems on which they agree; None where nothing was judged twice."""
    problems: int
    """How many problems were judged twice, each run for itself."""
    counts: Mapping[str, int]
    """How often the first said what and the second what, such as `○△`."""


def agreement_of(pairs: Iterable[tuple[Detection, Detection]]) -> Agreement:
    """Cohen's kappa of pairs of judgements: (observed − expected) / (1 − expected), expected from how often each rater says what."""
    counts = Counter(pairs)
    total = sum(counts.values())
    if not total:
        return Agreement(None, None, 0, {})
    observed = sum(count for (one, other), count in counts.items() if one is other) / total
    firsts, seconds = Counter[Detection](), Counter[Detection]()
    for (one, other), count in counts.items():
        firsts[one] += count
        seconds[other] += count
    # In whole numbers, so that agreement by necessity is recognised exactly.
    expected = sum(firsts[member] * seconds[member] for member in ORDER)
    kappa = None if expected == total**2 else (observed - expected / total**2) / (1 - expected / total**2)
    told = {f"{one.symbol}{other.symbol}": count for (one, other), count in sorted(counts.items(), key=_place)}
    return Agreement(kappa, observed, total, told)


def _place(item: tuple[tuple[Detection, Detection], int]) -> tuple[int, int]:
    one, other = item[0]
    return -ORDER.index(one), -ORDER.index(other)


@dataclass(frozen=True, slots=True)
class Output:
    """What a variant said of a document in one run, with the ratings that there are of it."""

    document: str
    text: str | None = None
    """None where only judgements are known."""
    ratings: tuple[Rating, ...] = ()


@dataclass(frozen=True, slots=True)
class Dispute:
    """A problem on which two raters do not agree."""

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
    """Problems that a rater, or the referee, was asked about and did not judge."""

    run: int
    """Counted from 1."""
    document: str
    rater: str
    problems: tuple[str, ...]
    reason: str
    """Of the first of them."""


@dataclass(frozen=True, slots=True)
class Rated:
    """A variant whose outputs have been judged."""

    variant: Variant
    outputs: tuple[Output, ...]
    """With all ratings."""
    agreement: Agreement
    disputes: tuple[Dispute, ...]
    gaps: tuple[Gap, ...] = ()
    """Judgements that are missing; where the other rater gave one, it stands alone."""


def rate(
    name: str,
    outputs: Sequence[Output],
    test_set: TestSet,
    raters: Sequence[Rater] = (),
    *,
    referee: Rater | None = None,
) -> Rated:
    """Judge the outputs of a variant, by two raters or one, and settle what they say.

    Where two judgements of a problem differ, the referee decides; without one the lower counts. A bonus or penalty counts when both raters
    give it: their smaller count is taken, so that in doubt there is no penalty. A rater who judged nothing has no say in that. What a rater
    did not judge is told as a gap; what nobody judged is an error.

    Args:
        name: the variant's name.
        outputs: one for each run. Those that have ratings keep them and are not judged again.
        test_set: with the keys; its documents' texts and its scope are shown to the raters.
        raters: one or two.
        referee: is asked about outputs on which the two differ.

    Raises:
        NotRated: an output has no ratings and no text, or a problem was judged by nobody.
        ValueError: more than two raters, or an output does not fit the test set.
    """
    if len(raters) > 2 or any(len(one.ratings) > 2 for one in outputs):
        raise ValueError("an output is judged by two raters at the most; a third one is the referee")
    runs, rated, pairs = [], [], []
    disputes: list[Dispute] = []
    gaps: list[Gap] = []
    for number, output in enumerate(outputs, 1):
        document = test_set.document(output.document)
        ratings = output.ratings or _ask(output, number, document, raters, test_set.scope)
        rated.append(Output(output.document, output.text, ratings))
        found = _disputes(number, document, ratings)
        third = None
        if found and referee is not None and output.text is not None:
            third = referee.rate(document, output.text, scope=test_set.scope)
        settled = {one.problem: _settled(one, third) for one in found}
        names = [problem.id for problem in document.problems]
        gaps += [it for one in ratings if (it := _gap(number, document, one, names))]
        if third is not None and (gap := _gap(number, document, third, [one.problem for one in found])):
            gaps.append(gap)
        disputes += [
            Dispute(one.run, one.document, one.problem, one.first, one.second, settled[one.problem], one.reasons)
            for one in found
        ]
        judgements = {problem.id: _judged(number, problem.id, ratings, settled) for problem in document.problems}
        pairs += [
            (ratings[0].judgements[problem.id], ratings[1].judgements[problem.id])
            for problem in document.problems
            if len(ratings) == 2 and all(problem.id in one.judgements for one in ratings)
        ]
        heard = [one for one in ratings if one.judgements or not document.problems]
        bonuses, penalties = (min(getattr(one, what) for one in heard) for what in ("bonuses", "penalties"))
        runs.append(Run(output.document, judgements, bonuses, penalties))
    variant = Variant(name, tuple(runs), test_set)
    return Rated(variant, tuple(rated), agreement_of(pairs), tuple(disputes), tuple(gaps))


def _gap(number: int, document: Document, rating: Rating, wanted: Sequence[str]) -> Gap | None:
    missing = tuple(one for one in wanted if one not in rating.judgements)
    if not missing:
        return None
    reason = rating.reasons.get(missing[0], "no reason given")
    return Gap(number, document.id, rating.rater or "a rater", missing, reason)


def _ask(output: Output, number: int, document: Document, raters: Sequence[Rater], scope: str) -> tuple[Rating, ...]:
    if not raters:
        raise NotRated(f"run {number} ({output.document}) has no judgements, and nobody is there to judge it")
    if output.text is None:
        raise NotRated(f"run {number} ({output.document}) has neither judgements nor an output to judge")
    return tuple(rater.rate(document, output.text, scope=scope) for rater in raters)


def _disputes(number: int, document: Document, ratings: Sequence[Rating]) -> list[Dispute]:
    if len(ratings) < 2:
        return []
    first, second = ratings
    found = []
    for problem in document.problems:
        one, other = first.judgements.get(problem.id), second.judgements.get(problem.id)
        if one is not None and other is not None and one is not other:
            reasons = (first.reasons.get(problem.id, ""), second.reasons.get(problem.id, ""))
            lower = min(one, other, key=ORDER.index)
            found.append(Dispute(number, document.id, problem.id, one, other, lower, reasons))
    return found


def _settled(dispute: Dispute, third: Rating | None) -> Detection:
    return dispute.settled if third is None else third.judgements.get(dispute.problem, dispute.settled)


def _judged(number: int, problem: str, ratings: Sequence[Rating], settled: Mapping[str, Detection]) -> Detection:
    if problem in settled:
        return settled[problem]
    found = next((one.judgements[problem] for one in ratings if problem in one.judgements), None)
    if found is None:
        why = "; ".join(dict.fromkeys(one.reasons.get(problem, "no reason given") for one in ratings))
        raise NotRated(f"run {number}: the problem {problem!r} could not be judged: {why}")
    return found
