"""Thresholds that keep a stated promise: exact tests along sequences that are fixed without the labels they test.

Two promises, which are different:

- *Selective*: with probability at least 1 - delta over the labelled sample, at most `risk` of the actions at this level or a milder one
  are wrong.
- *Overall*: with the same probability, at most `risk` of all runs both reach this level or a milder one and are wrong.

The selective promise is tested along ranks, from strict to mild: how many of the most confident samples may act. The ranks, and the share of
delta that each has, follow from the number of samples alone, so they depend neither on the labels nor on the confidence. A test
that passes hands its share on to the next milder one (the fallback procedure of Wiens and Dmitrienko, 2005). `docs/calibrate.md` proves
that the probability of a wrong result is at most delta.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grace_kp.calibrate._binomial import binomial_cdf, fewest_without_error, most_errors, smallest_sample, upper_bound
from grace_kp.calibrate._features import MOMENTS
from grace_kp.calibrate._samples import JsonRecord, check_inside, group_numbers, independent, samples, weights_of
from grace_kp.confidence import Thresholds
from grace_kp.errors import brief, check_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from grace_kp.calibrate._features import Moment
    from grace_kp.calibrate._samples import Floats

    Counts = NDArray[np.int64]


LEVELS = ("silent", "notify", "confirm")
SELECTIVE, OVERALL = "selective", "overall"
UNITS = ("run", "action")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The promise that thresholds shall keep.

    Raises:
        ValueError: a field cannot be used; the message says which and why.
    """

    risks: Mapping[str, float]
    """The largest share of wrong actions by level: silent, notify, confirm. Above 0 and below 1, and no larger for a stricter level."""
    delta: float = 0.1
    """The probability that the promise does not hold, above 0 and below 1; shared equally among the levels."""
    kind: Literal["selective", "overall"] = "selective"
    """Selective: at most this share of the actions at a level or a milder one is wrong. Overall: at most this share of all runs both
    reaches the level and is wrong."""
    moment: Moment = "action"
    """`"action"`: before an action of an open run, as at a gate. `"end"`: of a run that has ended."""
    unit: Literal["run", "action"] = "run"
    """What is labelled: runs, or single actions. Labels of actions need the moment `"action"`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "risks", checked_risks(self.risks))
        check_inside("delta", self.delta)
        moments = ("action",) if self.unit == "action" else MOMENTS
        known_by = {"promise": (SELECTIVE, OVERALL), "unit": UNITS, "moment": moments}
        for (name, known), value in zip(known_by.items(), (self.kind, self.unit, self.moment), strict=True):
            if value not in known:
                raise ValueError(f"{name} must be {' or '.join(known)} (got {value!r:.60})")

    @property
    def needed(self) -> dict[str, int]:
        """Labels without an error that each level needs at least."""
        return {level: labels_needed(risk, self.delta, len(self.risks)) for level, risk in self.risks.items()}

    @property
    def in_words(self) -> str:
        """The promise as sentences."""
        return promise_text(self.kind, self.risks, self.delta, "actions" if self.moment == "action" else "runs")

    def lacking(self, labels: int) -> tuple[str, ...]:
        """Return a sentence for each level that so many independent labels cannot reach, even without one error."""
        return tuple(
            f"{level} at {self.risks[level]:g} needs at least {fewest:,} labels without an error, and there are {labels:,}"
            for level, fewest in self.needed.items()
            if labels < fewest
        )


@dataclass(frozen=True, slots=True)
class PromisedLevel:
    """The threshold of one level, and the evidence of the tested runs for its promise."""

    level: str
    risk: float
    """The promised share of errors."""
    threshold: float | None
    """The lowest confidence of the level; None: the level is never used."""
    coverage: float
    """Share of the tested runs at the level or a milder one, 0 to 1."""
    reached: int
    """Their number."""
    errors: int
    """How many of them are wrong."""
    share_wrong: float
    """Their share of what was tested: of the reached ones for a selective promise, of all for an overall one."""
    bound: float | None
    """Upper bound of that share in the long run; None: the level is never used."""
    needed: int
    """Labels without an error that the level needs at least."""
    more: int | None = 0
    """About how many more labels the level needs if the shares of errors stay as they are; 0: it is used. None: more would not help."""

    @property
    def state(self) -> str:
        """The confidence from which the level is used, or how many labels it lacks: "0.912", "57 more", or "never" if more would not help."""
        if self.threshold is not None:
            return f"{self.threshold:.3f}"
        return "never" if self.more is None else f"{self.more:,} more"


@dataclass(frozen=True, slots=True)
class RiskThresholds(JsonRecord):
    """Thresholds with the promise that they keep, and what they were derived from. In the JSON form, an infinite threshold is "never"."""

    _json = ("thresholds", "promise", "risks", "delta", "n", "coverage", "errors", "bounds", "notes", "more")

    thresholds: Thresholds
    """For `gk.Grace(thresholds=…)`; `math.inf` where no threshold qualifies: the level is never used."""
    coverage: Mapping[str, float]
    """Share of the sample at each promised level or a milder one, 0 to 1."""
    bounds: Mapping[str, float | None]
    """Clopper-Pearson upper bound of the risk at each promised level, at its share of delta; None where the level is never used."""
    n: int
    """Labels that were tested."""
    notes: tuple[str, ...]
    """Caveats: missing and omitted labels, one sentence each."""
    errors: Mapping[str, int]
    """Wrong actions of the sample at each promised level or a milder one."""
    risks: Mapping[str, float]
    delta: float
    promise: str
    more: Mapping[str, int | None] = field(default_factory=dict)
    """By level, see `PromisedLevel.more`."""

    @property
    def levels(self) -> tuple[PromisedLevel, ...]:
        """The promised levels, from silent to confirm."""
        found = []
        for level, risk in self.risks.items():
            threshold, reached = getattr(self.thresholds, level), round(self.coverage[level] * self.n)
            of = self.n if self.promise == OVERALL else reached
            found.append(
                PromisedLevel(
                    level, risk, None if threshold == math.inf else threshold, self.coverage[level], reached,
                    self.errors[level], self.errors[level] / of if of else 0.0, self.bounds[level],
                    labels_needed(risk, self.delta, len(self.risks)), self.more.get(level, 0),
                )
            )  # fmt: skip
        return tuple(found)

    def _repr_html_(self) -> str:
        from grace_kp.calibrate._html import thresholds_html
        from grace_kp.pages import notebook

        what = "actions" if self.promise == SELECTIVE else "runs"
        return notebook(thresholds_html(self, promise_text(self.promise, self.risks, self.delta, what)))


def risk_thresholds(
    confidence: Iterable[Any],
    correct: Iterable[Any],
    risks: Mapping[str, float],
    delta: float = 0.1,
    promise: Literal["selective", "overall"] = "selective",
    *,
    groups: Iterable[Any] | None = None,
    weights: Iterable[Any] | None = None,
    seed: int = 0,
) -> RiskThresholds:
    """Return the mildest thresholds that keep a promise about the share of wrong actions.

    The promise holds for runs that are drawn as the sample was, with probability at least 1 - delta over the sample. Delta is divided
    equally among the promised levels. A level that is not promised never acts without asking where a promised one would not.

    Args:
        confidence: confidences from 0 to 1, of shape (n,). They must not come from a model that was fitted on these labels.
        correct: whether each was correct: booleans, or 0 and 1. Fractions are left out, with a note.
        risks: the largest share of wrong actions by level, for example {"silent": 0.05, "notify": 0.15, "confirm": 0.35}; each above 0
            and below 1, and no larger for a milder level.
        delta: the probability that the promise does not hold, above 0 and below 1.
        promise: "selective" bounds the share of wrong actions among those at the level or a milder one; "overall" bounds the share of
            all runs that reach it and are wrong, which allows more where the agent is mostly right.
        groups: what runs belong together, such as trials of one task. Their labels are not independent, so one run of each is drawn.
        weights: inverse probabilities with which the labels were collected, from `labels(...)`. The sample is thinned to the smallest
            probability, which keeps the tests exact.
        seed: for both draws.

    Raises:
        ValueError: an argument cannot be used; the message says which and why.
    """
    checked = checked_risks(risks)
    check_inside("delta", delta)
    if promise not in (SELECTIVE, OVERALL):
        raise ValueError(f'promise must be "selective" or "overall" (got {promise!r})')
    scores, labels = samples(confidence, correct)
    kept, notes = independent(labels, groups, weights, seed)
    return allowed_thresholds(scores[kept], labels[kept], checked, delta, promise, notes)


def allowed_thresholds(
    scores: Floats, labels: Floats, checked: dict[str, float], delta: float, promise: str, notes: Iterable[str] = ()
) -> RiskThresholds:
    """Return the thresholds that independent labels of 0 and 1 allow; without any label every level is never."""
    sample, notes = Ranking(scores, 1.0 - labels), list(notes)
    share = delta / len(checked)
    find = sample.selective if promise == SELECTIVE else sample.overall
    found: dict[str, float] = {}
    milder = math.inf  # what is safe enough for a milder level is so for a stricter one
    for level, risk in checked.items():
        milder = found[level] = min(milder, find(risk, share))
    counts = {level: sample.at(threshold) for level, threshold in found.items()}
    bounds: dict[str, float | None] = {}
    more: dict[str, int | None] = {}
    for level, (n, errors) in counts.items():
        trials = n if promise == SELECTIVE else len(scores)
        bounds[level] = None if found[level] == math.inf else upper_bound(errors, trials, share)
        if found[level] == math.inf:
            more[level] = sample.more_labels(checked[level], share, promise)
            notes.append(_lacking(level, sample.n, checked[level], share, more[level]))
    lacking = 0.0  # a level needs at least as many as a milder one
    for level in reversed(more):
        lacking = max(lacking, math.inf if more[level] is None else more[level] or 0)
        more[level] = None if lacking == math.inf else int(lacking)
    return RiskThresholds(
        thresholds=_order_levels(found),
        coverage={level: n / max(1, len(scores)) for level, (n, _) in counts.items()},
        bounds=bounds,
        n=len(scores),
        notes=tuple(notes),
        errors={level: errors for level, (_, errors) in counts.items()},
        risks=checked,
        delta=delta,
        promise=promise,
        more={level: more.get(level, 0) for level in checked},
    )


def tool_thresholds(
    confidence: Iterable[Any],
    correct: Iterable[Any],
    tools: Iterable[str],
    promise: Promise,
    *,
    groups: Iterable[Any],
    weights: Iterable[Any] | None = None,
    seed: int = 0,
) -> dict[str, RiskThresholds]:
    """Return thresholds for the actions of each tool alone. The promises of all tools hold together, with probability at least 1 - delta.

    Delta is shared by the tools with labels of enough groups for any level, whatever these labels state. A level that the labels of a tool do
    not show is never used for it, also where all tools together would allow it. One action of each tool and group, such as its task, is drawn.
    The arguments are those of `risk_thresholds`.
    """
    scores, labels = samples(confidence, correct)
    numbers, names = group_numbers("tools", tools, len(labels))
    tasks = group_numbers("groups", groups, len(labels))[0]
    inverse = None if weights is None else weights_of(weights, len(labels))
    rows = [np.flatnonzero((numbers == number) & np.isin(labels, (0, 1))) for number in range(len(names))]
    sizes = np.array([len(set(tasks[own].tolist())) for own in rows])
    order, mildest, levels = np.argsort(-sizes, kind="stable").tolist(), max(promise.risks.values()), len(promise.risks)
    enough = [n >= labels_needed(mildest, promise.delta / k, levels) for k, n in enumerate(sizes[order], 1)]
    tested = max(itertools.compress(itertools.count(1), enough), default=0)
    found = {}
    for place, number in enumerate(order):
        own, share = rows[number], promise.delta / (tested + (place >= tested))
        if len(own):
            kept, notes = independent(labels[own], tasks[own], None if inverse is None else inverse[own], seed)
            own = own[kept]
            found[names[number]] = allowed_thresholds(
                scores[own], labels[own], dict(promise.risks), share, promise.kind, notes
            )
    return found


def strictest(tools: Mapping[str, RiskThresholds], promise: Promise) -> RiskThresholds:
    """Return at each level the strictest threshold of any tool, for tools without labels, with the counts of all tools under their own."""
    found, n = list(tools.values()), sum(each.n for each in tools.values())
    return RiskThresholds(
        thresholds=Thresholds(*(max(getattr(each.thresholds, name) for each in found) for name in LEVELS)),
        coverage={level: sum(each.coverage[level] * each.n for each in found) / n for level in promise.risks},
        bounds=dict.fromkeys(promise.risks),
        n=n,
        notes=(),
        errors={level: sum(each.errors[level] for each in found) for level in promise.risks},
        risks=promise.risks,
        delta=promise.delta,
        promise=promise.kind,
    )


def promise_text(kind: str, risks: Mapping[str, float], delta: float, what: str) -> str:
    """Return a promise as sentences."""
    of = f"of all {what} at the level or a milder one, at most this share is wrong"
    if kind == OVERALL:
        of = f"of all {what}, at most this share both reaches the level or a milder one and is wrong"
    listed = ", ".join(f"{level} {risk:g}" for level, risk in risks.items())
    return (
        f"The {kind} promise: {of}. Promised risks: {listed}. All of them hold together with a probability of at least {1 - delta:g} over "
        "the labelled sample."
    )


def labels_needed(risk: float, delta: float = 0.1, levels: int = 3) -> int:
    """Return how many labels a level needs at least: so many without one error show a risk of at most `risk`.

    Args:
        risk: the promised share of wrong actions, above 0 and below 1.
        delta: the probability that the promises do not hold, shared equally among the levels.
        levels: number of promised levels.

    Raises:
        ValueError: an argument is out of range.
    """
    check_inside("risk", risk)
    check_inside("delta", delta)
    check_whole("levels", levels)
    return fewest_without_error(risk, delta / levels)


def check_rates(risks: Mapping[str, float]) -> dict[str, float]:
    """Return promised error rates from silent to confirm, each above 0 and below 1."""
    if not isinstance(risks, Mapping) or not risks or any(level not in LEVELS for level in risks):
        shown = ", ".join(map(brief, risks)) or "none" if isinstance(risks, Mapping) else brief(risks)
        raise ValueError(f"risks must have a rate for one or more of {', '.join(LEVELS)} (got {shown})")
    for level, risk in risks.items():
        check_inside(f"risks[{level!r}]", risk)
    return {level: float(risks[level]) for level in LEVELS if level in risks}


def checked_risks(risks: Mapping[str, float]) -> dict[str, float]:
    """Return promised error rates that do not fall from silent to confirm."""
    checked = check_rates(risks)
    if list(checked.values()) != sorted(checked.values()):
        raise ValueError(f"risks must not fall from silent to confirm (got {checked})")
    return checked


def _order_levels(found: Mapping[str, float]) -> Thresholds:
    """Return thresholds for all levels: one that is not promised begins where the next stricter one does, except that asking needs no promise."""
    silent = found.get("silent", math.inf)
    notify = found.get("notify", silent)
    confirm = found.get("confirm", min(notify, Thresholds().confirm))
    if "silent" not in found and "notify" not in found:
        return Thresholds(math.inf, math.inf, confirm)
    return Thresholds(silent, notify, min(confirm, notify))


def _lacking(level: str, n: int, risk: float, delta: float, more: int | None) -> str:
    fewest = fewest_without_error(risk, delta)
    if n < fewest and more is not None:
        about = "" if more == fewest - n else "with the errors of this sample, about "
        return (
            f"{level} is never used: a risk of {risk:g} needs at least {fewest:,} labels, all of them correct; "
            f"{about}{more:,} more than there are."
        )
    if more is None:
        return (
            f"{level} is never used: at no confidence is the share of errors in this sample below {risk:g}. More labels alone would not "
            "change that; a confidence that tells right from wrong would."
        )
    return (
        f"{level} is never used: {n:,} labels do not show a risk of {risk:g} at any confidence. About {more:,} more would, "
        "if the shares of errors stay as they are."
    )


RANKS = 100
"""Ranks that are tested, in geometric steps from the strictest to all samples."""
STARTS = ((0.0, 0.6), (0.4, 0.2), (0.65, 0.2))
"""Where the sequence starts, as a share of its steps, and with which share of delta. Started at the strictest rank alone, it stalls where a few
errors among the most confident samples end it; docs/calibrate-results.md compares both."""
MOST_GROWTH = 1_000
"""If not even so many times the samples would show a level, more would not help."""
SCARCE = 0.1
"""Where the strictest rank takes this share of the samples or more, it gets the whole delta: the other starts could decide little."""


class Ranking:
    """A sample in the order of its confidence, the most confident first."""

    def __init__(self, scores: Floats, wrong: Floats) -> None:
        order = np.argsort(-scores, kind="stable")
        self.n = len(scores)
        self._scores = scores[order]
        self._errors = np.concatenate(([0], np.cumsum(wrong[order]).astype(np.int64)))
        """Errors among the first k."""
        self._ends: Counts = np.append(np.flatnonzero(np.diff(self._scores)) + 1, self.n).astype(np.int64)
        """Numbers of samples at which no tie is cut in two."""

    def at(self, threshold: float) -> tuple[int, int]:
        """Return how many samples reach a threshold, and how many of them are errors."""
        n = int(np.searchsorted(-self._scores, -threshold, side="right"))
        return n, int(self._errors[n])

    def selective(self, risk: float, delta: float) -> float:
        """Return the mildest threshold that is shown to have at most a share `risk` of errors among what reaches it; infinity for none."""
        if fewest_without_error(risk, delta) > self.n:
            return math.inf
        passed, handed_on = math.inf, 0.0
        for count, share in self._sequence(risk, delta):
            level = share + handed_on
            handed_on = 0.0
            if level > 0 and binomial_cdf(int(self._errors[count]), count, risk) <= level:
                passed, handed_on = self._above(count), level
        return passed

    def overall(self, risk: float, delta: float) -> float:
        """Return the mildest threshold at which at most a share `risk` of all samples is shown to reach it and be wrong; infinity for none.

        The share only grows from strict to mild, so that one sequence over all thresholds needs no correction.
        """
        most = most_errors(self.n, risk, delta)
        if most < 0:
            return math.inf
        # The first tie that brings too many errors is left out whole.
        allowed = self._ends[self._errors[self._ends] <= most]
        return self._above(int(allowed[-1])) if len(allowed) else math.inf

    def more_labels(self, risk: float, delta: float, promise: str) -> int | None:
        """Return about how many more labels would make a level usable if the shares of errors stay as they are; None if none would."""
        fewest = fewest_without_error(risk, delta)
        if not self.n:
            return fewest
        counts = np.unique(self._snap_to_ties(np.geomspace(1, self.n, RANKS)))
        rows = [*zip(counts.tolist(), self._errors[counts].tolist(), strict=True)]
        if promise == OVERALL:  # of all samples, those with the highest confidence must not be too often wrong
            rows = [(self.n, rows[0][1])]
        factors = np.geomspace(1.05, MOST_GROWTH, 120)
        best: float | None = None
        for k, errors in rows:
            if errors >= risk * k:
                continue
            enough = factors if errors else np.array([fewest / k if k < fewest else factors[0]])
            for factor in enough[enough < (best or MOST_GROWTH)].tolist():
                if errors == 0 or binomial_cdf(math.ceil(errors * factor), int(k * factor), risk) <= delta:
                    best = factor
                    break
        return None if best is None else max(math.ceil(self.n * (best - 1) - 1e-9), fewest - self.n)

    def _sequence(self, risk: float, delta: float) -> Iterator[tuple[int, float]]:
        """Yield numbers of samples, from strict to mild, with the share of delta that each has before another hands on its own."""
        ranks, shares = ladder(self.n, risk, delta)
        counts = self._snap_to_ties(np.asarray(ranks)).tolist()
        for place, count in enumerate(counts):
            if place == 0 or count != counts[place - 1]:
                yield count, sum(shares[i] for i in range(place, len(counts)) if counts[i] == count)

    def _snap_to_ties(self, ranks: Floats | Counts) -> Counts:
        return self._ends[np.searchsorted(self._ends, ranks)]

    def _above(self, count: int) -> float:
        return 0.0 if count == self.n else math.nextafter(float(self._scores[count]), 2.0)


def ladder(n: int, risk: float, delta: float) -> tuple[list[int], list[float]]:
    """Return the ranks that are tested among n samples, from strict to mild, and the share of `delta` of each.

    The first is the smallest rank that passes without an error, and each the smallest that allows its number of errors.
    """
    scarcity = min(1.0, fewest_without_error(risk, delta) / (SCARCE * n))
    shares = [0.0] * RANKS
    for place, share in STARTS:
        shares[round(place * (RANKS - 1))] += share * (1 - scarcity)
    shares[0] += scarcity
    first = min(n, fewest_without_error(risk, delta * shares[0]))
    steps = np.geomspace(first, n, RANKS).round().astype(np.int64).tolist()
    smallest = {k: smallest_sample(k, risk, delta * shares[0]) for k in set(steps[:-1])}
    return [*(smallest[k] for k in steps[:-1]), n], [share * delta for share in shares]
