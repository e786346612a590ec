"""Errors as responses: a page with a sentence, or below `/api/` a problem with a code for programs, never a traceback.

`ERRORS` is the one table from an error to its status and code. An error that it does not list is a 500 without details; they are in the log.
"""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse

from grace_kp.errors import (
    AlreadyDecided,
    ChangedSinceShown,
    EditRefused,
    GraceError,
    NotEntitled,
    StoreError,
    UnknownApproval,
    UnknownTrace,
)
from grace_kp.pages import printable
from grace_kp.trace import redact_text, redacted_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response


CODES: Mapping[str, tuple[int, str]] = {
    "bad_request": (400, "The request cannot be read; for example, its body is not JSON."),
    "unauthenticated": (401, "No valid token or session came with the request."),
    "forbidden": (
        403,
        "The role of the account lacks the right, or the origin of the request is not that of the pages.",
    ),
    "not_entitled": (403, "The groups or the quorum of the approval do not let this person decide."),
    "not_found": (404, "Nothing has this address."),
    "unknown_run": (404, "No run has this id."),
    "unknown_action": (404, "No action of the run has this id, or several have."),
    "unknown_approval": (404, "No approval has this id."),
    "method_not_allowed": (405, "The address has no such method."),
    "too_slow": (408, "The request did not arrive in time."),
    "already_decided": (409, "Another decision or the end of the approval came first."),
    "changed_since_shown": (409, "The digest is not that of the arguments as they are now."),
    "too_large": (413, "The body is too large."),
    "too_long": (414, "The address is too long."),
    "unsupported_media_type": (415, "The body is of another type than JSON."),
    "foreign_host": (421, "The Host header names another server."),
    "invalid": (422, "A parameter or a field is missing, unknown or cannot be used."),
    "unseen": (422, "Arguments are sealed or have no JSON, so they were not shown; consent must state `unseen`."),
    "edit_refused": (422, "The new arguments do not fit the action, or change what identifies it."),
    "too_many_requests": (429, "Too many attempts; try again later."),
    "internal": (500, "The server failed; its log says how."),
    "unavailable": (503, "The store cannot be read or written."),
}
"""The codes with their status and meaning."""

ERRORS: Mapping[type[Exception], str] = {
    UnknownApproval: "unknown_approval",
    UnknownTrace: "unknown_run",
    NotEntitled: "not_entitled",
    AlreadyDecided: "already_decided",
    ChangedSinceShown: "changed_since_shown",
    EditRefused: "edit_refused",
    StoreError: "unavailable",
    GraceError: "invalid",
    ValueError: "invalid",
}
"""The code of each error; the first class that fits counts."""
_CODE_AT = {status: code for code, (status, _) in CODES.items()} | {403: "forbidden", 404: "not_found", 422: "invalid"}
LONGEST = 1_000
"""Characters of a message."""


class ApiProblem(Exception):
    """Ends a request to the API with an error.

    Args:
        code: one of `CODES`.
        message: a sentence for people.
        fields: problems by parameter or field.
        more: other members of the response, such as the state of an approval.
    """

    def __init__(
        self, code: str, message: str, *, fields: Mapping[str, str] | None = None, more: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        self.fields, self.more = dict(fields or {}), dict(more or {})

    @property
    def status(self) -> int:
        return CODES[self.code][0]

    @property
    def document(self) -> dict[str, Any]:
        fields = {"fields": self.fields} if self.fields else {}
        return {"code": self.code, "message": self.message, **fields, **self.more}


def problem_of(
    error: GraceError, *, task: str = "a request to the API", more: Mapping[str, Any] | None = None
) -> ApiProblem:
    """Return an error of this library as a problem, with the message of `explain_error`."""
    return ApiProblem(_code_of(error), explain_error(error, task), more=more)


def _code_of(error: Exception) -> str:
    return next((code for kind, code in ERRORS.items() if isinstance(error, kind)), "internal")


def explain_error(error: Exception, task: str) -> str:
    """Return the message of an error for people. The message of a store may name its file, so only the log contains it."""
    if not isinstance(error, StoreError):
        return str(error)
    _log.error("%s failed: %s", printable(task), printable(str(error))[:LONGEST])
    return "the store cannot be read or written at the moment"


def http_problem(status: int, detail: str) -> ApiProblem:
    """Return an HTTP error as a problem; a status without a code counts as a request that cannot be read."""
    return ApiProblem(_CODE_AT.get(status, "bad_request"), detail)


_log = logging.getLogger("grace_kp.web")
TITLES = {
    303: "Please log in",
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
    """Return the HTTP status of an error; 500 for an unexpected one."""
    return error.status_code if isinstance(error, HTTPException) else CODES[_code_of(error)][0]


def answer(request: Request, error: Exception) -> Response:
    request.scope["grace_kp.error"] = type(error).__name__
    if isinstance(error, HTTPException):
        return refusal(request, error.status_code, error.detail, error.headers)
    if status_of(error) == 500:
        return answer_unexpected(request, error)
    return refusal(request, status_of(error), explain_error(error, f"{request.method} {request.url.path[:200]}"))


def refusal(request: Request, status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    text = printable(text)[:LONGEST]
    if is_api(request):
        response: Response = JSONResponse(http_problem(status, text).document, status)
    else:
        title = TITLES.get(status, "The request failed")
        has_person = getattr(request.state, "person", None) is not None
        link = {"link": "/inbox", "link_text": "Go to the inbox"} if has_person else {}
        response = request.app.state.site.page(request, "message.html", status=status, title=title, text=text, **link)
    response.headers.update(headers or {})
    return response


def answer_unexpected(request: Request, error: Exception) -> Response:
    """Return the response to an unexpected error, and log it: one line, and its traceback at the level DEBUG."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" at {place[0].filename}:{place[0].lineno}" if place else ""
    what = f"{printable(redacted_error(error))[:LONGEST]}{where}"
    _log.error("%s %s failed: %s", request.method, printable(request.url.path[:200]), what)
    _log.debug("traceback: %s", redact_text("".join(traceback.format_exception(error)), identifiers=False))
    text = "The server failed. Its log has the reason."
    return JSONResponse(http_problem(500, text).document, 500) if is_api(request) else PlainTextResponse(text, 500)


def is_api(request: Request) -> bool:
    """Return whether a request is for the API, so that errors are JSON."""
    return request.scope.get("grace_kp.is_api") is True
