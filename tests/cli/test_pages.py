"""The pages that commands write: readable in narrow windows, by screen readers, without scripts, and safe with any text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from grace_kp import rubric as rb
from grace_kp.rubric import comparison_page, history_page
from grace_kp.scorers import html_report

pytest.importorskip("scipy", reason="needs the extra eval")

HOSTILE = "x\"><script>alert(1)</script>\x1b[31m&amp;\u202e'onload=alert(1)"


class Page(HTMLParser):
    """The elements of a page with their attributes, and its texts."""

    def __init__(self, text):
        super().__init__()
        self.source, self.elements, self.texts = text, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data.strip())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def result(kind, score, threshold=0.8, error=""):
    return {
        "type": kind,
        "score": score,
        "weight": 1.0,
        "threshold": threshold,
        "passed": score >= threshold,
        "error": error,
    }


def report(*results):
    return {
        "passed": all(one["passed"] for one in results),
        "overall": sum(one["score"] for one in results) / len(results),
        "results": list(results),
        "diagnosis": [f"{one['type']} {HOSTILE}" for one in results if not one["passed"]],
    }


def eval_page():
    rows = [
        ("first", report(result("accuracy", 1.0), result(HOSTILE, 1.0, 0.25))),
        (HOSTILE, report(result("accuracy", 0.5), result(HOSTILE, 1.0, 0.25))),
        ("third", report(result("accuracy", 1.0), result(HOSTILE, 0.0, 0.25, "it raised"))),
    ]
    return html_report(rows, f"suite {HOSTILE}")


def variants(*names):
    document = rb.Document("contract", "law", (rb.Problem("limit", "liability", "critical", "main"),), 3)
    tests = rb.TestSet((document,), 2)
    runs = tuple(rb.Run("contract", {"limit": rb.Detection.of("○")}) for _ in range(2))
    return [rb.Variant(name, runs, tests) for name in names]


def rubric_page():
    best, variant = variants("base", HOSTILE)
    return comparison_page(best, variant, rb.compare(best, variant))


def rounds_page(folder):
    best, variant = variants("base", "variant <b>x</b>")
    history = rb.History.load(folder / "history.md")
    history.record(rb.Round(best))
    history.record(rb.Round(variant))
    return history_page(history)


@pytest.fixture(params=["eval", "compare", "history"])
def page(request, tmp_path):
    return Page({"eval": eval_page, "compare": rubric_page, "history": lambda: rounds_page(tmp_path)}[request.param]())


def test_headers_say_what_they_head(page):
    """Every header cell is one of a column or of a row; every row has one."""
    scopes = [cell.get("scope") for cell in page.all("th")]
    assert {"col", "row"} == set(scopes)
    assert len(page.all("table")) <= scopes.count("row")


def test_tables_keep_their_roles(page):
    """Rows below each other are laid out as blocks; what they are stands in the roles."""
    roles = {"table": {"table"}, "thead": {"rowgroup"}, "tbody": {"rowgroup"}, "tr": {"row"}, "td": {"cell"}}
    roles["th"] = {"columnheader", "rowheader"}
    assert roles == {tag: {one.get("role") for one in page.all(tag)} for tag in roles}
    scopes = {"columnheader": "col", "rowheader": "row"}
    assert [] == [one for one in page.all("th") if scopes[one["role"]] != one["scope"]]


def test_a_narrow_window_needs_no_sideways_scrolling(page):
    """The page takes the window's width, long words break, and cells carry the names of their columns for rows below each other."""
    assert [True] == [
        "width=device-width" in one["content"] for one in page.all("meta") if one.get("name") == "viewport"
    ]
    style = re.sub(r"\s+", "", page.source)
    assert "overflow-wrap:anywhere" in style
    assert "@media(max-width:" in style
    assert "content:attr(data-label)" in style
    assert [] == [one for one in page.all("td") if one.get("data-label") == ""]


def test_a_page_runs_nothing_and_holds_no_control_characters(page):
    assert [] == page.all("script")
    assert [] == [attributes for _, attributes in page.elements if any(name.startswith("on") for name in attributes)]
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", page.source)


def test_cases_can_be_filtered_without_a_script():
    """Each choice says how many cases it leaves, and hides the others by their class."""
    page = Page(eval_page())
    choices = [one["id"] for one in page.all("input")]
    assert ["all", "fails", "passes", "fails-0", "fails-1"] == choices
    assert ["all"] == [one["id"] for one in page.all("input") if "checked" in one]
    cases = [set(one["class"].split()) for one in page.all("tbody") if "case" in one.get("class", "")]
    left = {name: sum(name in classes for classes in cases) for name in choices[1:]}
    assert {"fails": 2, "passes": 1, "fails-0": 1, "fails-1": 1} == left
    for name, count in left.items():
        assert f"body:has(#{name}:checked) .case:not(.{name}){{display:none}}" in page.source
        assert f"({count})" in page.source


def test_a_score_below_its_threshold_reads_without_colour():
    """It has a mark; what could not be scored has no figure."""
    page = Page(eval_page())
    assert "✗ 0.50" in page.texts
    assert "✗ not scored" in page.texts
    assert "✗ 0.00" not in page.texts


def test_a_number_of_further_runs_that_is_0_is_written_as_0(tmp_path):
    """None is a number that cannot be estimated; 0 is a number."""
    best, variant = settled()
    found = rb.compare(best, variant)
    assert 0 == found.evidence.further_runs
    page = Page(comparison_page(best, variant, found))
    place = page.texts.index("further runs of each that would settle it")
    assert "0" == next(text for text in page.texts[place + 1 :] if text)
    history = rb.History.load(tmp_path / "history.md")
    history.record(rb.Round(best))
    history.record(rb.Round(variant))
    history.save()
    assert "settle it: 0.\n" in (tmp_path / "history.md").read_text("utf-8")


def settled():
    """Two variants whose difference is beyond doubt."""
    problems = tuple(rb.Problem(f"p{number}", "liability", "critical", "main") for number in range(12))
    tests = rb.TestSet((rb.Document("contract", "law", problems, 3),), 2)
    return [
        rb.Variant(name, (rb.Run("contract", {one.id: rb.Detection.of(sign) for one in problems}),) * 2, tests)
        for name, sign in (("base", "×"), ("better", "○"))
    ]
