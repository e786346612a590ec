"""`grace-kp feedback`: label runs and their actions as right or wrong, one by one or from a file."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._inputs import Position
from grace_kp.cli._lookup import JsonOption, StoreOption, find, open_chosen_store
from grace_kp.cli._output import clean, progress, say_error
from grace_kp.cli._page import put_outcome
from grace_kp.errors import GraceError, InvalidRecord
from grace_kp.pages import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.store import Store

REPORTED = 5
"""Maximum of unstored rows that are reported individually."""


def feedback(
    id: Annotated[  # noqa: A002
        str | None, typer.Argument(metavar="[TRACE_ID]", help="An id, at least its first 3 characters, or `last`.")
    ] = None,
    correct: Annotated[
        str | None, typer.Argument(metavar="[LABEL]", help="correct, wrong, or a number from 0 (wrong) to 1 (correct).")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="Labels as CSV or JSON lines: trace_id, correct, and optionally source, by, note, probability, program, action.",
        ),
    ] = None,
    source: Annotated[
        str, typer.Option(help="Where the label comes from: user, test, audit, approval, … Only for rows without one.")
    ] = "user",
    by: Annotated[
        str | None, typer.Option(help="Who states it. A label with a name counts before one without.")
    ] = None,
    note: Annotated[str | None, typer.Option(help="A remark; secrets are removed.")] = None,
    probability: Annotated[
        float | None, typer.Option(help="Probability with which the run or action was chosen to be labelled.")
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(
            help="Label this action of the run: the id of its decision, approval or tool call, or its number, from 1 on."
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """State whether a run, or with --action one of its gated actions, was right. The label is stored with its trace, next to earlier ones. Of the labels with a name, the newest counts.

    Example: grace-kp feedback last wrong --by ana --note "refunded the wrong order"

    Example: grace-kp feedback last wrong --action 2 --by ana

    Example: grace-kp feedback --file labels.csv --source test
    """
    from grace_kp.levels import PrivacyLevel
    from grace_kp.settings import Settings

    if (file is None) == (id is None or correct is None) or (file is not None and id is not None):
        raise ValueError("feedback needs a trace id and a label, or --file")
    if file is not None and action is not None:
        raise ValueError("--action belongs to one label; the rows of a file have a column action")
    target = open_chosen_store(store, must_exist=True)
    stated = {"source": source, "by": by, "note": note, "probability": probability}
    stated["identifiers"] = PrivacyLevel(Settings.load().privacy_level).hides_identifiers
    with closing(target):
        if file is None:
            _label(target, str(id), str(correct), stated, action, as_json=as_json)
        else:
            _label_all(target, file, stated, as_json=as_json)


def _label(store: Store, name: str, correct: str, stated: dict[str, Any], action: str | None, *, as_json: bool) -> None:
    from grace_kp.runtime import add_feedback, feedback_entry, mark_action, resolve_label, stated_correct

    label: Any = stated_correct(correct)
    if isinstance(label, str):
        raise ValueError(f"the label must be correct, wrong, or a number from 0 to 1 (got {label!r:.60})")
    mark_action(feedback_entry("kp:trace:checked-before-the-look-up", label, **stated), action)
    entry = mark_action(feedback_entry(find(store, name).id, label, **stated), action)
    try:
        entry = resolve_label(store, entry)
    except ValueError as error:
        raise ValueError(str(error).replace("probability=…", "--probability")) from None
    if add_feedback(store, [entry]):
        raise GraceError(f"no trace {name!r}: it has just been deleted")
    document = {"trace_id": entry.trace, **json.loads(entry.data)}
    what = f"the action {clean(entry.action)} of " if entry.action else ""
    put_outcome(document, f"stored feedback on {what}{clean(entry.trace)}", as_json=as_json)


def _label_all(store: Store, file: str, stated: dict[str, Any], *, as_json: bool) -> None:
    stored = problems = 0
    for result in _results(store, file, stated):
        if not isinstance(result, InvalidRecord):
            stored += result
            continue
        problems += 1
        if problems <= REPORTED:
            say_error(result)
    if problems > REPORTED:
        say_error(f"{file}: and {problems - REPORTED:,} more that could not be stored")
    more = f", {problems:,} could not be stored" if problems else ""
    text = f"stored {count_text(stored, 'label')}{more}"
    put_outcome({"stored": stored, "problems": problems}, text, as_json=as_json)
    if problems:
        raise typer.Exit(1)


def _results(store: Store, file: str, stated: dict[str, Any]) -> Iterator[int | InvalidRecord]:
    from grace_kp.runtime import store_feedback

    if file == "-":
        yield from progress(store_feedback(store, sys.stdin, "<stdin>", **stated), "storing labels")
        return
    work = Position([file])
    with Path(file).open("rb") as opened_file:
        results = store_feedback(store, work.count(opened_file), file, **stated)
        yield from progress(results, "storing labels", total=work.total, position=lambda: work.bytes_read)
