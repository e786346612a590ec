"""Values as a person writes them."""

from __future__ import annotations

import pytest

from grace_kp.approvals._fitting import TEXTS, Misfit, from_text, list_of, member_of

WRITTEN = {
    "$date": ("20260131", "2026-01-31"),
    "$datetime": ("2026-01-31 12:00Z", "2026-01-31T12:00:00+00:00"),
    "$time": ("12:00", "12:00:00"),
    "$timedelta": ("P1DT2S", "P1DT2S"),
    "$uuid": ("{00000000-0000-0000-0000-00000000000A}", "00000000-0000-0000-0000-00000000000a"),
    "$decimal": (" 1.10", "1.10"),
    "$bytes": ("abc", "YWJj"),
    "$path": ("a//b", "a/b"),
}


@pytest.mark.parametrize("tag", WRITTEN)
def test_a_text_gets_its_canonical_form(tag):
    """A person need not know it."""
    text, expected = WRITTEN[tag]
    assert {tag: expected} == from_text(tag, text, "x")


@pytest.mark.parametrize("tag", TEXTS)
def test_a_text_that_means_nothing_is_refused_with_an_example(tag):
    """The example is what the message asks for."""
    with pytest.raises(Misfit, match=r"^x: 'soon' is no ") as caught:
        from_text(tag, "soon", "x")
    assert str(caught.value).endswith(TEXTS[tag].removeprefix("a "))


def test_what_is_no_text_is_left_to_the_schema():
    """It says what it takes."""
    assert [3, [1]] == [from_text("$date", 3, "x"), from_text("$set", [1], "x")]


def test_the_elements_of_a_set_are_sorted_and_single():
    """So that equal sets have one encoding; the items of a tuple stay."""
    assert {"$set": ["a", 3]} == list_of("$set", [3, "a", 3])
    assert {"$tuple": [3, "a", 3]} == list_of("$tuple", [3, "a", 3])


def test_a_member_is_named_by_its_value():
    """The encoded form is accepted, too."""
    red = {"$model": "m.C", "name": "RED", "value": "red"}
    schema = {"x-members": [red, "plain"]}
    assert [red, red, "plain"] == [member_of(schema, value, "x") for value in ("red", red, "plain")]
    with pytest.raises(Misfit, match="x: 'RED' is none of 'red', 'plain'"):
        member_of(schema, "RED", "x")
