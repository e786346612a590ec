"""No text in a request can pass for a line of the question, whatever the terminal makes of it."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.gating.reviewers._layout import Page
from grace_kp.gating.reviewers._question import Question
from tests.exhaustive import examples

FORGED = "   euros = 5"
LINES = (
    "x\n" + FORGED,
    "x\n   euros = 5\n arguments:\n   euros = 5",
    "x" * 200 + FORGED,
    "x " * 200 + FORGED,
    "\r" + FORGED,
)
LINE_OF_AN_ARGUMENT = re.compile(r"^ {3}[^ |]")


def lines_of(arguments, request_for, columns, **fields):
    return Question(request_for(arguments, **fields)).in_full(Page(columns))


@pytest.mark.parametrize("columns", [20, 40, 51, 52, 80])
@pytest.mark.parametrize("text", LINES)
def test_a_text_is_no_argument(text, columns, request_for):
    """Lines that look like an argument are the arguments, in a value, a key, the objective, the reason and the problem."""
    arguments = {"note": text, "plan": [text, {text: text}], "euros": 5_000}
    shown = lines_of(arguments, request_for, columns, objective=text, reason=text, problem=text)
    names = [line.split()[0] for line in shown if LINE_OF_AN_ARGUMENT.match(line) and " = " in line]
    assert {"note", "plan", "euros"} >= set(names)
    assert ["   euros = 5000"] == [line for line in shown if line.startswith("   euros")]
    assert 1 == sum(line.startswith(" arguments:") for line in shown)


@examples(100)
@given(
    text=st.text(alphabet='a \n\\"│─█ф界\u0301\u20dd😀☰é'),
    columns=st.integers(20, 100),
)
def test_no_line_is_wider_than_the_terminal(text, columns, request_for):
    """Also where the terminal shows marks in columns of their own, and symbols and ambiguous characters in two."""

    def at_most(character):
        if character.isascii() or unicodedata.category(character)[0] == "M":
            return 1
        return 2

    for line in lines_of({"text": text}, request_for, columns, objective=text):
        if "\u2500" * columns != line and "confidence:" not in line:
            assert columns >= sum(map(at_most, line))


def test_what_continues_a_line_stands_behind_a_bar(request_for):
    """In values and in prose."""
    shown = lines_of({"note": "a\nb", "plan": {"c": "d\ne"}}, request_for, 60, objective="f\ng")
    assert [" for:        f\\n", "           | g"] == shown[3:5]
    assert ['   note = "a\\n', '   | b"', "   plan = {", '     "c": "d\\n', '     | e"', "   }"] == shown[6:12]


def test_remarks_name_arguments_without_control_characters(asked):
    """A request of your own may have any names."""
    with asked({"a\x1b[2Jb": iter("ab")}) as person:
        person.sees()
        person.types("y\n")
        remark = person.sees()
        assert "\x1b[2J" not in remark
        assert r"a\x1b[2Jb" in remark
