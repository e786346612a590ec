"""Rounds as tables on a page: what is written reads back, and a table that cannot be read is an error with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import InvalidHistory
from grace_kp import rubric as rb
from grace_kp.rubric._history import Section, escape_cell, lines_of, table_text, unescape_cell
from tests.rubric.variants import O, P, X, documents_over, variant


class TestHistory:
    def rounds(self):
        yield variant(
            "base line | one",
            ("a", [O, P, X, X], 1, 0),
            ("a", [P, P, X, X]),
            ("b", [O, X, X, X], 0, 2),
            ("b", [P, X, X, X]),
        )
        yield variant("better", ("a", [O, O, O, X]), ("a", [O, O, O, X]), ("b", [O, O, O, X]), ("b", [O, O, P, X]))
        yield variant("worse", ("a", [X] * 4), ("a", [X] * 4), ("b", [X] * 4), ("b", [P, X, X, X]))

    def test_a_page_reads_back_as_it_was(self, tmp_path):
        path = tmp_path / "history.md"
        history = rb.History.load(path)
        assert history.best is None
        choices = [history.record(rb.Round(one, notes="Some prose.")) for one in self.rounds()]
        history.save()
        assert [None, "variant", "best"] == [one and one.choice for one in choices]

        again = rb.History.load(path)
        assert history.rounds == again.rounds
        assert history.test_set == again.test_set
        assert "better" == again.best.name
        assert again.text == path.read_text("utf-8")
        again.save()
        assert rb.History.load(path).text == history.text

    def test_another_test_set_and_another_variant_of_the_same_name(self, tmp_path):
        history = rb.History.load(tmp_path / "h.md")
        base, *_ = self.rounds()
        history.record(rb.Round(base))
        with pytest.raises(ValueError, match="already"):
            history.record(rb.Round(base))
        other = variant("x", ("a", [O, O]), test_set=documents_over(categories=("main", "main")))
        with pytest.raises(ValueError, match="another test set"):
            history.record(rb.Round(other))

    @given(
        st.lists(
            st.tuples(st.lists(st.sampled_from([O, P, X]), min_size=16, max_size=16), st.integers(0, 9), st.integers(0, 9)),
            min_size=1, max_size=4,
        ),
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=12).filter(str.strip),
    )  # fmt: skip
    def test_any_rounds_read_back(self, tmp_path_factory, given_rounds, name):
        path = tmp_path_factory.mktemp("h") / "history.md"
        history = rb.History.load(path)
        for number, (signs, bonuses, penalties) in enumerate(given_rounds):
            runs = [("a", signs[:4], bonuses, penalties), ("a", signs[4:8]), ("b", signs[8:12]), ("b", signs[12:])]
            history.record(rb.Round(variant(f"{name.strip()} {number}", *runs)))
        history.save()
        again = rb.History.load(path)
        assert history.rounds == again.rounds
        assert history.test_set == again.test_set


HEADER = ("name", "count")


def section(text):
    found = Section("h.md", lines_of(text))
    found.read_tables([HEADER])
    return found


@given(st.text())
def test_any_text_reads_back_from_a_cell(text):
    """Also bars, backslashes, line ends and characters that cannot be seen."""
    escaped = escape_cell(text)
    assert unescape_cell(escaped) == text
    assert "\n" not in escaped
    assert escaped == escaped.strip(" \t")


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(0, 10**6)), max_size=4))
def test_a_table_reads_back(rows):
    """With the line of each row."""
    table = section("# Title\n\n" + table_text(HEADER, rows)).table(HEADER)
    assert [(row.cells[0], row.whole_number(1), row.line) for row in table.rows] == [
        (name, count, line) for line, (name, count) in enumerate(rows, 5)
    ]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("# A\n## B ##\n", [(1, "A"), (2, "B ##")]),
        ("```\n# A\n```\n# B\n", [(1, "B")]),
        ("~~~~\n# A\n~~~\n# B\n~~~~\n# C\n", [(1, "C")]),
        ("<!--\n# A\n-->\n# B\n", [(1, "B")]),
        ("    # A\n#B\n", []),
        ("# A\x0c# B\n", [(1, "A\x0c# B")]),
    ],
)
def test_headings_stand_outside_of_code_and_comments(text, headings):
    """Only a line feed ends a line."""
    assert [line.heading for line in lines_of(text) if line.heading] == headings


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("| name | count |\n| a | 1 |\n", 2, "the line below a table's header must be"),
        ("| name | count |\n|---|---|\n| a |\n", 3, "the row has 1 cells, and the table 2 columns"),
        ("| name | count |\n|---|---|\n| a | 1 |\n\n| b | 2 |\n", 5, "this row is separated from its table"),
        ("| name | count |\n|---|---|\n\n| Name | COUNT |\n|---|---|\n", 4, "there is a second table with the columns name, count"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read(text, line, problem):
    """The error names the file and the line."""
    with pytest.raises(InvalidHistory) as caught:
        section(text)
    assert str(caught.value).startswith(f"h.md:{line}: {problem}")


def test_a_missing_table_is_an_error_at_its_section():
    """With the columns that it must have."""
    with pytest.raises(InvalidHistory, match=r"h\.md:1: the table with the columns name, count is missing"):
        section("# Title\n").table(HEADER)


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("x", "a number is needed, not 'x'"),
        ("inf", "a number is needed"),
        ("nan", "a number is needed"),
        ("-1", "a whole number"),
        ("1.5", "a whole number"),
    ],
)
def test_a_cell_without_a_whole_number(cell, problem):
    """Numbers that are not finite count as none."""
    (row,) = section(table_text(HEADER, [("a", cell)])).table(HEADER).rows
    with pytest.raises(InvalidHistory, match=problem):
        row.whole_number(1)
