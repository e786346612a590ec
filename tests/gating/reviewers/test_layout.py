"""Text and values as lines: complete, unambiguous, and never like a line of the question."""

from __future__ import annotations

import datetime
import re
import types
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.gating._view import view
from grace_kp.gating.reviewers._question import Page, Question, prose, units, value_lines, wrap
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
    shown = lines_of({"note": "a\nb", "plan": {"c": "d\ne"}}, request_for, 60, objective="f\ng")
    assert [" for:        f\\n", "           | g"] == shown[3:5]
    assert ['   note = "a\\n', '   | b"', "   plan = {", '     "c": "d\\n', '     | e"', "   }"] == shown[6:12]


def test_remarks_name_arguments_without_control_characters(asked):
    with asked({"a\x1b[2Jb": iter("ab")}) as person:
        person.sees()
        person.types("y\n")
        remark = person.sees()
        assert "\x1b[2J" not in remark
        assert r"a\x1b[2Jb" in remark


def shown(text, **options):
    """The text in its shown form, and the number of columns that it takes."""
    found = list(units(text, Page(80), **options))
    return "".join(unit for unit, _ in found), sum(size for _, size in found)


@pytest.mark.parametrize(
    ("text", "expected", "columns"),
    [
        ("\x1b\x00\x7f", r"\x1b\x00\x7f", 12), ("\xff\u0100", "\xff\u0100", 2), ("\u202e\ue000", r"\u202e\ue000", 12),
        ("\U000f0000", r"\U000f0000", 10), ("\t\n\r\\", r"\t\n\r\\", 8), (" ~", " ~", 2), ("a\u200bb", r"a\u200bb", 8),
        ("x\u034f\ufe0f\U000e0100\u180b", r"x\u034f\ufe0f\U000e0100\u180b", 29), ("\u1810", "\u1810", 2),
        ("\ufe10\u3164\u2800", r"︐\u3164\u2800", 14),
        ("e\u0301\u0301\u0301", "e\u0301\u0301\u0301", 4), ("e\u0301\u0301\u0301\u0301", "e\u0301\u0301\u0301\\u0301", 10),
        ("1\u0301", r"1\u0301", 7), ("\u0301", r"\u0301", 6), ("e\u03011\u0301e\u0301", "e\u03011\\u0301e\u0301", 11),
        ("\u65e5\u0301", "\u65e5\u0301", 3), ("\u65e5\xe9\u2500\U0001f600", "\u65e5\xe9\u2500\U0001f600", 8), ("\u0416\uff71", "\u0416\uff71", 3),
        ("\u2500\u0301", "\u2500\\u0301", 8),
    ],
)  # fmt: skip
def test_characters(text, expected, columns):
    """What cannot be seen is escaped, up to three marks stand on a letter, and wide characters take two columns."""
    assert (expected, columns) == shown(text)


def test_escapes_have_the_digits_that_the_character_needs():
    expected = r"\xff\u0100\uffff\U00010000" + "~"
    assert expected == shown("\xff\u0100\uffff\U00010000~", ascii_only=True)[0]


def wrapped(text, width, hanging=0):
    return wrap(units(text, Page(80)), width, hanging)


