"""One request: its page shows exactly what would run, and the verbs as forms.

Each form carries the displayed digest and leads back to the request, whose state shows the result.
"""

from __future__ import annotations

import glob
import json
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse

from grace_kp.approvals import decode, entry_of, event_text
from grace_kp.errors import ApprovalError, ChangedSinceShown, UnknownApproval
from grace_kp.gating import changed_arguments, unshown_arguments
from grace_kp.gating.reviewers import UNSEEN
from grace_kp.pages import APPROVAL_STATES
from grace_kp.runtime import find_action
from grace_kp.trace.html import labels_of, run_timeline
from grace_kp.web._errors import status_of
from grace_kp.web._site import Right, form_of, perform, person_of, root_of, site_of, trust_html, whole_of
from grace_kp.web.inbox._field import changed_value, fields_of, parsed_json, with_submitted
from grace_kp.web.inbox._words import MAX_CHARACTERS, opaque_parts, request_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Approval, Link
    from grace_kp.web._site import Person, Site
    from grace_kp.web.inbox._field import ArgumentField


STEPS = 60
"""Steps of the run on the page of a request; the page of the run has them all."""
SIMILAR = 5
"""Earlier decisions on the same action that are shown."""
ENTRIES = 50
"""Newest entries of the chain that are shown."""


def request_page(
    request: Request,
    *,
    problem: str = "",
    status: int = 200,
    fields: list[ArgumentField] | None = None,
    notes: Mapping[str, str] | None = None,
) -> Response:
    """Show one request. The chain records that a person has seen this revision."""
    site, person = site_of(request), person_of(request)
    seq = site.tables.head()[0]
    approval = approval_for(request)
    is_pending = approval.state == "pending"
    entries = [show_entry(link) for link in site.tables.links_before(limit=ENTRIES + 1, approval=approval.id)]
    similar = site.requests.history(action=glob.escape(approval.action), limit=SIMILAR + 1)
    goes_on = not is_pending and person.may(Right.DECIDE)
    following = site.requests.pending(limit=2, decider=person.actor) if goes_on else []
    if not is_pending or approval.unencoded or approval.deleted:
        shown_fields = []
    else:
        shown_fields = fields_of(approval) if fields is None else fields
    return site.page(
        request,
        "inbox/request.html",
        status=status,
        approval=approval,
        seq=seq,
        problem=problem,
        fields=shown_fields,
        is_editing=fields is not None,
        notes=notes or {},
        changed=changed_arguments(approval),
        unshown=unshown_arguments(approval, MAX_CHARACTERS),
        unseen=UNSEEN,
        why_not=why_not(site, person, approval),
        has_voted=any(
            vote.actor.name == person.actor.name and vote.digest == approval.digest and vote.counts
            for vote in approval.votes
        ),
        labels=None if is_pending else action_labels(site, approval),
        may_label=person.may(Right.LABEL),
        timeline=None if approval.run is None else trust_html(run_timeline(approval.run, limit=STEPS)),
        similar=[other for other in similar if other.id != approval.id][:SIMILAR],
        entries=entries[:ENTRIES][::-1],
        has_older=len(entries) > ENTRIES,
        following=next((other for other in following if other.id != approval.id), None),
    )


def action_labels(site: Site, approval: Approval) -> Markup | None:
    """Return the labels of the action that was asked about; None where its run is not stored."""
    trace = None if approval.run_id is None else site.grace.store.get(approval.run_id)
    try:
        return None if trace is None else trust_html(labels_of(trace.grace or {}, find_action(trace, approval.id)))
    except ValueError:  # the run states no such action, or several
        return None


NO_REQUEST = "No request has this id. It may belong to another store."


def approval_for(request: Request, *, is_viewed: bool = True) -> Approval:
    """Return the request of an address, and record that a person sees it; HEAD requests are not recorded."""
    try:
        viewer = person_of(request).actor if is_viewed and request.method != "HEAD" else None
        return site_of(request).requests.get(request.path_params["id"], by=viewer)
    except UnknownApproval:
        raise HTTPException(404, NO_REQUEST) from None


def why_not(site: Site, person: Person, approval: Approval) -> str:
    """Return the reason why a person cannot decide a request; empty if the person can."""
    if not person.may(Right.DECIDE):
        return f"your role, {person.role.value}, sees requests and does not decide them"
    return site.requests.reason_against(approval.id, person.actor)


