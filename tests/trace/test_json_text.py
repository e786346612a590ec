"""JSON texts become values with their lines, and problems with reason and place."""

from __future__ import annotations

import pytest

from grace_kp.trace import object_without_duplicates
from grace_kp.trace._json_text import BrokenText, FoundValue, read_line, read_text


def values(text, line=1):
    return [
        found.value if isinstance(found, FoundValue) else (found.line, found.problem)
        for found in read_text(text, line, lambda item: "role" in item)
    ]


def test_a_line_holds_one_value():
    """Blanks at its end do not matter."""
    assert FoundValue({"a": 1}, 7) == read_line('{"a": 1}  \n', 7)


@pytest.mark.parametrize(
    ("text", "problem", "incomplete"),
    [
        ('{"a": ', "is not JSON: expecting value", True),
        ('{"a": "x', "is not JSON: unterminated string starting at", False),
        ("{} {}", "is not JSON: extra data", False),
        ("NaN", "is not JSON that can be read: NaN is not a JSON number", False),
        ("9" * 5_000, "is not JSON that can be read: a number has too many digits", False),
        ("[" * 100_000, "is nested too deeply to be read", False),
    ],
)
def test_a_broken_line_says_why(text, problem, incomplete):
    """And whether it is only the beginning of a value."""
    broken = read_line(text, 3)
    assert isinstance(broken, BrokenText)
    assert (problem, 3, incomplete) == (broken.problem, broken.line, broken.incomplete)


def test_values_may_span_lines():
    """Several of them, each with the line on which it begins."""
    found = list(read_text('{\n"a": 1\n}\n\n{"b": 2}', 5, lambda item: False))
    assert [FoundValue({"a": 1}, 5), FoundValue({"b": 2}, 9)] == found


def test_a_list_gives_its_items_with_their_paths():
    """Unless its first item is part of a single value, as in a list of messages."""
    assert [FoundValue({"a": 1}, 1, "[0]"), FoundValue({"b": 2}, 2, "[1]")] == list(
        read_text('[{"a": 1},\n{"b": 2}]', 1, lambda item: False)
    )
    assert [[{"role": "user"}]] == values('[{"role": "user"}]')
    assert [[]] == values("[]")


def test_reading_continues_after_a_broken_value():
    """At the next line that is indented like it and opens an object."""
    assert [{"a": 1}, (2, "is not JSON: expecting value"), {"c": 3}] == values('{"a": 1}\n{"b": x}\n{"c": 3}')


def test_a_value_that_is_cut_off_is_reported_on_its_own_line():
    """The next value begins where this one should go on."""
    assert [(1, "is not JSON: it is not complete when the next value begins"), {"b": 2}] == values('{"a": 1,\n{"b": 2}')


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[{"a": 1}\n{"b": 2}]', (2, "is not JSON: expecting ',' or ']' after an item of the list")),
        ('[{"a": 1},\n{"b": 2}', (2, "is not JSON: the list is not closed")),
    ],
)
def test_a_damaged_list_gives_its_items_and_the_problem(text, problem):
    """Nothing that can be read is lost."""
    found = values(text)
    assert problem in found
    assert [{"a": 1}, {"b": 2}] == [item for item in found if item != problem]


def test_duplicate_keys_are_refused():
    """Python would keep the last value only."""
    assert {"a": 1, "b": 2} == object_without_duplicates([("a", 1), ("b", 2)])
    with pytest.raises(ValueError, match="duplicate key 'a'"):
        object_without_duplicates([("a", 1), ("a", 2)])
