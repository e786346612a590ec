"""Responses to errors: a page that says what happened, or JSON below `/api/`, never a traceback.

| error | status |
|--|--|
| `UnknownApproval`, `UnknownTrace` | 404 |
| `NotEntitled` | 403 |
| `AlreadyDecided`, `ChangedSinceShown`, `KeyReused` | 409 |
| `EditRefused`, any other `ApprovalError`, `ValueError` | 422 |
| `StoreError` | 503, without details; they are in the log |
| any other `GraceError` | 400 |
| anything else | 500, without details; they are in the log |
"""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse

from grace_kp.errors import (
    AlreadyDecided,
    ApprovalError,
    ChangedSinceShown,
    GraceError,
    KeyReused,
    NotEntitled,
    StoreError,
    UnknownApproval,
    UnknownTrace,
)
from grace_kp.pages import printable
from grace_kp.trace import redact_text, redacted_error
from grace_kp.web._problem import LONGEST, explained, http_problem
from grace_kp.web._site import root_of, site_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

_log = logging.getLogger("grace_kp.web")
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (UnknownApproval, 404),
    (UnknownTrace, 404),
    (NotEntitled, 403),
    (AlreadyDecided, 409),
    (ChangedSinceShown, 409),
    (KeyReused, 409),
    (ApprovalError, 422),
    (StoreError, 503),
    (ValueError, 422),
    (GraceError, 400),
)
"""The status of each error; the first class that fits counts."""
TITLES = {
    400: "The request cannot be used",
    401: "Please log in",
    403: "You may not do this",
    404: "There is nothing here",
    405: "This address does not accept that method",
    408: "The request took too long",
    409: "Nothing was changed",
    413: "The request is too large",
    414: "The address is too long",
    415: "The type of the content is not accepted",
    421: "The server has another address",
    422: "The input is not valid",
    431: "The headers are too large",
    429: "Too many attempts",
    503: "The store is not available",
}


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error; 500 for one that nobody expected."""
    if isinstance(error, HTTPException):
        return error.status_code
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def answer(request: Request, error: Exception) -> Response:
    """Return the response to an error that was raised while a request was answered."""
    status = status_of(error)
    request.scope["grace_kp.error"] = type(error).__name__
    if status == 500 and not isinstance(error, HTTPException):
        return unexpected(request, error)
    if isinstance(error, HTTPException):
        return refusal(request, status, error.detail, error.headers)
    return refusal(request, status, explained(error, f"{request.method} {request.url.path[:200]}"))


def refusal(request: Request, status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response that says why a request is not answered."""
    text = printable(text)[:LONGEST]
    if is_api(request):
        response: Response = JSONResponse(http_problem(status, text).document, status)
    elif status in {304, 204}:
        response = PlainTextResponse("", status)
    else:
        title = TITLES.get(status, "The request failed")
        has_person = getattr(request.state, "person", None) is not None
        link = {"link": f"{root_of(request)}/inbox", "link_text": "Go to the inbox"} if has_person else {}
        response = site_of(request).page(request, "message.html", status=status, title=title, text=text, **link)
    response.headers.update(headers or {})
    return response


def unexpected(request: Request, error: Exception) -> Response:
    """Return the response to an error that nobody expected, and log it: one line, and its traceback at the level DEBUG."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" at {place[0].filename}:{place[0].lineno}" if place else ""
    what = f"{printable(redacted_error(error))[:LONGEST]}{where}"
    _log.error("%s %s failed: %s", request.method, printable(request.url.path[:200]), what)
    _log.debug("traceback: %s", redact_text("".join(traceback.format_exception(error)), identifiers=False))
    text = "Something went wrong here. It is in the log of the server."
    return JSONResponse(http_problem(500, text).document, 500) if is_api(request) else PlainTextResponse(text, 500)


def is_api(request: Request) -> bool:
    """Return whether a request is for the API, so that errors are JSON."""
    return request.scope.get("grace_kp.is_api") is True
