"""Histories: rounds, tables and prose of a page read back, and whatever differs from its runs is an error with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import InvalidHistory
from grace_kp import rubric as rb
from grace_kp.rubric._history import escape_cell, lines_of, unescape_cell
from tests.rubric.variants import O, P, X, documents_over, variant

SIGNS = ["○△×", "×××", "○○×", "○○○"]


def over(*keys, runs=2):
    problems = tuple(
        rb.Problem(f"p{n}", category, "medium", "main", key)
        for n, (category, key) in enumerate(zip(("main", "adjacent", "subtle"), (*keys, "", "", ""), strict=False))
    )
    return rb.TestSet((rb.Document("a", "law", problems, 3), rb.Document("b", "code", problems, 4)), runs)


def signed_variant(name, *signs, test_set=None, **counts):
    tests = test_set or over()
    runs = [
        rb.Run(
            document,
            {problem.id: sign for problem, sign in zip(tests.documents[0].problems, row, strict=True)},
            **counts,
        )
        for document, row in zip("aabb", signs or SIGNS, strict=True)
    ]
    return rb.Variant(name, runs, tests)


def three(path):
    history = rb.History.load(path)
    for one in (signed_variant("base", *["×△×"] * 4), signed_variant("longer"), signed_variant("third", *["○○○"] * 4)):
        history.record(rb.Round(one))
    history.save()
    return history


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history.md"


def edited(path, old, new):
    page = path.read_bytes().decode()
    assert old in page
    path.write_bytes(page.replace(old, new, 1).encode())


@pytest.mark.parametrize(
    "heading",
    [
        "### Round 3: third",
        "## Round 3 - third",
        "Round 3: third",
        "## 3: third",
    ],
)
def test_a_round_whose_heading_is_none_is_an_error(path, heading):
    three(path)
    line = path.read_text("utf-8").split("\n").index("## Round 3: third") + 1
    edited(path, "## Round 3: third", heading)
    with pytest.raises(InvalidHistory) as caught:
        rb.History.load(path)
    assert line <= caught.value.line <= line + 2


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("| b | 3 | ○○○", "\n| b | 3 | ○○○", "this row is separated from its table"),
        ("| b | 4 | ○○○ | 0 | 0 | 3 |", "\n\n| b | 4 | ○○○ | 0 | 0 | 3 |", "this row is separated"),
        ("| b | 3 | ○○○ | 0 | 0 | 3 |\n", "", "this should be run 3"),
        ("| b | 4 | ○○○ | 0 | 0 | 3 |", "and so on", "the row has 1 cells"),
    ],
)
def test_no_run_gets_lost(path, old, new, problem):
    three(path)
    page = path.read_text("utf-8")
    start = page.index("## Round 3")
    assert old in page[start:]
    path.write_text(page[:start] + page[start:].replace(old, new, 1), "utf-8")
    with pytest.raises(InvalidHistory, match=problem):
        rb.History.load(path)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "| mean | SD |",
            "| average | SD |",
            "the table with the columns mean, SD, stability, gap, balance is missing",
        ),
        ("| category | rate | of", "| kind | rate | of", "columns category, rate, of the best, difference is missing"),
        ("| compared with | goes", "| against | goes", "columns compared with, goes on with"),
        ("| low |", "| high |", "stability is high on the page"),
        (
            "| subtle | 0.25 | 0.00 | +0.25 |",
            "| subtle | 0.20 | 0.00 | +0.25 |",
            "rate in subtle is 0.2 on the page",
        ),
        (
            "| subtle | 0.25 | 0.00 | +0.25 |",
            "| subtle | 0.25 | 0.10 | +0.25 |",
            "of the best in subtle is 0.1 on the page",
        ),
        (
            "| subtle | 0.25 | 0.00 | +0.25 |",
            "| subtle | 0.25 | 0.00 | +9 |",
            "difference in subtle is 9 on the page",
        ),
        ("| subtle | 0.25 | 0.00 | +0.25 |\n", "", "there must be one row for each category"),
        ("| base | base | +1.12 | +1.12 |", "| base | base | +99 | +1.12 |", "difference is 99 on the page"),
        ("| base | base | +1.12 | +1.12 |", "| base | base | +1.12 | banana |", "a number is needed, not 'banana'"),
        ("| base | base | +1.12 | +1.12 |", "| base | base | inf | +1.12 |", "a number is needed, not 'inf'"),
        ("| a | law | 3 | 2 |", "| a | law | 1.5 | 2 |", "a whole number is needed"),
        ("| a | law | 3 | 2 |", "| a |", "the row has 1 cells, and the table 4 columns"),
        ("\n|---|---|---|---|\n", "\n", "the line below a table's header must be"),
        (
            "## Round 1",
            "| Document | DOMAIN | bonus candidates | runs |\n|---|---|---|---|\n\n## Round 1",
            "there is a second table",
        ),
        ("| base | base | +1.12", "| base | somebody | +1.12", "the choice must be 'base' or 'longer', not 'somebody'"),
        ("| base | base | +1.12", "| other | base | +1.12", "the best before this round is 'base', not 'other'"),
        ("## Round 3: third", "## Round 3: longer", "there is already a variant 'longer'"),
        ("| a | law | 3 | 2 |", "| a | law | 3 | 3 |", "all documents of a test set have the same number of runs"),
        ("| a | law | 3 | 2 |", "| a | law | -1 | 2 |", "a whole number is needed"),
        ("| a | p0 |", "| z | p0 |", "the document 'z' is unknown"),
    ],
)
def test_what_is_not_what_the_runs_come_to_is_an_error_with_its_line(path, old, new, problem):
    three(path)
    page = path.read_text("utf-8")
    assert old in page, page
    edited(path, old, new)
    with pytest.raises(InvalidHistory, match=problem) as caught:
        rb.History.load(path)
    said = str(caught.value)
    assert said.startswith(f"{path}:{caught.value.line}: ")
    if old.startswith("|") and new.startswith("|") and "columns" not in problem and "number of runs" not in problem:
        assert page[: page.index(old)].count("\n") + 1 == caught.value.line


PROSE = [
    "## Thoughts\n\nIt went well.\n",
    "### Round 2 in short\n\nIt went well.\n",
    "```\n## Round 9: not one\n| document | run | judgements | bonuses | penalties | score |\n```\n",
    "~~~~ text\n```\n## x\n~~~~\n",
    "<!-- to do:\n## Round 7: later\n| mean | SD | stability | gap | balance |\n-->\n",
    "| who | what |\n|---|---|\n| Ann | a \\| b |\n",
    "A | b in prose.\n",
    "1. one\n2. two\n\n> quoted | line\n",
    "---\n",
]


@pytest.mark.parametrize("prose", PROSE)
@pytest.mark.parametrize(
    "before",
    ["| document | run | judgements", "| mean | SD", "## Round 2", "## Round 3", "## Test set", "# History", None],
)
def test_what_people_write_stays_where_it_is(path, prose, before):
    history = three(path)
    page = path.read_text("utf-8")
    page = page + "\n" + prose if before is None else page.replace(before, prose + "\n" + before, 1)
    path.write_text(page, "utf-8")
    again = rb.History.load(path)
    assert [one.variant for one in history.rounds] == [one.variant for one in again.rounds]
    assert [one.recommendation for one in history.rounds] == [one.recommendation for one in again.rounds]
    assert page == again.text
    again.record(rb.Round(signed_variant("fourth")))
    again.save()
    assert path.read_text("utf-8").startswith(page)
    assert 4 == len(rb.History.load(path).rounds)


@pytest.mark.parametrize("notes", [*PROSE, "Two\n\nparagraphs.", "## Why\nbecause", "# One\n## Two"])
def test_notes_read_back(path, notes):
    history = three(path)
    history.record(rb.Round(signed_variant("fourth"), notes=notes))
    history.save()
    again = rb.History.load(path)
    assert history.rounds == again.rounds
    assert notes.strip("\n") == again.rounds[-1].notes


@pytest.mark.parametrize(
    "notes",
    [
        "## Round 9: mine",
        "| mean | SD | stability | gap | balance |\n|---|---|---|---|---|\n| 1 | 1 | high | 1 | 1 |",
        "| document | domain | bonus candidates | runs |\n|---|---|---|---|\n| example | x | 1 | 2 |",
        "```\nnot closed",
        "<!-- not closed",
    ],
)
def test_notes_that_would_not_read_back_are_refused_and_change_nothing(path, notes):
    history = three(path)
    before = (history.text, list(history.rounds))
    with pytest.raises(ValueError, match="would not read back"):
        history.record(rb.Round(signed_variant("fourth"), notes=notes))
    assert before == (history.text, history.rounds)
    first = rb.History.load(path.with_name("other.md"))
    with pytest.raises(ValueError, match="would not read back"):
        first.record(rb.Round(signed_variant("first"), notes=notes))
    first.record(rb.Round(signed_variant("other", test_set=over("another key"))))
    assert 1 == len(first.rounds)


@given(
    st.lists(st.text(min_size=1).filter(lambda text: text.strip()).map(lambda text: text.encode("utf-8", "replace").decode()), min_size=4, max_size=4, unique=True),
    st.text().map(lambda text: text.encode("utf-8", "replace").decode()),
)  # fmt: skip
def test_any_names_read_back(tmp_path_factory, names, key):
    folder = tmp_path_factory.mktemp("h")
    tests = rb.TestSet((rb.Document(names[0], key, (rb.Problem(names[1], names[2], "minor", None, key),)),), 1)
    history = rb.History.load(folder / "h.md")
    for number in (1, 2):
        history.record(rb.Round(rb.Variant(f"{names[3]}{number}", [rb.Run(names[0], {names[1]: "△"})], tests)))
    history.save()
    again = rb.History.load(folder / "h.md")
    assert (history.rounds, history.test_set) == (again.rounds, again.test_set)


def test_windows_line_ends_stay(path):
    three(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    again = rb.History.load(path)
    again.record(rb.Round(signed_variant("fourth"), notes="Two\nlines."))
    again.save()
    data = path.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n")
    assert "Two\nlines." == rb.History.load(path).rounds[-1].notes


def test_a_page_that_is_no_text(path):
    three(path)
    path.write_bytes(path.read_bytes().replace(b"law", b"l\xffw"))
    with pytest.raises(InvalidHistory, match=r"history\.md:\d+: not UTF-8"):
        rb.History.load(path)


def test_links_and_modes_stay(path):
    three(path)
    path.chmod(0o600)
    link = path.with_name("link.md")
    link.symlink_to(path.name)
    history = rb.History.load(link)
    history.record(rb.Round(signed_variant("fourth")))
    history.save()
    assert link.is_symlink()
    assert 4 == len(rb.History.load(path).rounds)
    assert 0o600 == path.stat().st_mode & 0o777


def test_what_somebody_else_wrote_meanwhile_is_not_written_over(path):
    three(path)
    mine, theirs = rb.History.load(path), rb.History.load(path)
    theirs.record(rb.Round(signed_variant("theirs")))
    theirs.save()
    mine.record(rb.Round(signed_variant("mine")))
    with pytest.raises(rb.HistoryChanged, match="has changed since it was read; nothing was written"):
        mine.save()
    assert "theirs" == rb.History.load(path).rounds[-1].variant.name
    path.unlink()
    with pytest.raises(rb.HistoryChanged):
        theirs.save()
    fresh = rb.History.load(path)
    path.write_text("a note", "utf-8")
    with pytest.raises(rb.HistoryChanged):
        fresh.save()
    assert "a note" == path.read_text("utf-8")
    assert [path.name] == [one.name for one in path.parent.iterdir()]


def test_what_is_no_history(path):
    assert not rb.History.load(path).is_unrelated
    path.write_text("# A page\n\nSomething else.\n", "utf-8")
    assert rb.History.load(path).is_unrelated
    three(path.with_name("h.md"))
    assert not rb.History.load(path.with_name("h.md")).is_unrelated


def test_a_decision_of_people_keeps_its_reason_and_the_figures_of_the_runs(path):
    history = three(path)
    best = history.best
    given_ = rb.Recommendation("best", "we prefer | the old", 9.0, 9.0, {})
    made = history.record(rb.Round(signed_variant("fourth", *["○○○"] * 3, "×××"), given_))
    history.save()
    again = rb.History.load(path).rounds[-1].recommendation
    assert made == again
    assert ("best", "we prefer | the old", -0.75) == (again.choice, again.reason, again.raw_diff)
    assert best == history.best
    with pytest.raises(ValueError, match="a choice must be 'best' or 'variant', not 'Variant'"):
        history.record(rb.Round(signed_variant("fifth"), rb.Recommendation("Variant", "x", 0, 0, {})))
    with pytest.raises(ValueError, match="compared with nothing"):
        rb.History.load(path.with_name("new.md")).record(rb.Round(signed_variant("first"), given_))


class TestHistory:
    def test_another_test_set_and_another_variant_of_the_same_name(self, tmp_path):
        history = rb.History.load(tmp_path / "h.md")
        assert history.best is None
        base = variant("base line | one", ("a", [O, P, X, X], 1, 0), ("b", [P, X, X, X], 0, 2))
        history.record(rb.Round(base))
        with pytest.raises(ValueError, match="already"):
            history.record(rb.Round(base))
        other = variant("x", ("a", [O, O]), test_set=documents_over(categories=("main", "main")))
        with pytest.raises(ValueError, match="another test set"):
            history.record(rb.Round(other))


@given(st.text())
def test_any_text_reads_back_from_a_cell(text):
    """Also bars, backslashes, line ends and characters that cannot be seen."""
    escaped = escape_cell(text)
    assert unescape_cell(escaped) == text
    assert "\n" not in escaped
    assert escaped == escaped.strip(" \t")


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
