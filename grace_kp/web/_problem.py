"""Problems of a request to the API: a code for programs, a sentence for people, and the status that goes with the code."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from grace_kp.errors import (
    AlreadyDecided,
    ApprovalError,
    ChangedSinceShown,
    EditRefused,
    GraceError,
    NotEntitled,
    StoreError,
    UnknownApproval,
    UnknownTrace,
)
from grace_kp.pages import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

CODES: Mapping[str, tuple[int, str]] = {
    "bad_request": (400, "The request cannot be read; for example, its body is no JSON."),
    "unauthenticated": (401, "No valid token or session came with the request."),
    "forbidden": (
        403,
        "The role of the account lacks the right, or the origin of the request is not that of the pages.",
    ),
    "not_entitled": (403, "The groups or the quorum of the approval do not let this person decide."),
    "not_found": (404, "Nothing has this address."),
    "unknown_run": (404, "No run has this id."),
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
    "unseen": (422, "Arguments are sealed or have no JSON, so that nobody has seen them; consent to them says so."),
    "edit_refused": (422, "The new arguments do not fit the action, or change what identifies it."),
    "too_many_requests": (429, "Too many attempts; try again later."),
    "internal": (500, "The server failed; its log says how."),
    "unavailable": (503, "The store cannot be read or written."),
}
"""The codes with their status and meaning."""

_CODE_OF: tuple[tuple[type[GraceError], str], ...] = (
    (UnknownApproval, "unknown_approval"),
    (NotEntitled, "not_entitled"),
    (AlreadyDecided, "already_decided"),
    (ChangedSinceShown, "changed_since_shown"),
    (EditRefused, "edit_refused"),
    (ApprovalError, "invalid"),
    (UnknownTrace, "unknown_run"),
    (StoreError, "unavailable"),
)
_CODE_AT = {status: code for code, (status, _) in CODES.items()} | {403: "forbidden", 404: "not_found", 422: "invalid"}
LONGEST = 1_000
"""Characters of a message."""
_log = logging.getLogger("grace_kp.web")
_UNAVAILABLE = "the store cannot be read or written at the moment"


class Problem(Exception):
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
        """The HTTP status."""
        return CODES[self.code][0]

    @property
    def document(self) -> dict[str, Any]:
        """The problem as JSON."""
        fields = {"fields": self.fields} if self.fields else {}
        return {"code": self.code, "message": self.message, **fields, **self.more}


def code_of(error: GraceError) -> str:
    """Return the code of an error of this library."""
    return next((code for kind, code in _CODE_OF if isinstance(error, kind)), "invalid")


def problem_of(
    error: GraceError, *, task: str = "a request to the API", more: Mapping[str, Any] | None = None
) -> Problem:
    """Return an error of this library as a problem, with the message of `explained`."""
    return Problem(code_of(error), explained(error, task), more=more)


def explained(error: Exception, task: str) -> str:
    """Return what people may read of an error. What a store says may name its file, so it goes to the log instead.

    Args:
        error: an error of this library, or a `ValueError`.
        task: what failed, for the log.
    """
    if not isinstance(error, StoreError):
        return str(error)
    _log.error("%s failed: %s", printable(task), printable(str(error))[:LONGEST])
    return _UNAVAILABLE


def http_problem(status: int, detail: str) -> Problem:
    """Return an HTTP error as a problem; one that has no code of its own counts as a request that cannot be read."""
    return Problem(_CODE_AT.get(status, "bad_request"), detail)
