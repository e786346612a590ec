"""Every route asks for a right."""

from __future__ import annotations

from grace_kp.testing import make_grace
from grace_kp.web import Right, app


def test_every_route_states_a_right():
    """Apart from the style sheets, which are a mount."""
    with make_grace() as grace:
        routes = [route for route in app(grace).routes if hasattr(route, "methods")]
    assert routes
    assert all(isinstance(route.right, Right) for route in routes)
