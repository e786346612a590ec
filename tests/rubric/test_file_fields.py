"""The fields of test sets and variants: a field that is wrong is named with its line, the value found and what is allowed."""

from __future__ import annotations

import pytest

from grace_kp import rubric as rb
from tests.rubric.source import GOOD

pytest.importorskip("yaml", reason="needs the extra eval")


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("documents:", "document:", 3, "unknown field 'document'; known are documents, scope"),
        ("    domain: law\n", "", 4, "documents[0].domain: is missing"),
        (
            "severity: minor",
            "severity: tiny",
            10,
            "the severity of 2 must be one of critical, medium, minor, not 'tiny'",
        ),
        ("severity: minor", "gravity: minor", 12, "documents[0].problems[1]: unknown field 'gravity'"),
        ("kind: subtle", "kind: odd", 10, "the kind of 2 must be one of"),
        ("id: 2", "id: p1", 4, "has the problem p1 twice"),
        ("domain: law", "domain: 3", 4, "the domain of a must be a text, not 3"),
        ("id: 2", "id: ''", 10, "the id of a problem must be a text that is not empty"),
        ("bonus_candidates: 3", "bonus_candidates: -1", 4, "must be a whole number from 0, not -1"),
        ("runs_per_document: 3", "runs_per_document: many", 1, "must be a whole number from 0, not 'many'"),
        ("text: the text", "text: [a]", 7, "documents[0].text: must be a text, not a list of 1"),
        ("text: the text", "file: nowhere.md", 7, "documents[0]: file nowhere.md: No such file"),
        ("text: the text", "text: x\n    file: y", 8, "there is either text or file, not both"),
        ("scope: x", "scope: x\nscope: y", 2, "duplicate key 'scope'"),
        ("scope: x", "scope: [", 3, "not valid YAML"),
        ("scope: x", "scope: 2020-13-45", None, "month must be in"),
        ("scope: x", "scope: !!python/object:os.system x", 1, "not valid YAML: could not determine a constructor"),
    ],
)
def test_a_test_set_that_cannot_be_read(read, tmp_path, old, new, line, problem):
    assert old in GOOD
    with pytest.raises(rb.RubricFileError) as caught:
        read(GOOD.replace(old, new, 1))
    said = str(caught.value)
    assert problem in said
    assert said.startswith(f"{tmp_path / 't.yaml'}:" + (f"{line}: " if line else ""))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: v", "runs: is missing"),
        ("runs: [{document: z}]", "there is no document 'z'; there are a"),
        ("runs: [{}]", "runs[0].document: is missing"),
        ("runs: [{document: a, judgements: ○}]", "a has 2 problems, and 1 are judged"),
        ("runs: [{document: a, judgements: {p9: ○}}]", "a has no problem 'p9'"),
        (
            "runs: [{document: a, judgements: {p1: no}}]",
            "a judgement must be one of ○ △ × detected partial missed, not False",
        ),
        (
            "runs: [{document: a, judgements: 3}]",
            "judgements are symbols in the order of the problems or an object by problem, not 3",
        ),
        ("runs: [{document: a, judgements: ○○, penalties: x}]", "penalties must be a whole number from 0"),
        ("runs: [{document: a, second: {judgements: ○○}}]", "there is a second rating and no first"),
        ("runs: [{document: a, judgements: ○○, second: {}}]", "runs[0].second.judgements: is missing"),
        ("runs: [{document: a, verdicts: ○○}]", "unknown field 'verdicts'"),
        ("runs: [{document: a, judgements: ○○, reasons: [a]}]", "runs[0].reasons: must be an object, not a list of 1"),
    ],
)
def test_a_variant_that_cannot_be_read(read, text, problem):
    tests = read(GOOD)
    with pytest.raises(rb.RubricFileError, match=r"v\.yaml:1: ") as caught:
        read(text, rb.read_variant, "v.yaml", tests)
    assert problem in str(caught.value)
