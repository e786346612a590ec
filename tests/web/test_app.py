"""The application as a whole: who may make one, its start and end, its routes, its style sheet and scripts, and its people."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from grace_kp import Grace
from grace_kp.errors import SettingsError, StoreError
from grace_kp.web import Person, Role, app
from grace_kp.web._app import SCRIPTS, Following, _static_routes
from tests.web.visiting import Browser


@pytest.fixture
def grace(tmp_path):
    with Grace(store=f"sqlite:///{tmp_path}/app.db", evaluator=None, embedder=None) as opened:
        yield opened


@pytest.mark.parametrize("auth", [None, "ana", Person(name="ana", role=Role.ADMIN)])
def test_a_mounted_application_needs_auth(grace, auth):
    """Without it everybody or nobody would be an admin; the message names it."""
    with pytest.raises(SettingsError, match=r"app\(\) needs auth=: a function from the request"):
        app(grace, auth=auth)


class Catalog:
    """Notes what is asked of it."""

    def __init__(self):
        self.calls = []

    def follow(self):
        self.calls.append("follow")

    def close(self):
        self.calls.append("close")


async def answers(scope, receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_the_catalog_follows_the_store_from_the_first_request():
    """Once: a mounted application gets no word of its start."""
    catalog = Catalog()
    client = TestClient(Following(catalog).before(answers))
    assert [] == catalog.calls
    for _ in range(3):
        assert 204 == client.get("/").status_code
    assert ["follow"] == catalog.calls


def test_a_store_that_cannot_be_followed_yet_is_tried_again(grace, monkeypatch):
    """With the next request; this one is answered as by a page whose store fails."""
    browser = Browser(grace)
    catalog, failing = browser.app.state.site.catalog, [True]
    follow = catalog.follow

    def fail():
        if failing.pop():
            failing.append(False)
            raise StoreError("cannot open /secret/place.db")
        follow()

    monkeypatch.setattr(catalog, "follow", fail)
    failed = browser.get("/inbox")
    assert 503 == failed.status_code
    assert "the store cannot be read or written" in failed.text
    assert "place" not in failed.text
    assert "content-security-policy" in failed.headers
    assert 200 == browser.get("/inbox").status_code
    assert [] == failing
    catalog.close()


async def test_the_catalog_is_closed_at_the_end():
    """Of an application that is told about it."""
    catalog = Catalog()
    following = Following(catalog)
    async with following.lifespan(None):
        assert ["follow"] == catalog.calls
    assert ["follow", "close"] == catalog.calls


@pytest.fixture
def client():
    return TestClient(Starlette(routes=_static_routes()))


@pytest.mark.parametrize("name", ["site.css", *SCRIPTS])
def test_a_file_is_sent_until_the_browser_has_it(client, name):
    """With its type; a browser that has it asks whether it has changed, and gets nothing more."""
    first = client.get(f"/static/{name}")
    assert 200 == first.status_code
    assert {"css": "text/css", "js": "text/javascript"}[name.partition(".")[2]] in first.headers["content-type"]
    assert "no-cache" == first.headers["cache-control"]
    again = client.get(f"/static/{name}", headers={"If-None-Match": first.headers["etag"]})
    assert (304, b"") == (again.status_code, again.content)
    assert 200 == client.get(f"/static/{name}", headers={"If-None-Match": '"other"'}).status_code


def test_a_role_is_one_of_the_known():
    """Its word is taken for it; another one is refused, before anything is asked of it."""
    assert Role.ADMIN is Person(name="ana", role="admin").role
    for role in ("root", "", None):
        with pytest.raises(ValueError, match="is not a valid Role"):
            Person(name="ana", role=role)
