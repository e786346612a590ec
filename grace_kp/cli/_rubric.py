"""`grace-kp rubric`: check a test set, score variants, compare two of them, and show the rounds of a history."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._lookup import JsonOption  # noqa: TC001 — Typer reads it
from grace_kp.cli._output import ask, check_writable, clean, console, progress, put_json
from grace_kp.cli._page import TableColumn, TextTable, put_field, put_text
from grace_kp.errors import GraceError
from grace_kp.pages import count_text
from grace_kp.trace import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.rubric import History, Output, Rated, Rater, Recommendation, TestSet, Variant


class By(StrEnum):
    """Rater for outputs that have no judgements yet."""

    TERMINAL = "terminal"
    MODEL = "model"


rubric = typer.Typer(
    no_args_is_help=True,
    help="Find out whether a variant of a prompt or agent is better, and keep a history of rounds.",
)


TestSetFile = Annotated[Path, typer.Argument(metavar="TESTS", help="The test set, YAML or JSON.")]
JudgedBy = Annotated[
    list[By] | None,
    typer.Option(
        "--by", help="Rater for outputs without judgements. Repeat it for two raters; a model alone judges twice."
    ),
]
Html = Annotated[Path | None, typer.Option("--html", help="Write an HTML page with plots to this file.")]


@rubric.command()
def check(
    tests: TestSetFile,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 if there are warnings.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a test set against the requirements: documents, problems, severities, kinds, bonus candidates, runs.

    Example: grace-kp rubric check tests.yaml
    """
    from grace_kp.rubric import read_test_set

    test_set = read_test_set(tests)
    warnings = test_set.check()
    if as_json:
        put_json({"warnings": warnings, "documents": len(test_set.documents), "categories": list(test_set.categories)})
    else:
        for line in warnings:
            _warn(line)
        problems = sum(len(document.problems) for document in test_set.documents)
        result = count_text(len(warnings), "warning") if warnings else "balanced"
        counts = f"{len(test_set.documents)} documents, {problems} problems in {len(test_set.categories)} categories"
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
    as_json: JsonOption = False,
) -> None:
    """Score variants: mean, spread, rates by category, and the agreement of two judgements.

    Example: grace-kp rubric score tests.yaml longer.yaml --by terminal --out longer.judged.json
    """
    from grace_kp.rubric import read_test_set

    if out is not None and len(variants) != 1:
        raise typer.BadParameter("--out takes one variant")
    check_writable(out)
    test_set = read_test_set(tests)
    rated = [rate_file(path, test_set, by, out) for path in variants]
    if as_json:
        put_json([_rated_dict(item) for item in rated])
        return
    _show_variants([item.variant for item in rated])
    for item in rated:
        _show_agreement(item)


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
    as_json: JsonOption = False,
) -> None:
    """Compare two variants: which one to keep, and how certain that is.

    Example: grace-kp rubric compare tests.yaml history.md longer.yaml --record --notes "Asks for reasons first."
    """
    from grace_kp.rubric import compare as compared
    from grace_kp.rubric import comparison_page, read_test_set, read_variant, require_plots

    test_set = read_test_set(tests)
    is_history = best.suffix.lower() == ".md"
    if record and not is_history:
        raise typer.BadParameter("--record needs a history (.md) as BEST")
    # Report all foreseeable errors before the outputs are judged.
    check_writable(html, out, best if record else None)
    if html is not None:
        require_plots()
    if is_history:
        old = _load_history(best, test_set, read_variant(variant, test_set)[0] if record else None).best
    else:
        old = rate_file(best, test_set, by).variant
    if old is None and not record:
        raise GraceError(f"{best} has no rounds yet; use --record to make this variant the first")
    if old is None and html is not None:
        raise GraceError("there is nothing to compare the first round with, so --html has nothing to show")
    rated = rate_file(variant, test_set, by, out)
    found = None if old is None else compared(old, rated.variant)
    rounds = 0
    if record:
        old, found, rounds = _record_round(best, test_set, rated.variant, notes)
    if html is not None and old is not None and found is not None:
        write_whole(html, comparison_page(old, rated.variant, found))
    if as_json:
        put_json({**_rated_dict(rated), "best": old and old.name, "recommendation": found and asdict(found)})
        return
    _show_variants([rated.variant] if old is None else [old, rated.variant])
    _show_agreement(rated)
    if old is not None and found is not None:
        _show_verdict(old, rated.variant, found)
    if record:
        put_text(console(), f"recorded as round {rounds} in {clean(str(best))}")


