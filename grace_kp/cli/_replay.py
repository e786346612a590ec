"""`grace-kp replay`: compare two policies on recorded traces; `grace-kp reviewers`: statistics of reviewers."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._inputs import Unreadable, read_files, readable
from grace_kp.cli._lookup import JsonOption, StoreOption, open_for_reading
from grace_kp.cli._output import progress, say_error, visible
from grace_kp.cli._page import put_outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from grace_kp.confidence import Thresholds
    from grace_kp.trace import ReasoningTrace

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
    from grace_kp.calibrate import replay as replay_traces

    policies = _policy("a", a, a_thresholds, a_floor), _policy("b", b, b_thresholds, b_floor)
    if policies == (None, None):
        raise ValueError("nothing to compare: state policy A with --a, --a-thresholds or --a-floor")
    unreadable = Unreadable()
    with _open_labelled(files, store, label, unreadable) as (traces, labels):
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
    with _open_traces(files, store, "reading", unreadable) as traces:
        report = report_on(traces, pseudonyms=pseudonyms)
    put_outcome(report.to_dict(), visible(report.summary()), as_json=as_json)
    if unreadable.count:
        raise typer.Exit(1)


@contextmanager
def _open_labelled(
    files: list[str] | None, store: str | None, label: str | None, unreadable: Unreadable
) -> Iterator[tuple[Iterable[ReasoningTrace], Iterable[bool | float | None] | None]]:
    """Yield the traces of the files with their labels, or the traces of the store, which contain their labels."""
    from grace_kp.calibrate import LabelledRun, read_labelled

    if not files or store is not None:
        if label is not None:
            raise ValueError("--label names a field of a file; the labels of a store are feedback")
        with _open_traces(files, store, "replaying", unreadable) as traces:
            yield traces, None
        return
    runs: Iterator[LabelledRun] = read_files(
        files,
        "replaying",
        unreadable,
        lambda source, name: read_labelled(source, label=label, volunteered=True, name=name),
    )
    first, second = itertools.tee(runs)  # read in step, so that one run at a time is in memory
    yield (run.trace for run in first), (None if run.label is None else run.label.correct for run in second)


@contextmanager
def _open_traces(
    files: list[str] | None, store: str | None, what: str, unreadable: Unreadable
) -> Iterator[Iterable[ReasoningTrace]]:
    if files:
        if store is not None:
            raise ValueError("name files or --store, not both")
        yield readable(files, what, unreadable)
        return
    with open_for_reading(store) as source:
        yield progress(source.iterate(), what, total=source.count())


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
