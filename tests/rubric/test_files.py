"""Test sets and variants in files: they read back, and what cannot be read is told with its line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import rubric as rb
from tests.rubric.contract import GOOD

pytest.importorskip("yaml", reason="needs the extra eval")


def test_a_test_set(read):
    tests = read(GOOD)
    problems = (rb.Problem("p1", "main", "critical", key="the key"), rb.Problem("2", "other", "minor", "subtle"))
    assert rb.TestSet((rb.Document("a", "law", problems, 3),), 3) == tests
    assert ("x", "the text", 3) == (tests.scope, tests.documents[0].text, tests.runs_per_document)
    document = {
        "documents": [
            {
                "id": "a",
                "domain": "law",
                "problems": [{"id": "p1", "category": "main", "severity": "critical", "key": "the key"}],
            }
        ]
    }
    assert ("p1",) == tuple(one.id for one in read(json.dumps(document), name="t.json").documents[0].problems)


def test_ids_are_what_is_written(read):
    """YAML takes 010 for 8, and what is merged may be said anew."""
    tests = read(GOOD.replace("id: p1", "id: 010"))
    assert ["010", "2"] == [one.id for one in tests.documents[0].problems]
    merged = GOOD.replace("- id: 2\n", "- <<: {id: other, kind: main}\n        id: 2\n")
    assert ["p1", "2"] == [one.id for one in read(merged).documents[0].problems]
    name, (output,) = read(
        "runs:\n- document: a\n  judgements: |\n    ○\n    △\n", rb.read_variant, "v.yaml", read(GOOD)
    )
    assert ("v", ["○", "△"]) == (name, [one.symbol for one in output.ratings[0].judgements.values()])


def test_texts_in_files_of_their_own(read, tmp_path):
    (tmp_path / "scope.md").write_text("the scope")
    (tmp_path / "a.md").write_text("the document")
    tests = read(GOOD.replace("scope: x", "scope_file: scope.md").replace("text: the text", "file: a.md"))
    assert ("the scope", "the document") == (tests.scope, tests.documents[0].text)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("t.yaml", "3", "must be an object with the fields documents, scope, scope_file, runs_per_document, not 3"),
        ("t.yaml", "[" * 3_000, "nested too deeply"),
        ("t.yaml", b"\xff", "not UTF-8"),
        ("t.yaml", "documents: 3", "documents: must be a list"),
        ("t.json", "{", r"t\.json:1: not valid JSON"),
        ("t.json", '{"scope": "x",\n"scope": "y"}', "duplicate key 'scope'"),
        ("t.json", '{"documents": [{}]}', r"t\.json: documents\[0\]\.id: is missing"),
        ("t.json", "[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_test_set(read, name, text, problem):
    with pytest.raises(rb.RubricFileError, match=problem):
        read(text, name=name)


SIGNS = st.sampled_from(list(rb.Detection))
RATINGS = st.builds(
    lambda signs, bonuses, penalties, reason, rater: rb.Rating({"p1": signs[0], "2": signs[1]}, bonuses, penalties, {"p1": reason} if reason else {}, rater),
    st.tuples(SIGNS, SIGNS), st.integers(0, 9), st.integers(0, 9), st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")),
)  # fmt: skip


@given(
    st.lists(
        st.tuples(st.none() | st.text(st.characters(codec="utf-8")), st.lists(RATINGS, max_size=2)),
        min_size=1,
        max_size=3,
    )
)
def test_a_variant_reads_back(tmp_path_factory, runs):
    path = tmp_path_factory.mktemp("v") / "v.json"
    (path.parent / "t.yaml").write_text(GOOD)
    tests = rb.read_test_set(path.parent / "t.yaml")
    outputs = [rb.Output("a", text, tuple(ratings)) for text, ratings in runs]
    rb.write_variant(path, "v", outputs, tests)
    assert ("v", outputs) == rb.read_variant(path, tests)


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
        ("id: 2", "id: p1", 4, "has the problem p1 twice"),
        ("domain: law", "domain: 3", 4, "the domain of a must be a string, not 3"),
        ("id: 2", "id: ''", 10, "the id of a problem must be a string that is not empty"),
        ("bonus_candidates: 3", "bonus_candidates: -1", 4, "must be a whole number >= 0 (got -1)"),
        ("text: the text", "text: [a]", 7, "documents[0].text: must be a string, not a list of 1"),
        ("text: the text", "file: nowhere.md", 7, "documents[0]: file nowhere.md: No such file"),
        ("text: the text", "text: x\n    file: y", 8, "give either text or file, not both"),
        ("scope: x", "scope: x\nscope: y", 2, "duplicate key 'scope'"),
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
        ("runs: [{document: z}]", "the document 'z' is unknown; known are a"),
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
        ("runs: [{document: a, judgements: ○○, penalties: x}]", "penalties must be a whole number >= 0"),
        ("runs: [{document: a, second: {judgements: ○○}}]", "a second rating needs a first"),
        ("runs: [{document: a, judgements: ○○, second: {}}]", "runs[0].second.judgements: is missing"),
        ("runs: [{document: a, judgements: ○○, reasons: [a]}]", "runs[0].reasons: must be an object, not a list of 1"),
    ],
)
def test_a_variant_that_cannot_be_read(read, text, problem):
    tests = read(GOOD)
    with pytest.raises(rb.RubricFileError, match=r"v\.yaml:1: ") as caught:
        read(text, rb.read_variant, "v.yaml", tests)
    assert problem in str(caught.value)
