"""A rule replaces its matches and says what a text must contain before it can match."""

from __future__ import annotations

import re
from collections import Counter

from grace_kp.trace.redaction._rule import Rule, lower, places_of


def test_a_text_without_a_match_is_the_same_object():
    """Nothing is copied where nothing is removed."""
    text = "an ordinary text"
    assert text is Rule("api_key", "X", r"x-\d+").sub(text, None)


def test_matches_are_replaced_and_counted_by_type():
    """From left to right."""
    counts = Counter()
    assert "[REDACTED:api_key] and [REDACTED:api_key]" == Rule("api_key", "X", r"x-\d+").sub("x-1 and x-22", counts)
    assert {"api_key": 2} == counts


def test_a_replacement_may_leave_a_match():
    """It sees the match and returns None, or its own text."""
    rule = Rule("pin", "X", r"\d+", replacement=lambda match: None if len(match[0]) < 4 else "####")
    assert "12 ####" == rule.sub("12 1234", None)


def test_a_rule_that_begins_with_its_needs_visits_these_places_only():
    """A match that begins elsewhere does not count; capitals do not matter."""
    rule = Rule("password", "X", r"(?:pin|no)=\d+", needs=("pin",), begins=True, flags=re.IGNORECASE)
    assert "no=1 [REDACTED:password]" == rule.sub("no=1 PIN=2", None)


def test_lower_case_keeps_every_place():
    """One capital letter of Turkish would become two characters."""
    assert "ix" == lower("İX")


def test_places_are_those_of_all_needles_in_order():
    """Overlapping ones included, each place once."""
    assert [0, 1, 2, 5] == places_of(("aa", "a", "ab"), "aaab_ab")
