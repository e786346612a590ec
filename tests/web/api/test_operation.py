"""Operations: checks of parameters and bodies, JSON of any value, and methods that an address does not have."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from grace_kp.web import Person, Role, app
from grace_kp.web.api._operation import NOT_WRITABLE, json_text

JSON = {"Content-Type": "application/json"}


def test_unknown_names_are_refused(house, ana):
    refused = ana.get("/api/v1/runs", params={"agnet": "refunds"})
    assert (422, "invalid") == (refused.status_code, refused.json()["code"])
    assert refused.json()["fields"]["agnet"].startswith("is unknown; known are agent, domain, status")
    assert {"x": "is unknown; known are none"} == ana.get("/healthz?x=1").json()["fields"]
    refused = ana.post(f"/api/v1/approvals/{house.request().id}/reject", json={"reson": "x"})
    assert {"reson": "is unknown; known are reason, digest"} == refused.json()["fields"]


def test_all_problems_are_named_at_once(ana):
    refused = ana.get("/api/v1/runs?limit=201&level=loud").json()
    assert refused["message"].startswith("'level' cannot be used: input should be 'silent', 'notify', ")
    assert refused["message"].endswith(", not 'loud'; 1 more parameter cannot be used")
    assert ["level", "limit"] == sorted(refused["fields"])


@pytest.mark.parametrize("body", [b"", b"null"])
def test_a_body_is_needed(house, ana, body):
    refused = ana.post(f"/api/v1/approvals/{house.request().id}/reject", content=body, headers=JSON)
    assert (422, "invalid") == (refused.status_code, refused.json()["code"])
    assert "needs a body" in refused.json()["message"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "bad_request"),
        (b"\xff", 400, "bad_request"),
        (b'{"reason": NaN}', 400, "bad_request"),
        (b'{"reason": "a", "reason": "b"}', 400, "bad_request"),
        (b"[" * 100_000, 400, "bad_request"),
        (b'{"reason": ' + b"9" * 5_000 + b"}", 400, "bad_request"),
        (b'{"reason": ' + b"[" * 250 + b"]" * 250 + b"}", 422, "invalid"),
        (b'{"reason": "\\ud800"}', 422, "invalid"),
        (b'{"reason": 1}', 422, "invalid"),
        (b"[]", 422, "invalid"),
        (b'{"reason": "' + b"x" * 10_001 + b'"}', 422, "invalid"),
        (b'{"reason": "' + b"x" * 1_100_000 + b'"}', 413, "too_large"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_people_send(house, ana, body, status, code):
    """Whatever it is, the response is JSON with a code, and nothing was decided."""
    approval = house.request()
    response = ana.post(f"/api/v1/approvals/{approval.id}/reject", content=body, headers=JSON)
    assert (status, code) == (response.status_code, response.json()["code"])
    assert "pending" == house.desk.get(approval.id).state


@pytest.mark.parametrize(
    "changes",
    [{"euros": "\ud800"}, {"\ud800": 1}, {"euros": 10**400}, {"euros": [[[[]]]]}, {"euros": {"$bytes": 7}}, {"euros": {"$sealed": "x"}},
     {"euros": 1e308}, {"euros": {"$no": {"$such": "tag"}}}],
    ids=str,
)  # fmt: skip
def test_hostile_values_of_an_edit(house, ana, changes):
    """Any JSON is taken or refused, and never breaks the server."""
    approval = house.request()
    body = json.dumps({"digest": approval.digest, "changes": changes})
    response = ana.post(f"/api/v1/approvals/{approval.id}/edit", content=body, headers=JSON)
    assert response.status_code in {200, 422}
    response.content.decode("utf-8")
    assert 200 == ana.get(f"/api/v1/approvals/{approval.id}").status_code


def test_the_api_of_a_mounted_application(house):
    mounted = app(house.grace, auth=lambda request: Person(name="ana", role=Role.VIEWER))
    host = TestClient(Starlette(routes=[Mount("/grace", mounted)]), base_url="http://localhost")
    assert [{"url": "/grace"}] == host.get("/grace/api/openapi.json").json()["servers"]
    assert 200 == host.get(f"/grace/api/v1/approvals/{house.request().id}").status_code
    assert 404 == host.get("/grace/api/v1/approvals/x").status_code


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner),
)


def refuse(constant):
    raise ValueError(constant)


@given(ANYTHING)
def test_every_value_is_written(value):
    found = json.loads(json_text(value).encode("utf-8"), parse_constant=refuse)
    assert not isinstance(value, str) or value == found


def test_what_json_cannot_hold_is_replaced():
    assert {"a": None, "b": [None]} == json.loads(json_text({"a": float("nan"), "b": [float("-inf")]}))
    assert {"n": NOT_WRITABLE} == json.loads(json_text({"n": 10**5_000}))
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    assert NOT_WRITABLE in json_text(deep)


@pytest.mark.parametrize(
    ("method", "address", "allowed"),
    [("DELETE", "/api/v1/runs/x/feedback", "GET, HEAD, POST"), ("OPTIONS", "/api/v1/approvals/x/approve", "POST")],
)
def test_other_methods_are_refused_with_those_of_the_address(ana, method, address, allowed):
    response = ana.request(method, address)
    assert (405, allowed) == (response.status_code, response.headers["allow"])
    assert "method_not_allowed" == response.json()["code"]
