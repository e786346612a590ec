"""The JSON API with its OpenAPI description, for programs and for people who prefer a terminal.

`OPERATIONS` is the table of all operations. Routes, checks and the description are made from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import RootModel

from grace_kp.web._site import Right, root_of
from grace_kp.web.api import _approvals, _runs
from grace_kp.web.api._document import Health, document
from grace_kp.web.api._operation import ApiOperation, refuse_other_methods

if TYPE_CHECKING:
    from grace_kp.web._site import PageRoute
    from grace_kp.web.api._operation import ApiCall


__all__ = ["OPERATIONS", "routes"]

NO_RUN = "kp:trace:00000000-0000-0000-0000-000000000000"
"""An id without a run: looking it up reads one page of an index."""


def get_health(call: ApiCall) -> dict[str, Any]:
    call.site.grace.store.get(NO_RUN)
    return {"status": "ok"}


class OpenApi(RootModel[dict[str, Any]]):
    """The OpenAPI description."""


def get_description(call: ApiCall) -> dict[str, Any]:
    cookie = getattr(call.request.app.state.identity_provider, "cookie", "")
    return document(OPERATIONS, root=root_of(call.request), cookie=cookie)


OPERATIONS = (
    ApiOperation("getHealth", "/healthz", Right.ANYBODY, "Check that the store can be read", get_health, Health),
    *_runs.OPERATIONS,
    *_approvals.OPERATIONS,
    ApiOperation("getDescription", "/api/openapi.json", Right.SEE, "Get this description", get_description, OpenApi),
)
"""The operations of the API."""


def routes() -> list[PageRoute]:
    """Return the routes of the API, grouped by address; fixed addresses precede those with an id."""
    addresses = sorted(dict.fromkeys(operation.path for operation in OPERATIONS), key=lambda path: "{id}" in path)
    found: list[PageRoute] = []
    for address in addresses:
        operations = [operation for operation in OPERATIONS if operation.path == address]
        found += [operation.route() for operation in operations]
        found.append(refuse_other_methods(address, operations))
    return found
