"""`grace-kp approvals edit`: replace arguments of a request and consent to the result, after the difference was shown.

`NAME=VALUE` takes the kind of value from the schema of the action, or else from the value that is there: a text parameter takes the characters
as they are, others take JSON, and dates, decimals and the like take their text. `NAME:=JSON` takes JSON whatever the parameter.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._approval_desk import ByOption, IdArgument, actor, deciding
from grace_kp.cli._approval_verbs import (
    Asking,
    DigestOption,
    JsonOption,
    NoteOption,
    UnseenOption,
    YesOption,
    decided,
    report,
)
from grace_kp.cli._lookup import StoreOption  # noqa: TC001 — Typer reads it
from grace_kp.cli._output import console, put_json
from grace_kp.cli._page import put_text
from grace_kp.errors import EditRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.approvals import Approval

_CHANGE = re.compile(r"([^=:]+)(:?=)(.*)", re.DOTALL)
PLAIN = frozenset({"$int", "$decimal", "$date", "$datetime", "$time", "$timedelta", "$uuid"})
"""Tags around a text that stands for the value."""


def edit(
    id: IdArgument,  # noqa: A002
    changes: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="New values; NAME:=JSON for a value as JSON.")],
    store: StoreOption = None,
    by: ByOption = None,
    note: NoteOption = "",
    digest: DigestOption = None,
    unseen: UnseenOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Replace arguments and consent to the result. It counts as a vote; votes for the arguments before are dropped.

    Example: grace-kp approvals edit 7f3a euros=20 --by ana
    """
    asking = Asking(verb="edit", yes=yes, as_json=as_json, digest=digest, unseen=unseen, is_consent=True)
    asking.check()
    person = actor(by)
    with deciding(store) as place:
        approval = decided(
            place, id, person, asking,
            lambda place, shown, person: place.desk.edit(
                shown.id, changed_values(shown, changes), actor=person, note=note, digest=asking.digest_of(shown), is_encoded=True
            ),
            preview=lambda shown: edited(shown, changed_values(shown, changes)),
        )  # fmt: skip
    if approval is None:
        raise typer.Exit(1)
    if as_json:
        put_json([approval.to_dict()])
    else:
        put_text(console(), f"{report(approval)}; digest {approval.digest}")


def changed_values(approval: Approval, changes: Sequence[str]) -> dict[str, Any]:
    """Return the new values by parameter name, encoded.

    Raises:
        EditRefused: a change does not read `NAME=VALUE`, names no parameter or one twice, or its value does not read as the parameter needs.
    """
    found: dict[str, Any] = {}
    for change in changes:
        match = _CHANGE.fullmatch(change)
        if match is None:
            raise EditRefused(
                f"a change must read NAME=VALUE or NAME:=JSON, not {change!r:.80}", approval_id=approval.id
            )
        name, assignment, text = match[1].strip(), match[2], match[3]
        if name not in approval.encoded:
            known = ", ".join(approval.encoded) or "none"
            raise EditRefused(
                f"{approval.action} has no parameter {name!r:.60}; known are {known}", approval_id=approval.id
            )
        if name in found:
            raise EditRefused(f"{name} stands twice", approval_id=approval.id)
        found[name] = _json(approval, name, text) if assignment == ":=" else _value(approval, name, text)
    return found


def _value(approval: Approval, name: str, text: str) -> Any:
    """Return a value as the parameter needs it."""
    now = approval.encoded[name]
    kinds = _kinds(approval.schema, name)
    if isinstance(now, dict) and len(now) == 1 and (tag := next(iter(now))) in PLAIN:
        return {tag: text}
    if "string" in kinds or (not kinds and isinstance(now, str)):
        if text == "null" and "null" in kinds:
            raise EditRefused(
                f"{name}: null may be the text or no value; write {name}:=null or {name}:='\"null\"'",
                approval_id=approval.id,
            )
        return text
    return _json(approval, name, text)


def _json(approval: Approval, name: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise EditRefused(
            f'{name} must be JSON, such as 20, true or ["a"]; a text needs quotes: {name}:=\'"text"\'; not {text!r:.60}',
            approval_id=approval.id,
        ) from None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _kinds(schema: Mapping[str, Any], name: str) -> set[str]:
    """Return the JSON types that the schema allows for a parameter; none where it states none."""
    properties = schema.get("properties")
    declared = properties.get(name) if isinstance(properties, dict) else None
    if not isinstance(declared, dict):
        return set()
    branches = declared.get("anyOf")
    options = [declared, *(branches if isinstance(branches, list) else ())]
    found = [option.get("type") for option in options if isinstance(option, dict)]
    return {
        kind for kinds in found for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)
    }


def edited(approval: Approval, changes: Mapping[str, Any]) -> Approval:
    """Return the approval as it would be with these values, for the confirmation."""
    from grace_kp.approvals import decode

    try:
        values = decode(changes)
    except ValueError as error:
        raise EditRefused(str(error), approval_id=approval.id) from None
    asked = approval.asked if approval.asked is not None else approval.arguments
    return replace(approval, arguments={**approval.arguments, **values}, asked=asked)
