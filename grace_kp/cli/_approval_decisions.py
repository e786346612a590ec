"""`grace-kp approvals approve | reject | edit | respond | skip | retry | withdraw | reconcile`: verbs on requests for approval.

At a terminal each request is shown and confirmed; elsewhere `--yes` is needed. Consent carries the digest that was shown, so that a change in
between fails. With `--yes` nothing is shown: consent to an edit by somebody else then needs `--digest`, or an earlier `show`. What cannot be shown
in full is not approved by a plain yes.

`edit` replaces arguments and consents to the result, after the difference was shown. `NAME=VALUE` takes the kind of value from the schema of the action, or else from the value that is there: a text parameter takes the characters
as they are, others take JSON, and dates, decimals and the like take their text. `NAME:=JSON` takes JSON whatever the parameter.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._approval_page import TO_BE_USED, call_text, id_text, names_text, opaque, put_question
from grace_kp.cli._lookup import ByOption, CommandInbox, IdArgument, StoreOption, actor, change_inbox
from grace_kp.cli._output import console, put_json, say_error
from grace_kp.cli._page import put_text
from grace_kp.errors import ApprovalError, ChangedSinceShown, EditRefused
from grace_kp.pages import APPROVAL_STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grace_kp.approvals import Actor, Approval

    Act = Callable[[CommandInbox, Approval, Actor], Approval]

IdsArgument = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids, or at least their first 3 characters.")]
NoteOption = Annotated[str, typer.Option("--note", help="A note, kept with the decision.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; the agent and the next reviewer see it.")]
DigestOption = Annotated[
    str | None, typer.Option("--digest", help="Fail if the arguments no longer have this digest, as `show` printed it.")
]
SameOption = Annotated[bool, typer.Option("--same", help="Also every pending request with the same digest.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Decide without a confirmation.")]
UnseenOption = Annotated[
    bool, typer.Option("--unseen", help="With --yes: approve although an argument cannot be shown in full.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON list with the outcome per id; needs --yes.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """How a decision is confirmed and reported."""

    verb: str
    yes: bool
    as_json: bool = False
    digest: str | None = None
    unseen: bool = False
    is_consent: bool = False
    """The action may run afterwards, so that everything that would run is shown."""
    also: tuple[str, ...] = ()
    """Ids of further requests that the confirmation is for."""

    def digest_of(self, shown: Approval) -> str | None:
        """Return the digest that consent is to; None where the person need not have seen the arguments."""
        return self.digest if self.yes else shown.digest

    def check(self) -> None:
        """Refuse to begin where nobody can be asked."""
        if not self.yes and (self.as_json or not sys.stdin.isatty()):
            why = "--json prints no question" if self.as_json else "standard input is not a terminal"
            raise ValueError(f"{self.verb} asks for a confirmation, and {why}; use --yes to decide without asking")


def approve(
    ids: IdsArgument,
    store: StoreOption = None,
    by: ByOption = None,
    note: NoteOption = "",
    digest: DigestOption = None,
    same: SameOption = False,
    unseen: UnseenOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Consent to what a request would run. With a quorum, this is one vote.

    Example: grace-kp approvals approve 7f3a --by ana --note "checked with the shop"
    """
    asking = Confirmation(verb="approve", yes=yes, as_json=as_json, digest=digest, unseen=unseen, is_consent=True)
    _each(
        ids, store, by, asking,
        lambda inbox, shown, person: inbox.verbs.approve(
            shown.id, by=person, note=note, digest=asking.digest_of(shown)
        ),
        same=same,
    )  # fmt: skip


