"""`grace-kp rubric`: whether a test set is balanced, what variants come to, which to go on with, and how the rounds went."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._judging import By, judged, writable
from grace_kp.cli._output import clean, console, put_json
from grace_kp.cli._page import put_field, put_text
from grace_kp.cli._table import Column, Table
from grace_kp.errors import GraceError
from grace_kp.trace import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.rubric import History, Rated, Recommendation, TestSet, Variant

rubric = typer.Typer(
    no_args_is_help=True,
    help="Find out whether a variant of a prompt or agent is better, and keep a history of rounds.",
)


TestSetFile = Annotated[Path, typer.Argument(metavar="TESTS", help="The test set, YAML or JSON.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JudgedBy = Annotated[
    list[By] | None,
    typer.Option(
        "--by", help="Who judges outputs that have no judgements. Repeat it for two raters; a model alone judges twice."
    ),
]
Html = Annotated[Path | None, typer.Option("--html", help="Write an HTML page with plots to this file.")]


@rubric.command()
def check(
    tests: TestSetFile,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 if there are warnings.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a test set against the requirements: documents, problems, severities, kinds, bonus candidates, runs.

    Example: grace-kp rubric check tests.yaml
    """
    from grace_kp.rubric import read_test_set

    made = read_test_set(tests)
    warnings = made.check()
    if as_json:
        put_json({"warnings": warnings, "documents": len(made.documents), "categories": list(made.categories)})
    else:
        for line in warnings:
            _warn(line)
        problems = sum(len(one.problems) for one in made.documents)
        result = f"{len(warnings)} warning{'' if len(warnings) == 1 else 's'}" if warnings else "balanced"
        counts = f"{len(made.documents)} documents, {problems} problems in {len(made.categories)} categories"
        put_text(console(), f"{counts}: {result}")
    if warnings and strict:
        raise typer.Exit(1)


