"""The application as a whole: who may make one, its start and end, its style sheet and scripts, its people, and errors as pages and as problems of the API."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from grace_kp import Grace, errors
from grace_kp.errors import SettingsError
from grace_kp.web import Person, Role, app
from grace_kp.web._app import SCRIPTS, CatalogFollower, _static_routes
from grace_kp.web._errors import http_problem, problem_of, status_of
from grace_kp.web._site import route
from tests.web.visiting import Browser


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


async def test_the_catalog_follows_the_store_from_the_first_request():
    async def answer(scope, receive, send):
        answered.append(scope["type"])

    catalog, answered = Catalog(), []
    following = CatalogFollower(catalog)
    application = following.before(answer)
    for kind in ("lifespan", "http", "http"):
        assert ["follow"] * ("http" in answered) == catalog.calls
        await application({"type": kind}, None, None)
    async with following.lifespan(None):
        assert ["follow"] == catalog.calls
    assert ["follow", "close"] == catalog.calls


@pytest.fixture
def client():
    return TestClient(Starlette(routes=_static_routes()))


@pytest.mark.parametrize("name", ["site.css", *SCRIPTS])
def test_a_file_is_sent_until_the_browser_has_it(client, name):
    first = client.get(f"/static/{name}")
    assert 200 == first.status_code
    assert {"css": "text/css", "js": "text/javascript"}[name.partition(".")[2]] in first.headers["content-type"]
    assert "no-cache" == first.headers["cache-control"]
    again = client.get(f"/static/{name}", headers={"If-None-Match": first.headers["etag"]})
    assert (304, b"") == (again.status_code, again.content)
    assert 200 == client.get(f"/static/{name}", headers={"If-None-Match": '"other"'}).status_code


def test_a_role_is_one_of_the_known():
    assert Role.ADMIN is Person(name="ana", role="admin").role
    for role in ("root", "", None):
        with pytest.raises(ValueError, match="is not a valid Role"):
            Person(name="ana", role=role)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.UnknownApproval("x"), 404, "unknown_approval"),
        (errors.UnknownTrace("x"), 404, "unknown_run"),
        (errors.NotEntitled("x"), 403, "not_entitled"),
        (errors.AlreadyDecided("x"), 409, "already_decided"),
        (errors.ChangedSinceShown("x"), 409, "changed_since_shown"),
        (errors.EditRefused("x"), 422, "edit_refused"),
        (errors.ApprovalError("x"), 422, "invalid"),
        (errors.GraceError("x"), 422, "invalid"),
        (ValueError("x"), 422, "invalid"),
        (RuntimeError("x"), 500, "internal"),
    ],
)
def test_errors_have_a_status_and_a_code(error, status, code):
    problem = problem_of(error)
    assert (status, status) == (status_of(error), problem.status)
    assert {"code": code, "message": "x"} == problem.document
    assert status == http_problem(status, "x").status
    assert (418, "bad_request") == (status_of(HTTPException(418)), http_problem(418, "x").code)


@pytest.fixture
def broken(tmp_path):
    """Returns the response of a page, or of the API, whose handler raises an error."""
    from grace_kp.web import Right

    with Grace(store=f"sqlite:///{tmp_path}/app.db", evaluator=None, embedder=None) as grace:
        browser = Browser(grace)

        def response(error, path="/broken"):
            def handler(request):
                raise error

            browser.app.router.routes.insert(0, route(path, handler, Right.SEE))
            return browser.get(path)

        yield response
        browser.app.state.site.catalog.close()


@pytest.mark.parametrize("path", ["/broken", "/api/broken"])
def test_what_a_store_says_stays_in_the_log(broken, caplog, path):
    response = broken(errors.StoreError("store /secret/place.db: it is locked"), path)
    assert 503 == response.status_code
    assert "cannot be read or written" in response.text
    assert "place" not in response.text
    assert "place.db: it is locked" in caplog.text


def test_an_error_of_ours_is_a_page(broken):
    response = broken(errors.AlreadyDecided("<b>ben</b>\u202e was faster"))
    assert 409 == response.status_code
    assert "&lt;b&gt;ben&lt;/b&gt;" in response.text
    assert "\u202e" not in response.text
    assert "Nothing was changed" in response.text


@pytest.mark.parametrize("path", ["/broken", "/api/broken"])
def test_an_unexpected_error_tells_nothing(broken, path, caplog):
    response = broken(ZeroDivisionError("a secret of line 7"), path)
    assert 500 == response.status_code
    assert "The server failed. Its log has the reason." in response.text
    for told in ("ZeroDivisionError", "secret", "Traceback", ".py"):
        assert told not in response.text
    assert "ZeroDivisionError: a secret of line 7" in caplog.text