def request_state(request: Request) -> Response:
    """Return the state of a request for an open page: its name, its digest and its last change in words."""
    approval = approval_for(request, is_viewed=False)
    newest = _newest_change(site_of(request), approval)
    actor = "" if newest is None else (newest["actor"] or {}).get("name", "")
    return JSONResponse(
        {
            "id": approval.id,
            "revision": approval.revision,
            "state": approval.state.value,
            "words": APPROVAL_STATES[approval.state],
            "awaited": approval.is_awaited,
            "digest": approval.digest,
            "event": "" if newest is None else event_text(newest).replace("_", " "),
            "by": actor,
            "at": approval.created_at if newest is None else newest["at"],
        }
    )


def show_entry(link: Link) -> dict[str, Any]:
    """Return an entry of the chain with its hash; of a damaged entry, only the known parts."""
    try:
        return {**entry_of(link), "hash": link.hash}
    except ValueError:
        unknown: dict[str, Any] = {"kind": "damaged", "actor": None, "revision": None, "facts": {}, "at": None}
        return {"seq": link.seq, "approval": link.approval, "hash": link.hash, **unknown}


def _newest_change(site: Site, approval: Approval) -> dict[str, Any] | None:
    """Return the entry that wrote this revision; views and refused attempts after it are not changes."""
    before: int | None = None
    while links := site.tables.links_before(before, limit=ENTRIES, approval=approval.id):
        for entry in map(show_entry, links):
            if entry["revision"] == approval.revision and entry["kind"] not in {"viewed", "refused"}:
                return entry
        before = links[-1].seq
    return None


VERBS = ("approve", "reject", "respond", "skip", "retry", "withdraw", "reconcile")
_CHANGED = (
    "The arguments have changed since they were shown to you. Nothing was decided. The current arguments are below."
)


def decide(request: Request) -> Response:
    approval_id, verb = request.path_params["id"], request.path_params["verb"]
    form, actor, site = form_of(request), person_of(request).actor, site_of(request)
    note = lines(value_of(form, "note"))
    if verb not in VERBS:
        raise HTTPException(404, f"The verb {verb!r:.40} is unknown. Allowed are {', '.join(VERBS)}.")
    digest = _digest_in(form)
    try:
        if verb == "reconcile":
            happened, revision = value_of(form, "happened"), whole_of(value_of(form, "revision"))
            if happened not in {"yes", "no"}:
                raise ApprovalError("say whether the action has happened", approval_id=approval_id)
            if revision is None:
                raise HTTPException(400, "The form lacks the revision that was shown. Open the request again.")
            site.requests.reconcile(approval_id, by=actor, happened=happened == "yes", note=note, revision=revision)
            return _back(request)
        if verb == "approve":
            approval = site.requests.get(approval_id)
            if approval.state == "pending" and approval.digest == digest:
                problem = _reason_unseen(unshown_arguments(approval, MAX_CHARACTERS), form)
                if problem:
                    return request_page(request, problem=problem, status=422, notes={verb: note})
        perform(site.requests, verb, approval_id, actor=actor, words=note, digest=digest)
    except ApprovalError as error:
        return show_refusal(request, error, {verb: note})
    return _back(request)


def _digest_in(form: Mapping[str, list[str]]) -> str:
    digest = value_of(form, "digest")
    if not digest:
        raise HTTPException(400, "The form lacks the digest of the arguments that were shown. Open the request again.")
    return digest


def _reason_unseen(unshown: Sequence[str], form: Mapping[str, list[str]]) -> str:
    """Return the reason why a consent does not count: the page cannot show all arguments, and the form lacks the confirmation."""
    if not unshown or value_of(form, "unseen").strip().lower() == UNSEEN:
        return ""
    names = ", ".join(unshown)
    return f"These arguments cannot be shown in full: {names}. To approve the request unseen, type {UNSEEN!r} in its field."


