"""Anti-hallucination: which changes the expected operations allow, by blocks and by operations."""

from __future__ import annotations

import pytest

from grace_kp import scorers as sc
from tests.scorers.records import done, op, wanted


def test_the_change_is_shown_as_a_diff():
    actual = done(blocks_before=[sc.Block("a", "one\ntwo")], blocks_after=[sc.Block("a", "one\nthree")])
    diff = "--- before a\n+++ after a\n@@ -1,2 +1,2 @@\n one\n-two\n+three"
    assert diff == sc.AntiHallucination().details(actual, wanted()).diff


def blocks(text):
    """`a:x b:y` as blocks."""
    return [sc.Block(*one.split(":")) for one in text.split()]


def flags_of(before, after, *expected, done_=()):
    actual = done(*done_, blocks_before=blocks(before), blocks_after=blocks(after))
    details = sc.AntiHallucination().details(actual, wanted(*expected))
    assert sc.AntiHallucination().score(actual, wanted(*expected)) == float(not details.problems)
    flags = details.no_new_content, details.no_deleted_blocks, details.only_specified_changes
    assert all(flags) is not bool(details.problems)
    assert bool(details.diff) is bool(details.problems)
    return flags


FINE, NEW, GONE, CHANGED = (True, True, True), (False, True, True), (True, False, True), (True, True, False)


class TestAntiHallucination:
    @pytest.mark.parametrize(
        ("before", "after", "expected", "flags"),
        [
            ("a:x", "a:x", [], FINE),
            ("a:x", "a:y", [op("update", "a", content="y")], FINE),
            ("a:x", "a:z", [op("update", "a", content="y")], CHANGED),
            ("a:x", "a:y", [], CHANGED),
            ("a:x", "a:y", [op("delete", "a")], CHANGED),
            ("a:x b:y", "a:x", [], GONE),
            ("a:x", "a:x n:1", [], NEW),
            ("a:x", "a:x n:1", [op("insert", "a")], FINE),
            ("a:x", "a:x n:1 m:2", [op("insert", "a")], NEW),
            ("a:x", "a:x n:1 m:2", [op("insert"), op("insert", content="1")], FINE),
            ("a:x", "a:x n:1 m:2", [op("insert", content="1")], NEW),
            ("a:x", "a:y", [op("insert", "a", content="y")], CHANGED),
            ("a:x b:y", "a:x b:z", [op("update", index=1)], FINE),
            ("a:x b:y", "a:x b:z", [op("update", index=0)], CHANGED),
            ("a:x b:y", "a:x b:z", [op("update", index=-1)], CHANGED),
            ("a:x b:y", "a:x b:z", [op("update", index=7)], CHANGED),
            ("a:x b:y", "a:x", [op("delete", index=1)], FINE),
            ("a:x b:y", "a:x", [op("delete", index=0)], GONE),
            ("a:x", "a:y", [op("move", "a")], CHANGED),
            ("a:x", "a:y", [op("reorder", "a")], CHANGED),
            ("a:x", "a:y", [op("move", "a", content="y")], FINE),
            ("a:x", "a:y", [op("rewrite", "a")], FINE),
            ("a:x b:y c:z", "b:y a:x c:z", [], CHANGED),
            ("a:x b:y c:z", "b:y a:x c:z", [op("update", "a")], CHANGED),
            ("a:x b:y c:z", "b:y a:x c:z", [op("move", "a")], FINE),
            ("a:x b:y c:z", "b:y a:x c:z", [op("move", "c")], CHANGED),
            ("a:x b:y c:z", "c:z b:y a:x", [op("reorder")], FINE),
            ("a:x b:y c:z", "c:z b:y a:x", [op("swap", "a")], FINE),
            ("a:x b:y c:z", "c:z b:y a:x", [op("move", "section")], FINE),
            ("a:x b:y c:z", "b:y c:z a:x", [op("move", index=0)], FINE),
            ("a:x b:y", "b:y", [op("delete", "a")], FINE),
            ("a:x b:y", "n:1 a:x b:y", [op("insert")], FINE),
        ],
    )  # fmt: skip
    def test_blocks(self, before, after, expected, flags):
        assert flags == flags_of(before, after, *expected)

    @pytest.mark.parametrize(
        ("made", "expected", "flags"),
        [
            ([], [], FINE),
            ([], [op("update", "a")], FINE),
            ([op("insert", "a", content="1")], [], NEW),
            ([op("insert", "a", content="1")], [op("insert")], FINE),
            ([op("insert", content="1"), op("insert", content="2")], [op("insert")], NEW),
            ([op("insert", content="1"), op("insert", content="2")], [op("insert"), op("insert", content="2")], FINE),
            ([op("insert", content="1")], [op("insert", content="2")], NEW),
            ([op("delete", "a")], [], GONE),
            ([op("delete", "a")], [op("delete", "a")], FINE),
            ([op("delete", "a")], [op("delete", "b")], GONE),
            ([op("delete", index=2)], [op("delete", index=2)], FINE),
            ([op("update", "a", content="1")], [op("update", "a")], FINE),
            ([op("update", "a", content="1")], [op("update", "a", content="2")], CHANGED),
            ([op("update", "b")], [op("update", "a")], CHANGED),
            ([op("move", "a")], [op("move", "a")], FINE),
            ([op("move", "a", content="1")], [op("move", "a")], CHANGED),
            ([op("move", "a")], [], CHANGED),
        ],
    )
    def test_operations_are_judged_where_there_are_no_blocks(self, made, expected, flags):
        assert flags == flags_of("", "", *expected, done_=made)

    @pytest.mark.parametrize(("old", "new", "line"), [("x", "x\n", "+"), ("x\n", "x", "-"), ("x", "x\r", "+x\\r")])
    def test_a_change_that_can_hardly_be_seen_is_in_the_diagnosis(self, old, new, line):
        actual = done(blocks_before=[sc.Block("a", old)], blocks_after=[sc.Block("a", new)])
        report = sc.Suite([sc.Entry(sc.AntiHallucination())]).evaluate(actual, wanted())
        assert f"  {line}" in report.diagnosis
