"""Times in their usual forms become ISO 8601 in UTC."""

from __future__ import annotations

import datetime

import pytest

from grace_kp import InvalidTrace, from_openai_messages
from grace_kp.trace.formats import read_run
from tests.trace.formats.chats import CHAT


class TestTimes:
    @pytest.mark.parametrize(
        ("given", "written"),
        [
            ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00.000Z"),
            ("2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00.000Z"),
            ("2024-05-01 10:00:00.25", "2024-05-01T10:00:00.250Z"),
            ("2024-05-01", "2024-05-01T00:00:00.000Z"),
            (1714557600, "2024-05-01T10:00:00.000Z"),
            (1714557600.5, "2024-05-01T10:00:00.500Z"),
            (1714557600000, "2024-05-01T10:00:00.000Z"),
            ("1714557600", "2024-05-01T10:00:00.000Z"),
            (datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC), "2024-05-01T10:00:00.000Z"),
        ],
    )
    def test_times_are_understood_in_their_usual_forms(self, given, written):
        """ISO 8601 with or without zone, seconds or milliseconds since the epoch."""
        assert written == from_openai_messages(CHAT, created_at=given).metadata.created_at
        document = {"messages": CHAT, "timestamp": given if not isinstance(given, datetime.datetime) else str(given)}
        trace = read_run(document, fallback_created_at="2001-01-01T00:00:00Z")
        assert (written, "document") == (trace.metadata.created_at, trace.grace["created_from"])

    def test_a_run_that_says_no_time_gets_that_of_its_file_or_none(self):
        """1970 stands for unknown, and the trace says so."""
        with_file = read_run(CHAT, fallback_created_at="2001-01-01T00:00:00Z")
        assert ("2001-01-01T00:00:00Z", "file") == (with_file.metadata.created_at, with_file.grace["created_from"])
        alone = from_openai_messages(CHAT)
        assert ("1970-01-01T00:00:00.000Z", "unknown") == (alone.metadata.created_at, alone.grace["created_from"])

    @pytest.mark.parametrize("when", ["soon", -1, float("nan"), float("inf"), True, 12, "", "9999-99-99"])
    def test_a_time_that_is_none_is_refused_when_given_and_passed_over_in_a_document(self, when):
        """A slip of the caller's is told; a foreign document is taken as it is."""
        with pytest.raises(InvalidTrace, match=r"^metadata.created_at: "):
            from_openai_messages(CHAT, created_at=when)
        assert "unknown" == read_run({"messages": CHAT, "created_at": when}).grace["created_from"]
