"""Rounds and comparisons as a page of its own, with plots: scores per round with intervals, and category rates side by side."""

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
"""Variants whose category rates stand side by side, the newest ones and the best."""
_INK = "#010203"  # stands for the page's own colour of text, which differs by day and night
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
"""Columns from which on the rows of a table stand below each other on a narrow page."""


def history_page(history: History) -> str:
    """All rounds of a history.

    Raises:
        MissingExtra: matplotlib or scipy is not installed.
    """
    rounds, best = history.rounds, history.best
    if best is None:
        return _page("Rounds", "<p>There are no rounds yet.</p>")
    kept = "It may have converged" if history.converged else "Go on"
    after = (
        "the last three rounds brought less than 0.5 each"
        if history.converged
        else "the last three rounds do not say otherwise"
    )
    parts = [
        f'<p class="verdict">The best of {len(rounds)} rounds is <b>{_safe(best.name)}</b>, mean {best.summary.mean:.2f}. {kept}: {after}.</p>',
        _rounds_table(rounds),
        _plot(
            "Scores per round: mean and 95 % bootstrap interval, each run as a point",
            lambda axes: _scores(axes, rounds, best),
            3.4,
        ),
    ]
    newest = [one.variant for one in rounds][-MAX_BARS:]
    shown = newest if best in newest else [best, *newest[1:]]
    parts.append(_rates_plot(shown))
    before = history.best_before(len(rounds) - 1)
    if rounds[-1].recommendation is not None and before is not None:
        parts.append(
            f"<h2>Round {len(rounds)}: {_safe(rounds[-1].variant.name)}</h2><p>{_safe(rounds[-1].recommendation.reason)}.</p>{_decision(compare(before, rounds[-1].variant))}"
        )
    return _page(history.path.name, "".join(parts))


