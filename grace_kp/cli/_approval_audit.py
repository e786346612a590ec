"""`grace-kp approvals verify | export | restored | forget`: the audit chain of approvals."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from grace_kp.cli._approvals import seconds_since
from grace_kp.cli._lookup import (
    ByOption,
    JsonOption,
    StoreOption,
    YesOption,
    actor,
    change_inbox,
    describe_store,
    open_inbox,
)
from grace_kp.cli._output import clean, confirm, console, put_json, put_jsonl
from grace_kp.cli._page import put_outcome, put_text
from grace_kp.pages import count_text

SHOWN = 20
"""Maximum of problems shown without --json."""


def verify(
    store: StoreOption = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="File of checkpoints that was kept elsewhere. Without one, only accidental changes are found.")
    ] = None,
    write_checkpoint: Annotated[
        Path | None, typer.Option("--write-checkpoint", help="Append a checkpoint of the verified chain to this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Verify that no entry of the chain was changed, removed, inserted or reordered. Exit with 1 if a problem was found.

    Example: grace-kp approvals verify --checkpoint /mnt/audit/approvals.jsonl --write-checkpoint /mnt/audit/approvals.jsonl
    """
    from grace_kp.approvals import read_checkpoints, verdict_text
    from grace_kp.approvals import verify as verify_chain
    from grace_kp.approvals import write_checkpoint as write

    with open_inbox(store) as inbox:
        points = None if checkpoint is None else read_checkpoints(checkpoint, secret=inbox.secret)
        found = verify_chain(inbox.tables, at=time.time(), checkpoint=points)
        if found.ok and write_checkpoint is not None:
            write(write_checkpoint, found.checkpoint, secret=inbox.secret)
    if as_json:
        put_json(found.to_dict())
    else:
        out = console()
        for problem in found.problems[:SHOWN]:
            put_text(out, f"{problem.kind}: {clean(problem.message)}", style="red")
        if found.problem_count > SHOWN:
            put_text(out, f"and {found.problem_count - SHOWN:,} more problems; --json lists them")
        put_text(out, verdict_text(found), style="" if found.ok else "bold")
        for sentence in found.unchecked:
            put_text(out, clean(sentence), style="yellow")
        if write_checkpoint is not None:
            written = f"checkpoint of entry {found.checkpoint.seq:,} appended to {clean(str(write_checkpoint))}"
            put_text(out, written if found.ok else "no checkpoint was written, because of the problems")
    if not found.ok:
        raise typer.Exit(1)


def mark_restored(
    store: StoreOption = None, by: ByOption = None, yes: YesOption = False, as_json: JsonOption = False
) -> None:
    """After a restore from a backup, mark approved and started actions as unknown, and end standing approvals.

    Actions may have run after the backup was taken. Settle each with `reconcile`.
    """
    person = actor(by)
    with change_inbox(store) as inbox:
        if not yes:
            confirm(
                "mark everything",
                f"Mark all approved and started actions in {describe_store(store)} as unknown? Each then needs `reconcile`.",
            )
        count = inbox.verbs.restored(by=person)
    hint = "\n`grace-kp approvals list --state unknown` lists them; settle each with `reconcile`" if count else ""
    put_outcome({"unknown": count}, f"marked {count_text(count, 'approval')} as unknown{hint}", as_json=as_json)


def forget(
    older_than: Annotated[
        str, typer.Option("--older-than", help="Only approvals that ended before this time: 90d (ago), 2026-01-31.")
    ],
    store: StoreOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete the arguments, notes and results of ended approvals. The chain stays verifiable.

    Example: grace-kp approvals forget --older-than 90d
    """
    from grace_kp.approvals import forget as forget_contents

    person, before = actor(by), seconds_since(older_than, "--older-than")
    with open_inbox(store) as inbox:
        if not yes:
            confirm(
                "forget",
                f"Delete the contents of approvals in {describe_store(store)} that ended before {older_than}? This cannot be undone.",
            )
        count = forget_contents(inbox.tables, before=before or 0.0, at=time.time(), actor=person)
    text = f"deleted the contents of {count:,} entr{'y' if count == 1 else 'ies'}"
    put_outcome({"deleted": count}, text, as_json=as_json)


def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Output file; - is standard output.")] = "-",
    store: StoreOption = None,
    after: Annotated[int, typer.Option(min=0, help="Number of the last entry that was exported before.")] = 0,
    contents: Annotated[bool, typer.Option("--contents/--no-contents", help="Include arguments, notes and results.")] = True,
) -> None:  # fmt: skip
    """Write the chain as JSON lines. They can be verified without this library.

    Example: grace-kp approvals export chain.jsonl --no-contents
    """
    from grace_kp.approvals import export as export_chain
    from grace_kp.trace import write_whole

    with open_inbox(store) as inbox:
        lines = export_chain(inbox.tables, after=after, with_contents=contents)
        if file == "-":
            put_jsonl(lines)
            return
        texts = [json.dumps(line, ensure_ascii=False) for line in lines]
    write_whole(Path(file), "".join(f"{text}\n" for text in texts))
    put_text(console(), f"exported {len(texts):,} entr{'y' if len(texts) == 1 else 'ies'} to {clean(file)}")
