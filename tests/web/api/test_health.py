"""Whether the service can read its store, for everybody who asks."""

from __future__ import annotations


def test_health_needs_no_login_and_tells_nothing(house):
    """One word, without versions, paths and counts."""
    response = house.client(None).get("/healthz")
    assert (200, {"status": "ok"}) == (response.status_code, response.json())