def comparison_page(best: Variant, variant: Variant, found: Recommendation) -> str:
    """Two variants side by side.

    Raises:
        MissingExtra: matplotlib or scipy is not installed.
    """
    chosen = variant if found.choice == VARIANT else best
    parts = [
        f'<p class="verdict">Go on with <b>{_safe(chosen.name)}</b>: {_safe(found.reason)}.</p>',
        _table(
            ("variant", "mean", "SD", "stability", "gap", "balance"),
            [(one.name, *_figures(one)) for one in (best, variant)],
        ),
        "".join(f"<p>{_safe(line)}.</p>" for line in found.warnings),
        _decision(found),
        _plot(
            "Scores: mean and 95 % bootstrap interval, each run as a point",
            lambda axes: _points(axes, [best, variant], chosen),
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
    it = variant.summary
    return f"{it.mean:.2f}", f"{it.sd:.2f}", it.stability, f"{it.cross_doc_gap:.2f}", f"{it.balance:.2f}"


def _rounds_table(rounds: Sequence[Round]) -> str:
    rows = []
    for number, one in enumerate(rounds, 1):
        told = one.recommendation
        decided = "the first" if told is None else "goes on with it" if told.choice == VARIANT else "the best stays"
        difference = "" if told is None else f"{told.raw_diff:+.2f}"
        rows.append((number, one.variant.name, *_figures(one.variant), difference, decided))
    return _table(("round", "variant", "mean", "SD", "stability", "gap", "balance", "difference", "decision"), rows)


def _decision(found: Recommendation) -> str:
    rows: list[tuple[str, str]] = [
        ("difference of the means", f"{found.raw_diff:+.2f}"),
        ("adjusted by regressions", f"{found.adjusted_diff:+.2f}"),
    ]
    it = found.evidence
    if it is not None:
        rows += [
            ("95 % interval of the difference", _span(it.mean_difference)),
            (f"p of a permutation test, {it.pairs} pairs", "< 0.001" if it.p_value < 0.001 else f"{it.p_value:.3f}"),
            ("further runs of each that would settle it", it.further_runs_text),
        ]
        rows += [
            (f"rate of {category}, 95 % interval of the difference", _span(one))
            for category, one in it.category_differences.items()
        ]
    rows += [(f"regression in {category}", f"−{drop:.2f}") for category, drop in found.regressions.items()]
    return _table(("evidence", "figure"), rows)


def _span(one: Interval | None) -> str:
    return "cannot be told" if one is None else f"{one.low:+.2f} to {one.high:+.2f}"


def _rates_plot(variants: Sequence[Variant]) -> str:
    categories = variants[0].test_set.categories
    height = max(2.2, 0.35 + len(categories) * (0.18 * len(variants) + 0.25))
    return _plot(
        "Detection rate of each category, with 95 % bootstrap intervals",
        lambda axes: _rates(axes, variants, categories),
        height,
    )


def require_plots() -> None:
    """Refuse to go on where no plots can be drawn.

    Raises:
        MissingExtra: matplotlib or scipy is not installed.
    """
    if not all(map(importlib.util.find_spec, ("matplotlib", "scipy"))):
        raise MissingExtra("a page with plots", "eval")


def _plot(caption: str, draw: Callable[[Any], None], height: float) -> str:
    """A figure as SVG inside of the page, in the page's own colours."""
    require_plots()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    look = {
        "svg.fonttype": "none", "svg.hashsalt": "grace_kp", "font.family": "sans-serif", "font.size": 10.5,
        "text.color": _INK, "axes.labelcolor": _INK, "axes.edgecolor": _INK, "xtick.color": _INK, "ytick.color": _INK,
        "text.parse_math": False, "axes.spines.top": False, "axes.spines.right": False,
    }  # fmt: skip
    with mpl.rc_context(look), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that its own font lacks are the reader's font's to draw
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


def _scores(axes: Any, rounds: Sequence[Round], best: Variant) -> None:
    shown = [one.variant for one in rounds][-MAX_ROUNDS:]
    first = len(rounds) - len(shown) + 1
    _points(
        axes,
        shown,
        best,
        [f"{number}" if len(shown) > 4 else f"{number}: {_short(one.name)}" for number, one in enumerate(shown, first)],
    )
    axes.set_xlabel("round")


def _points(axes: Any, variants: Sequence[Variant], best: Variant, labels: Sequence[str] | None = None) -> None:
    for place, one in enumerate(variants):
        span, middle = bootstrap_interval([one]), one.summary.mean
        colour = _COLOURS[1] if one is best or one == best else _COLOURS[0]
        axes.plot([place] * len(one.scores), one.scores, ".", color=colour, alpha=0.45, zorder=1)
        if span is not None:
            axes.vlines(place, span.low, span.high, color=colour, linewidth=2)
        axes.plot([place], [middle], "o", color=colour, markersize=7, zorder=3)
        axes.annotate(f"{middle:.2f}", (place, middle), xytext=(7, 4), textcoords="offset points")
    axes.set_xticks(range(len(variants)), labels or [_short(one.name) for one in variants])
    axes.set_xlim(-0.5, len(variants) - 0.5 + 0.2)
    axes.set_ylabel("score of a run")
    axes.grid(axis="y", alpha=0.2)


def _rates(axes: Any, variants: Sequence[Variant], categories: Sequence[str]) -> None:
    width = 0.8 / len(variants)
    for number, one in enumerate(variants):
        rates = [one.summary.category_rates.get(category, 0.0) for category in categories]
        places = [place + (number - (len(variants) - 1) / 2) * width for place in range(len(categories))]
        axes.barh(places, rates, width * 0.9, color=_COLOURS[number % len(_COLOURS)], label="\u200b" + _short(one.name))
        for place, category in zip(places, categories, strict=True):
            span = bootstrap_interval([one], category)
            if span is not None:
                axes.hlines(place, span.low, span.high, color=_INK, linewidth=1, alpha=0.7)
    axes.set_yticks(range(len(categories)), [_short(one) for one in categories])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.02)
    axes.set_xlabel("detection rate")
    axes.grid(axis="x", alpha=0.2)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)


def _short(text: str) -> str:
    plain = printable(text)
    return plain if len(plain) <= 22 else plain[:21] + "…"
