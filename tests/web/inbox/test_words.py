"""What the templates of the inbox say."""

from __future__ import annotations

import dataclasses

import pytest

from grace_kp.pages import APPROVAL_STATES
from grace_kp.web.inbox._words import (
    confidence,
    moment,
    process_phrase,
    process_word,
    query,
    request_path,
    run_path,
    state_badge,
)
from tests.web.inbox.shop import HOSTILE


def test_a_time_stands_with_its_distance():
    """For the script, as a number, too."""
    assert "in 3 h 20 m" in moment(13_000.0, 1_000.0)
    assert 'data-distance="13000.000"' in moment(13_000.0, 1_000.0)
    assert "10 s ago" in moment(990.0, 1_000.0)
    assert "no deadline" in moment(None, 0.0)


def test_every_state_is_a_badge():
    """In words."""
    for state, words in APPROVAL_STATES.items():
        assert f">{words}<" in state_badge(state)


@pytest.mark.parametrize(
    ("waits", "is_awaited", "words"), [("wait", True, "waits"), ("wait", False, "gone"), ("raise", None, "asks again")]
)
def test_whether_a_process_waits(shop, waits, is_awaited, words):
    """In a word or two."""
    assert words == process_word(dataclasses.replace(shop.ask(), waits=waits, is_awaited=is_awaited))


@pytest.mark.parametrize(
    ("waits", "is_awaited", "words"),
    [
        ("wait", True, "a process waits"),
        ("wait", False, "the process has ended"),
        ("wait", None, "unknown whether a process waits"),
        ("raise", None, "no process waits (asks again later)"),
        ("hand_over", None, "no process waits (handed over)"),
    ],
)
def test_the_list_states_whether_a_process_waits(shop, waits, is_awaited, words):
    """In a phrase."""
    assert words == process_phrase(dataclasses.replace(shop.ask(), waits=waits, is_awaited=is_awaited))


def test_parts_that_were_not_evaluated_say_so(shop):
    """And penalties stand in words."""
    text = confidence(
        dataclasses.replace(shop.ask(), breakdown={"search_quality": None}, penalties=("no_sources", HOSTILE))
    )
    assert "not evaluated" in text
    assert "no sources" in text
    assert "<script" not in text


def test_ids_are_quoted_in_paths():
    """A trace id keeps its colons; nothing else leaves its place."""
    assert "/runs/kp:trace:1" == run_path("kp:trace:1")
    assert "/approvals/..%2Fx%3Fy%23%22" == request_path('../x?y#"')
    assert "/runs/..%2Fx" == run_path("../x")


def test_a_query_keeps_filters():
    """And leaves out what is empty."""
    assert "?action=a%26b&offset=50" == query({"action": "a&b", "level": ""}, offset=50)
    assert "" == query({"action": ""}, offset=0)
