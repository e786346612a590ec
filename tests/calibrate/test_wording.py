"""What the words of a text show, in English and in a little Japanese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.calibrate._wording import (
    count_apologies,
    count_hedges,
    count_refusals,
    is_empty_result,
    plain,
    shows_failure,
    shows_trouble,
    stated_confidence,
    words_of,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Confidence: 0.8", 0.8), ("confidence = 85%", 0.85), ("I am 85 % confident in this.", 0.85), ("My confidence is 7/10.", 0.7),
        ("Confidence: 92", 0.92), ("Confidence level (0-1): .75", 0.75), ("確信度: 80%", 0.8), ("**Confidence**: 1", 1.0), ("confidence 250%", None),
        ("The flight costs 85% more.", None), ("", None), ("Confidence: 0.2 … on reflection, confidence: 0.9", 0.9), ("90% sure", 0.9),
        ("I am certain that 3 of them arrive.", None),
    ],
)  # fmt: skip
def test_a_confidence_that_a_text_states_is_read(text, expected):
    """A number beside the word counts, as a share, a percentage or out of ten; other numbers do not."""
    assert expected == stated_confidence(text)


@given(st.text())
def test_any_text_is_read(text):
    """No text raises, and a stated confidence is from 0 to 1."""
    stated = stated_confidence(text)
    assert stated is None or 0 <= stated <= 1
    words = plain(text)
    assert min(count_hedges(words), count_refusals(words), count_apologies(words), len(words_of(words))) >= 0
    assert {bool} == {type(shows_failure(text)), type(shows_trouble(text)), type(is_empty_result(text))}


@pytest.mark.parametrize(
    ("text", "hedges", "refusals"),
    [
        ("It might be late, perhaps tomorrow.", 2, 0),
        ("I'm sorry, I can't do that.", 0, 2),
        ("Sent.", 0, 0),
        ("おそらく明日届くかもしれません。", 2, 0),
        ("申し訳ありませんが、できません。", 0, 2),
    ],
)
def test_doubt_and_refusal_are_counted_by_distinct_phrases(text, hedges, refusals):
    """Each phrase counts once, whatever its case and punctuation."""
    assert (hedges, refusals) == (count_hedges(plain(text)), count_refusals(plain(text)))


@pytest.mark.parametrize(
    "text", ["Error: no such user", "Traceback (most recent call last):\n…", '{"error": "x"}', " Error"]
)
def test_a_result_that_begins_as_an_error_is_one(text):
    """The beginning decides; an error that is only mentioned is none."""
    assert shows_failure(text)
    assert not shows_failure(f"Found 3 pages about: {text}")


def test_words_are_compared_without_case_and_punctuation():
    """Words of two letters do not count, numbers do, and Japanese is compared by pairs of characters."""
    assert {"flight", "hat136", "7"} == words_of(plain("Flight HAT136, at 7!"))
    assert {"東京", "京駅"} == words_of(plain("東京駅"))


@pytest.mark.parametrize("text", ["", " [] ", "null", "None", "{}", "No results"])
def test_an_empty_result_holds_nothing(text):
    """Empty lists, objects and nulls are empty results."""
    assert is_empty_result(text)
    assert not is_empty_result("3 results")
