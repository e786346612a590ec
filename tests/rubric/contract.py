"""A small test set in Python and in YAML, for the tests of raters and files."""

from __future__ import annotations

from grace_kp import rubric as rb

O, P, X = rb.Detection  # noqa: E741
PROBLEMS = (
    rb.Problem("limit", "liability", "critical", "main", "names the missing limit of liability"),
    rb.Problem("term", "duration", "medium", "adjacent", "sees that no notice period is given"),
    rb.Problem("typo", "style", "minor", "subtle"),
)
TESTS = rb.TestSet(
    (rb.Document("contract", "law", PROBLEMS, 3, text="This contract has no end."),), 1, scope="legal risks only"
)
DOCUMENT = TESTS.documents[0]


GOOD = """\
scope: x
runs_per_document: 3
documents:
  - id: a
    domain: law
    bonus_candidates: 3
    text: the text
    problems:
      - {id: p1, category: main, severity: critical, key: the key}
      - id: 2
        category: other
        severity: minor
        kind: subtle
"""
