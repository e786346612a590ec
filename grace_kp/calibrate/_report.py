"""A calibration as an HTML page: what was measured, what the thresholds promise and what they do not, in plain words, tables and diagrams."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from grace_kp.calibrate._calibration import LEARNED
from grace_kp.calibrate._head import weights_of_head
from grace_kp.calibrate._html import list_html, quality_table, threshold_table, with_interval
from grace_kp.calibrate._risk import OVERALL
from grace_kp.pages import Curve, Plane, Rule, curves, page, safe, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.calibrate._assess import Assessment
    from grace_kp.calibrate._calibration import Calibration

FIRST_SHARES = 0.05
"""Coverage below which the share of errors rests on few runs, and does not decide how high the diagram is."""
MAX_WEIGHTS = 25
"""Weights that are shown at once; the others can be unfolded."""
MAX_PREDICTORS = 12
MAX_NAMES = 12
FEW = 30
"""Runs below which the figures of a group say next to nothing."""


def calibration_page(calibration: Calibration, title: str = "Calibration") -> str:
    """Return a calibration as one HTML file, without scripts and without references to other files.

    Args:
        calibration: from `calibrate_runs`.
        title: plain text.
    """
    parts = [
        *(f'<p class="verdict">Do not use this profile: {safe(each)}.</p>' for each in calibration.objections),
        f'<p class="verdict">{safe(_verdict(calibration))}</p>',
        f"<p>{safe(_basis(calibration))}</p>",
        "<h2>Thresholds and what they promise</h2>",
        f"<p>{safe(calibration.promise.in_words)}</p>",
        threshold_table(calibration.thresholds),
        _risk_plot(calibration),
        "<h2>What this does not promise</h2>",
        list_html(_limits(calibration)),
        "<h2>Does the confidence mean what it says?</h2>",
        quality_table(calibration.assessments, "confidence", calibration.nouns),
        f"<p>{safe(_LEGEND)}</p>",
        _reliability_plot(calibration),
        *(_group_table(kind, found, calibration.nouns) for kind, found in calibration.by_group.items()),
        *(_of_actions(calibration) if calibration.promise.unit == "action" else _weights(calibration)),
        "<h2>What it was fitted on</h2>",
        _fitted_on(calibration),
        "<h2>Notes</h2>",
        list_html([note[:1].upper() + note[1:] for note in calibration.notes]),
    ]
    return page(title, "".join(parts))


_LEGEND = (
    "AUROC: the probability that what is correct has a higher confidence than what is wrong; 0.5 says nothing, 1 separates all. Calibration error: the "
    "mean distance of confidence and share correct; 0 is best, and few labels overstate it. Brier score: the mean squared distance of confidence "
    "and label; lower is better. The ranges are 95 % intervals."
)


def _verdict(calibration: Calibration) -> str:
    used = [each for each in calibration.levels if each.threshold is not None]
    if not used:
        return "No level keeps its promise on these labels, so every action is asked about or escalated. The table says what is lacking."
    shares = ", ".join(
        f"{each.coverage:.1%} reach {each.level}{'' if each.level == 'silent' else ' or a milder level'}"
        for each in used
    )
    never = [each.level for each in calibration.levels if each.threshold is None]
    rest = f" Never used: {', '.join(never)}." if never else ""
    approximate = " The promise is approximate." if calibration.is_approximate else ""
    return f"Of the tested {calibration.nouns} {shares}.{rest}{approximate}"


def _basis(calibration: Calibration) -> str:
    sample, nouns = calibration.sample, calibration.nouns
    learned = calibration.assessments[LEARNED]
    how = (
        f"fitted on {sample[f'fitted_{nouns}']:,} {nouns} of {sample['fitted_tasks']:,} tasks, and assessed on {sample[f'assessed_{nouns}']:,} {nouns} of "
        f"{sample['assessed_tasks']:,} other tasks"
        if sample["holdout"]
        else f"fitted on all of them, and assessed by cross-validation over {sample['assessed_tasks']:,} tasks"
    )
    return f"{sample[nouns]:,} labelled {nouns}, {sample['share_correct']:.0%} correct; the confidence is {how}. Its AUROC is {with_interval(learned, 'auroc')}."


def _limits(calibration: Calibration) -> list[str]:
    promise, sample, nouns = calibration.promise, calibration.sample, calibration.nouns
    found = [
        (
            "It is about runs that are drawn as these were: the same agent, models, tools, users and kinds of task. When one of them changes, refit. "
            "The profile reports a change of agent, model or tools, and the monitor tests the promise while labels arrive."
        ),
        (
            f"It holds with a probability of {1 - promise.delta:g} over the labelled sample: up to {promise.delta:.0%} of such samples give thresholds "
            "that break it, and one sample cannot show whether it is one of them."
        ),
        (
            "It is about the share of errors in the long run. It says nothing about a single action, and nothing about how bad an error is: limit "
            "irreversible actions by a floor of their gate."
        ),
        f"It holds for all {nouns} together, not within each {'tool, ' if nouns == 'actions' else ''}source, model or domain."
        if not getattr(calibration.profile.action, "thresholds", None)
        else "It holds for each tool, not within each source, model or domain.",
        f"It is as good as the labels: a wrong {promise.unit} that was labelled correct does not count as an error.",
    ]
    if promise.kind == OVERALL:
        found.append(
            "An agent that is rarely wrong may act with any confidence under this promise. It does not bound the share of errors among the actions."
        )
    if promise.moment == "action":
        found.append(
            "Each task counts once, with one run and one action of it. An agent that acts most often on its hardest tasks makes more errors than this says."
        )
    else:
        found.append(
            "The thresholds are for runs that have ended. For gates, which decide before an action, calibrate at the moment of an action."
        )
    if not sample["holdout"]:
        found.append(
            "It is approximate, because the thresholds and the profile rest on the same tasks. Hold tasks back for a promise that is exact."
        )
    return found


def _reliability_plot(calibration: Calibration) -> str:
    """Return the share of correct runs against confidence, for the learned confidence and the formula."""
    found = []
    for name in calibration.curves:
        bins = calibration.assessments[name].bins
        points = [(each.confidence, each.accuracy) for each in bins]
        runs = [each.n for each in bins]
        found.append(Curve(name=name, points=points, sizes=runs, notes=[f"{count:,}" for count in runs]))
    unit = (0.0, 1.0)
    plane = Plane(
        x="confidence", y="share correct", x_range=unit, y_range=unit, diagonal="as stated", note=calibration.nouns
    )
    caption = f"Below the dotted line the confidence promises too much. Larger points mean more {calibration.nouns}."
    return curves("Reliability", found, plane, caption=caption)


def _risk_plot(calibration: Calibration) -> str:
    """Return risk against coverage, with the chosen thresholds, the bounds of their risks and the promised risks."""
    levels = calibration.levels
    found = [Curve(name=name, points=points) for name, points in calibration.curves.items()]
    chosen = [each for each in levels if each.bound is not None]
    if chosen:
        found.append(
            Curve(
                name="chosen thresholds",
                points=[(each.coverage, each.share_wrong) for each in chosen],
                band=[(each.share_wrong, each.bound or 0.0) for each in chosen],
                notes=[f"{each.level} from {each.threshold:.3f}" for each in chosen],
                is_joined=False,
            )
        )
    shares = [y for points in calibration.curves.values() for x, y in points if x > FIRST_SHARES]
    highest = max(*shares, *(each.risk for each in levels), *(each.bound or 0.0 for each in levels))
    whose = "of all" if calibration.promise.kind == OVERALL else "of these"
    plane = Plane(
        x="coverage: share of runs that act"
        if calibration.promise.unit == "run"
        else "coverage: share of actions that run",
        y=f"share wrong, {whose}",
        x_range=(0.0, 1.0),
        y_range=(0.0, min(1.0, 1.1 * highest)),
        rules=[Rule(each.risk, f"{each.level} {each.risk:g}") for each in levels],
        note="threshold",
    )
    caption = (
        "From strict thresholds on the left to mild ones on the right. A triangle marks the share of errors at a chosen threshold. "
        "Its band ends at the bound of the risk, and the dotted lines are the promised risks."
    )
    return curves("Risk and coverage", found, plane, caption=caption)


def _group_table(kind: str, found: Mapping[str, Assessment], nouns: str) -> str:
    few = any(each.n < FEW for each in found.values())
    note = f"<p>Groups of fewer than {FEW} {nouns} say next to nothing.</p>" if few else ""
    return f"<h2>The learned confidence by {kind}</h2>{quality_table(found, kind, nouns)}{note}"


def _of_actions(calibration: Calibration) -> list[str]:
    """Return what holds for each tool alone, and what predicts errors."""
    tools = [(name, f"{each.n:,}", *(level.state for level in each.levels)) for name, each in calibration.tools.items()]
    needed = (
        "Where the labels of a tool show that it keeps the promise on its own, the confidence from which it does; else about how many more "
        "labels it needs, each of another task, if the shares of errors stay as they are."
    )
    found = calibration.predictors
    rows = [(each.words, f"{each.flagged:,} of {each.n:,}", *each.shares, each.odds) for each in found]
    text = (
        "A figure counts as a feature where it is above its median. The odds ratio is 1 where a feature says nothing, and its 95 % interval "
        f"rests on resamples of whole tasks. For about {math.ceil(0.05 * len(rows)):,} of {len(rows):,} features the interval excludes 1 by chance."
    )
    of_tools = _folded(("tool", "labels", *calibration.promise.risks), tools, MAX_WEIGHTS, "more tools")
    header = ("feature", "actions with it", "wrong with it", "wrong without", "odds ratio of an error")
    return [
        f"<h2>Labels still needed, by tool</h2><p>{safe(needed)}</p>{of_tools}",
        f"<h2>What predicts errors</h2><p>{safe(text)}</p>{_folded(header, rows, MAX_PREDICTORS, 'more features')}",
    ]


def _folded(header: Sequence[str], rows: Sequence[Sequence[str]], shown: int, noun: str) -> str:
    """Return a table whose rows beyond some can be unfolded."""
    rest = rows[shown:]
    more = f"<details><summary>{len(rest):,} {noun}</summary>{table(header, rest)}</details>" if rest else ""
    return f"{table(header, rows[:shown], words=set(header[:1]))}{more}"


def _weights(calibration: Calibration) -> list[str]:
    head = calibration.profile.heads[calibration.promise.moment]
    rows = [
        (
            each.words, each.step, f"× {each.odds:.2f}", "raises" if each.spread > 0 else "lowers", f"{each.spread:+.2f}".replace("-", "−"),
        )
        for each in weights_of_head(head)
        if round(each.spread, 2)
    ]  # fmt: skip
    header = ("feature", "step", "odds of being right", "effect", "log-odds per spread")
    text = (
        "Each row says what one step of a feature does to the odds of being right, with all other features unchanged. The last column compares "
        "features: what a change by one standard deviation adds. Features that go together share their effect, and none of this shows a cause."
    )
    weights = _folded(header, rows, MAX_WEIGHTS, "smaller weights")
    return [f"<h2>What raises and lowers it</h2><p>{safe(text)}</p>{weights}"]


def _fitted_on(calibration: Calibration) -> str:
    facts, sample = calibration.profile.fitted_on, calibration.sample
    left_out = [f"{count:,} {reason}" for reason, count in sample["left_out"].items()]
    nouns = calibration.nouns
    rows = [
        (nouns, f"{sample[f'fitted_{nouns}']:,} of {sample['fitted_tasks']:,} tasks"),
        ("labels", _join_names([f"{count:,} {name}" for name, count in facts["labels"].items()])),
        ("left out", _join_names(left_out)),
        *((kind, _join_names(facts[kind])) for kind in ("agents", "models", "tools", "domains")),
        ("first run", facts["from"] or "unknown"),
        ("last run", facts["to"] or "unknown"),
        ("fitted at", facts["fitted_at"]),
        ("seed of all draws", sample["seed"]),
    ]
    return table(("fact", "value"), rows, words={"value"})


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return ", ".join(name[:60] for name in names[:MAX_NAMES]) + more or "none"
