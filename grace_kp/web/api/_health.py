"""The operation that tells whether the service can read its store: for load balancers and supervisors, without a login."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.web._person import Right
from grace_kp.web.api._operation import Operation
from grace_kp.web.api._schemas import Health

if TYPE_CHECKING:
    from grace_kp.web.api._operation import Call

NOBODY = "kp:trace:00000000-0000-0000-0000-000000000000"
"""An id that no run has: looking for it reads one page of an index."""


def get_health(call: Call) -> dict[str, Any]:
    """Return that all is well, after reading the store."""
    call.site.grace.store.get(NOBODY)
    return {"status": "ok"}


OPERATIONS = (
    Operation(
        name="getHealth",
        path="/healthz",
        right=Right.ANYBODY,
        summary="Check that the store can be read",
        answer=get_health,
        result=Health,
    ),
)
"""The operation on the state of the service."""
