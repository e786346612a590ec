"""The pages of logins and accounts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from grace_kp.pages import printable
from grace_kp.web._person import Right
from grace_kp.web._route import route
from grace_kp.web._site import form_of, root_of, site_of
from grace_kp.web.security._addresses import local_path

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.web._route import PageRoute
    from grace_kp.web.security._logins import Logins

_log = logging.getLogger("grace_kp.web")


def routes() -> list[PageRoute]:
    """Return the routes of `grace-kp serve` for logins and accounts. A mounted application has none of them."""
    return [
        route("/login", _login, Right.ANYBODY),
        route("/login", _enter, Right.ANYBODY, methods=["POST"]),
        route("/logout", _leave, Right.SEE, methods=["POST"]),
        route("/accounts", _accounts, Right.MANAGE),
    ]


def _logins(request: Request) -> Logins:
    return cast("Logins", request.app.state.entrance)


def _login(request: Request) -> Response:
    return _login_page(
        request, code=request.query_params.get("code", "")[:200], to=request.query_params.get("next", "")
    )


def _login_page(request: Request, *, code: str = "", to: str = "", problem: str = "", status: int = 200) -> Response:
    return site_of(request).page(
        request,
        "login.html",
        status=status,
        code=code,
        to=local_path(to, ""),
        problem=problem,
        has_accounts=bool(_logins(request).accounts.all()),
    )


def _enter(request: Request) -> Response:
    logins, form = _logins(request), form_of(request)
    credential = (form.get("credential") or [""])[0].strip()
    to = local_path((form.get("next") or [""])[0])
    peer = request.client.host if request.client else ""
    address = request.app.state.addresses.client(peer, request.headers)
    secret = logins.enter(credential) if 0 < len(credential) <= 200 else None
    if secret is None:
        wait = logins.attempts.failed("wrong_login", address)
        if wait:
            raise HTTPException(429, f"Too many attempts. Wait {wait:.0f} seconds.", {"Retry-After": f"{wait:.0f}"})
        _log.warning("a login from %s was refused", printable(address)[:60])
        problem = (
            "This is not the token of an account that may log in. Tokens of the role agent work in the API only."
            if logins.accounts.all()
            else "This code is not valid. Codes work once, for ten minutes; start `grace-kp serve` again for a new one."
        )
        return _login_page(request, to=to, problem=problem, status=403)
    logins.attempts.succeeded(address)
    logins.leave(request)
    response = RedirectResponse(f"{root_of(request)}{to}", 303)
    logins.set_cookie(response, secret)
    return response


def _leave(request: Request) -> Response:
    logins = _logins(request)
    logins.leave(request)
    response = RedirectResponse(f"{root_of(request)}/login", 303)
    logins.delete_cookie(response)
    return response


def _accounts(request: Request) -> Response:
    logins = _logins(request)
    return site_of(request).page(
        request,
        "accounts.html",
        accounts=list(logins.accounts.all().values()),
        seen=logins.accounts.seen(),
        sessions=logins.sessions.count(),
        refused=request.app.state.refusals.counts(),
        attempts=logins.attempts.counts(),
    )
