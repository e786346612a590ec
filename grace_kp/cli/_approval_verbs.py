"""Verbs on requests for approval: approve, reject, respond, skip, retry, withdraw, reconcile.

At a terminal each request is shown and confirmed; elsewhere `--yes` is needed. Consent carries the digest that was shown, so that a change in
between fails. With `--yes` nothing is shown: consent to an edit by somebody else then needs `--digest`, or an earlier `show`. What cannot be shown
in full is not approved by a plain yes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli import _approval_words as words
from grace_kp.cli._approval_desk import ByOption, Office, actor, deciding
from grace_kp.cli._approval_page import opaque, put_question
from grace_kp.cli._lookup import StoreOption  # noqa: TC001 — Typer reads it
from grace_kp.cli._output import console, put_json, say_error
from grace_kp.cli._page import put_text
from grace_kp.errors import ApprovalError, ChangedSinceShown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grace_kp.approvals import Actor, Approval

    Act = Callable[[Office, Approval, Actor], Approval]

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
class Asking:
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
        """Refuse to begin where nobody can be asked.

        Raises:
            ValueError: a confirmation is needed, and there is no terminal to ask at.
        """
        if not self.yes and (self.as_json or not sys.stdin.isatty()):
            why = "--json prints no question" if self.as_json else "standard input is no terminal"
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
    asking = Asking(verb="approve", yes=yes, as_json=as_json, digest=digest, unseen=unseen, is_consent=True)
    _each(
        ids, store, by, asking,
        lambda place, shown, person: place.desk.approve(
            shown.id, actor=person, note=note, digest=asking.digest_of(shown)
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
        ids, store, by, Asking(verb="reject", yes=yes, as_json=as_json),
        lambda place, shown, person: place.desk.reject(shown.id, actor=person, reason=reason, digest=shown.digest),
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
        [id], store, by, Asking(verb="respond", yes=yes, as_json=as_json),
        lambda place, shown, person: place.desk.respond(shown.id, text, actor=person, digest=shown.digest),
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
        ids, store, by, Asking(verb="skip", yes=yes, as_json=as_json),
        lambda place, shown, person: place.desk.skip(shown.id, actor=person, note=note, digest=shown.digest),
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
        ids, store, by, Asking(verb="retry", yes=yes, as_json=as_json),
        lambda place, shown, person: place.desk.retry(shown.id, actor=person, note=note, digest=shown.digest),
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
        ids, store, by, Asking(verb="withdraw", yes=yes, as_json=as_json),
        lambda place, shown, person: place.desk.withdraw(shown.id, actor=person, reason=reason),
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
        ids, store, by, Asking(verb=verb, yes=yes, as_json=as_json),
        lambda place, shown, person: place.desk.reconcile(
            shown.id, actor=person, happened=happened, note=note, revision=shown.revision
        ),
    )  # fmt: skip


def _each(
    ids: Sequence[str], store: str | None, by: str | None, asking: Asking, act: Act, *, same: bool = False
) -> None:
    """Apply a verb to each approval, one after the other, and report what came of each. The exit code is 1 if any failed."""
    asking.check()
    person, outcomes, failed = actor(by), [], False
    with deciding(store) as place:
        for name, outcome in _outcomes(place, ids, person, asking, act, same=same):
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
    place: Office, ids: Sequence[str], person: Actor, asking: Asking, act: Act, *, same: bool
) -> Iterator[tuple[str, Approval | ApprovalError | None]]:
    """Decide each approval; yield its name with what came of it. With `same`, one confirmation is for all that ask the same."""
    done: set[str] = set()
    for wanted in dict.fromkeys(ids):
        if wanted in done:
            continue
        alike: tuple[str, ...] = ()
        try:
            alike = _alike(place, wanted) if same else ()
            first = decided(place, wanted, person, replace(asking, also=alike), act)
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
                yield other, decided(place, other, person, seen, act)
            except ApprovalError as error:
                yield other, error


def _alike(place: Office, name: str) -> tuple[str, ...]:
    """Return the other pending requests that ask the same as this one."""
    from grace_kp.approvals import RowQuery

    shown = place.desk.get(place.find(name))
    if shown.unencoded:  # nobody can compare these
        return ()
    query = RowQuery(states=(words.PENDING,), digest=shown.digest, domain=shown.domain, limit=None)
    return tuple(row.id for row in place.tables.rows(query) if row.id != shown.id)


def decided(
    place: Office,
    name: str,
    person: Actor,
    asking: Asking,
    act: Act,
    *,
    preview: Callable[[Approval], Approval] | None = None,
) -> Approval | None:
    """Show one request, confirm, and apply the verb; return None if the person declines.

    Args:
        place: the desk.
        name: the id, or its beginning.
        person: who decides.
        asking: how it is confirmed.
        act: the verb.
        preview: returns the request as it would be after the verb; that is shown.

    Raises:
        ApprovalError: there is no such approval, it has changed, or the desk refuses the verb.
    """
    shown = place.desk.get(place.find(name), viewer=None if asking.yes else person)
    if asking.digest is not None and shown.digest != asking.digest:
        raise ChangedSinceShown(
            f"{shown.id} has the digest {shown.digest}, not {asking.digest:.80}; look at it again with `grace-kp approvals show`",
            approval_id=shown.id,
        )
    if not _is_confirmed(shown if preview is None else preview(shown), asking):
        say_error(f"{shown.id} stays as it is: {words.in_state(shown.state)}")
        return None
    return act(place, shown, person)


def _is_confirmed(shown: Approval, asking: Asking) -> bool:
    from grace_kp.gating.reviewers import UNSEEN

    # Where the desk will refuse the verb anyway, or nothing can change, there is nothing to confirm.
    is_settled = shown.state != words.PENDING and asking.is_consent
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
        put_text(out, f"The answer is for {len(asking.also):,} more with the same digest: {words.listed(asking.also)}")
    if asking.is_consent:
        put_question(out, shown, full=True)
        put_text(out, f"id {shown.id}, revision {shown.revision}, {words.process_sentence(shown)}")
        put_text(out, f"digest {shown.digest}")
    else:
        put_text(out, f"{words.short_id(shown.id)}  {words.sentence(shown)}  ({words.in_state(shown.state)})")
    if unshown:
        put_text(
            out, f"These arguments cannot be shown in full: {words.listed(unshown)}. To run it unseen, type: {UNSEEN}"
        )
        return _typed("> ") == UNSEEN
    return _typed(f"{asking.verb.capitalize()} {words.short_id(shown.id)}? [y/N] ") in {"y", "yes"}


def _typed(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower()


def report(approval: Approval) -> str:
    """Return what came of a verb, and what follows."""
    text = f"{words.short_id(approval.id)}  {words.in_state(approval.state)}: {words.sentence(approval)}"
    if approval.state == words.PENDING and approval.quorum > 1:
        return f"{text}; {words.consents(approval)} of {approval.quorum} votes so far"
    if approval.state in words.TO_BE_USED:
        return f"{text}; {words.process_sentence(approval)}"
    return text
