"""One request as a page: what exactly would run, why a person is asked, who has decided what, and the forms of the verbs."""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from grace_kp.approvals import entry_of
from grace_kp.errors import UnknownApproval
from grace_kp.gating import changed_arguments, unshown_arguments
from grace_kp.gating.reviewers import UNSEEN
from grace_kp.pages import APPROVAL_STATES
from grace_kp.trace.html import run_timeline
from grace_kp.web._person import Right
from grace_kp.web._site import person_of, site_of
from grace_kp.web.inbox._field import fields_of
from grace_kp.web.inbox._value import MAX_CHARACTERS
from grace_kp.web.inbox._words import WORDS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Approval, Link
    from grace_kp.web._person import Person
    from grace_kp.web._site import Site
    from grace_kp.web.inbox._field import Field

STEPS = 60
"""Steps of the run on the page of a request; the page of the run has them all."""
SIMILAR = 5
"""Earlier decisions on the same action that are shown."""
ENTRIES = 50
"""Newest entries of the chain that are shown."""


def request_page(request: Request) -> Response:
    """Show one request. That a person has seen this revision is recorded in the chain."""
    return shown_request(request, request.path_params["id"])


def shown_request(
    request: Request,
    approval_id: str,
    *,
    problem: str = "",
    status: int = 200,
    fields: list[Field] | None = None,
    notes: dict[str, str] | None = None,
) -> Response:
    """Render the page of a request.

    Args:
        request: the request that is answered.
        approval_id: the approval.
        problem: what went wrong with a verb, in a sentence.
        status: HTTP status.
        fields: the fields of the edit as a person has filled them in; as the arguments are when None.
        notes: words that a person has written, by verb, so that an error does not lose them.
    """
    site, person = site_of(request), person_of(request)
    seq = site.tables.head()[0]
    approval = approval_for(request, approval_id)
    entries = [entry_shown(link) for link in site.tables.links_before(limit=ENTRIES + 1, approval=approval.id)]
    return site.page(
        request,
        "inbox/request.html",
        status=status,
        words=WORDS,
        approval=approval,
        seq=seq,
        problem=problem,
        fields=(fields_of(approval) if fields is None else fields) if _can_edit(approval) else [],
        is_editing=fields is not None,
        notes=notes or {},
        changed=changed_arguments(approval),
        unshown=unshown_arguments(approval, MAX_CHARACTERS),
        unseen=UNSEEN,
        why_not=why_not(site, person, approval),
        has_voted=_has_voted(approval, person),
        timeline=None if approval.run is None else Markup(run_timeline(approval.run, limit=STEPS)),  # noqa: S704 — escaped
        similar=_similar(site, approval),
        entries=entries[:ENTRIES][::-1],
        has_older=len(entries) > ENTRIES,
        following=None if approval.state == "pending" else _next(site, person, approval),
    )


def approval_for(request: Request, approval_id: str) -> Approval:
    """Return a request, after recording that a person sees it; who asks for the headers alone sees nothing.

    Raises:
        HTTPException: 404, there is none.
    """
    try:
        viewer = None if request.method == "HEAD" else person_of(request).actor
        return site_of(request).desk.get(approval_id, viewer=viewer)
    except UnknownApproval:
        raise HTTPException(404, "There is no request with this id. It may belong to another store.") from None


def why_not(site: Site, person: Person, approval: Approval) -> str:
    """Return why a person cannot decide a request; empty where nothing is against it."""
    if not person.may(Right.DECIDE):
        return f"your role, {person.role.value}, sees requests and does not decide them"
    return site.desk.reason_against(approval.id, person.actor)


def request_state(request: Request) -> Response:
    """Return where a request stands, for a page that is open: its state and digest, and who changed it last, in a sentence."""
    site = site_of(request)
    try:
        approval = site.desk.get(request.path_params["id"])
    except UnknownApproval:
        raise HTTPException(404, "There is no request with this id.") from None
    newest = _newest_change(site, approval)
    actor = "" if newest is None else (newest["actor"] or {}).get("name", "")
    return JSONResponse(
        {
            "id": approval.id,
            "revision": approval.revision,
            "state": approval.state.value,
            "words": APPROVAL_STATES[approval.state],
            "process": WORDS["process"](approval),
            "digest": approval.digest,
            "event": "" if newest is None else WORDS["event"](newest).replace("_", " "),
            "by": actor,
            "at": approval.created_at if newest is None else newest["at"],
        }
    )


def _can_edit(approval: Approval) -> bool:
    return approval.state == "pending" and not approval.unencoded and not approval.deleted


def _has_voted(approval: Approval, person: Person) -> bool:
    return any(
        vote.actor.name == person.actor.name and vote.digest == approval.digest and vote.counts
        for vote in approval.votes
    )


def entry_shown(link: Link) -> dict[str, Any]:
    """Return an entry of the chain with its hash; of a damaged one, what is known."""
    try:
        return {**entry_of(link), "hash": link.hash}
    except ValueError:
        unknown: dict[str, Any] = {"kind": "damaged", "actor": None, "revision": None, "facts": {}, "at": None}
        return {"seq": link.seq, "approval": link.approval, "hash": link.hash, **unknown}


def _newest_change(site: Site, approval: Approval) -> dict[str, Any] | None:
    """Return the entry that wrote this revision; views and refused attempts after it are no changes."""
    before: int | None = None
    while links := site.tables.links_before(before, limit=ENTRIES, approval=approval.id):
        for entry in map(entry_shown, links):
            if entry["revision"] == approval.revision and entry["kind"] not in {"viewed", "refused"}:
                return entry
        before = links[-1].seq
    return None


def _similar(site: Site, approval: Approval) -> list[Approval]:
    found = site.desk.history(action=glob.escape(approval.action), limit=SIMILAR + 1)
    return [other for other in found if other.id != approval.id][:SIMILAR]


def _next(site: Site, person: Person, approval: Approval) -> Approval | None:
    """Return the request that this person should decide next."""
    if not person.may(Right.DECIDE):
        return None
    waiting = site.desk.pending(limit=2, decider=person.actor)
    return next((other for other in waiting if other.id != approval.id), None)