def edit(request: Request) -> Response:
    """Show an edit as a difference; with `step=decide`, carry out the displayed edit."""
    form = form_of(request)
    digest, note = _digest_in(form), lines(value_of(form, "note"))
    if value_of(form, "step") == "decide":
        return _make_edit(request, form, digest, note)
    approval = approval_for(request)
    if approval.state != "pending":
        problem = "This request is no longer pending and cannot be edited. Nothing was changed."
        return request_page(request, problem=problem, status=409)
    if approval.digest != digest:
        return request_page(request, problem=_CHANGED, status=409)
    if approval.unencoded or approval.deleted:
        return request_page(request, problem="This request cannot be edited.", status=422)
    changes, fields = read_edit(approval, form)
    if changes and not any(field.problem for field in fields):
        return _review(request, approval, changes, note)
    problem = "No value was changed. To run the action as it is, approve the request."
    if wrong := [field.name for field in fields if field.problem]:
        problem = (
            f"These values cannot be used: {', '.join(wrong)}. Each field states its problem. Nothing was changed."
        )
    return request_page(request, problem=problem, status=422, fields=fields, notes={"edit": note})


def _review(
    request: Request, approval: Approval, changes: Mapping[str, Any], note: str, *, problem: str = "", status: int = 200
) -> Response:
    return site_of(request).page(
        request,
        "inbox/review.html",
        status=status,
        approval=approval,
        after={name: decode_for_display(name, value) for name, value in changes.items()},
        changes=json.dumps(changes),
        note=note,
        problem=problem,
        unshown=_unshown_after(approval, changes),
        unseen=UNSEEN,
    )


def _unshown_after(approval: Approval, changes: Mapping[str, Any]) -> list[str]:
    kept = [name for name in unshown_arguments(approval, MAX_CHARACTERS) if name not in changes]
    return [*kept, *(name for name, value in changes.items() if opaque_parts(decode_for_display(name, value)))]


def read_edit(approval: Approval, form: Mapping[str, list[str]]) -> tuple[dict[str, Any], list[ArgumentField]]:
    """Return the changed values, encoded, by parameter name, and the submitted fields with their problems."""
    changes: dict[str, Any] = {}
    fields = []
    for field in fields_of(approval):
        submitted = form[f"v{field.number}"][0] if form.get(f"v{field.number}") else None
        is_null = f"null{field.number}" in form
        problem = ""
        try:
            value = changed_value(approval, field, submitted, is_null=is_null)
            if value is not approval.encoded[field.name]:
                changes[field.name] = value
        except ValueError as error:
            problem = str(error).removeprefix(f"{field.name}: ")
        fields.append(with_submitted(field, submitted, is_null=is_null, problem=problem))
    return changes, fields


def decode_for_display(name: str, encoded: object) -> object:
    """Decode a value for display; a value that needs the declared type of its parameter stays encoded."""
    try:
        return decode({name: encoded})[name]
    except ValueError:
        return encoded


def _make_edit(request: Request, form: Mapping[str, list[str]], digest: str, note: str) -> Response:
    approval_id, requests = request.path_params["id"], site_of(request).requests
    try:
        changes = parsed_json(value_of(form, "changes"))
        approval = requests.get(approval_id)
        if approval.state == "pending" and approval.digest == digest and isinstance(changes, dict):
            problem = _reason_unseen(_unshown_after(approval, changes), form)
            if problem:
                return _review(request, approval, changes, note, problem=problem, status=422)
        actor = person_of(request).actor
        perform(requests, "edit", approval_id, actor=actor, words=note, digest=digest, changes=changes)
    except ApprovalError as error:
        return show_refusal(request, error, {"edit": note})
    except ValueError:
        raise HTTPException(400, "The form of the edit is damaged. Open the request again.") from None
    return _back(request)


def show_refusal(request: Request, error: ApprovalError, notes: Mapping[str, str]) -> Response:
    if isinstance(error, UnknownApproval):
        raise HTTPException(404, NO_REQUEST)
    request.scope["grace_kp.error"] = type(error).__name__  # for the record of refused decisions
    verb = request.path_params.get("verb")
    problem = _CHANGED if isinstance(error, ChangedSinceShown) and verb != "reconcile" else sentence_of(error)
    return request_page(request, problem=problem, status=status_of(error), notes=notes)


def sentence_of(error: ApprovalError) -> str:
    text = str(error)
    first = text[:1] if text.startswith("ap-") else text[:1].upper()
    return f"{first}{text[1:].removesuffix('.')}."


def value_of(form: Mapping[str, list[str]], name: str) -> str:
    return (form.get(name) or [""])[0]


def lines(text: str) -> str:
    """Return a stripped value with the line breaks that the browser has converted restored."""
    return text.replace("\r\n", "\n").strip()


def _back(request: Request) -> Response:
    return RedirectResponse(f"{root_of(request)}{request_path(request.path_params['id'])}", 303)
