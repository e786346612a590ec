"""One request: its page with exactly what would run, and the verbs as forms.

Each form carries the digest that was shown, and each leads back to the request, whose state shows the result.
"""

from __future__ import annotations

import glob
import json
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse

from grace_kp.approvals import decode, entry_of, event_text
from grace_kp.errors import ApprovalError, ChangedSinceShown, UnknownApproval
from grace_kp.gating import changed_arguments, unshown_arguments
from grace_kp.gating.reviewers import UNSEEN
from grace_kp.pages import APPROVAL_STATES
from grace_kp.trace.html import run_timeline
from grace_kp.web._errors import status_of
from grace_kp.web._site import Right, form_of, perform, person_of, root_of, site_of, whole_of
from grace_kp.web.inbox._field import changed_value, fields_of, parsed_json, with_submitted
from grace_kp.web.inbox._words import MAX_CHARACTERS, opaque_parts, process_word, request_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def request_page(request: Request) -> Response:
    """Show one request. That a person has seen this revision is recorded in the chain."""
    return shown_request(request, request.path_params["id"])


def shown_request(
    request: Request,
    approval_id: str,
    *,
    problem: str = "",
    status: int = 200,
    fields: list[ArgumentField] | None = None,
    notes: dict[str, str] | None = None,
) -> Response:
    """Render the page of a request."""
    site, person = site_of(request), person_of(request)
    seq = site.tables.head()[0]
    approval = approval_for(request, approval_id)
    entries = [show_entry(link) for link in site.tables.links_before(limit=ENTRIES + 1, approval=approval.id)]
    return site.page(
        request,
        "inbox/request.html",
        status=status,
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
    """Return a request, after recording that a person sees it; who asks for the headers alone sees nothing."""
    try:
        viewer = None if request.method == "HEAD" else person_of(request).actor
        return site_of(request).requests.get(approval_id, by=viewer)
    except UnknownApproval:
        raise HTTPException(404, "There is no request with this id. It may belong to another store.") from None


def why_not(site: Site, person: Person, approval: Approval) -> str:
    """Return why a person cannot decide a request; empty where nothing is against it."""
    if not person.may(Right.DECIDE):
        return f"your role, {person.role.value}, sees requests and does not decide them"
    return site.requests.reason_against(approval.id, person.actor)


def request_state(request: Request) -> Response:
    """Return where a request stands, for a page that is open: its state and digest, and who changed it last, in a sentence."""
    site = site_of(request)
    try:
        approval = site.requests.get(request.path_params["id"])
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
            "process": process_word(approval),
            "digest": approval.digest,
            "event": "" if newest is None else event_text(newest).replace("_", " "),
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


def show_entry(link: Link) -> dict[str, Any]:
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
        for entry in map(show_entry, links):
            if entry["revision"] == approval.revision and entry["kind"] not in {"viewed", "refused"}:
                return entry
        before = links[-1].seq
    return None


def _similar(site: Site, approval: Approval) -> list[Approval]:
    found = site.requests.history(action=glob.escape(approval.action), limit=SIMILAR + 1)
    return [other for other in found if other.id != approval.id][:SIMILAR]


def _next(site: Site, person: Person, approval: Approval) -> Approval | None:
    """Return the request that this person should decide next."""
    if not person.may(Right.DECIDE):
        return None
    waiting = site.requests.pending(limit=2, decider=person.actor)
    return next((other for other in waiting if other.id != approval.id), None)


CONCLUDING = ("reject", "respond", "skip", "retry")
_CHANGED = "Somebody has changed the arguments since they were shown to you. Nothing was decided. They are shown below as they are now."


def decide(request: Request) -> Response:
    """Apply the verb of the path to a request."""
    approval_id, verb = request.path_params["id"], request.path_params["verb"]
    form, actor, desk = form_of(request), person_of(request).actor, site_of(request).requests
    digest, note = value_of(form, "digest") or None, lines(value_of(form, "note"))
    if verb not in {"approve", "withdraw", "reconcile", *CONCLUDING}:
        raise HTTPException(404, f"There is no verb {verb!r:.40}.")
    if digest is None:
        raise HTTPException(400, "The form lacks the digest of the arguments that were shown. Open the request again.")
    try:
        if verb == "approve":
            return _approve(request, approval_id, digest, note)
        if verb == "reconcile":
            happened, revision = _read_happened(approval_id, form), _revision(form)
            desk.reconcile(approval_id, by=actor, happened=happened, note=note, revision=revision)
        else:
            perform(desk, verb, approval_id, actor=actor, words=note, digest=digest)
    except ApprovalError as error:
        return show_refusal(request, approval_id, error, {verb: note})
    return _back(request, approval_id)


def _approve(request: Request, approval_id: str, digest: str, note: str) -> Response:
    site, person = site_of(request), person_of(request)
    approval = site.requests.get(approval_id)
    if approval.state == "pending" and approval.digest == digest:
        problem = _reason_unseen(unshown_arguments(approval, MAX_CHARACTERS), form_of(request))
        if problem:
            return shown_request(request, approval_id, problem=problem, status=422, notes={"approve": note})
    site.requests.approve(approval_id, by=person.actor, note=note, digest=digest)
    return _back(request, approval_id)


def _reason_unseen(unshown: Sequence[str], form: Mapping[str, list[str]]) -> str:
    """Return why a consent does not count yet: arguments cannot be shown in full, and the form lacks the word that confirms it."""
    if not unshown or value_of(form, "unseen").strip().lower() == UNSEEN:
        return ""
    names = ", ".join(unshown)
    return f"These arguments cannot be shown in full: {names}. To approve the request unseen, type {UNSEEN!r} in its field."


def _read_happened(approval_id: str, form: Mapping[str, list[str]]) -> bool:
    happened = value_of(form, "happened")
    if happened not in {"yes", "no"}:
        raise ApprovalError("say whether the action has happened", approval_id=approval_id)
    return happened == "yes"


def _revision(form: Mapping[str, list[str]]) -> int:
    revision = whole_of(value_of(form, "revision"))
    if revision is None:
        raise HTTPException(400, "The form lacks the revision that was shown. Open the request again.")
    return revision


def edit(request: Request) -> Response:
    """Read an edit and show it as a difference; with `step=decide`, make the edit that was shown."""
    form = form_of(request)
    if not value_of(form, "digest"):
        raise HTTPException(400, "The form lacks the digest of the arguments that were shown. Open the request again.")
    if value_of(form, "step") == "decide":
        return _make_edit(request, form)
    return _review_edit(request, form)


def _review_edit(request: Request, form: Mapping[str, list[str]]) -> Response:
    approval_id = request.path_params["id"]
    approval = approval_for(request, approval_id)
    note = lines(value_of(form, "note"))
    if approval.state != "pending":
        problem = "This request is no longer pending, so that nothing can be edited. Nothing was changed."
        return shown_request(request, approval_id, problem=problem, status=409)
    if approval.digest != value_of(form, "digest"):
        return shown_request(request, approval_id, problem=_CHANGED, status=409)
    if approval.unencoded or approval.deleted:
        return shown_request(request, approval_id, problem="This request cannot be edited.", status=422)
    changes, fields = read_edit(approval, form)
    problems = [field.name for field in fields if field.problem]
    if problems or not changes:
        problem = (
            f"These values cannot be used: {', '.join(problems)}. The reason stands at each. Nothing was changed."
            if problems
            else "No value was changed. To run the action as it is, approve the request."
        )
        return shown_request(request, approval_id, problem=problem, status=422, fields=fields, notes={"edit": note})
    return _review(request, approval, changes, note)


def _review(
    request: Request, approval: Approval, changes: Mapping[str, Any], note: str, *, problem: str = "", status: int = 200
) -> Response:
    """Show an edit as a difference, with the form that makes it."""
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
    """Return the arguments that cannot be shown in full once an edit is made."""
    kept = [name for name in unshown_arguments(approval, MAX_CHARACTERS) if name not in changes]
    return [*kept, *(name for name, value in changes.items() if opaque_parts(decode_for_display(name, value)))]


def read_edit(approval: Approval, form: Mapping[str, list[str]]) -> tuple[dict[str, Any], list[ArgumentField]]:
    """Return the changed values by parameter name, encoded, and the fields as a person has filled them in, with what is wrong with each."""
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
    """Return a value for display; one that needs the declared type of its parameter stays encoded."""
    try:
        return decode({name: encoded})[name]
    except ValueError:
        return encoded


def _make_edit(request: Request, form: Mapping[str, list[str]]) -> Response:
    approval_id, note = request.path_params["id"], lines(value_of(form, "note"))
    try:
        changes = parsed_json(value_of(form, "changes"))
        digest, actor = value_of(form, "digest"), person_of(request).actor
        approval = site_of(request).requests.get(approval_id)
        if approval.state == "pending" and approval.digest == digest and isinstance(changes, dict):
            problem = _reason_unseen(_unshown_after(approval, changes), form)
            if problem:
                return _review(request, approval, changes, note, problem=problem, status=422)
        perform(site_of(request).requests, "edit", approval_id, actor=actor, words=note, digest=digest, changes=changes)
    except ApprovalError as error:
        return show_refusal(request, approval_id, error, {"edit": note})
    except ValueError:
        raise HTTPException(400, "The form of the edit is damaged. Open the request again.") from None
    return _back(request, approval_id)


def show_refusal(request: Request, approval_id: str, error: ApprovalError, notes: dict[str, str]) -> Response:
    """Show the request with the error of a verb."""
    if isinstance(error, UnknownApproval):
        raise HTTPException(404, "There is no request with this id. It may belong to another store.")
    request.scope["grace_kp.error"] = type(error).__name__  # for the record of refused decisions
    verb = request.path_params.get("verb")
    problem = _CHANGED if isinstance(error, ChangedSinceShown) and verb != "reconcile" else sentence_of(error)
    return shown_request(request, approval_id, problem=problem, status=status_of(error), notes=notes)


def sentence_of(error: ApprovalError) -> str:
    """Return the message of an error as a sentence."""
    text = str(error)
    return (
        f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if not text.startswith("ap-") else f"{text}."
    )


def value_of(form: Mapping[str, list[str]], name: str) -> str:
    """Return the value of a field of a form; empty without one."""
    values = form.get(name) or [""]
    return values[0]


def lines(text: str) -> str:
    """Return a text of a form with line breaks as they were typed."""
    return text.replace("\r\n", "\n").strip()


def _back(request: Request, approval_id: str) -> Response:
    return RedirectResponse(f"{root_of(request)}{request_path(approval_id)}", 303)
