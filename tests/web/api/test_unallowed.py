"""Methods that an address does not have."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("method", "address", "allowed"),
    [
        ("PUT", "/api/v1/runs", "GET, HEAD"),
        ("DELETE", "/api/v1/runs/x/feedback", "GET, HEAD, POST"),
        ("GET", "/api/v1/approvals/decide", "POST"),
        ("OPTIONS", "/api/v1/approvals/x/approve", "POST"),
    ],
)
def test_the_response_names_those_that_it_has(ana, method, address, allowed):
    """405 as JSON, with the methods of all operations of the address."""
    response = ana.request(method, address)
    assert (405, allowed, "method_not_allowed") == (
        response.status_code,
        response.headers["allow"],
        response.json()["code"],
    )


def test_strangers_learn_nothing(house):
    """Who may not see is refused before."""
    assert 401 == house.client(None).put("/api/v1/runs").status_code


def test_an_unknown_address(ana):
    """404 as JSON."""
    response = ana.get("/api/v1/nothing")
    assert (404, "not_found") == (response.status_code, response.json()["code"])
