"""The columns that a trace is found by."""

from __future__ import annotations

import json

import pytest

from grace_kp.runtime import record_of
from tests.store.samples import document


def test_the_document_is_kept_whole():
    """The columns repeat parts of it."""
    source = document("a", text="an answer")
    record = record_of(source)
    assert source == json.loads(record.data)
    assert ("kp:trace:a", "2026-01-01T00:00:00.000Z", "default", 0.5, True, "completed") == (
        record.id, record.created_at, record.domain, record.score, record.success, record.status
    )  # fmt: skip
    assert "an answer" in record.text


@pytest.mark.parametrize(
    ("created_at", "column"),
    [("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000Z"), ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z")],
)
def test_times_are_compared_in_one_form(created_at, column):
    """UTC with milliseconds, where the calendar knows the time."""
    assert column == record_of(document("a", created_at=created_at)).created_at


@pytest.mark.parametrize(
    ("scores", "rows"),
    [
        ([{"name": "a", "score": 0.5, "passed": True}], (("a", 0.5, True),)),
        ([{"name": "a", "score": 1}], (("a", 1.0, None),)),
        ([{"name": "a", "score": 2, "passed": "yes"}], (("a", None, None),)),
        ([{"name": 3}, "x", {"score": 1}], ()),
        ("x", ()),
        (None, ()),
    ],
)
def test_scores_from_elsewhere_may_hold_anything(scores, rows):
    """Only a name that is a text and a score from 0 to 1 become columns."""
    assert rows == record_of(document("a", scores=scores)).scores


def test_a_status_that_is_no_text_is_unknown():
    """A column holds a text in any case."""
    assert "unknown" == record_of({**document("a"), "grace": {"status": 3}}).status
