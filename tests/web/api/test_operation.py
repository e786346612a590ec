"""What every operation checks before it does anything: parameters and bodies, by name."""

from __future__ import annotations

import json

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from grace_kp.errors import StoreError
from grace_kp.web import Person, Role, app
from tests.web.visiting import Browser

JSON = {"Content-Type": "application/json"}


def test_unknown_parameters_are_refused_by_name(ana):
    """With those that there are; also where there are none."""
    refused = ana.get("/api/v1/runs", params={"agnet": "refunds"})
    assert (422, "invalid") == (refused.status_code, refused.json()["code"])
    assert refused.json()["fields"]["agnet"].startswith("is no parameter; known are agent, domain, status")
    assert {"x": "is no parameter; known are none"} == ana.get("/healthz?x=1").json()["fields"]


def test_all_problems_are_named_at_once(ana):
    """The message states the first, and how many more there are."""
    refused = ana.get("/api/v1/runs?limit=201&level=loud&limit=1").json()
    assert (
        "'level' must be one of silent, notify, confirm, escalate, none, not 'loud'; 1 more parameter cannot be used"
        == (refused["message"])
    )
    assert ["level", "limit"] == sorted(refused["fields"])


def test_unknown_fields_are_refused_by_name(house, ana):
    """With those that there are."""
    refused = ana.post(f"/api/v1/approvals/{house.request().id}/reject", json={"reson": "x"})
    assert {"reson": "is no field; known are reason, digest"} == refused.json()["fields"]


@pytest.mark.parametrize("body", [b"", b"null"])
def test_a_body_is_needed(house, ana, body):
    """An operation that reads a body says so."""
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
        (b'"text"', 422, "invalid"),
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


def test_another_media_type_is_refused(house, ana):
    """Only JSON is read, so that no form of a foreign page is."""
    response = ana.post(f"/api/v1/approvals/{house.request().id}/reject", data={"reason": "x"})
    assert (415, "unsupported_media_type") == (response.status_code, response.json()["code"])


def test_a_store_that_fails_is_no_server_error(house, ana, monkeypatch):
    """503 with a code; where the store lies is not told."""

    def fail(_id):
        raise StoreError("cannot open sqlite:////secret/place.db")

    monkeypatch.setattr(house.grace.store, "get", fail)
    for address in ("/healthz", "/api/v1/runs/kp:trace:x"):
        response = ana.get(address)
        assert (503, "unavailable") == (response.status_code, response.json()["code"])
        assert "secret" not in response.text


def test_a_page_may_call_the_api(house):
    """With the session of its person it needs the origin and the CSRF token; without them nothing is done."""
    browser = Browser(house.grace)
    approval = house.request()
    address = f"/api/v1/approvals/{approval.id}/reject"
    foreign = {"Origin": "http://localhost:9000", "X-CSRF-Token": browser.csrf()}
    for headers in ({}, foreign):
        refused = browser.post(address, json={}, headers=headers)
        assert (403, "forbidden") == (refused.status_code, refused.json()["code"])
    assert "pending" == house.desk.get(approval.id).state
    assert "rejected" == browser.post_json(address, {}).json()["state"]


def test_the_api_of_a_mounted_application(house):
    """Works below its path, and describes itself there."""
    mounted = app(house.grace, auth=lambda request: Person(name="ana", role=Role.VIEWER))
    host = TestClient(Starlette(routes=[Mount("/grace", mounted)]), base_url="http://localhost")
    assert [{"url": "/grace"}] == host.get("/grace/api/openapi.json").json()["servers"]
    assert 200 == host.get(f"/grace/api/v1/approvals/{house.request().id}").status_code
    assert 404 == host.get("/grace/api/v1/approvals/x").status_code