@rubric.command()
def score(
    tests: TestSetFile,
    variants: Annotated[list[Path], typer.Argument(metavar="VARIANT...", help="Variants, YAML or JSON.")],
    by: JudgedBy = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the variant with its judgements to this file; only with a single VARIANT."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score variants: mean, spread, rates by category, and the agreement of two judgements.

    Example: grace-kp rubric score tests.yaml longer.yaml --by terminal --out longer.judged.json
    """
    from grace_kp.rubric import read_test_set

    if out is not None and len(variants) != 1:
        raise typer.BadParameter("--out takes one variant")
    writable(out)
    made = read_test_set(tests)
    rated = [judged(path, made, by, out) for path in variants]
    if as_json:
        put_json([_told(one) for one in rated])
        return
    _show_variants([one.variant for one in rated])
    for one in rated:
        _show_agreement(one)


@rubric.command()
def compare(
    tests: TestSetFile,
    best: Annotated[
        Path, typer.Argument(metavar="BEST", help="The best so far: a variant, or a history (.md) that holds it.")
    ],
    variant: Annotated[Path, typer.Argument(metavar="VARIANT", help="The variant, YAML or JSON.")],
    by: JudgedBy = None,
    record: Annotated[
        bool, typer.Option("--record", help="Add this round to the history BEST, which may be empty or missing.")
    ] = False,
    notes: Annotated[str, typer.Option(help="Notes to record with the round.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write the variant with its judgements to this file.")] = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Compare two variants: which one to keep, and how certain that is.

    Example: grace-kp rubric compare tests.yaml history.md longer.yaml --record --notes "Asks for reasons first."
    """
    from grace_kp.rubric import History, comparison_page, read_test_set, read_variant, require_plots
    from grace_kp.rubric import compare as compared

    made = read_test_set(tests)
    is_history = best.suffix.lower() == ".md"
    if record and not is_history:
        raise typer.BadParameter("--record needs a history (.md) as BEST")
    # What could be known before is said before anybody judges.
    writable(html, out, best if record else None)
    if html is not None:
        require_plots()
    if is_history:
        old = _fits(History.load(best), made, read_variant(variant, made)[0] if record else None).best
    else:
        old = judged(best, made, by).variant
    if old is None and not record:
        raise GraceError(f"{best} has no rounds yet; use --record to make this variant the first")
    if old is None and html is not None:
        raise GraceError("there is nothing to compare the first round with, so --html has nothing to show")
    rated = judged(variant, made, by, out)
    found = None if old is None else compared(old, rated.variant)
    rounds = 0
    if record:
        old, found, rounds = _recorded(best, made, rated.variant, notes)
    if html is not None and old is not None and found is not None:
        write_whole(html, comparison_page(old, rated.variant, found))
    if as_json:
        recommendation = None if found is None else asdict(found)
        put_json({**_told(rated), "best": None if old is None else old.name, "recommendation": recommendation})
        return
    _show_variants([rated.variant] if old is None else [old, rated.variant])
    _show_agreement(rated)
    if old is not None and found is not None:
        _show_verdict(old, rated.variant, found)
    if record:
        put_text(console(), f"recorded as round {rounds} in {clean(str(best))}")


def _fits(history: History, tests: TestSet, name: str | None) -> History:
    """A history that a round over this test set can be compared with, and added to where a name is given."""
    if history.is_unrelated:
        raise GraceError(f"{history.path} is not a history: it names no test set")
    if history.test_set is not None and history.test_set != tests:
        raise GraceError(f"the rounds in {history.path} were run on another test set")
    if name is not None and any(one.variant.name == name for one in history.rounds):
        raise GraceError(f"{history.path} already has a variant {name!r}; choose another name")
    return history


def _recorded(
    path: Path, tests: TestSet, variant: Variant, notes: str
) -> tuple[Variant | None, Recommendation | None, int]:
    """Add a round to a history as it is now: the best it was compared with, what was decided, and its number."""
    from grace_kp.rubric import History, HistoryChanged, Round

    for _ in range(20):
        history = _fits(History.load(path), tests, variant.name)
        best = history.best
        found = history.record(Round(variant, notes=notes))
        try:
            history.save()
        except HistoryChanged:
            continue  # somebody else was faster
        return best, found, len(history.rounds)
    raise GraceError(f"{path} kept changing while the round was added; nothing was recorded, try again")


@rubric.command()
def history(
    file: Annotated[Path, typer.Argument(metavar="HISTORY", help="A history, such as history.md.")],
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Show the rounds so far, the best one, and whether more rounds are likely to help.

    Example: grace-kp rubric history history.md --html report.html
    """
    from grace_kp.rubric import History, history_page

    if not file.exists():
        raise GraceError(f"{file}: there is no such file")
    read = History.load(file)
    if read.is_unrelated:
        raise GraceError(f"{file} is not a history: it names no test set")
    if html is not None:
        write_whole(html, history_page(read))
    best = read.best
    if as_json:
        rounds = [
            {"variant": _figures(one.variant), "recommendation": None if one.recommendation is None else asdict(one.recommendation), "notes": one.notes}
            for one in read.rounds
        ]  # fmt: skip
        put_json({"best": None if best is None else best.name, "converged": read.converged, "rounds": rounds})
        return
    out = console()
    if best is None:
        put_text(out, "no rounds yet")
        return
    rows = Table(*ROUNDS)
    for number, one in enumerate(read.rounds, 1):
        it, told = one.variant.summary, one.recommendation
        decided = "the first" if told is None else "goes on with it" if told.choice == "variant" else "the best stays"
        difference = "" if told is None else f"{told.raw_diff:+.2f}"
        rows.add(
            number, one.variant.name, f"{it.mean:.2f}", f"{it.sd:.2f}", it.stability, f"{it.cross_doc_gap:.2f}", difference, decided
        )  # fmt: skip
    rows.print(out)
    more = "may have converged: the last three rounds brought less than 0.5 each" if read.converged else "go on"
    put_text(out, f"the best is {clean(best.name)} (mean {best.summary.mean:.2f}); {more}")


ROUNDS = (
    Column("round", "figure"), Column("variant", least=10), Column("mean", "figure"), Column("SD", "figure", priority=3),
    Column("stability", "word", priority=5), Column("gap", "figure", priority=4), Column("difference", "figure", priority=2),
    Column("decision", "word", priority=1),
)  # fmt: skip
VARIANTS = (
    Column("variant", least=10), Column("scores of the runs", "prose", priority=3, least=24), Column("mean", "figure"),
    Column("SD", "figure", priority=1), Column("stability", "word", priority=5), Column("gap", "figure", priority=2),
    Column("balance", "figure", priority=4),
)  # fmt: skip


def _warn(line: str) -> None:
    put_field(console(), "warning", clean(line), label=9)


def _figures(variant: Variant) -> dict[str, Any]:
    it = variant.summary
    return {"name": variant.name, "scores": list(variant.scores), **asdict(it), "stability": it.stability}


def _told(one: Rated) -> dict[str, Any]:
    disputes = [
        {**asdict(it), "first": it.first.symbol, "second": it.second.symbol, "settled": it.settled.symbol}
        for it in one.disputes
    ]
    gaps = [asdict(it) for it in one.gaps]
    return {"variant": _figures(one.variant), "agreement": asdict(one.agreement), "disputes": disputes, "gaps": gaps}


def _show_variants(variants: Sequence[Variant]) -> None:
    out = console()
    rows = Table(*VARIANTS)
    for variant in variants:
        it = variant.summary
        scores = " ".join(f"{value:g}" for value in variant.scores)
        rows.add(
            variant.name, scores, f"{it.mean:.2f}", f"{it.sd:.2f}", it.stability, f"{it.cross_doc_gap:.2f}", f"{it.balance:.2f}"
        )  # fmt: skip
    rows.print(out)
    put_text(out, "")
    # Variants side by side, and below each other where there are too many for the width.
    rates = Table(Column("category", least=10), *(Column(clean(one.name, 32), "figure") for one in variants))
    for category in variants[0].test_set.categories:
        rates.add(category, *(_rate(one, category) for one in variants))
    rates.print(out)
    put_text(out, "")


def _rate(variant: Variant, category: str) -> str:
    rate = variant.summary.category_rates.get(category)
    return "-" if rate is None else f"{rate:.2f}"


def _show_agreement(rated: Rated) -> None:
    it, out = rated.agreement, console()
    for gap in rated.gaps[:10]:
        count = f"{len(gap.problems)} problem{'s' if len(gap.problems) > 1 else ''}"
        _warn(f"{gap.rater} did not judge {count} of run {gap.run} ({gap.document}): {gap.reason}")
    if not it.problems:
        return
    kappa = (
        "is not defined, because both raters gave every problem the same judgement"
        if it.kappa is None
        else f"{it.kappa:.2f}"
    )
    agreed = f"two raters agree on {it.observed:.0%} of {it.problems} judgements; Cohen's kappa {kappa}"
    put_text(out, f"{clean(rated.variant.name)}: {agreed}")
    for dispute in rated.disputes[:10]:
        symbols = f"{dispute.first.symbol} and {dispute.second.symbol}, {dispute.settled.symbol} counts"
        put_text(out, clean(f"run {dispute.run} ({dispute.document}), {dispute.problem}: {symbols}"), indent=2)
    if len(rated.disputes) > 10:
        put_text(out, f"and {len(rated.disputes) - 10:,} more; --json shows all", indent=2)


def _show_verdict(best: Variant, variant: Variant, found: Recommendation) -> None:
    out = console()
    chosen = variant if found.choice == "variant" else best
    put_text(out, f"go on with {clean(chosen.name)}: {clean(found.reason)}", style="bold")
    put_text(out, f"difference {found.raw_diff:+.2f}, adjusted {found.adjusted_diff:+.2f}")
    for line in found.warnings:
        _warn(line)
    it = found.evidence
    if it is None:
        return
    if it.mean_difference is not None:
        low, high = it.mean_difference.low, it.mean_difference.high
        put_text(out, f"95 % interval of the difference: {low:+.2f} to {high:+.2f}")
    p = "< 0.001" if it.p_value < 0.001 else f"= {it.p_value:.3f}"
    count = f"{it.pairs:,} pair{'' if it.pairs == 1 else 's'}"
    put_text(out, f"p {p} over {count}; further runs of each that would settle it: {it.further_runs_text}")
