"""Texts and JSON on their way into the store."""

from __future__ import annotations

import pytest

from grace_kp.approvals._notes import MAX_NOTE, clean_json, clean_note, kept_result
from grace_kp.errors import ApprovalError


def test_a_note_is_bounded():
    """At exactly the limit it is kept."""
    assert "n" * MAX_NOTE == clean_note("n" * MAX_NOTE, "ap-1")
    with pytest.raises(ApprovalError, match="shorten it"):
        clean_note("n" * (MAX_NOTE + 1), "ap-1")


def test_json_is_cleaned():
    """Secrets are removed; what JSON cannot hold becomes text."""
    cleaned = clean_json({"password": "hunter22hunter", "score": float("nan"), "when": {1}, ("a",): 1})
    assert ({"password", "score", "when"}, "NaN", "{1}") == (set(cleaned), cleaned["score"], cleaned["when"])
    assert "hunter22" not in str(cleaned)


def test_a_result_nested_too_deeply_is_not_kept():
    """Nor one with a number that Python does not print."""
    nested = []
    for _ in range(5_000):
        nested = [nested]
    assert [False, False] == [kept_result(nested), kept_result(10**5_000)]