def reject(
    ids: IdsArgument,
    store: StoreOption = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    same: SameOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Refuse the action. It does not run, and standing approvals that cover it end.

    Example: grace-kp approvals reject 7f3a --reason "no receipt"
    """
    _each(
        ids, store, by, Confirmation(verb="reject", yes=yes, as_json=as_json),
        lambda inbox, shown, person: inbox.verbs.reject(shown.id, by=person, reason=reason, digest=shown.digest),
        same=same,
    )  # fmt: skip


def respond(
    id: Annotated[str, typer.Argument(metavar="ID", help="An id, or at least its first 3 characters.")],  # noqa: A002
    text: Annotated[str, typer.Argument(metavar="WORDS", help="Instructions for the agent.")],
    store: StoreOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Answer with instructions for the agent; the action does not run.

    Example: grace-kp approvals respond 7f3a "ask for the receipt first"
    """
    _each(
        [id], store, by, Confirmation(verb="respond", yes=yes, as_json=as_json),
        lambda inbox, shown, person: inbox.verbs.respond(shown.id, text, by=person, digest=shown.digest),
    )  # fmt: skip


def skip(
    ids: IdsArgument,
    store: StoreOption = None,
    by: ByOption = None,
    note: NoteOption = "",
    same: SameOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Let the agent go on without the action."""
    _each(
        ids, store, by, Confirmation(verb="skip", yes=yes, as_json=as_json),
        lambda inbox, shown, person: inbox.verbs.skip(shown.id, by=person, note=note, digest=shown.digest),
        same=same,
    )  # fmt: skip


def retry(
    ids: IdsArgument,
    store: StoreOption = None,
    by: ByOption = None,
    note: NoteOption = "",
    same: SameOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Have the gate assess the call again."""
    _each(
        ids, store, by, Confirmation(verb="retry", yes=yes, as_json=as_json),
        lambda inbox, shown, person: inbox.verbs.retry(shown.id, by=person, note=note, digest=shown.digest),
        same=same,
    )  # fmt: skip


def withdraw(
    ids: IdsArgument,
    store: StoreOption = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Cancel a request, or take an approval back while nobody has started the action."""
    _each(
        ids, store, by, Confirmation(verb="withdraw", yes=yes, as_json=as_json),
        lambda inbox, shown, person: inbox.verbs.withdraw(shown.id, by=person, reason=reason),
    )  # fmt: skip


def reconcile(
    ids: IdsArgument,
    happened: Annotated[bool, typer.Option("--happened/--not-happened", help="Whether the action had its effect.")],
    store: StoreOption = None,
    by: ByOption = None,
    note: NoteOption = "",
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """State whether an action whose outcome is unknown has happened. Look at the receiving service first.

    Example: grace-kp approvals reconcile 7f3a --happened --note "the bank shows it"
    """
    verb = "reconcile as happened" if happened else "reconcile as not happened"
    _each(
        ids, store, by, Confirmation(verb=verb, yes=yes, as_json=as_json),
        lambda inbox, shown, person: inbox.verbs.reconcile(
            shown.id, by=person, happened=happened, note=note, revision=shown.revision
        ),
    )  # fmt: skip


def _each(
    ids: Sequence[str], store: str | None, by: str | None, asking: Confirmation, act: Act, *, same: bool = False
) -> None:
    """Apply a verb to each approval, one after the other, and report what came of each. The exit code is 1 if any failed."""
    asking.check()
    person, outcomes, failed = actor(by), [], False
    with change_inbox(store) as inbox:
        for name, outcome in _outcomes(inbox, ids, person, asking, act, same=same):
            if isinstance(outcome, ApprovalError):
                say_error(outcome)
                outcomes.append({"id": name, "error": str(outcome), "kind": type(outcome).__name__})
            elif outcome is not None and asking.as_json:
                outcomes.append(outcome.to_dict())
            elif outcome is not None:
                put_text(console(), report(outcome))
            failed = failed or outcome is None or isinstance(outcome, ApprovalError)
        if asking.as_json:
            put_json(outcomes)
    if failed:
        raise typer.Exit(1)


def _outcomes(
    inbox: CommandInbox, ids: Sequence[str], person: Actor, asking: Confirmation, act: Act, *, same: bool
) -> Iterator[tuple[str, Approval | ApprovalError | None]]:
    """Decide each approval; yield its name with what came of it. With `same`, one confirmation is for all that ask the same."""
    done: set[str] = set()
    for wanted in dict.fromkeys(ids):
        if wanted in done:
            continue
        alike: tuple[str, ...] = ()
        try:
            alike = _alike(inbox, wanted) if same else ()
            first = decided(inbox, wanted, person, replace(asking, also=alike), act)
        except ApprovalError as error:
            yield wanted, error
            continue
        yield wanted, first
        if first is None:
            continue
        done.update(alike)
        seen = asking if asking.yes else replace(asking, yes=True, unseen=True, digest=first.digest)
        for other in alike:
            try:
                yield other, decided(inbox, other, person, seen, act)
            except ApprovalError as error:
                yield other, error


def _alike(inbox: CommandInbox, name: str) -> tuple[str, ...]:
    """Return the other pending requests that ask the same as this one."""
    from grace_kp.approvals import RowQuery

    shown = inbox.verbs.get(inbox.find(name))
    if shown.unencoded:  # nobody can compare these
        return ()
    query = RowQuery(states=("pending",), digest=shown.digest, domain=shown.domain, limit=None)
    return tuple(row.id for row in inbox.tables.rows(query) if row.id != shown.id)


def decided(
    inbox: CommandInbox,
    name: str,
    person: Actor,
    asking: Confirmation,
    act: Act,
    *,
    preview: Callable[[Approval], Approval] | None = None,
) -> Approval | None:
    """Show one request, confirm, and apply the verb; return None if the person declines."""
    shown = inbox.verbs.get(inbox.find(name), by=None if asking.yes else person)
    if asking.digest is not None and shown.digest != asking.digest:
        raise ChangedSinceShown(
            f"{shown.id} has the digest {shown.digest}, not {asking.digest:.80}; look at it again with `grace-kp approvals show`",
            approval_id=shown.id,
        )
    if not _is_confirmed(shown if preview is None else preview(shown), asking):
        say_error(f"{shown.id} stays as it is: {APPROVAL_STATES[shown.state]}")
        return None
    return act(inbox, shown, person)


def _is_confirmed(shown: Approval, asking: Confirmation) -> bool:
    from grace_kp.approvals import process_text
    from grace_kp.gating.reviewers import UNSEEN

    # Where the verb will be refused anyway, or nothing can change, there is nothing to confirm.
    is_settled = shown.state != "pending" and asking.is_consent
    unshown = opaque(shown) if asking.is_consent and not is_settled else []
    if asking.yes or is_settled:
        if unshown and not asking.unseen:
            raise ApprovalError(
                f"{shown.id}: these arguments cannot be shown in full: {', '.join(unshown)}; to approve it unseen, add --unseen",
                approval_id=shown.id,
            )
        return True
    out = console(stderr=True)
    if asking.also:
        put_text(out, f"The answer is for {len(asking.also):,} more with the same digest: {names_text(asking.also)}")
    if asking.is_consent:
        put_question(out, shown, full=True)
        put_text(out, f"id {shown.id}, revision {shown.revision}, {process_text(shown)}")
        put_text(out, f"digest {shown.digest}")
    else:
        put_text(out, f"{id_text(shown.id)}  {call_text(shown)}  ({APPROVAL_STATES[shown.state]})")
    if unshown:
        put_text(
            out, f"These arguments cannot be shown in full: {names_text(unshown)}. To run it unseen, type: {UNSEEN}"
        )
        return _typed("> ") == UNSEEN
    return _typed(f"{asking.verb.capitalize()} {id_text(shown.id)}? [y/N] ") in {"y", "yes"}


def _typed(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower()


def report(approval: Approval) -> str:
    """Return what came of a verb, and what follows."""
    from grace_kp.approvals import consents, process_text

    text = f"{id_text(approval.id)}  {APPROVAL_STATES[approval.state]}: {call_text(approval)}"
    if approval.state == "pending" and approval.quorum > 1:
        return f"{text}; {consents(approval)} of {approval.quorum} votes so far"
    if approval.state in TO_BE_USED:
        return f"{text}; {process_text(approval)}"
    return text


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
    asking = Confirmation(verb="edit", yes=yes, as_json=as_json, digest=digest, unseen=unseen, is_consent=True)
    asking.check()
    person = actor(by)
    with change_inbox(store) as inbox:
        approval = decided(
            inbox, id, person, asking,
            lambda inbox, shown, person: inbox.verbs.edit(
                shown.id, changed_values(shown, changes), by=person, note=note, digest=asking.digest_of(shown), is_encoded=True
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
    """Return the new values by parameter name, encoded."""
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
