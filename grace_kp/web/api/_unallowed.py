"""Methods that an address of the API does not have: the response names those that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.web._problem import Problem
from grace_kp.web._route import route
from grace_kp.web.api._json import json_response, json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.web._route import PageRoute
    from grace_kp.web.api._operation import Operation

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def unallowed(address: str, operations: Sequence[Operation]) -> PageRoute:
    """Return the route of an address for the methods that none of its operations has.

    Args:
        address: the path.
        operations: its operations. The gatekeeper checks the right of the first one.
    """
    own = {operation.method for operation in operations}
    allowed = [method for method in METHODS if method in own or (method == "HEAD" and "GET" in own)]

    def refuse(request: Request) -> Response:
        problem = Problem(
            "method_not_allowed", f"this address has no method {request.method}, only {', '.join(allowed)}"
        )
        return json_response(json_text(problem.document), problem.status, {"Allow": ", ".join(allowed)})

    others = [method for method in METHODS if method not in allowed]
    return route(address, refuse, operations[0].right, methods=others)
