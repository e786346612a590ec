"""Errors as pages and as problems of the API."""

from __future__ import annotations

import pytest
from starlette.exceptions import HTTPException

from grace_kp import errors
from grace_kp.web._errors import CODES, ApiProblem, http_problem, problem_of, status_of
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
    ],
)
def test_errors_have_a_status_and_a_code(error, status, code):
    """The same status on pages and in the API. Programs read the code, people the message."""
    problem = problem_of(error)
    assert (status, status) == (status_of(error), problem.status)
    assert {"code": code, "message": "x"} == problem.document


@pytest.mark.parametrize(
    ("error", "page", "api"),
    [
        (errors.KeyReused("x"), 409, 422),
        (errors.GraceError("x"), 400, 422),
        (errors.SettingsError("x"), 422, 422),
        (ValueError("x"), 422, None),
        (errors.StoreError("x"), 503, 503),
        (HTTPException(418), 418, None),
        (RuntimeError("x"), 500, None),
        (PermissionError("x"), 500, None),
    ],
)
def test_other_errors_have_a_status(error, page, api):
    """Those of the library also in the API."""
    assert page == status_of(error)
    assert api is None or api == problem_of(error).status


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


def test_a_message_is_bounded(broken):
    """However long what somebody sent is."""
    assert len(broken(ValueError("x" * 100_000)).text) < 5_000


def test_a_store_that_fails_does_not_tell_where_it_is(caplog):
    """Its message may name a file, and is in the log."""
    problem = problem_of(errors.StoreError("cannot open /home/ana/app.db"))
    assert (503, "unavailable") == (problem.status, problem.code)
    assert "ana" not in problem.message
    assert "cannot open /home/ana/app.db" in caplog.text


@pytest.mark.parametrize("status", sorted({status for status, _ in CODES.values()}))
def test_each_status_has_a_code(status):
    """The code of an HTTP error has the status of the error."""
    problem = http_problem(status, "x")
    assert status == problem.status


def test_a_status_without_a_code():
    """Counts as a request that cannot be read."""
    assert "bad_request" == http_problem(418, "x").code


def test_more_members():
    """Fields and further members stand beside the code."""
    problem = ApiProblem("invalid", "x", fields={"a": "is missing"}, more={"approval": {"id": "ap-1"}})
    assert {
        "code": "invalid",
        "message": "x",
        "fields": {"a": "is missing"},
        "approval": {"id": "ap-1"},
    } == problem.document
