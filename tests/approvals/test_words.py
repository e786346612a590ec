"""Requests and durations in words."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import (
    NOT_COVERED,
    Actor,
    Standing,
    actor_text,
    consents,
    constraint_texts,
    deadline_text,
    event_text,
    fact_text,
    json_text,
    process_text,
    remarks_of,
    rule_text,
    seconds_of,
    unheld_text,
    verdict_text,
    verify,
)
from tests.approvals.shops import ANA, BO, Shop, asked


def test_remarks_say_what_an_argument_is():
    """Left out of the digest, sealed, part of the key, or bytes."""
    approval = Shop().requests.file(asked({"a": b"123", "b": 1}, not_covered=("b",), key_fields=("a",)))
    assert {"a": "identifies the operation: an edit cannot change it; 3 bytes", "b": NOT_COVERED} == remarks_of(
        approval
    )


def test_what_is_not_held_is_named():
    """Objects of the waiting process, and contents that were deleted."""
    approval = Shop().requests.file(asked())
    assert "" == unheld_text(approval)
    assert "handle: only the waiting process" in unheld_text(dataclasses.replace(approval, unencoded=("handle",)))
    assert "retention has deleted" in unheld_text(dataclasses.replace(approval, deleted=True))


def test_the_rule_names_groups_quorum_and_the_excluded_user():
    """And how many have consented to these very arguments."""
    shop = Shop(groups={"ana": ["finance"], "bo": ["finance"]})
    approval = shop.requests.file(asked(quorum=2, groups=("finance",), identity="stated", user="cy"))
    voted = shop.requests.approve(approval.id, by=ANA)
    assert 1 == consents(voted)
    assert "2 people (stated names), members of finance; 1 of 2 so far; not cy, for whom the agent runs" == rule_text(
        voted
    )
    assert "anybody" == rule_text(shop.requests.file(asked()))


@pytest.mark.parametrize(
    ("on_deadline", "words"),
    [("cancel", "the request expires"), ("skip", "is skipped"), ("escalate:board", "the group board may decide")],
)
def test_the_deadline_has_its_sentence(on_deadline, words):
    """What happens when nobody decides."""
    assert words in deadline_text(dataclasses.replace(Shop().requests.file(asked()), on_deadline=on_deadline))


@pytest.mark.parametrize(
    ("waits", "is_awaited", "words"),
    [("wait", True, "a live process"), ("wait", None, "cannot be known"), ("raise", None, "asks again"), ("interrupt", None, "the graph")],
)  # fmt: skip
def test_it_says_who_carries_the_decision_out(waits, is_awaited, words):
    """A process that waits, or another one later."""
    request = dataclasses.replace(Shop().requests.file(asked()), waits=waits, is_awaited=is_awaited)
    assert words in process_text(request)


def test_people_are_named_with_what_is_known_of_them():
    """Whether a login established the name, and where."""
    assert "bo (authenticated, web, as www on host)" == actor_text(
        Actor(name="bo", channel="web", authenticated=True, os_user="www", host="host")
    )
    assert "bo (stated, python)" == actor_text(BO)


def test_entries_are_named_by_the_state_that_they_led_to():
    """A decision reads as what was decided."""
    assert "rejected" == event_text({"kind": "decided", "facts": {"state": "rejected"}})
    assert "viewed" == event_text({"kind": "viewed", "facts": {"state": "pending"}})


def test_constraints_read_as_sentences():
    """One per parameter; hidden characters in values are escapes of JSON."""
    forms = {"a": {"is": "x\u202e"}, "b": {"in": [1, 2]}, "c": {"from": 0, "to": 50}, "d": {"any": True}}
    standing = Standing(action="refund", domain="shop", parameters=forms, until=1.0, uses=1)
    assert [("a", '"x\\u202e"'), ("b", "one of [1, 2]"), ("c", "from 0 to 50"), ("d", "any value")] == constraint_texts(
        standing
    )


def test_json_keeps_every_character():
    """An escape of JSON reads back as the character."""
    import json

    text = json_text({"a\u200b": ["\U000e0041\u00a0é", "\r\n"]}, indent=1)
    assert text.replace("\n", "").isprintable()
    assert {"a\u200b": ["\U000e0041\u00a0é", "\r\n"]} == json.loads(text)


def test_a_verification_without_a_checkpoint_promises_little():
    """Only accidents are found."""
    shop = Shop()
    shop.requests.file(asked())
    found = verify(shop.tables, at=shop.clock())
    assert (
        "1 entries verified without a checkpoint: no accident found; a deliberate change would not show"
        == verdict_text(found)
    )
    assert "no problem found" in verdict_text(verify(shop.tables, at=shop.clock(), checkpoint=found.checkpoint))


def test_facts_read_as_sentences():
    """Thresholds and the place in the run."""
    assert "thresholds: notify from 0.9, confirm from 0.7" == fact_text("thresholds", {"notify": 0.9, "confirm": 0.7})
    assert "the 3 steps of the run, before the request" == fact_text("step", 3)
    assert "the first step of the run, before the request" == fact_text("step", 1)
    assert 'own fact: {"a": 1}' == fact_text("own_fact", {"a": 1})


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(5, 5.0), (0.5, 0.5), ("90s", 90.0), ("1.5h", 5_400.0), ("1h30m", 5_400.0), ("2d", 172_800.0), ("1w", 604_800.0)],
)
def test_texts_and_numbers(value, seconds):
    """Units go from the largest to the smallest."""
    assert seconds == seconds_of("deadline", value)


@pytest.mark.parametrize(
    "value",
    [0, -1, "", "5", "5 h", "1m1h", "1h1h", "h", None, True, float("nan"), float("inf"), 10**40, "99999999w", "１h"],
)
def test_anything_else_is_refused(value):
    """The message names the argument and what is allowed."""
    with pytest.raises(ValueError, match="until must be a number of seconds above 0"):
        seconds_of("until", value)


@given(st.integers(0, 9), st.integers(0, 23), st.integers(0, 59), st.integers(1, 59))
def test_parts_add_up(days, hours, minutes, seconds):
    """A text is the sum of its parts."""
    text = f"{days}d{hours}h{minutes}m{seconds}s"
    assert days * 86_400 + hours * 3_600 + minutes * 60 + seconds == seconds_of("x", text)