def _load_history(path: Path, test_set: TestSet | None = None, new_name: str | None = None) -> History:
    """Load a history; if given, check its test set, and that `new_name` is free."""
    from grace_kp.rubric import History

    history = History.load(path)
    if history.is_unrelated:
        raise GraceError(f"{path} is not a history: it names no test set")
    if None not in (test_set, history.test_set) and history.test_set != test_set:
        raise GraceError(f"the rounds in {path} were run on another test set")
    if new_name is not None and any(item.variant.name == new_name for item in history.rounds):
        raise GraceError(f"{path} already has a variant {new_name!r}; choose another name")
    return history


def _record_round(
    path: Path, test_set: TestSet, variant: Variant, notes: str
) -> tuple[Variant | None, Recommendation | None, int]:
    """Add a round to a history; return the best so far, the decision, and the number of the round."""
    from grace_kp.rubric import HistoryChanged, Round

    for _ in range(20):
        history = _load_history(path, test_set, variant.name)
        best = history.best
        found = history.record(Round(variant, notes=notes))
        try:
            history.save()
        except HistoryChanged:
            continue  # another process saved a round meanwhile
        return best, found, len(history.rounds)
    raise GraceError(f"{path} kept changing while the round was added; nothing was recorded, try again")


@rubric.command()
def history(
    file: Annotated[Path, typer.Argument(metavar="HISTORY", help="A history, such as history.md.")],
    html: Html = None,
    as_json: JsonOption = False,
) -> None:
    """Show the rounds so far, the best one, and whether more rounds are likely to help.

    Example: grace-kp rubric history history.md --html report.html
    """
    from grace_kp.rubric import history_page

    if not file.exists():
        raise GraceError(f"{file}: the file does not exist")
    read = _load_history(file)
    if html is not None:
        write_whole(html, history_page(read))
    best = read.best
    if as_json:
        rounds = [
            {"variant": _figures(item.variant), "recommendation": item.recommendation and asdict(item.recommendation), "notes": item.notes}
            for item in read.rounds
        ]  # fmt: skip
        put_json({"best": best and best.name, "converged": read.converged, "rounds": rounds})
        return
    out = console()
    if best is None:
        put_text(out, "no rounds yet")
        return
    rows = TextTable(*ROUNDS)
    for number, item in enumerate(read.rounds, 1):
        summary = item.variant.summary
        figures = f"{summary.mean:.2f}", f"{summary.sd:.2f}", summary.stability, f"{summary.cross_doc_gap:.2f}"
        rows.add(number, item.variant.name, *figures, *item.outcome)
    rows.print(out)
    outlook = (
        "may have converged: each of the last three rounds improved by less than 0.5" if read.converged else "continue"
    )
    put_text(out, f"the best is {clean(best.name)} (mean {best.summary.mean:.2f}); {outlook}")


ROUNDS = (
    TableColumn("round", "figure"), TableColumn("variant", least=10), TableColumn("mean", "figure"), TableColumn("SD", "figure", priority=3),
    TableColumn("stability", "word", priority=5), TableColumn("gap", "figure", priority=4), TableColumn("difference", "figure", priority=2),
    TableColumn("decision", "word", priority=1),
)  # fmt: skip
VARIANTS = (
    TableColumn("variant", least=10), TableColumn("scores of the runs", "prose", priority=3, least=24), TableColumn("mean", "figure"),
    TableColumn("SD", "figure", priority=1), TableColumn("stability", "word", priority=5), TableColumn("gap", "figure", priority=2),
    TableColumn("balance", "figure", priority=4),
)  # fmt: skip


def _warn(line: str) -> None:
    put_field(console(), "warning", clean(line), label=9)


def _figures(variant: Variant) -> dict[str, Any]:
    summary = variant.summary
    figures = {**asdict(summary), "stability": summary.stability}
    return {"name": variant.name, "scores": list(variant.scores), **figures}


def _rated_dict(rated: Rated) -> dict[str, Any]:
    disputes = [
        {**asdict(item), **{name: getattr(item, name).symbol for name in ("first", "second", "settled")}}
        for item in rated.disputes
    ]
    gaps = list(map(asdict, rated.gaps))
    figures = {"variant": _figures(rated.variant), "agreement": asdict(rated.agreement)}
    return {**figures, "disputes": disputes, "gaps": gaps}


def _show_variants(variants: Sequence[Variant]) -> None:
    out = console()
    rows = TextTable(*VARIANTS)
    for variant in variants:
        summary = variant.summary
        scores = " ".join(f"{value:g}" for value in variant.scores)
        spread = f"{summary.sd:.2f}", summary.stability, f"{summary.cross_doc_gap:.2f}", f"{summary.balance:.2f}"
        rows.add(variant.name, scores, f"{summary.mean:.2f}", *spread)
    rows.print(out)
    put_text(out, "")
    rates = TextTable(
        TableColumn("category", least=10), *(TableColumn(clean(variant.name, 32), "figure") for variant in variants)
    )
    for category in variants[0].test_set.categories:
        shares = [variant.summary.category_rates.get(category) for variant in variants]
        rates.add(category, *("-" if share is None else f"{share:.2f}" for share in shares))
    rates.print(out)
    put_text(out, "")


