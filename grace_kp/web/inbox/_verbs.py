"""The verbs as forms: each carries the digest that was shown, and each leads back to the request, whose state says what came of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from grace_kp.approvals import decode
from grace_kp.errors import (
    AlreadyDecided,
    ApprovalError,
    ChangedSinceShown,
    EditRefused,
    NotEntitled,
    UnknownApproval,
)
from grace_kp.gating import unshown_arguments
from grace_kp.gating.reviewers import UNSEEN
from grace_kp.web._site import form_of, person_of, root_of, site_of
from grace_kp.web._verbs import perform
from grace_kp.web.inbox._field import changed_value, fields_of, parsed_json, with_submitted
from grace_kp.web.inbox._request import approval_for, shown_request
from grace_kp.web.inbox._value import MAX_CHARACTERS, opaque_parts
from grace_kp.web.inbox._words import WORDS, request_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Approval
    from grace_kp.web.inbox._field import Field

CONCLUDING = ("reject", "respond", "skip", "retry")
_STATUS: tuple[tuple[type[ApprovalError], int], ...] = (
    (NotEntitled, 403),
    (AlreadyDecided, 409),
    (ChangedSinceShown, 409),
    (EditRefused, 422),
    (ApprovalError, 422),
)
_CHANGED = "Somebody has changed the arguments since they were shown to you. Nothing was decided. They are shown below as they are now."


def decide(request: Request) -> Response:
    """Apply the verb of the path to a request."""
    approval_id, verb = request.path_params["id"], request.path_params["verb"]
    form, actor, desk = form_of(request), person_of(request).actor, site_of(request).desk
    digest, note = value_of(form, "digest") or None, lines(value_of(form, "note"))
    if verb not in {"approve", "withdraw", "reconcile", *CONCLUDING}:
        raise HTTPException(404, f"There is no verb {verb!r:.40}.")
    if digest is None:
        raise HTTPException(400, "The form lacks the digest of the arguments that were shown. Open the request again.")
    try:
        if verb == "approve":
            return _approve(request, approval_id, digest, note)
        if verb == "reconcile":
            happened, revision = _stated(approval_id, form), _revision(form)
            desk.reconcile(approval_id, actor=actor, happened=happened, note=note, revision=revision)
        else:
            perform(desk, verb, approval_id, actor=actor, words=note, digest=digest)
    except ApprovalError as error:
        return refused(request, approval_id, error, {verb: note})
    return _back(request, approval_id)


def _approve(request: Request, approval_id: str, digest: str, note: str) -> Response:
    site, person = site_of(request), person_of(request)
    approval = site.desk.get(approval_id)
    if approval.state == "pending" and approval.digest == digest:
        problem = _unseen(unshown_arguments(approval, MAX_CHARACTERS), form_of(request))
        if problem:
            return shown_request(request, approval_id, problem=problem, status=422, notes={"approve": note})
    site.desk.approve(approval_id, actor=person.actor, note=note, digest=digest)
    return _back(request, approval_id)


def _unseen(unshown: Sequence[str], form: Mapping[str, list[str]]) -> str:
    """Return why a consent does not count yet: arguments cannot be shown in full, and the form lacks the word that confirms it."""
    if not unshown or value_of(form, "unseen").strip().lower() == UNSEEN:
        return ""
    names = ", ".join(unshown)
    return f"These arguments cannot be shown in full: {names}. To approve the request unseen, type {UNSEEN!r} in its field."


def _stated(approval_id: str, form: Mapping[str, list[str]]) -> bool:
    happened = value_of(form, "happened")
    if happened not in {"yes", "no"}:
        raise ApprovalError("say whether the action has happened", approval_id=approval_id)
    return happened == "yes"


def _revision(form: Mapping[str, list[str]]) -> int:
    text = value_of(form, "revision")
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise HTTPException(400, "The form lacks the revision that was shown. Open the request again.")
    return int(text)


def edit(request: Request) -> Response:
    """Read an edit and show it as a difference; with `step=decide`, make the edit that was shown."""
    form = form_of(request)
    if not value_of(form, "digest"):
        raise HTTPException(400, "The form lacks the digest of the arguments that were shown. Open the request again.")
    if value_of(form, "step") == "decide":
        return _edited(request, form)
    return _reviewed(request, form)


def _reviewed(request: Request, form: Mapping[str, list[str]]) -> Response:
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
        words=WORDS,
        approval=approval,
        after={name: decode_shown(name, value) for name, value in changes.items()},
        changes=json.dumps(changes),
        note=note,
        problem=problem,
        unshown=_unshown_after(approval, changes),
        unseen=UNSEEN,
    )


def _unshown_after(approval: Approval, changes: Mapping[str, Any]) -> list[str]:
    """Return the arguments that cannot be shown in full once an edit is made."""
    kept = [name for name in unshown_arguments(approval, MAX_CHARACTERS) if name not in changes]
    return [*kept, *(name for name, value in changes.items() if opaque_parts(decode_shown(name, value)))]


def read_edit(approval: Approval, form: Mapping[str, list[str]]) -> tuple[dict[str, Any], list[Field]]:
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


def decode_shown(name: str, encoded: object) -> object:
    """Return a value for display; one that needs the declared type of its parameter stays encoded."""
    try:
        return decode({name: encoded})[name]
    except ValueError:
        return encoded


def _edited(request: Request, form: Mapping[str, list[str]]) -> Response:
    approval_id, note = request.path_params["id"], lines(value_of(form, "note"))
    try:
        changes = parsed_json(value_of(form, "changes"))
        digest, actor = value_of(form, "digest"), person_of(request).actor
        approval = site_of(request).desk.get(approval_id)
        if approval.state == "pending" and approval.digest == digest and isinstance(changes, dict):
            problem = _unseen(_unshown_after(approval, changes), form)
            if problem:
                return _review(request, approval, changes, note, problem=problem, status=422)
        perform(site_of(request).desk, "edit", approval_id, actor=actor, words=note, digest=digest, changes=changes)
    except ApprovalError as error:
        return refused(request, approval_id, error, {"edit": note})
    except ValueError:
        raise HTTPException(400, "The form of the edit is damaged. Open the request again.") from None
    return _back(request, approval_id)


def refused(request: Request, approval_id: str, error: ApprovalError, notes: dict[str, str]) -> Response:
    """Show the request with the error of a verb."""
    if isinstance(error, UnknownApproval):
        raise HTTPException(404, "There is no request with this id. It may belong to another store.")
    request.scope["grace_kp.error"] = type(error).__name__  # for the record of refused decisions
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    verb = request.path_params.get("verb")
    problem = _CHANGED if isinstance(error, ChangedSinceShown) and verb != "reconcile" else sentence_of(error)
    return shown_request(request, approval_id, problem=problem, status=status, notes=notes)


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
