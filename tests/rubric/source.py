"""A test set in YAML, for the tests of files."""

from __future__ import annotations

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
