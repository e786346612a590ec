"""Reports of a suite over many cases, as a page and as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from grace_kp import scorers as sc
from tests.scorers.records import BAD, GOOD

pytest.importorskip("regex", reason="needs the extra eval")


def rows():
    suite = sc.Suite([sc.Entry(sc.OperationAccuracy()), sc.Entry(sc.ContentQuality())])
    return [(name, suite.evaluate(*case).to_dict()) for name, case in (("good <1>", GOOD), ("bad", BAD))]


def test_a_page_shows_totals_scorers_and_the_diagnosis_of_failed_cases():
    """Names are text, not markup."""
    page = sc.html_report(rows(), "a suite")
    assert "<h1>a suite</h1><p>1 of 2 cases pass; overall 0.500 on average.</p>" in page
    assert "good &lt;1&gt;" in page
    assert "operation-accuracy: 0.00, and 0.80 is needed" in page
    assert page.count("<summary>why</summary>") == 1


def test_a_page_without_cases_has_no_scorers():
    """Nothing is divided by zero."""
    page = sc.html_report([], "empty")
    assert "0 of 0 cases pass" in page
    assert "Scorers" not in page


def test_junit_has_a_test_case_for_each_case():
    """The diagnosis is the text of the failure."""
    root = ElementTree.fromstring(sc.junit_report(rows(), "a suite").partition("\n")[2])
    assert (root.get("name"), root.get("tests"), root.get("failures")) == ("a suite", "2", "1")
    good, bad = root.findall("testcase")
    assert (good.get("name"), good.find("failure")) == ("good <1>", None)
    assert bad.find("failure").get("message") == "overall 0.000"
    assert "operation-accuracy: 0.00" in bad.find("failure").text
