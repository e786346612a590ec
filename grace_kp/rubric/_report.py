"""Rounds and comparisons as HTML pages with plots: scores per round with intervals, and category rates side by side."""

from __future__ import annotations

import html
import importlib.util
import io
import re
import warnings
from typing import TYPE_CHECKING, Any

from grace_kp.errors import MissingExtra
from grace_kp.rubric._compare import VARIANT, Recommendation, compare
from grace_kp.rubric._statistics import bootstrap_interval
from grace_kp.trace import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.rubric._history import History
    from grace_kp.rubric._rounds import Round
    from grace_kp.rubric._statistics import Interval
    from grace_kp.rubric._summary import Variant

MAX_ROUNDS = 40
MAX_BARS = 6
"""Variants whose category rates stand side by side: the newest ones and the best."""
_INK = "#010203"  # replaced by the text colour of the page, which differs between light and dark mode
_COLOURS = ("#7f8ea3", "#2f81f7", "#bf8700", "#1a7f37", "#8250df", "#bc4c00")
_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#d8dee4;--box:#f6f8fa;--soft:#57606a}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--line:#30363d;--box:#161b22;--soft:#8b949e}}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:var(--ink);background:var(--paper);overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25}table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}tbody th{font-weight:400}
td,thead th{overflow-wrap:break-word}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;overflow-wrap:normal}
.verdict{font-size:1.15rem;padding:.7rem 1rem;border-left:4px solid #2f81f7;background:var(--box)}
figure{margin:1.5rem 0;max-width:44rem;color:inherit}svg{width:100%;height:auto}figcaption{font-size:13px;color:var(--soft)}
@media(max-width:45rem){
.wide thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.wide,.wide tbody,.wide tr,.wide th,.wide td{display:block}
.wide tr{border-bottom:1px solid var(--line);padding:.4rem 0}.wide th,.wide td{border:0;padding:.1rem 0}.wide tbody th{font-weight:600}
.wide [data-label]{display:flex;justify-content:space-between;gap:1rem;text-align:right}
.wide [data-label]:empty{display:none}.wide [data-label]::before{content:attr(data-label);content:attr(data-label) / "";color:var(--soft);text-align:left;font-weight:400;flex:1;white-space:normal}}
"""
WIDE = 4
"""Tables with more columns show their cells below each other on a narrow page."""


def history_page(history: History) -> str:
    """Return a page with all rounds of a history.

    Raises:
        MissingExtra: matplotlib or scipy is not installed.
    """
    rounds, best = history.rounds, history.best
    if best is None:
        return _page("Rounds", "<p>There are no rounds yet.</p>")
    outlook = "Continue: the last three rounds show no convergence"
    if history.converged:
        outlook = "It may have converged: each of the last three rounds improved by less than 0.5"
    mean = f"mean {best.summary.mean:.2f}"
    newest = [item.variant for item in rounds][-MAX_BARS:]
    parts = [
        f'<p class="verdict">The best of {len(rounds)} rounds is <b>{_safe(best.name)}</b>, {mean}. {outlook}.</p>',
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
        title = f"<h2>Round {len(rounds)}: {_safe(last.variant.name)}</h2><p>{_safe(last.recommendation.reason)}.</p>"
        parts.append(title + _evidence_table(compare(before, last.variant)))
    return _page(history.path.name, "".join(parts))


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
        f'<p class="verdict">Continue with <b>{_safe(chosen.name)}</b>: {_safe(found.reason)}.</p>',
        _table(
            ("variant", "mean", "SD", "stability", "gap", "balance"),
            [(item.name, *_figures(item)) for item in (best, variant)],
        ),
        "".join(f"<p>{_safe(line)}.</p>" for line in found.warnings),
        _evidence_table(found),
        _plot(
            "Scores: mean and 95 % bootstrap interval, each run as a point",
            lambda axes: _draw_scores(axes, [best, variant], chosen),
            2.8,
        ),
        _rates_plot([best, variant]),
    ]
    return _page(f"{best.name} and {variant.name}", "".join(parts))


def _safe(text: str) -> str:
    return html.escape(printable(text))


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_safe(title)}</title><style>{_STYLE}</style><main><h1>{_safe(title)}</h1>{body}</main></html>\n"
    )


_NUMBER = re.compile(r"(?:[-+−<] ?)?\d[\d.]*(?: to [-+−]?[\d.]+)?")


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    numbers = {
        place
        for place in range(1, len(header))
        if any(_NUMBER.fullmatch(str(row[place])) for row in rows) and header[place] not in {"variant", "decision"}
    }

    def cell(place: int, value: object, *, head: bool) -> str:
        figure = ' class="n"' if place in numbers else ""
        if head:
            return f'<th role="columnheader" scope="col"{figure}>{_safe(str(value))}</th>'
        label = f' data-label="{_safe(header[place])}"' if len(header) > WIDE and place != name else ""
        tag, scope = ("th", ' role="rowheader" scope="row"') if place == name else ("td", ' role="cell"')
        return f"<{tag}{scope}{figure}{label}>{_safe(str(value))}</{tag}>"

    def line(values: Sequence[object], *, head: bool = False) -> str:
        return f'<tr role="row">{"".join(cell(place, value, head=head) for place, value in enumerate(values))}</tr>'

    name = header.index("variant") if "variant" in header else 0
    body = "".join(map(line, rows))
    wide = ' class="wide"' if len(header) > WIDE else ""
    head = line(header, head=True)
    return (
        f'<table role="table"{wide}><thead role="rowgroup">{head}</thead><tbody role="rowgroup">{body}</tbody></table>'
    )


def _figures(variant: Variant) -> tuple[str, ...]:
    summary = variant.summary
    gap, balance = f"{summary.cross_doc_gap:.2f}", f"{summary.balance:.2f}"
    return f"{summary.mean:.2f}", f"{summary.sd:.2f}", summary.stability, gap, balance


def _rounds_table(rounds: Sequence[Round]) -> str:
    rows = []
    for number, item in enumerate(rounds, 1):
        difference, decision = item.outcome
        rows.append((number, item.variant.name, *_figures(item.variant), difference, decision))
    return _table(("round", "variant", "mean", "SD", "stability", "gap", "balance", "difference", "decision"), rows)


def _evidence_table(found: Recommendation) -> str:
    rows: list[tuple[str, str]] = [
        ("difference of the means", f"{found.raw_diff:+.2f}"),
        ("adjusted by regressions", f"{found.adjusted_diff:+.2f}"),
    ]
    evidence = found.evidence
    if evidence is not None:
        p_value = "< 0.001" if evidence.p_value < 0.001 else f"{evidence.p_value:.3f}"
        rows += [
            ("95 % interval of the difference", _interval_text(evidence.mean_difference)),
            (f"p of a permutation test, {evidence.pairs} pairs", p_value),
            ("further runs of each that would settle it", evidence.further_runs_text),
        ]
        rows += [
            (f"rate of {category}, 95 % interval of the difference", _interval_text(interval))
            for category, interval in evidence.category_differences.items()
        ]
    rows += [(f"regression in {category}", f"−{drop:.2f}") for category, drop in found.regressions.items()]
    return _table(("evidence", "figure"), rows)


def _interval_text(interval: Interval | None) -> str:
    return "unknown" if interval is None else f"{interval.low:+.2f} to {interval.high:+.2f}"


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
    if not all(map(importlib.util.find_spec, ("matplotlib", "scipy"))):
        raise MissingExtra("a page with plots", "eval")


def _plot(caption: str, draw: Callable[[Any], None], height: float) -> str:
    """Return a figure as SVG for the page, in the colours of the page."""
    require_plots()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    look = {
        "svg.fonttype": "none", "svg.hashsalt": "grace_kp", "font.family": "sans-serif", "font.size": 10.5,
        "text.color": _INK, "axes.labelcolor": _INK, "axes.edgecolor": _INK, "xtick.color": _INK, "ytick.color": _INK,
        "text.parse_math": False, "axes.spines.top": False, "axes.spines.right": False,
    }  # fmt: skip
    with mpl.rc_context(look), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that matplotlib's font lacks are drawn by the reader's font
        figure = Figure(figsize=(6, height), layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.subplots()
        axes.patch.set_alpha(0)
        draw(axes)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    picture = file.getvalue()
    picture = picture[picture.index("<svg") :].replace(_INK, "currentColor")
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture, flags=re.DOTALL)
    picture = picture.replace("<svg", f'<svg role="img" aria-label="{_safe(caption)}"', 1)
    return f"<figure>{picture}<figcaption>{_safe(caption)}</figcaption></figure>"


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
                axes.hlines(place, interval.low, interval.high, color=_INK, linewidth=1, alpha=0.7)
    axes.set_yticks(range(len(categories)), list(map(_short, categories)))
    axes.invert_yaxis()
    axes.set_xlim(0, 1.02)
    axes.set_xlabel("detection rate")
    axes.grid(axis="x", alpha=0.2)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)


def _short(text: str) -> str:
    plain = printable(text)
    return plain if len(plain) <= 22 else plain[:21] + "…"
