"""Problems of requests to the API."""

from __future__ import annotations

import pytest

from grace_kp.errors import (
    AlreadyDecided,
    ApprovalError,
    ChangedSinceShown,
    EditRefused,
    GraceError,
    NotEntitled,
    StoreError,
    UnknownApproval,
    UnknownTrace,
)
from grace_kp.web._problem import CODES, Problem, http_problem, problem_of


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UnknownApproval("x"), 404, "unknown_approval"),
        (UnknownTrace("x"), 404, "unknown_run"),
        (NotEntitled("x"), 403, "not_entitled"),
        (AlreadyDecided("x"), 409, "already_decided"),
        (ChangedSinceShown("x"), 409, "changed_since_shown"),
        (EditRefused("x"), 422, "edit_refused"),
        (ApprovalError("x"), 422, "invalid"),
        (GraceError("x"), 422, "invalid"),
    ],
)
def test_errors_have_codes(error, status, code):
    """Programs read the code, people the message."""
    problem = problem_of(error)
    assert (status, {"code": code, "message": "x"}) == (problem.status, problem.document)


def test_a_store_that_fails_does_not_tell_where_it_is(caplog):
    """Its message may name a file, and is in the log."""
    problem = problem_of(StoreError("cannot open /home/ana/app.db"))
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
    problem = Problem("invalid", "x", fields={"a": "is missing"}, more={"approval": {"id": "ap-1"}})
    assert {
        "code": "invalid",
        "message": "x",
        "fields": {"a": "is missing"},
        "approval": {"id": "ap-1"},
    } == problem.document