@pytest.mark.parametrize(
    ("text", "width", "hanging", "expected"),
    [
        ("", 8, 0, [""]), ("aaaaaaa", 8, 0, ["aaaaaaa"]), ("aaaaaaaa", 8, 0, ["aaaaaaa\\", "a"]), ("a" * 15, 8, 0, ["aaaaaaa\\", "aaaaaaa\\", "a"]),
        ("a" * 15, 10, 3, ["aaaaaaaaa\\", "aaaaaa"]), ("a" * 18, 10, 2, ["aaaaaaaaa\\", "aaaaaaa\\", "aa"]), ("a" * 18, 12, 2, ["aaaaaaaaaaa\\", "aaaaaaa"]),
        ("a" * 15, 1, 0, ["aaaaaaa\\", "aaaaaaa\\", "a"]), ("a b c d e f g h i j", 8, 0, ["a b c ", "d e f ", "g h i j"]),
        ("hello big world  two", 8, 0, ["hello ", "big ", "world  \\", "two"]), ("hello big world  two", 10, 0, ["hello ", "big ", "world  tw\\", "o"]),
        ("hello big world  two", 11, 0, ["hello big ", "world  two"]), ("hello big world  two", 12, 2, ["hello big ", "world  tw\\", "o"]),
        ("aaaa  bbbb cccc", 8, 0, ["aaaa  b\\", "bbb ", "cccc"]), ("a  b   c   d   e", 8, 0, ["a  b   \\", "c   d  \\", " e"]),
        ("a\nb", 8, 0, ["a\\n", "b"]), ("aaaaaaa\nb", 8, 0, ["aaaaaaa\\", "\\n", "b"]), ("aaaaaa\n\nb", 10, 0, ["aaaaaa\\n", "\\n", "b"]),
        ("\u65e5" * 6, 8, 0, ["\u65e5" * 3 + "\\", "\u65e5" * 3]), (" a", 8, 0, [" a"]), ("a  bbbbbbb", 8, 0, ["a  bbbb\\", "bbb"]),
        ("a b\nc d e f g", 8, 0, ["a b\\n", "c d e ", "f g"]), ("aa bb  ccccc", 8, 0, ["aa ", "bb  ccc\\", "cc"]),
    ],
)  # fmt: skip
def test_lines_are_broken(text, width, hanging, expected):
    assert expected == wrapped(text, width, hanging)


STRUCTURE = {"a": 1, "b": [1, 2, {"c": "d"}]}


@pytest.mark.parametrize(
    ("value", "width", "expected"),
    [
        (STRUCTURE, 44, ['   name = {"a": 1, "b": [1, 2, {"c": "d"}]}']),
        (STRUCTURE, 43, ['   name = {"a": 1, "b": [1, 2, {"c": "d"}]}']),
        (STRUCTURE, 42, ["   name = {", '     "a": 1,', '     "b": [1, 2, {"c": "d"}]', "   }"]),
        (STRUCTURE, 26, ["   name = {", '     "a": 1,', '     "b": [', "       1,", "       2,", '       {"c": "d"}', "     ]", "   }"]),
        (STRUCTURE, 20, ["   name = {", '     "a": 1,', '     "b": [', "      1,", "      2,", '      {"c": "d"}', "     ]", "   }"]),
        ([["x" * 30]], 20, ["   name = [", "     [", '      "xxxxxxxxxxxx\\', "      | xxxxxxxxxxx\\", '      | xxxxxxx"', "     ]", "   ]"]),
        ((1,), 20, ["   name = (1,)"]),
        (["a\nb"], 20, ["   name = [", '     "a\\n', '     | b"', "   ]"]),
        ({"long key of a dict": "long value of a dict"}, 30,
         ["   name = {", '     "long key of a dict": ', '     | "long value of a dict"', "   }"]),
        ({"k": "\u05d1"}, 40, ["   name = {", '     "k": "\u05d1"', r'     | in this order: "\u05d1"', "   }"]),
        (types.SimpleNamespace(a="x" * 20, b=2), 30,
         ["   name = SimpleNamespace(", '     a="xxxxxxxxxxxxxxxxxxxx",', "     b=2", "   )"]),
        (datetime.date(2026, 1, 2), 40, ['   name = date("2026-01-02")']),
        (datetime.date(2026, 1, 2), 20, ["   name = ", '   | date("2026-01-\\', '   | 02")']),
    ],
)  # fmt: skip
def test_values_are_laid_out(value, width, expected):
    lines = value_lines("name", view(value).root, Page(width), 3)
    assert expected == lines
    assert width >= max(map(len, lines))


@pytest.mark.parametrize("width", range(20, 60))
def test_no_line_of_a_structure_is_wider_than_the_page(width):
    hebrew = "\u05d0\u05d1 " * 12
    value = {
        "key": [types.SimpleNamespace(field="x" * 30, other=[(1,), "y" * 12]), hebrew, "z z " * 9, "w" * 17],
        "last": hebrew,
    }
    lines = [*value_lines("name", view(value).root, Page(width), 3), *prose(" for: ", hebrew, Page(width), 3)]
    assert width >= max(map(len, lines))
    whole = "".join(line.strip().removeprefix("| ").removesuffix("\\") for line in lines)
    assert 3 == whole.replace(" ", "").count(r"\u05d0\u05d1" * 12)
