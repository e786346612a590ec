"""`grace-kp approvals standing`: consent in advance to calls of one action whose every parameter is constrained."""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._approval_page import when_text
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
from grace_kp.cli._output import clean, confirm, console, put_json
from grace_kp.cli._page import TableColumn, TextTable, put_field, put_outcome, put_text
from grace_kp.pages import span_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grace_kp.approvals import Standing

standing = typer.Typer(no_args_is_help=True, help="Standing approvals: list, grant, end.")

LIST = (
    TableColumn("id", "word"),
    TableColumn("action", least=12),
    TableColumn("parameters", least=20, priority=2),
    TableColumn("left", "figure"),
    TableColumn("used", "figure"),
    TableColumn("by", priority=1, least=6),
)
_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)?\.\.(-?\d+(?:\.\d+)?)?")


@standing.command("list")
def list_standing(
    store: StoreOption = None,
    ended: Annotated[bool, typer.Option("--ended", help="Include ended ones.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the standing approvals in force."""
    from grace_kp.approvals import reason_without_account

    with open_inbox(store) as inbox:
        found = inbox.verbs.standing(ended=ended)
        lapsed = {
            each.id for each in found if each.granted_by and reason_without_account(inbox.tables, each.granted_by)
        }
    if as_json:
        put_json([_document(entry) for entry in found])
        return
    out = console()
    if not found:
        put_text(
            out,
            f"no standing approvals in {describe_store(store)}; `grace-kp approvals standing grant --help` shows how to grant one",
        )
        return
    rows, now = TextTable(*LIST), time.time()
    for entry in found:
        left = span_text(entry.until - now) if entry.until > now else "over"
        left = "ended" if entry.ended else "not in force" if entry.id in lapsed else left
        by = "-" if entry.granted_by is None else entry.granted_by.name
        constraints, used = "; ".join(_constraints(entry)), f"{entry.used} of {entry.uses}"
        rows.add(clean(entry.id), entry.action, constraints, left, used, by)
    rows.print(out)


@standing.command()
def grant(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="Name of the action; no glob.")],
    until: Annotated[str, typer.Option("--until", help="End: 8h or 7d from now, or a time like 2026-01-31T18:00.")],
    uses: Annotated[int, typer.Option("--uses", min=1, help="Maximum number of calls.")],
    exact: Annotated[list[str] | None, typer.Option("--is", metavar="NAME=VALUE", help="This value: JSON, or else a string.")] = None,
    listed: Annotated[list[str] | None, typer.Option("--in", metavar="NAME=JSON-LIST", help='One of these: currency=["EUR"].')] = None,
    ranges: Annotated[list[str] | None, typer.Option("--range", metavar="NAME=LOW..HIGH", help="A number from LOW to HIGH; either may be omitted.")] = None,
    free: Annotated[list[str] | None, typer.Option("--any", metavar="NAME", help="Any value.")] = None,
    domain: Annotated[str | None, typer.Option(help="Domain of the runs. Default: the setting `domain`.")] = None,
    version: Annotated[str | None, typer.Option(help="Only this version of the action, as `show` prints it.")] = None,
    note: Annotated[str, typer.Option("--note", help="A note.")] = "",
    store: StoreOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Consent in advance. Every parameter of the action needs a constraint; a call with another parameter still needs a decision.

    Example: grace-kp approvals standing grant refund --any invoice --range euros=0..50 --until 7d --uses 20
    """
    from grace_kp.approvals import Standing
    from grace_kp.settings import Settings

    person = actor(by)
    parameters = _parameters({"--is": exact, "--in": listed, "--range": ranges, "--any": free})
    wanted = Standing(
        action=action, domain=domain or Settings.load().domain, parameters=parameters,
        until=_until(until), uses=uses, version=version, note=note,
    )  # fmt: skip
    with change_inbox(store) as inbox:
        if not yes:
            question = f"Let these calls run without asking, granted by {clean(person.name)}?"
            confirm("grant", question, show=lambda: _show(wanted))
        granted = inbox.verbs.grant(wanted, by=person)
    text = f"granted {clean(granted.id)}; `grace-kp approvals standing end {clean(granted.id)}` ends it"
    put_outcome(_document(granted), text, as_json=as_json)


@standing.command()
def end(
    id: Annotated[str, typer.Argument(metavar="ID", help="The id of the standing approval.")],  # noqa: A002
    store: StoreOption = None,
    by: ByOption = None,
    reason: Annotated[str, typer.Option("--reason", help="Why.")] = "",
    as_json: JsonOption = False,
) -> None:
    """End a standing approval at once, and cancel its approvals whose actions have not started."""
    person = actor(by)
    with change_inbox(store) as inbox:
        ended = inbox.verbs.end_standing(id, by=person, reason=reason)
    text = f"ended {clean(ended.id)}: {clean(ended.action)}, used {ended.used} of {ended.uses} times"
    put_outcome(_document(ended), text, as_json=as_json)


def _parameters(stated: Mapping[str, Sequence[str] | None]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for option, pair in ((option, pair) for option, pairs in stated.items() for pair in pairs or ()):
        name, separator, text = pair.partition("=")
        if not separator and option != "--any":
            raise ValueError(f"{option} must read NAME=…, not {pair!r:.80}")
        name = (name if separator and option != "--any" else pair).strip()
        if not name or name in found:
            raise ValueError(
                f"each parameter needs one constraint; {name!r:.60} has {'no name' if not name else 'two'}"
            )
        found[name] = _constraint(option, text, pair)
    return found


def _constraint(option: str, text: str, pair: str) -> dict[str, Any]:
    match option:
        case "--is":
            return {"is": _json_or_text(text)}
        case "--in":
            values = _json_or_text(text)
            if not isinstance(values, list):
                raise ValueError(f'--in must read NAME=JSON-LIST, such as currency=["EUR", "USD"], not {pair!r:.80}')
            return {"in": values}
        case "--range":
            bounds = _RANGE.fullmatch(text)
            if bounds is None or bounds.groups() == (None, None):
                raise ValueError(f"--range must read NAME=LOW..HIGH, such as euros=0..50, not {pair!r:.80}")
            ends = {"from": bounds[1], "to": bounds[2]}
            return {end: json.loads(value) for end, value in ends.items() if value is not None}
        case _:
            return {"any": True}


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _until(text: str) -> float:
    from grace_kp.approvals import seconds_of

    with suppress(ValueError):
        return time.time() + seconds_of("--until", text.strip())
    try:
        at = datetime.fromisoformat(text)
        return (at.replace(tzinfo=UTC) if at.tzinfo is None else at).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(
            f"--until must be a duration above 0 and of at most ten years, such as 8h or 7d, or a time such as 2026-01-31T18:00, not {text!r:.60}"
        ) from None


def _constraints(entry: Standing) -> Iterator[str]:
    from grace_kp.approvals import constraint_texts

    for name, words_of in constraint_texts(entry):
        yield f"{clean(name)}: {clean(words_of)}"


def _document(entry: Standing) -> dict[str, Any]:
    return {**asdict(entry), "granted_by": None if entry.granted_by is None else entry.granted_by.to_dict()}


def _show(wanted: Standing) -> None:
    facts = [("action", clean(wanted.action)), ("domain", clean(wanted.domain))]
    facts += [("parameter", constraint) for constraint in _constraints(wanted)]
    facts += [("version", clean(wanted.version or "every version")), ("until", when_text(wanted.until, time.time()))]
    for name, value in (*facts, ("uses", f"{wanted.uses:,} at most")):
        put_field(console(stderr=True), name, value)