def _show_agreement(rated: Rated) -> None:
    agreement, out = rated.agreement, console()
    for gap in rated.gaps[:10]:
        count = f"{len(gap.problems)} problem{'s' if len(gap.problems) > 1 else ''}"
        _warn(f"{gap.rater} did not judge {count} of run {gap.run} ({gap.document}): {gap.reason}")
    if not agreement.problems:
        return
    kappa = "is undefined, because both raters gave every problem the same judgement"
    if agreement.kappa is not None:
        kappa = f"{agreement.kappa:.2f}"
    agreed = f"two raters agree on {agreement.observed:.0%} of {agreement.problems} judgements; Cohen's kappa {kappa}"
    put_text(out, f"{clean(rated.variant.name)}: {agreed}")
    for dispute in rated.disputes[:10]:
        symbols = f"{dispute.first.symbol} and {dispute.second.symbol}, {dispute.settled.symbol} counts"
        put_text(out, clean(f"run {dispute.run} ({dispute.document}), {dispute.problem}: {symbols}"), indent=2)
    if len(rated.disputes) > 10:
        put_text(out, f"and {len(rated.disputes) - 10:,} more; --json shows all", indent=2)


def _show_verdict(best: Variant, variant: Variant, found: Recommendation) -> None:
    out = console()
    chosen = variant if found.choice == "variant" else best
    put_text(out, f"continue with {clean(chosen.name)}: {clean(found.reason)}", style="bold")
    put_text(out, f"difference {found.raw_diff:+.2f}, adjusted {found.adjusted_diff:+.2f}")
    for line in found.warnings:
        _warn(line)
    evidence = found.evidence
    if evidence is None:
        return
    interval = evidence.mean_difference
    if interval is not None:
        put_text(out, f"95 % interval of the difference: {interval.low:+.2f} to {interval.high:+.2f}")
    p_value = "< 0.001" if evidence.p_value < 0.001 else f"= {evidence.p_value:.3f}"
    count = count_text(evidence.pairs, "pair")
    put_text(out, f"p {p_value} over {count}; further runs of each that would settle it: {evidence.further_runs_text}")


def rate_file(path: Path, test_set: TestSet, by: Sequence[By] | None, out: Path | None = None) -> Rated:
    """Return the variant in a file after judging its unjudged outputs. `out` is written after each run."""
    from grace_kp.rubric import NotRated, rate, read_variant, write_variant

    name, outputs = read_variant(path, test_set)
    waiting = sum(not output.ratings for output in outputs)
    if waiting and not by:
        raise NotRated(
            f"{path}: {waiting} of {len(outputs)} runs have no judgements; add them with --by terminal or --by model"
        )
    raters = _raters(by or []) if waiting else []
    done: list[Output] = []
    for output in outputs if By.TERMINAL in (by or []) else progress(outputs, f"judging {name}", total=len(outputs)):
        try:
            done += rate(name, [output], test_set, raters).outputs
        except NotRated as error:
            message = str(error).replace("run 1", f"run {len(done) + 1}", 1)
            raise NotRated(f"{path}: {message}") from None
        if out is not None:
            write_variant(out, name, [*done, *outputs[len(done) :]], test_set)
    return rate(name, done, test_set)


def _raters(by: Sequence[By]) -> list[Rater]:
    from grace_kp.rubric import ModelRater, PersonRater

    if len(by) > 2:
        raise typer.BadParameter("--by can be used at most twice")
    raters: list[Rater] = []
    for rater in by:
        if rater is By.TERMINAL:
            if not sys.stdin.isatty():
                raise GraceError("--by terminal needs a terminal as standard input")
            raters.append(PersonRater(ask=_ask, tell=lambda text: print(text, file=sys.stderr)))
        else:
            from grace_kp.models import choose_judge
            from grace_kp.settings import Settings

            chosen = choose_judge(Settings.load())
            if chosen.model is None:
                raise GraceError(f"no model can judge: {chosen.why}")
            raters += [ModelRater(chosen.model)] * (2 if list(by) == [By.MODEL] else 1)
    return raters


def _ask(question: str) -> str:
    line = ask(question)
    if not line:
        raise GraceError("the input has ended; earlier judgements are in the file of --out, if there is one")
    return line
