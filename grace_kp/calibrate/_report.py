"""A calibration as an HTML page: what was measured, what the thresholds promise and what they do not, in plain words, tables and diagrams."""

from __future__ import annotations

import math
import tomllib
from importlib.resources import files
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


WORDS = tomllib.loads(files("grace_kp.calibrate").joinpath("report.toml").read_text("utf-8"))
"""The texts of the page that do not depend on figures, or hardly."""


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
        f"<p>{safe(WORDS['legend'])}</p>",
        _reliability_plot(calibration),
        *(_group_table(kind, found, calibration.nouns) for kind, found in calibration.by_group.items()),
        *(_of_actions(calibration) if calibration.promise.unit == "action" else _weights(calibration)),
        "<h2>What it was fitted on</h2>",
        _fitted_on(calibration),
        "<h2>Notes</h2>",
        list_html([note[:1].upper() + note[1:] for note in calibration.notes]),
    ]
    return page(title, "".join(parts))


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
    promise, action = calibration.promise, calibration.profile.action
    is_per_tool = action is not None and bool(action.thresholds)
    names = ["drawn", "sample", "share", "per_tool" if is_per_tool else "together", "labels"]
    names += ["overall"] if promise.kind == OVERALL else []
    names += [promise.moment, "approximate"] if calibration.is_approximate else [promise.moment]
    tool = "tool, " if promise.unit == "action" and not is_per_tool else ""
    facts = {"delta": promise.delta, "kept": 1 - promise.delta, "unit": promise.unit}
    return [WORDS["limits"][name].format(**facts, kinds=f"{tool}source, model or domain") for name in names]


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
    return curves("Reliability", found, plane, caption=WORDS["reliability"].format(nouns=calibration.nouns))


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
    return curves("Risk and coverage", found, plane, caption=WORDS["risk"])


def _group_table(kind: str, found: Mapping[str, Assessment], nouns: str) -> str:
    few = any(each.n < FEW for each in found.values())
    note = f"<p>Groups of fewer than {FEW} {nouns} say next to nothing.</p>" if few else ""
    return f"<h2>The learned confidence by {kind}</h2>{quality_table(found, kind, nouns)}{note}"


def _of_actions(calibration: Calibration) -> list[str]:
    """Return what holds for each tool alone, and what predicts errors."""
    tools = [(name, f"{each.n:,}", *(level.state for level in each.levels)) for name, each in calibration.tools.items()]
    rows = [(each.words, f"{each.flagged:,} of {each.n:,}", *each.shares, each.odds) for each in calibration.predictors]
    text = WORDS["predictors"].format(count=len(rows), few=math.ceil(0.05 * len(rows)))
    of_tools = _folded(("tool", "labels", *calibration.promise.risks), tools, MAX_WEIGHTS, "more tools")
    header = ("feature", "actions with it", "wrong with it", "wrong without", "odds ratio of an error")
    return [
        f"<h2>Labels still needed, by tool</h2><p>{safe(WORDS['needed'])}</p>{of_tools}",
        f"<h2>What predicts errors</h2><p>{safe(text)}</p>{_folded(header, rows, MAX_PREDICTORS, 'more features')}",
    ]


def _folded(header: Sequence[str], rows: Sequence[Sequence[str]], shown: int, noun: str) -> str:
    """Return a table whose rows beyond some can be unfolded."""
    rest = rows[shown:]
    more = f"<details><summary>{len(rest):,} {noun}</summary>{table(header, rest)}</details>" if rest else ""
    return f"{table(header, rows[:shown], words=set(header[:1]))}{more}"


def _weights(calibration: Calibration) -> list[str]:
    rows = [
        (
            each.words, each.step, f"× {each.odds:.2f}", "raises" if each.spread > 0 else "lowers", f"{each.spread:+.2f}".replace("-", "−"),
        )
        for each in weights_of_head(calibration.profile.heads[calibration.promise.moment])
        if round(each.spread, 2)
    ]  # fmt: skip
    header = ("feature", "step", "odds of being right", "effect", "log-odds per spread")
    weights = _folded(header, rows, MAX_WEIGHTS, "smaller weights")
    return [f"<h2>What raises and lowers it</h2><p>{safe(WORDS['weights'])}</p>{weights}"]


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
