"""Rounds and comparisons as HTML pages with plots: scores per round with intervals, and category rates side by side."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from grace_kp.errors import MissingExtra
from grace_kp.pages import INK, can_draw, figure, page, printable, safe, table
from grace_kp.rubric._compare import VARIANT, Recommendation, compare
from grace_kp.rubric._html import evidence_table, verdict_html, warnings_html
from grace_kp.rubric._statistics import bootstrap_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.rubric._history import History
    from grace_kp.rubric._rounds import Round
    from grace_kp.rubric._summary import Variant

MAX_ROUNDS = 40
MAX_BARS = 6
"""Variants whose category rates stand side by side: the newest ones and the best."""
_COLOURS = ("#7f8ea3", "#2f81f7", "#bf8700", "#1a7f37", "#8250df", "#bc4c00")
_WORDS = {"variant", "decision"}


def history_page(history: History) -> str:
    """Return a page with all rounds of a history.

    Raises:
        MissingExtra: matplotlib or scipy is not installed.
    """
    rounds, best = history.rounds, history.best
    if best is None:
        return page("Rounds", "<p>There are no rounds yet.</p>")
    outlook = "Continue: the last three rounds show no convergence"
    if history.converged:
        outlook = "It may have converged: each of the last three rounds improved by less than 0.5"
    mean = f"mean {best.summary.mean:.2f}"
    newest = [item.variant for item in rounds][-MAX_BARS:]
    parts = [
        f'<p class="verdict">The best of {len(rounds)} rounds is <b>{safe(best.name)}</b>, {mean}. {outlook}.</p>',
        _rounds_table(rounds),
        _plot(
            "Scores per round: mean and 95 % bootstrap interval, each run as a point",
            lambda axes: _draw_rounds(axes, rounds, best),
            3.4,
        ),
        _rates_plot(newest if best in newest else [best, *newest[1:]]),
    ]
    last, before = rounds[-1], history.best_before(len(rounds) - 1)
    if last.recommendation is not None and before is not None:
        title = f"<h2>Round {len(rounds)}: {safe(last.variant.name)}</h2><p>{safe(last.recommendation.reason)}.</p>"
        parts.append(title + _evidence_of(compare(before, last.variant)))
    return page(history.path.name, "".join(parts))


def comparison_page(best: Variant, variant: Variant, found: Recommendation) -> str:
    """Return a page with two variants side by side.

    Args:
        best: the current best.
        variant: the variant.
        found: their comparison.

    Raises:
        MissingExtra: matplotlib or scipy is not installed.
    """
    chosen = variant if found.choice == VARIANT else best
    parts = [
        verdict_html(chosen.name, found.reason),
        table(
            ("variant", "mean", "SD", "stability", "gap", "balance"),
            [(item.name, *_figures(item)) for item in (best, variant)],
        ),
        warnings_html(found.warnings),
        _evidence_of(found),
        _plot(
            "Scores: mean and 95 % bootstrap interval, each run as a point",
            lambda axes: _draw_scores(axes, [best, variant], chosen),
            2.8,
        ),
        _rates_plot([best, variant]),
    ]
    return page(f"{best.name} and {variant.name}", "".join(parts))


def _evidence_of(found: Recommendation) -> str:
    return evidence_table(found.raw_diff, found.adjusted_diff, found.evidence, found.regressions)


def _figures(variant: Variant) -> tuple[str, ...]:
    summary = variant.summary
    gap, balance = f"{summary.cross_doc_gap:.2f}", f"{summary.balance:.2f}"
    return f"{summary.mean:.2f}", f"{summary.sd:.2f}", summary.stability, gap, balance


def _rounds_table(rounds: Sequence[Round]) -> str:
    rows = []
    for number, item in enumerate(rounds, 1):
        difference, decision = item.outcome
        rows.append((number, item.variant.name, *_figures(item.variant), difference, decision))
    header = ("round", "variant", "mean", "SD", "stability", "gap", "balance", "difference", "decision")
    return table(header, rows, name=1, words=_WORDS)


def _rates_plot(variants: Sequence[Variant]) -> str:
    categories = variants[0].test_set.categories
    height = max(2.2, 0.35 + len(categories) * (0.18 * len(variants) + 0.25))
    return _plot(
        "Detection rate of each category, with 95 % bootstrap intervals",
        lambda axes: _draw_rates(axes, variants, categories),
        height,
    )


def require_plots() -> None:
    """Check that plots can be drawn.

    Raises:
        MissingExtra: matplotlib or scipy is not installed.
    """
    if not can_draw() or importlib.util.find_spec("scipy") is None:
        raise MissingExtra("a page with plots", "eval")


def _plot(caption: str, draw: Callable[[Any], None], height: float) -> str:
    require_plots()
    return figure(caption, draw, height)


def _draw_rounds(axes: Any, rounds: Sequence[Round], best: Variant) -> None:
    shown = [item.variant for item in rounds][-MAX_ROUNDS:]
    numbered = enumerate(shown, len(rounds) - len(shown) + 1)
    labels = [f"{number}" if len(shown) > 4 else f"{number}: {_short(item.name)}" for number, item in numbered]
    _draw_scores(axes, shown, best, labels)
    axes.set_xlabel("round")


def _draw_scores(axes: Any, variants: Sequence[Variant], best: Variant, labels: Sequence[str] | None = None) -> None:
    for place, item in enumerate(variants):
        interval, mean = bootstrap_interval([item]), item.summary.mean
        colour = _COLOURS[1] if item == best else _COLOURS[0]
        axes.plot([place] * len(item.scores), item.scores, ".", color=colour, alpha=0.45, zorder=1)
        if interval is not None:
            axes.vlines(place, interval.low, interval.high, color=colour, linewidth=2)
        axes.plot([place], [mean], "o", color=colour, markersize=7, zorder=3)
        axes.annotate(f"{mean:.2f}", (place, mean), xytext=(7, 4), textcoords="offset points")
    axes.set_xticks(range(len(variants)), labels or [_short(item.name) for item in variants])
    axes.set_xlim(-0.5, len(variants) - 0.5 + 0.2)
    axes.set_ylabel("score of a run")
    axes.grid(axis="y", alpha=0.2)


def _draw_rates(axes: Any, variants: Sequence[Variant], categories: Sequence[str]) -> None:
    width = 0.8 / len(variants)
    for number, item in enumerate(variants):
        rates = [item.summary.category_rates.get(category, 0.0) for category in categories]
        places = [place + (number - (len(variants) - 1) / 2) * width for place in range(len(categories))]
        colour, label = _COLOURS[number % len(_COLOURS)], "\u200b" + _short(item.name)
        axes.barh(places, rates, width * 0.9, color=colour, label=label)
        for place, category in zip(places, categories, strict=True):
            interval = bootstrap_interval([item], category)
            if interval is not None:
                axes.hlines(place, interval.low, interval.high, color=INK, linewidth=1, alpha=0.7)
    axes.set_yticks(range(len(categories)), list(map(_short, categories)))
    axes.invert_yaxis()
    axes.set_xlim(0, 1.02)
    axes.set_xlabel("detection rate")
    axes.grid(axis="x", alpha=0.2)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)


def _short(text: str) -> str:
    plain = printable(text)
    return plain if len(plain) <= 22 else plain[:21] + "…"
