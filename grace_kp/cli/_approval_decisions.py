"""`grace-kp approvals approve | reject | edit | respond | skip | retry | withdraw | reconcile`: verbs on requests for approval.

At a terminal each request is shown and confirmed; elsewhere `--yes` is needed. Consent carries the digest that was shown, so that it fails if
the request has changed. With `--yes` nothing is shown: consent to another person's edit then needs `--digest`, or an earlier `show`. A plain
yes does not approve arguments that cannot be shown in full.

`edit` shows the difference, replaces arguments and consents to the result. `NAME=VALUE` takes the type from the schema of the action, or else
from the present value: a string parameter takes the characters, dates and decimals take their written form, others take JSON. `NAME:=JSON`
takes JSON for any parameter.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, replace
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._approval_page import TO_BE_USED, call_text, id_text, opaque, put_question
from grace_kp.cli._lookup import (
    ByOption,
    CommandInbox,
    IdArgument,
    StoreOption,
    YesOption,
    actor,
    change_inbox,
    parameters_of,
)
from grace_kp.cli._output import ask, clean, console, put_json, say_error
from grace_kp.cli._page import put_text
from grace_kp.errors import ApprovalError, ChangedSinceShown, EditRefused
from grace_kp.pages import APPROVAL_STATES
from grace_kp.trace import refuse_constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grace_kp.approvals import Actor, Approval

_IDS = "Ids, or their first characters, at least 3."
_DIGEST = "Fail unless the arguments still have this digest, as printed by `show`."
_REASON = "Why; the agent and the next reviewer see it."
_UNSEEN = "With --yes: approve although an argument cannot be shown in full."
_CHANGES = "New values; NAME:=JSON for a value as JSON."


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbCommand:
    """A verb with the options of its command."""

    verb: str
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help=_IDS)] = None
    id: IdArgument = ""
    text: Annotated[str, typer.Argument(metavar="WORDS", help="Instructions for the agent.")] = ""
    changes: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE...", help=_CHANGES)] = None
    happened: Annotated[bool, typer.Option("--happened/--not-happened", help="Whether the action had its effect.")] = (
        False
    )
    store: StoreOption = None
    by: ByOption = None
    note: Annotated[str, typer.Option("--note", help="A note, kept with the decision.")] = ""
    reason: Annotated[str, typer.Option("--reason", help=_REASON)] = ""
    digest: Annotated[str | None, typer.Option("--digest", help=_DIGEST)] = None
    same: Annotated[bool, typer.Option("--same", help="Also every pending request with the same digest.")] = False
    unseen: Annotated[bool, typer.Option("--unseen", help=_UNSEEN)] = False
    yes: YesOption = False
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON list with the outcome per id; needs --yes.")
    ] = False
    also: tuple[str, ...] = ()
    """Ids of further requests that the confirmation is for."""

    @property
    def is_consent(self) -> bool:
        """Whether the verb lets the action run, so that the question shows it in full."""
        return self.verb in {"approve", "edit"}

    @property
    def title(self) -> str:
        return self.verb if self.verb != "reconcile" else f"reconcile as {'' if self.happened else 'not '}happened"

    def run(self) -> None:
        """Decide the approvals one by one and report the outcomes. Exit with 1 if any failed."""
        if not self.yes and (self.as_json or not sys.stdin.isatty()):
            why = "--json prints no question" if self.as_json else "standard input is not a terminal"
            raise ValueError(f"{self.title} asks for a confirmation, and {why}; use --yes to decide without asking")
        person, outcomes, failed = actor(self.by), [], False
        with change_inbox(self.store) as inbox:
            for name, outcome in self._outcomes(inbox, person):
                if isinstance(outcome, ApprovalError):
                    say_error(outcome)
                    outcomes.append({"id": name, "error": str(outcome), "kind": type(outcome).__name__})
                elif outcome is not None and self.as_json:
                    outcomes.append(outcome.to_dict())
                elif outcome is not None:
                    put_text(console(), report(outcome) + (f"; digest {outcome.digest}" if self.changes else ""))
                failed = failed or outcome is None or isinstance(outcome, ApprovalError)
            if self.as_json:
                put_json(outcomes)
        if failed:
            raise typer.Exit(1)

    def _outcomes(self, inbox: CommandInbox, person: Actor) -> Iterator[tuple[str, Approval | ApprovalError | None]]:
        """Decide each approval; yield its name with the outcome, None if the person declines.

        With `same`, one confirmation covers all requests with the same digest.
        """
        waiting = [(wanted, self) for wanted in dict.fromkeys(self.ids or [self.id])]
        done: set[str] = set()
        while waiting:
            wanted, asking = waiting.pop(0)
            if wanted in done:
                continue
            try:
                alike = _alike(inbox, wanted) if asking.same else ()
                outcome = replace(asking, also=alike)._decide(inbox, wanted, person)
            except ApprovalError as error:
                yield wanted, error
                continue
            yield wanted, outcome
            done.add(wanted)
            if outcome is not None:
                shown: dict[str, Any] = {} if self.yes else {"yes": True, "unseen": True, "digest": outcome.digest}
                waiting[:0] = [(other, replace(asking, same=False, **shown)) for other in alike]

    def _decide(self, inbox: CommandInbox, name: str, person: Actor) -> Approval | None:
        """Show a request, confirm and apply the verb; return None if the person declines."""
        shown = inbox.verbs.get(inbox.find(name), by=None if self.yes else person)
        if self.digest is not None and shown.digest != self.digest:
            raise ChangedSinceShown(
                f"{shown.id} has the digest {shown.digest}, not {self.digest:.80}; show it again with `grace-kp approvals show`",
                approval_id=shown.id,
            )
        values = changed_values(shown, self.changes or ())
        if not self._is_confirmed(with_values(shown, values) if values else shown):
            say_error(f"{shown.id} is unchanged: {APPROVAL_STATES[shown.state]}")
            return None
        verbs, seen = inbox.verbs, self.digest if self.is_consent and self.yes else shown.digest
        if self.verb == "edit":
            return verbs.edit(shown.id, values, by=person, note=self.note, digest=seen, is_encoded=True)
        if self.verb == "reconcile":
            return verbs.reconcile(shown.id, by=person, happened=self.happened, note=self.note, revision=shown.revision)
        words, digests = self.text or self.reason or self.note, {} if seen is None else {shown.id: seen}
        outcome = verbs.decide_all([shown.id], self.verb, by=person, note=words, digests=digests)[shown.id]
        if isinstance(outcome, ApprovalError):
            raise outcome
        return outcome

    def _is_confirmed(self, shown: Approval) -> bool:
        from grace_kp.approvals import process_text
        from grace_kp.gating.reviewers import UNSEEN

        # Consent to a request that is no longer pending has no effect, so it needs no confirmation.
        is_settled = shown.state != "pending" and self.is_consent
        unshown = opaque(shown) if self.is_consent and not is_settled else []
        if self.yes or is_settled:
            if unshown and not self.unseen:
                raise ApprovalError(
                    f"{shown.id}: these arguments cannot be shown in full: {', '.join(unshown)}; to approve it unseen, add --unseen",
                    approval_id=shown.id,
                )
            return True
        out = console(stderr=True)
        if self.also:
            names = ", ".join(map(clean, self.also))
            put_text(out, f"The answer also decides {len(self.also):,} more with the same digest: {names}")
        if self.is_consent:
            put_question(out, shown, full=True)
            put_text(out, f"id {shown.id}, revision {shown.revision}, {process_text(shown)}")
            put_text(out, f"digest {shown.digest}")
        else:
            put_text(out, f"{id_text(shown.id)}  {call_text(shown)}  ({APPROVAL_STATES[shown.state]})")
        if unshown:
            names = ", ".join(map(clean, unshown))
            put_text(out, f"These arguments cannot be shown in full: {names}. To run it unseen, type: {UNSEEN}")
            return ask("> ").strip().lower() == UNSEEN
        return ask(f"{self.title.capitalize()} {id_text(shown.id)}? [y/N] ").strip().lower() in {"y", "yes"}


REQUIRED = frozenset({"ids", "id", "text", "changes", "happened"})
VERBS = (
    ("approve", "ids store by note digest same unseen yes as_json",
     "Consent to the action of a request. With a quorum, this is one vote.",
     'approve 7f3a --by ana --note "checked with the shop"'),
    ("reject", "ids store by reason same yes as_json",
     "Refuse the action. It does not run, and standing approvals that cover it end.", 'reject 7f3a --reason "no receipt"'),
    ("edit", "id changes store by note digest unseen yes as_json",
     "Replace arguments and consent to the result. This counts as a vote; votes for the earlier arguments are dropped.",
     "edit 7f3a euros=20 --by ana"),
    ("respond", "id text store by yes as_json",
     "Answer with instructions for the agent; the action does not run.", 'respond 7f3a "ask for the receipt first"'),
    ("skip", "ids store by note same yes as_json", "Let the agent go on without the action.", ""),
    ("retry", "ids store by note same yes as_json", "Have the gate assess the call again.", ""),
    ("withdraw", "ids store by reason yes as_json",
     "Cancel a request, or take back an approval before the action has started.", ""),
    ("reconcile", "ids happened store by note yes as_json",
     "State whether an action with an unknown outcome has happened. Check with the receiving service first.",
     'reconcile 7f3a --happened --note "the bank shows it"'),
)  # fmt: skip
"""Each verb with the fields of `VerbCommand` that its command takes, its help and an example."""


def decision_commands() -> Iterator[tuple[str, Callable[..., None]]]:
    for verb, takes, summary, example in VERBS:
        help_text = f"{summary}\n\nExample: grace-kp approvals {example}" if example else summary
        yield verb, _command(verb, help_text, parameters_of(VerbCommand, takes.split(), REQUIRED))


def _command(verb: str, help_text: str, parameters: list[Parameter]) -> Callable[..., None]:
    def command(**options: Any) -> None:
        VerbCommand(verb=verb, **options).run()

    command.__doc__ = help_text
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def _alike(inbox: CommandInbox, name: str) -> tuple[str, ...]:
    """Return the ids of the other pending requests with the same digest."""
    from grace_kp.approvals import RowQuery

    shown = inbox.verbs.get(inbox.find(name))
    if shown.unencoded:  # the digest does not cover these arguments
        return ()
    query = RowQuery(states=("pending",), digest=shown.digest, domain=shown.domain, limit=None)
    return tuple(row.id for row in inbox.tables.rows(query) if row.id != shown.id)


def report(approval: Approval) -> str:
    from grace_kp.approvals import consents, process_text

    text = f"{id_text(approval.id)}  {APPROVAL_STATES[approval.state]}: {call_text(approval)}"
    if approval.state == "pending" and approval.quorum > 1:
        return f"{text}; {consents(approval)} of {approval.quorum} votes so far"
    if approval.state in TO_BE_USED:
        return f"{text}; {process_text(approval)}"
    return text


_CHANGE = re.compile(r"([^=:]+)(:?=)(.*)", re.DOTALL)
PLAIN = frozenset({"$int", "$decimal", "$date", "$datetime", "$time", "$timedelta", "$uuid"})
"""Tags of values whose encoded form is a string."""


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
            raise EditRefused(f"{name} is given twice", approval_id=approval.id)
        found[name] = _json(approval, name, text) if assignment == ":=" else _value(approval, name, text)
    return found


def _value(approval: Approval, name: str, text: str) -> Any:
    """Return the encoded value of the type that the parameter needs."""
    now = approval.encoded[name]
    kinds = _kinds(approval.schema, name)
    if isinstance(now, dict) and len(now) == 1 and (tag := next(iter(now))) in PLAIN:
        return {tag: text}
    if "string" in kinds or (not kinds and isinstance(now, str)):
        if text == "null" and "null" in kinds:
            raise EditRefused(
                f"{name}: null may be the string or no value; write {name}:=null or {name}:='\"null\"'",
                approval_id=approval.id,
            )
        return text
    return _json(approval, name, text)


def _json(approval: Approval, name: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        raise EditRefused(
            f'{name} must be JSON, such as 20, true or ["a"]; a string needs quotes: {name}:=\'"text"\'; not {text!r:.60}',
            approval_id=approval.id,
        ) from None


def _kinds(schema: Mapping[str, Any], name: str) -> set[str]:
    """Return the JSON types that the schema declares for a parameter."""
    properties = schema.get("properties")
    declared = properties.get(name) if isinstance(properties, dict) else None
    if not isinstance(declared, dict):
        return set()
    branches = declared.get("anyOf")
    options = [declared, *(branches if isinstance(branches, list) else ())]
    found = [option.get("type") for option in options if isinstance(option, dict)]
    return {kind for each in found for kind in (each if isinstance(each, list) else [each]) if isinstance(kind, str)}


def with_values(approval: Approval, changes: Mapping[str, Any]) -> Approval:
    """Return the approval with these values, for the confirmation."""
    from grace_kp.approvals import decode

    try:
        values = decode(changes)
    except ValueError as error:
        raise EditRefused(str(error), approval_id=approval.id) from None
    asked = approval.asked if approval.asked is not None else approval.arguments
    return replace(approval, arguments={**approval.arguments, **values}, asked=asked)
