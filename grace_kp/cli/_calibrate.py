"""`grace-kp calibrate`: learn a confidence from labelled runs, and choose thresholds that keep a promise.

`grace-kp replay` compares two policies on recorded traces; `grace-kp reviewers` shows statistics of reviewers.
"""

from __future__ import annotations

import itertools
import json
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._inputs import Unreadable, read_files, readable
from grace_kp.cli._lookup import JsonOption, StoreOption, open_for_reading
from grace_kp.cli._output import check_writable, clean, console, progress, put_json, say_error, visible
from grace_kp.cli._page import TableColumn, TextTable, put, put_field, put_outcome, put_text
from grace_kp.errors import GraceError, InvalidRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from grace_kp.calibrate import ActionLabels, Assessment, Calibration, LabelledRun, Labels
    from grace_kp.confidence import Thresholds
    from grace_kp.store import Store
    from grace_kp.trace import ReasoningTrace

RISKS = ("silent=0.05", "notify=0.15", "confirm=0.35")
"""Default of --risk."""
LABEL, LAST_LABEL = 10, 9
"""Columns of names; in the last section 9, so that a digest fits into 80 columns."""
MAX_ROWS = 12
"""Tools and features that are listed; the report has all."""


def calibrate(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            help="Labelled runs as JSON or JSON lines, plain or .gz; - is standard input. Default: the store.",
        ),
    ] = None,
    store: StoreOption = None,
    risk: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL=SHARE",
            help=f"Largest share of wrong actions at a level; may be repeated. Default: {', '.join(RISKS)}.",
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="Probability that the promise does not hold.")] = 0.1,
    promise: Annotated[
        str, typer.Option(help="selective: of the actions at the level; overall: of all runs or actions.")
    ] = "selective",
    moment: Annotated[
        str, typer.Option(help="action: before an action, as at gates; end: of runs that have ended.")
    ] = "action",
    actions: Annotated[
        bool, typer.Option("--actions", help="Learn a confidence in single actions from labels of actions.")
    ] = False,
    per_tool: Annotated[
        bool, typer.Option("--per-tool", help="With --actions: thresholds that keep the promise for each tool alone.")
    ] = False,
    label: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Field of the file that states the label, such as label.success."),
    ] = None,
    sources: Annotated[
        str | None, typer.Option(help="Accepted sources of feedback, such as user,test. Default: all but approvals.")
    ] = None,
    holdout: Annotated[
        float, typer.Option(help="Share of the tasks on which thresholds are chosen; 0: approximate promise.")
    ] = 0.4,
    out: Annotated[
        Path | None, typer.Option(help="Write the profile, as JSON, to this file. Default: it is not written.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write the HTML report to this file. Default: it is not written.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Learn a confidence from labelled runs or actions, and choose thresholds that keep a promise about errors.

    Example: grace-kp calibrate runs.jsonl --risk silent=0.05 --risk notify=0.15 --out profile.json
    """
    from grace_kp import calibrate as cal
    from grace_kp.trace import write_whole

    unit = "action" if actions else "run"
    wanted = cal.Promise(risks=_risks(risk or RISKS), delta=delta, kind=promise, moment=moment, unit=unit)  # type: ignore[arg-type]
    if not 0 <= holdout <= 0.9:  # the range of an option takes no NaN, and says something else about it
        raise ValueError(f"--holdout must be a share of the tasks from 0 to 0.9 (got {holdout:g})")
    if per_tool and not actions:
        raise ValueError("--per-tool needs --actions: labels of runs do not say which tool was wrong")
    if label is not None and actions:
        field = "--label names a field that states whether a run was right"
        raise ValueError(f"{field}; with --actions, labels of actions count")
    check_writable(out, report)
    unreadable = Unreadable()
    accepted = None if sources is None else [name.strip() for name in sources.split(",") if name.strip()]

    def read(source: Any, name: str) -> Iterator[Any]:
        if actions:
            return cal.read_actions(source, name=name)
        return cal.read_labelled(source, label=label, sources=accepted, name=name)

    labelled: Labels | ActionLabels
    with _open_runs(files, store, "reading", unreadable, read, label) as runs:
        labelled = cal.action_labels(runs, accepted) if actions else cal.labels(runs, accepted)
    if unreadable.count and not labelled.labels and not labelled.left_out:
        raise typer.Exit(1)  # the reasons were reported while reading
    try:
        lacking = cal.lacking_labels(labelled, wanted, holdout=holdout, seed=seed)
        if lacking and not as_json:
            _warn(lacking, labelled, holdout)
        fit: Any = partial(cal.calibrate_actions, per_tool=per_tool) if actions else cal.calibrate_runs
        work = (fit(labelled, wanted, holdout=holdout, seed=seed) for _ in range(1))
        [found] = progress(work, f"calibrating on {len(labelled.labels):,} {unit}s")
    except ValueError as error:  # the arguments were checked before, so the labels are at fault
        raise GraceError(str(error)) from None
    if out is not None:
        found.profile.save(out)
    if report is not None:
        names = ", ".join(Path(name).name for name in files) if files else "the runs of a store"
        write_whole(report, cal.calibration_page(found, f"Calibration on {names}"))
    if as_json:
        put_json({**found.to_dict(), "lacking": list(lacking), "unreadable": unreadable.count})
    else:
        _show(found, unreadable)
        _point(found, out, report)
    if unreadable.count:
        raise typer.Exit(1)


def _risks(entries: list[str] | tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for entry in entries:
        level, equals, share = entry.partition("=")
        try:
            value = float(share)
        except ValueError:
            equals = ""
        if not equals:
            raise ValueError(f"--risk must be a level and a share, such as silent=0.05 (got {entry!r:.60})")
        if level in found:
            raise ValueError(f"--risk names {level!r} twice")
        found[level] = value
    return found


@contextmanager
def _open_runs(
    files: list[str] | None,
    store: str | None,
    title: str,
    unreadable: Unreadable,
    read: Callable[[Any, str], Iterator[Any]] | None = None,
    label: str | None = None,
) -> Iterator[Any]:
    """Yield what `read` finds in the files, or else their traces; without files, the store, whose traces contain their labels."""
    if not files:
        if label is not None:
            raise ValueError("--label names a field of a file; the labels of a store are feedback")
        with open_for_reading(store) as opened:
            yield _Watched(opened, title)
        return
    if store is not None:
        raise ValueError("name files or --store, not both")
    yield readable(files, title, unreadable) if read is None else read_files(files, title, unreadable, read)


class _Watched:
    """A store whose traces are read with a progress bar."""

    def __init__(self, store: Store, title: str) -> None:
        self._store, self._title = store, title

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def __iter__(self) -> Iterator[ReasoningTrace]:
        return self.iterate()

    def iterate(self, **conditions: Any) -> Iterator[ReasoningTrace]:
        return progress(self._store.iterate(**conditions), self._title, total=self._store.count(**conditions))


def _warn(lacking: tuple[str, ...], labelled: Labels | ActionLabels, holdout: float) -> None:
    out = console()
    for sentence in lacking:
        put_text(out, f"{sentence}.", style="yellow")
    if holdout:
        tasks = len(set(labelled.groups))
        put_text(out, f"Of {tasks:,} tasks, {holdout:.0%} are held back for the thresholds, and each gives one label.")
    put(out, "")


QUALITY = (
    TableColumn("confidence", "word"),
    TableColumn("AUROC", "figure"),
    TableColumn("calibration error", "figure", priority=2),
    TableColumn("Brier score", "figure", priority=1),
)
LEVELS = (
    TableColumn("level", "word"),
    TableColumn("risk", "figure"),
    TableColumn("confidence from", "figure"),
    TableColumn("coverage", "figure"),
    TableColumn("wrong", "figure"),
    TableColumn("bound", "figure"),
    TableColumn("needed", "figure", priority=1),
)


def _show(found: Calibration, unreadable: Unreadable) -> None:
    out = console()
    _put_sample(out, found, unreadable)
    put(out, "")
    rows = TextTable(*QUALITY)
    for name, each in found.assessments.items():
        rows.add(name, *(_with_interval(each, figure) for figure in ("auroc", "ece", "brier")))
    rows.print(out)
    put_text(out, "95 % intervals; calibration error and Brier score: 0 is best.")
    put(out, "")
    rows = TextTable(*LEVELS)
    for level in found.levels:
        threshold = "never" if level.threshold is None else f"{level.threshold:.3f}"
        bound = "-" if level.bound is None else f"{level.bound:.3f}"
        share = f"{level.errors:,} of {level.reached:,}"
        rows.add(level.level, f"{level.risk:g}", threshold, f"{level.coverage:.1%}", share, bound, f"{level.needed:,}")
    rows.print(out)
    put_text(out, clean(found.promise.in_words))
    put(out, "")
    if found.promise.unit == "action":
        _put_tools(out, found)
    for number, note in enumerate(found.notes):
        put_field(out, "" if number else "notes", clean(note), label=LABEL)


def _put_tools(out: Console, found: Calibration) -> None:
    """Write how good the confidence is for each tool, the labels that each still needs, and what predicts errors."""
    rows = TextTable(
        TableColumn("tool"), *(TableColumn(name, "figure") for name in ("actions", "share right", "AUROC"))
    )
    for name, each in found.by_group.get("tool", {}).items():
        rows.add(name, f"{each.n:,}", _with_interval(each, "accuracy"), _with_interval(each, "auroc"))
    if found.by_group:
        put_text(out, "Assessed actions by tool", style="bold")
        rows.print(out)
        put(out, "")
    rows = TextTable(
        TableColumn("tool"),
        TableColumn("labels", "figure"),
        *(TableColumn(each, "figure") for each in found.promise.risks),
    )
    for name, sure in itertools.islice(found.tools.items(), MAX_ROWS):
        rows.add(name, f"{sure.n:,}", *(each.state for each in sure.levels))
    if found.tools:
        put_text(out, "Labels still needed", style="bold")
        rows.print(out)
        put_text(
            out,
            "For each tool alone: the confidence from which it keeps the promise, else how many more labels it needs, each of another task that is held back.",
        )
        put(out, "")
    clear = [each for each in found.predictors if each.clearness > 0]
    shown = f"for {len(clear):,} of {len(found.predictors):,} features the interval of the odds ratio excludes 1."
    put_text(out, f"What predicts errors: {shown}")
    for predictor in clear[:MAX_ROWS]:
        put_text(out, clean(str(predictor)), indent=2)
    put(out, "")


def _put_sample(out: Console, found: Calibration, unreadable: Unreadable) -> None:
    sample = found.sample
    sources = ", ".join(f"{count:,} {name}" for name, count in sample["sources"].items())
    nouns = found.nouns
    runs = f"{sample[nouns]:,} {nouns} of {sample['tasks']:,} tasks, {sample['share_correct']:.0%} correct"
    put_field(out, "labelled", clean(f"{runs}; labels: {sources}"), label=LABEL)
    left_out = [f"{count:,} {reason}" for reason, count in sample["left_out"].items()]
    left_out += [f"{unreadable.count:,} unreadable"] if unreadable.count else []
    if left_out:
        put_field(out, "left out", clean(", ".join(left_out)), label=LABEL)
    fitted = f"{sample[f'fitted_{nouns}']:,} {nouns} of {sample['fitted_tasks']:,} tasks"
    put_field(out, "fitted on", fitted, label=LABEL)
    others = "other tasks" if sample["holdout"] else "tasks by cross-validation"
    assessed = f"{sample[f'assessed_{nouns}']:,} {nouns} of {sample['assessed_tasks']:,} {others}"
    when = "before an action" if found.promise.moment == "action" else "at the end"
    put_field(out, "assessed", f"{assessed}, {when}; thresholds on {sample['tested']:,} of them", label=LABEL)


def _with_interval(assessment: Assessment, figure: str) -> str:
    value, interval = getattr(assessment, figure), assessment.intervals.get(figure)
    if value is None:
        return "-"
    return f"{value:.2f}" if interval is None else f"{value:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"


def _point(found: Calibration, out: Path | None, report: Path | None) -> None:
    page = console()
    put(page, "")
    unwritten = "not written; {} names a file for it"
    put_field(page, "report", unwritten.format("--report") if report is None else clean(str(report)), label=LAST_LABEL)
    put_field(page, "profile", unwritten.format("--out") if out is None else clean(str(out)), label=LAST_LABEL)
    put_field(page, "digest", found.profile.digest, label=LAST_LABEL)
    for objection in found.objections:
        put_text(page, clean(f"do not use this profile: {objection}"), style="red")
    if found.objections:
        return
    if out is not None:
        put_field(
            page, "use it", clean(f"gk.Grace(profile={json.dumps(str(out), ensure_ascii=False)})"), label=LAST_LABEL
        )
    if found.promise.moment == "end":
        note = "its thresholds are for runs that have ended, so gates ask before every action; --moment action is for gates"
        put_field(page, "", note, label=LAST_LABEL)


Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE...", help="Traces as JSON lines; - is standard input. Default: the store."),
]
Name = "recorded, grace, strict, or the JSON file of a learned profile."
Levels = "Its thresholds: silent,notify,confirm, such as never,0.95,0.8."
Floors = "Its floor for an action or glob, such as 'send_*=confirm'; may be repeated."


def replay(
    files: Files = None,
    store: StoreOption = None,
    a: Annotated[str | None, typer.Option("--a", metavar="POLICY", help=f"Policy A: {Name}")] = None,
    a_thresholds: Annotated[str | None, typer.Option(metavar="S,N,C", help=Levels)] = None,
    a_floor: Annotated[list[str] | None, typer.Option(metavar="ACTION=FLOOR", help=Floors)] = None,
    b: Annotated[str | None, typer.Option("--b", metavar="POLICY", help="Policy B, in the same forms.")] = None,
    b_thresholds: Annotated[str | None, typer.Option(metavar="S,N,C", help=Levels)] = None,
    b_floor: Annotated[list[str] | None, typer.Option(metavar="ACTION=FLOOR", help=Floors)] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Field of the files that states whether a run was right. Default: feedback, reward, …"),
    ] = None,
    minutes: Annotated[float, typer.Option(min=0, help="Minutes of a reviewer for a question.")] = 2.0,
    price: Annotated[float | None, typer.Option(min=0, help="Price of an hour of reviewers.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap intervals.")] = 0,
    include_fitted: Annotated[
        bool, typer.Option("--include-fitted", help="Also replay the runs that a profile was fitted on.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Replay recorded decisions under policy A and policy B. Without a policy, the recorded decisions take its place.

    Thresholds without a profile apply to the recorded confidence. Labels are the feedback in the traces, or a field of the files.

    Example: grace-kp replay --a profile.json --b grace --b-thresholds never,0.95,0.8 --price 60
    """
    from grace_kp.calibrate import read_labelled
    from grace_kp.calibrate import replay as replay_traces

    policies = _policy("a", a, a_thresholds, a_floor), _policy("b", b, b_thresholds, b_floor)
    if policies == (None, None):
        raise ValueError("nothing to compare: state policy A with --a, --a-thresholds or --a-floor")
    unreadable = Unreadable()

    def read(source: Any, name: str) -> Iterator[LabelledRun | InvalidRecord]:
        return read_labelled(source, label=label, volunteered=True, name=name)

    with _open_runs(files, store, "replaying", unreadable, read, label) as traces:
        labels = None
        if files:
            first, second = itertools.tee(traces)  # read in step, so that one run at a time is in memory
            traces = (run.trace for run in first)
            labels = (None if run.label is None else run.label.correct for run in second)
        report = replay_traces(
            traces,
            *policies,
            labels=labels,
            minutes_per_review=minutes,
            price_per_hour=price,
            seed=seed,
            include_fitted=include_fitted,
        )
    put_outcome(report.to_dict(), visible(report.summary()), as_json=as_json)
    nothing = report.traces and not (report.actions.decisions or report.runs.decisions)
    if nothing:
        say_error("nothing could be replayed; the notes of the report say why")
    if unreadable.count or nothing:
        raise typer.Exit(1)


def reviewers(
    files: Files = None,
    store: StoreOption = None,
    pseudonyms: Annotated[
        bool, typer.Option("--pseudonyms", help="Show `reviewer 1`, `reviewer 2`, … instead of names.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show statistics of the people who answered gates: counts, time to decide, agreement.

    Example: grace-kp reviewers --store sqlite:///traces.db --pseudonyms
    """
    from grace_kp.calibrate import reviewers as report_on

    unreadable = Unreadable()
    with _open_runs(files, store, "reading", unreadable) as traces:
        report = report_on(traces, pseudonyms=pseudonyms)
    put_outcome(report.to_dict(), visible(report.summary()), as_json=as_json)
    if unreadable.count:
        raise typer.Exit(1)


def _policy(letter: str, name: str | None, thresholds: str | None, floors: list[str] | None) -> Any:
    from grace_kp.calibrate import ReplayPolicy

    if thresholds is None and not floors:
        return ReplayPolicy.of(name)
    if name == "recorded":
        raise ValueError(
            f"--{letter} recorded cannot have thresholds or floors; leave --{letter} out to apply them to the recorded confidence"
        )
    named = None if name is None else ReplayPolicy.of(name)
    levels = None if thresholds is None else _thresholds(f"--{letter}-thresholds", thresholds)
    policies: dict[str, str] = {}
    for floor in floors or ():
        action, separator, level = floor.rpartition("=")
        if not action or not separator:
            raise ValueError(f"--{letter}-floor {floor!r:.60}: write ACTION=FLOOR, such as 'send_*=confirm'")
        policies[action] = level
    return ReplayPolicy(None if named is None else named.profile, levels, policies or None)


def _thresholds(option: str, text: str) -> Thresholds:
    from grace_kp.confidence import Thresholds

    parts = [part.strip() for part in text.split(",")]
    try:
        silent, notify, confirm = (part if part == "never" else float(part) for part in parts)
        return Thresholds.from_dict({"silent": silent, "notify": notify, "confirm": confirm})
    except ValueError as error:
        why = f" ({error})" if len(parts) == 3 else ""
        raise ValueError(
            f"{option} {text!r:.60}: write silent,notify,confirm, each from 0 to 1 or never, in descending order{why}"
        ) from None
