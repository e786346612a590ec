"""Errors as pages and as problems of the API."""

from __future__ import annotations

import pytest
from starlette.exceptions import HTTPException

from grace_kp import errors
from grace_kp.web._errors import http_problem, problem_of, status_of
from grace_kp.web._site import route
from tests.web.visiting import Browser


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
    """The same status on pages and in the API. Programs read the code, people the message."""
    problem = problem_of(error)
    assert (status, status) == (status_of(error), problem.status)
    assert {"code": code, "message": "x"} == problem.document
    assert status == http_problem(status, "x").status
    assert (418, "bad_request") == (status_of(HTTPException(418)), http_problem(418, "x").code)


@pytest.fixture
def broken(tmp_path):
    """Returns the response of a page, or of the API, whose handler raises an error."""
    from grace_kp import Grace
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
    """It names its file."""
    response = broken(errors.StoreError("store /secret/place.db: it is locked"), path)
    assert 503 == response.status_code
    assert "cannot be read or written" in response.text
    assert "place" not in response.text
    assert "place.db: it is locked" in caplog.text


def test_an_error_of_ours_is_a_page(broken):
    """With its message, in which control characters and markup are harmless."""
    response = broken(errors.AlreadyDecided("<b>ben</b>\u202e was faster"))
    assert 409 == response.status_code
    assert "&lt;b&gt;ben&lt;/b&gt;" in response.text
    assert "\u202e" not in response.text
    assert "Nothing was changed" in response.text


def test_an_error_below_the_api_is_json(broken):
    """With a message for people."""
    response = broken(errors.UnknownTrace("no run has this id"), "/api/broken")
    assert (404, "application/json") == (response.status_code, response.headers["content-type"])
    assert "no run has this id" in response.json()["message"]


@pytest.mark.parametrize("path", ["/broken", "/api/broken"])
def test_an_unexpected_error_tells_nothing(broken, path, caplog):
    """Neither type nor message nor place reach the client."""
    response = broken(ZeroDivisionError("a secret of line 7"), path)
    assert 500 == response.status_code
    assert "Something went wrong here" in response.text
    for told in ("ZeroDivisionError", "secret", "Traceback", ".py"):
        assert told not in response.text
    assert "ZeroDivisionError: a secret of line 7" in caplog.text
