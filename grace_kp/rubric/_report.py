"""Rounds and comparisons as HTML pages with plots: scores per round with intervals, and category rates side by side."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from grace_kp.errors import MissingExtra
from grace_kp.pages import Curve, Plane, curves, named_bars, page, printable, safe, table
from grace_kp.rubric._compare import (
    VARIANT,
    Recommendation,
    bootstrap_interval,
    compare,
    evidence_table,
    verdict_html,
    warnings_html,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.rubric._history import History
    from grace_kp.rubric._variants import Variant

MAX_ROUNDS = 40
MAX_BARS = 6
"""Variants whose category rates are shown side by side: the newest ones and the best."""
_FIGURES = ("variant", "mean", "SD", "stability", "gap", "balance")


def history_page(history: History) -> str:
    """Return a page with all rounds of a history.

    Raises:
        MissingExtra: scipy is not installed.
    """
    rounds, best = history.rounds, history.best
    if best is None:
        return page("Rounds", "<p>No round is recorded yet.</p>")
    require_plots()
    outlook = "Continue: the last three rounds show no convergence"
    if history.converged:
        outlook = "It may have converged: each of the last three rounds improved by less than 0.5"
    mean = f"mean {best.summary.mean:.2f}"
    numbered = [(number, item.variant) for number, item in enumerate(rounds, 1)]
    rows = [(number, *_figures(item.variant), *item.outcome) for number, item in enumerate(rounds, 1)]
    newest = numbered[-MAX_BARS:]
    if all(item != best for _, item in newest):
        newest = [next(each for each in numbered if each[1] == best), *newest[1:]]
    parts = [
        f'<p class="verdict">The best of {len(rounds)} rounds is <b>{safe(best.name)}</b>, {mean}. {outlook}.</p>',
        table(("round", *_FIGURES, "difference", "decision"), rows, name=1, words={"variant", "decision"}),
        _scores_plot(numbered[-MAX_ROUNDS:], "round"),
        _rates_plot(newest),
    ]
    last, before = rounds[-1], history.best_before(len(rounds) - 1)
    if last.recommendation is not None and before is not None:
        title = f"<h2>Round {len(rounds)}: {safe(last.variant.name)}</h2><p>{safe(last.recommendation.reason)}.</p>"
        parts.append(title + evidence_table(compare(before, last.variant)))
    return page(history.path.name, "".join(parts))


def comparison_page(best: Variant, variant: Variant, found: Recommendation) -> str:
    """Return a page with two variants side by side.

    Raises:
        MissingExtra: scipy is not installed.
    """
    require_plots()
    chosen = variant if found.choice == VARIANT else best
    numbered = [(1, best), (2, variant)]
    parts = [
        verdict_html(chosen.name, found.reason),
        table(_FIGURES, [_figures(best), _figures(variant)]),
        warnings_html(found.warnings),
        evidence_table(found),
        _scores_plot(numbered, "variant"),
        _rates_plot(numbered),
    ]
    return page(f"{best.name} and {variant.name}", "".join(parts))


def _figures(variant: Variant) -> tuple[str, ...]:
    return variant.name, *(f"{value:.2f}" if isinstance(value, float) else value for value in variant.summary.figures)


def require_plots() -> None:
    """Check that the intervals of the plots can be computed.

    Raises:
        MissingExtra: scipy is not installed.
    """
    if importlib.util.find_spec("scipy") is None:
        raise MissingExtra("a page with plots", "eval")


def _scores_plot(numbered: Sequence[tuple[int, Variant]], axis: str) -> str:
    """Return the mean score of each variant with its interval, and the score of each run."""
    means, bands, notes = [], [], []
    for number, item in numbered:
        interval, mean = bootstrap_interval([item]), item.summary.mean
        means.append((number, mean))
        bands.append((mean, mean) if interval is None else (interval.low, interval.high))
        notes.append(printable(item.name))
    scores = [(number, score) for number, item in numbered for score in item.scores]
    plane = Plane(x=axis, y="score", x_is_whole=True, x_range=(numbered[0][0] - 1, numbered[-1][0] + 1), note="variant")
    found = [
        Curve(name="mean", points=means, band=bands, notes=notes),
        Curve(name="a run", points=scores, is_joined=False),
    ]
    return curves(f"Scores of each {axis}", found, plane, caption="The band is a 95 % bootstrap interval of each mean.")


def _rates_plot(numbered: Sequence[tuple[int, Variant]]) -> str:
    """Return the detection rates of each category: the variants side by side as bars, and as a table with intervals."""
    categories = numbered[0][1].test_set.categories
    names = [f"{number}: {_short(item.name)}" for number, item in numbered]
    rates = {
        category: [item.summary.category_rates.get(category, 0.0) for _, item in numbered] for category in categories
    }
    bars = {
        f"{_short(category)}, {name}": rate
        for category, found in rates.items()
        for name, rate in zip(names, found, strict=True)
    }
    rows = []
    for category, found in rates.items():
        intervals = [bootstrap_interval([item], category) for _, item in numbered]
        cells = [
            f"{rate:.2f}" + ("" if interval is None else f" ({interval.low:.2f} to {interval.high:.2f})")
            for rate, interval in zip(found, intervals, strict=True)
        ]
        rows.append((category, *cells))
    plot = named_bars("Detection rate of each category", bars, kind="category", unit="rate", shares=False)
    caption = "Detection rates with 95 % bootstrap intervals"
    return plot + table(("category", *names), rows, caption=caption, words={"category"})


def _short(text: str) -> str:
    plain = printable(text)
    return plain if len(plain) <= 22 else plain[:21] + "…"
