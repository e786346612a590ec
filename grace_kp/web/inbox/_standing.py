"""Standing approvals: a list, a form based on a request, a review of the calls that would run without asking, and their end."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from grace_kp.approvals import Standing, check_standing, json_text, reason_without_account, seconds_of
from grace_kp.errors import ApprovalError
from grace_kp.web._site import Right, form_of, person_of, root_of, site_of
from grace_kp.web.inbox._field import fields_of, parsed_json
from grace_kp.web.inbox._lists import counts
from grace_kp.web.inbox._request import approval_for, lines, sentence_of, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Approval

UNTIL, USES = "8h", "10"
"""Initial values of the form."""


def standing(request: Request) -> Response:
    site, with_ended = site_of(request), request.query_params.get("ended") == "1"
    return site.page(
        request,
        "inbox/standing.html",
        tab="standing",
        found=[
            (
                each,
                "" if each.granted_by is None or each.ended else reason_without_account(site.tables, each.granted_by),
            )
            for each in reversed(site.requests.standing(ended=with_ended))
        ],
        with_ended=with_ended,
        may_decide=person_of(request).may(Right.DECIDE),
        **counts(site),
    )


def grant(request: Request) -> Response:
    """Show which calls would run without asking; with `step=decide`, grant the standing approval."""
    form, site = form_of(request), site_of(request)
    approval = approval_for(request)
    try:
        wanted = _read_standing(request, approval, form)
        if value_of(form, "step") != "decide":
            check_standing(wanted, site.clock())
            fields = [(name, form[name][0]) for name in form if name not in {"csrf", "step", "until_at"}]
            return site.page(
                request,
                "inbox/grant_review.html",
                approval=approval,
                wanted=wanted,
                fields=[*fields, ("until_at", repr(wanted.until))],
            )
        site.requests.grant(wanted, by=person_of(request).actor)
    except ApprovalError as error:
        return grant_form(request, form=form, problem=sentence_of(error), status=422)
    except ValueError as error:
        return grant_form(request, form=form, problem=f"{str(error)[:1].upper()}{str(error)[1:]}.", status=422)
    return RedirectResponse(f"{root_of(request)}/approvals/standing", 303)


def end(request: Request) -> Response:
    """End a standing approval and cancel its unclaimed approvals."""
    reason = lines(value_of(form_of(request), "reason"))
    try:
        site_of(request).requests.end_standing(request.path_params["id"], by=person_of(request).actor, reason=reason)
    except ApprovalError as error:
        raise HTTPException(404, sentence_of(error)) from None
    return RedirectResponse(f"{root_of(request)}/approvals/standing?ended=1", 303)


def grant_form(
    request: Request, *, form: Mapping[str, list[str]] = MappingProxyType({}), problem: str = "", status: int = 200
) -> Response:
    """Show the form that approves calls like a request in advance."""
    site = site_of(request)
    approval = approval_for(request)
    rows = []
    for number, field in enumerate(fields_of(approval)):
        name = field.name
        only_any = name in approval.sealed or name in approval.not_covered
        text = "" if only_any else json_text(approval.encoded[name])
        rows.append(
            {
                "name": name,
                "number": number,
                "only_any": only_any,
                "kind": value_of(form, f"kind{number}") or ("any" if only_any else "is"),
                "value": value_of(form, f"value{number}") or text,
                "low": value_of(form, f"low{number}"),
                "high": value_of(form, f"high{number}"),
                "is_number": field.kind == "number",
            }
        )
    return site.page(
        request,
        "inbox/grant.html",
        status=status,
        approval=approval,
        rows=rows,
        problem=problem,
        until=value_of(form, "until") or UNTIL,
        uses=value_of(form, "uses") or USES,
        note=value_of(form, "note"),
        this_version=bool(form.get("this_version")) if form else True,
    )


def _read_standing(request: Request, approval: Approval, form: Mapping[str, list[str]]) -> Standing:
    uses = value_of(form, "uses").strip()
    if not (uses.isascii() and uses.isdecimal() and len(uses) < 10):
        raise ValueError(f"uses must be a whole number from 1, not “{uses[:40]}”")
    return Standing(
        action=approval.action,
        domain=approval.domain,
        parameters={name: _constraint(form, number, name) for number, name in enumerate(approval.encoded)},
        until=_until(form, site_of(request).clock()),
        uses=int(uses),
        version=approval.version if form.get("this_version") else None,
        note=lines(value_of(form, "note")),
    )


def _until(form: Mapping[str, list[str]], now: float) -> float:
    """Return the end in seconds since the epoch; the second step uses the end that the review has shown."""
    if value_of(form, "step") != "decide":
        return now + seconds_of("until", value_of(form, "until").strip())
    try:
        return float(value_of(form, "until_at"))
    except ValueError:
        raise ValueError("the form lacks the end that was reviewed; review it again") from None


def _constraint(form: Mapping[str, list[str]], number: int, name: str) -> dict[str, Any]:
    kind, stated = value_of(form, f"kind{number}"), value_of(form, f"value{number}")
    try:
        match kind:
            case "any":
                return {"any": True}
            case "is":
                return {"is": parsed_json(stated)}
            case "in":
                values = parsed_json(stated)
                if not isinstance(values, list):
                    raise ValueError('“one of” needs a list such as ["EUR", "USD"]')
                return {"in": values}
            case "range":
                bounds = {"from": value_of(form, f"low{number}").strip(), "to": value_of(form, f"high{number}").strip()}
                found = {bound: parsed_json(text) for bound, text in bounds.items() if text}
                if not found or not all(type(each) in {int, float} for each in found.values()):
                    raise ValueError("a range needs one or two numbers")
                return found
        raise ValueError("choose the allowed values")
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
