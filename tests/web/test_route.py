"""Routes that state a right."""

from __future__ import annotations

from starlette.responses import Response

from grace_kp.web import Right
from grace_kp.web._route import route


def test_a_route_holds_its_right_and_methods():
    """GET includes HEAD; a path with two methods is two names."""

    def handler(request):
        return Response()

    shown, sent = route("/runs/{id}", handler, Right.SEE), route("/runs/{id}", handler, Right.LABEL, methods=["POST"])
    assert (Right.SEE, {"GET", "HEAD"}) == (shown.right, shown.methods)
    assert (Right.LABEL, {"POST"}) == (sent.right, sent.methods)
    assert shown.name != sent.name
