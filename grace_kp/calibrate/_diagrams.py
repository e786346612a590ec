"""The two diagrams of a calibration: reliability, and risk against coverage.

Series differ in line style, marker and label, so that neither grey nor colour-blindness hides what is what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.calibrate._predictions import FORMULA, LEARNED
from grace_kp.calibrate._risk import OVERALL
from grace_kp.pages import FIRST, INK, PAPER, SECOND, SOFT, figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.calibrate._calibration import Calibration, PromisedLevel

_LOOKS: dict[str, dict[str, Any]] = {
    LEARNED: {"color": FIRST, "linestyle": "-", "marker": "o", "linewidth": 2},
    FORMULA: {"color": SECOND, "linestyle": (0, (5, 2)), "marker": "s", "linewidth": 1.6, "markerfacecolor": "none"},
}
_MARKERS = {"silent": "^", "notify": "D", "confirm": "v"}
_BESIDE: dict[str, Any] = {"xytext": (5, 0), "textcoords": "offset points", "annotation_clip": False}
_SMALL, _LARGE = 24, 180
"""Area of the points of the reliability diagram, from the smallest to the largest bin."""
FIRST_SHARES = 0.05
"""Coverage below which the share of errors rests on few runs, and does not decide how high the diagram is."""
FEW_POINTS = 10
"""A curve of fewer points shows them."""


def reliability(calibration: Calibration) -> str:
    """Return the reliability diagram: share of correct runs against confidence, for the learned confidence and the formula."""
    found = {name: calibration.assessments[name] for name in _LOOKS}

    def draw(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], linestyle=":", color=SOFT, linewidth=1.2)
        axes.annotate("as stated", (1.02, 1), va="center", color=SOFT, **_BESIDE)
        most = max(each.n for name in found for each in found[name].bins)
        for name, assessment in found.items():
            look = dict(_LOOKS[name])
            marker, face = look.pop("marker"), look.pop("markerfacecolor", look["color"])
            x = [each.confidence for each in assessment.bins]
            y = [each.accuracy for each in assessment.bins]
            sizes = [_SMALL + (_LARGE - _SMALL) * each.n / most for each in assessment.bins]
            axes.plot(x, y, **look)
            axes.scatter(x, y, sizes, marker=marker, facecolors=face, edgecolors=look["color"], zorder=3, label=name)
        _frame(axes, "confidence", "share correct", 1.03)

    words = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{each.confidence:.2f} stated, {each.accuracy:.2f} correct, {each.n:,} runs" for each in assessment.bins
        )
        for name, assessment in found.items()
    )
    caption = "Reliability: on the dotted line a confidence means what it says. Below it, it promises too much. Larger points stand for more runs."
    return figure(caption, draw, 3.6, description=f"Share of correct runs by confidence. {words}.")


def risk_and_coverage(calibration: Calibration) -> str:
    """Return the curve of risk against coverage, with the chosen thresholds and the bounds of their risks."""
    levels, curves = calibration.levels, calibration.curves
    shares = [y for curve in curves.values() for x, y in curve if x > FIRST_SHARES]
    top = min(1.0, 1.25 * max(*shares, *(each.risk for each in levels), *(each.bound or 0.0 for each in levels)))

    def draw(axes: Any) -> None:
        for name, curve in curves.items():
            look = {**_LOOKS[name], "marker": _LOOKS[name]["marker"] if len(curve) < FEW_POINTS else ""}
            axes.plot([x for x, _ in curve], [y for _, y in curve], **look, label=name)
        for each in levels:
            axes.axhline(each.risk, linestyle=(0, (1, 3)), color=SOFT, linewidth=1)
            axes.annotate(f"{each.level} {each.risk:g}", (1.02, each.risk), va="center", color=SOFT, **_BESIDE)
        _mark(axes, [each for each in levels if each.threshold is not None], top)
        overall = calibration.promise.kind == OVERALL
        _frame(
            axes, "coverage: share of runs that act", "share wrong, of all" if overall else "share wrong, of these", top
        )

    caption = (
        "Risk and coverage on the tested runs, from strict thresholds on the left to mild ones on the right. A marker is the share of errors at a "
        "chosen threshold, the bar above it ends at the bound of its risk, and the dotted lines are the promised risks."
    )
    return figure(caption, draw, 3.8, description=_in_words(calibration))


def _mark(axes: Any, levels: Sequence[PromisedLevel], top: float) -> None:
    """Mark thresholds at their coverage, each with a bar up to its bound. Labels do not cover each other."""
    labels: list[tuple[float, float]] = []
    for each in levels:
        x, bound = each.coverage, each.bound or 0.0
        axes.plot([x, x], [each.share_wrong, bound], color=INK, linewidth=1.6, solid_capstyle="butt", zorder=4)
        axes.plot([x], [bound], marker="_", markersize=11, color=INK, markeredgewidth=1.6, zorder=4)
        axes.plot(
            [x], [each.share_wrong], marker=_MARKERS[each.level], markersize=8, color=INK, zorder=5, clip_on=False
        )
        y = bound + 0.02 * top
        while any(abs(y - above) < 0.08 * top and abs(x - beside) < 0.35 for beside, above in labels):
            y += 0.08 * top
        labels.append((x, y))
        axes.annotate(
            f"{each.level} from {each.threshold:.3f}", (x, y), ha="right" if x > 0.7 else "left", va="bottom", color=INK, zorder=6,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1, "alpha": 0.8},
        )  # fmt: skip


def _in_words(calibration: Calibration) -> str:
    parts = [
        f"{each.level} is never used"
        if each.threshold is None
        else f"{each.level} from {each.threshold:.3f}: coverage {each.coverage:.2f}, {each.share_wrong:.3f} wrong, bound {each.bound:.3f}"
        for each in calibration.levels
    ]
    for name, curve in calibration.curves.items():
        points = [curve[round(place * (len(curve) - 1) / 4)] for place in range(5)]
        parts.append(f"{name}: " + ", ".join(f"{y:.2f} wrong at coverage {x:.2f}" for x, y in points))
    return "; ".join(parts) + "."


def _frame(axes: Any, x: str, y: str, top: float) -> None:
    axes.set_xlim(-0.01, 1.02)
    axes.set_ylim(0, top)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.2)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)
