"""The pages that commands write: tables that keep their roles in narrow windows, nothing that runs, and filters without scripts."""

from __future__ import annotations

import re

import pytest

from grace_kp import rubric as rb
from grace_kp.rubric import comparison_page, history_page
from grace_kp.scorers import html_report
from tests.pages.reading import Elements, problems

pytest.importorskip("scipy", reason="needs the extra eval")

HOSTILE = "x\"><script>alert(1)</script>\x1b[31m&amp;\u202e'onload=alert(1)"


def result(kind, score, threshold=0.8, error=""):
    passed = score >= threshold
    return {"type": kind, "score": score, "weight": 1.0, "threshold": threshold, "passed": passed, "error": error}


def report(*results):
    failed = [one for one in results if not one["passed"]]
    overall = sum(one["score"] for one in results) / len(results)
    diagnosis = [f"{one['type']} {HOSTILE}" for one in failed]
    return {"passed": not failed, "overall": overall, "results": list(results), "diagnosis": diagnosis}


def eval_page():
    rows = [
        ("first", report(result("accuracy", 1.0), result(HOSTILE, 1.0, 0.25))),
        (HOSTILE, report(result("accuracy", 0.5), result(HOSTILE, 1.0, 0.25))),
        ("third", report(result("accuracy", 1.0), result(HOSTILE, 0.0, 0.25, "it raised"))),
    ]
    return html_report(rows, f"suite {HOSTILE}")


def variants(first, second, problems=1):
    """Two variants of which the first detects nothing and the second everything."""
    found = tuple(rb.Problem(f"p{number}", "liability", "critical", "main") for number in range(problems))
    tests = rb.TestSet((rb.Document("contract", "law", found, 3),), 2)
    return [
        rb.Variant(name, (rb.Run("contract", {one.id: rb.Detection.of(sign) for one in found}),) * 2, tests)
        for name, sign in ((first, "×"), (second, "○"))
    ]


def rounds(folder, *names):
    history = rb.History.load(folder / "history.md")
    for variant in names:
        history.record(rb.Round(variant))
    return history


def rubric_page(best, variant):
    return comparison_page(best, variant, rb.compare(best, variant))


@pytest.fixture(params=["eval", "compare", "history"])
def page(request, tmp_path):
    if request.param == "eval":
        return eval_page()
    named = variants("base", HOSTILE)
    return rubric_page(*named) if request.param == "compare" else history_page(rounds(tmp_path, *named))


def test_tables_keep_their_roles_and_labels_in_a_narrow_window(page):
    """Rows below each other are laid out as blocks; the roles and the names of the columns stay."""
    elements = Elements(page).elements
    roles = {"table": {"table"}, "thead": {"rowgroup"}, "tbody": {"rowgroup"}, "tr": {"row"}, "td": {"cell"}}
    roles["th"] = {"columnheader", "rowheader"}
    assert roles == {tag: {found.get("role") for name, found in elements if name == tag} for tag in roles}
    scopes = {"columnheader": "col", "rowheader": "row"}
    assert all(scopes[found["role"]] == found["scope"] for tag, found in elements if tag == "th")
    assert all(found.get("data-label") != "" for tag, found in elements if tag == "td")
    style = re.sub(r"\s+", "", page)
    assert all(rule in style for rule in ("width=device-width", "overflow-wrap:anywhere", "@media(max-width:"))


def test_a_page_runs_nothing_and_holds_no_control_characters(page):
    assert [] == [found for found in problems(page) if not found.startswith(("link to", "unbalanced", "element"))]
    assert "script" not in Elements(page).tags
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", page)


def test_cases_can_be_filtered_without_a_script():
    """Each choice says how many cases it leaves, and hides the others by their class."""
    source = eval_page()
    elements = Elements(source).elements
    choices = [found for tag, found in elements if tag == "input"]
    assert ["all", "fails", "passes", "fails-0", "fails-1"] == [found["id"] for found in choices]
    assert ["all"] == [found["id"] for found in choices if "checked" in found]
    cases = [
        set(found["class"].split()) for tag, found in elements if tag == "tbody" and "case" in found.get("class", "")
    ]
    for name, count in {"fails": 2, "passes": 1, "fails-0": 1, "fails-1": 1}.items():
        assert count == sum(name in classes for classes in cases)
        assert f"body:has(#{name}:checked) .case:not(.{name}){{display:none}}" in source
        assert f"({count})" in source


def test_a_score_below_its_threshold_reads_without_colour():
    """It has a mark; what could not be scored has no figure."""
    text = Elements(eval_page()).text
    assert [True, True, False] == [words in text for words in ("✗ 0.50", "✗ not scored", "✗ 0.00")]


def test_a_number_of_further_runs_that_is_0_is_written_as_0(tmp_path):
    """None is a number that cannot be estimated; 0 is a number."""
    settled = variants("base", "better", problems=12)
    assert 0 == rb.compare(*settled).evidence.further_runs
    text = Elements(rubric_page(*settled)).text
    assert re.match(r"\s*0(?!\.)", text.partition("further runs of each that would settle it")[2])
    rounds(tmp_path, *settled).save()
    assert "settle it: 0.\n" in (tmp_path / "history.md").read_text("utf-8")
