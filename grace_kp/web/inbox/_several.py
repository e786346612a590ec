"""Several requests decided at once: each is named with everything that would run, and each is a transaction of its own."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from grace_kp.errors import ApprovalError, ChangedSinceShown, UnknownApproval
from grace_kp.gating import changed_arguments, unshown_arguments
from grace_kp.web._person import Right
from grace_kp.web._site import form_of, person_of, site_of
from grace_kp.web._verbs import perform_several
from grace_kp.web.inbox._value import MAX_CHARACTERS
from grace_kp.web.inbox._verbs import lines, sentence_of, value_of
from grace_kp.web.inbox._words import WORDS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Approval
    from grace_kp.web._site import Site

AT_MOST = 200
"""Requests that can be decided at once."""
_UNSHOWN = "Its arguments cannot be shown in full. It can only be approved on its own page."
VERBS = MappingProxyType(
    {
        "approve": "approved",
        "reject": "rejected",
        "respond": "answered",
        "skip": "skipped",
        "retry": "sent back",
        "withdraw": "withdrew",
    }
)
"""Verbs for several requests, with what the person has done then."""


def decide_several(request: Request) -> Response:
    """Show the requests that were selected; with a verb, apply it to those that were shown."""
    form = form_of(request)
    ids = list(dict.fromkeys(form.get("id", [])))
    if len(ids) > AT_MOST:
        raise HTTPException(422, f"At most {AT_MOST} requests can be decided at once, and {len(ids):,} are selected.")
    verb = value_of(form, "verb")
    if not verb:
        return _selected(request, ids)
    if verb not in VERBS:
        raise HTTPException(422, f"The verb must be one of {', '.join(VERBS)}.")
    digests = {each: value_of(form, f"digest-{each}") for each in ids}
    if not all(digests.values()):
        raise HTTPException(400, "The form lacks the digest of a request. Select the requests again.")
    return _decided(request, ids, verb, digests)


def _selected(request: Request, ids: list[str], *, problem: str = "", note: str = "", status: int = 200) -> Response:
    site, person = site_of(request), person_of(request)
    actor = person.actor
    groups: dict[str, list[tuple[Approval, str]]] = {"ready": [], "denied": [], "alone": [], "ended": []}
    for each in ids:
        try:
            approval = site.desk.get(each, viewer=actor)
        except UnknownApproval:
            continue
        reason = site.desk.reason_against(approval.id, actor)
        if approval.state != "pending":
            groups["ended"].append((approval, ""))
        elif reason:
            groups["denied"].append((approval, reason))
        elif unshown_arguments(approval, MAX_CHARACTERS) or approval.deleted:
            groups["alone"].append((approval, "its arguments cannot be shown in full"))
        else:
            groups["ready"].append((approval, ""))
    return site.page(
        request,
        "inbox/several.html",
        status=status,
        words=WORDS,
        changed={approval.id: changed_arguments(approval) for approval, _ in groups["ready"]},
        may_decide=person.may(Right.DECIDE),
        problem=problem,
        note=note,
        **groups,
    )


def _decided(request: Request, ids: list[str], verb: str, digests: dict[str, str]) -> Response:
    site, note = site_of(request), lines(value_of(form_of(request), "note"))
    if verb == "respond" and not note:
        problem = "An answer needs words for the agent. Nothing was decided."
        return _selected(request, ids, problem=problem, status=422)
    unseen = [each for each in ids if verb == "approve" and _is_unshown(site, each)]
    shown = {each: digests[each] for each in ids if each not in unseen}
    outcomes = perform_several(request, verb, shown, words=note)
    results = []
    for each in ids:
        try:
            approval = site.desk.get(each)
        except UnknownApproval:
            approval = None
        results.append((each, approval, _UNSHOWN if each in unseen else _problem(outcomes[each])))
    failed = sum(bool(problem) for _, _, problem in results)
    return site.page(
        request,
        "inbox/decided.html",
        status=409 if failed == len(results) and results else 200,
        words=WORDS,
        done=VERBS[verb],
        results=results,
        failed=failed,
    )


def _is_unshown(site: Site, approval_id: str) -> bool:
    """Return whether a request must be approved on its own page, because its arguments cannot be shown in full."""
    try:
        approval = site.desk.get(approval_id)
    except UnknownApproval:
        return False
    return approval.state == "pending" and bool(unshown_arguments(approval, MAX_CHARACTERS))


def _problem(outcome: Approval | ApprovalError) -> str:
    if isinstance(outcome, ChangedSinceShown):
        return "Somebody has changed the arguments since they were shown. It was not decided."
    return sentence_of(outcome) if isinstance(outcome, ApprovalError) else ""
