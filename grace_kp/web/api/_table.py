"""The table of all operations: routes, checks and the description are made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import RootModel

from grace_kp.web._person import Right
from grace_kp.web._site import root_of
from grace_kp.web.api import _approvals, _figures, _health, _runs
from grace_kp.web.api._document import document
from grace_kp.web.api._operation import Operation

if TYPE_CHECKING:
    from grace_kp.web.api._operation import Call


class OpenApi(RootModel[dict[str, Any]]):
    """The OpenAPI description."""


def get_description(call: Call) -> dict[str, Any]:
    """Return the OpenAPI description of all operations."""
    cookie = getattr(call.request.app.state.entrance, "cookie", "")
    return document(OPERATIONS, root=root_of(call.request), cookie=cookie)


OPERATIONS = (
    *_health.OPERATIONS,
    *_runs.OPERATIONS,
    *_approvals.OPERATIONS,
    *_figures.OPERATIONS,
    Operation(
        name="getDescription",
        path="/api/openapi.json",
        right=Right.SEE,
        summary="Get this description",
        answer=get_description,
        result=OpenApi,
    ),
)
"""The operations of the API."""
