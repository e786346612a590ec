"""What scorers make of odd input: nothing expected, values that are equal in other words, records of wrong types, patterns that cost too much."""

from __future__ import annotations

from fractions import Fraction

import pytest

from grace_kp import scorers as sc

pytest.importorskip("regex", reason="needs the extra eval")
pytest.importorskip("yaml", reason="needs the extra eval")


def op(kind="update", target=None, index=None, position=None, content=None):
    return sc.Operation(kind, target, index, position, content)


def done(*operations, **more):
    return sc.EditResult(operations, **more)


def wanted(*operations, **more):
    return sc.EditExpectation(operations, **more)


def blocks(text):
    """`a:x b:y` as blocks."""
    return [sc.Block(*one.split(":")) for one in text.split()]


def told(before, after, *expected, done_=()):
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
        assert flags == told(before, after, *expected)

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
        assert flags == told("", "", *expected, done_=made)

    @pytest.mark.parametrize(("old", "new", "line"), [("x", "x\n", "+"), ("x\n", "x", "-"), ("x", "x\r", "+x\\r")])
    def test_a_change_that_can_hardly_be_seen_is_in_the_diagnosis(self, old, new, line):
        actual = done(blocks_before=[sc.Block("a", old)], blocks_after=[sc.Block("a", new)])
        report = sc.Suite([sc.Entry(sc.AntiHallucination())]).evaluate(actual, wanted())
        assert f"  {line}" in report.diagnosis

    @pytest.mark.parametrize("name", ["blocks_before", "blocks_after"])
    def test_ids_are_there_once(self, name):
        with pytest.raises(ValueError, match=f"{name}: two blocks have the id 'a'"):
            done(**{name: blocks("a:x b:y a:z")})


class TestNothingExpected:
    scorers = (sc.OperationAccuracy(), sc.TargetBlockPrecision(), sc.ContentQuality(), sc.OperationResult())

    @pytest.mark.parametrize("scorer", scorers, ids=lambda one: one.type)
    def test_something_done_is_0_and_is_named(self, scorer):
        assert 1.0 == scorer.score(done(), wanted())
        assert 0.0 == scorer.score(done(op("update", "a")), wanted())
        (line, *evidence) = sc.Suite([sc.Entry(scorer)]).evaluate(done(op("update", "a")), wanted()).diagnosis
        assert "nothing was expected" in line
        assert ["  not expected: {'type': 'update', 'target_block_id': 'a'}"] == evidence

    def test_where_only_patterns_are_absent_the_content_is_as_it_should_be(self):
        actual = done(op("update", "a"))
        assert 1.0 == sc.ContentQuality().score(actual, wanted(op("update", "a")))
        assert 1.0 == sc.OperationResult().score(actual, wanted(op("update", "a")))

    def test_patterns_of_its_own_are_something_expected(self):
        assert 1.0 == sc.ContentQuality({"A": ["x"]}).score(done(op("update", "a"), pages={"A": "x"}), wanted())

    def test_the_details_of_a_result_add_up(self):
        details = sc.OperationResult().details(done(op()), wanted())
        assert (0.0, 0.0) == (details.application_success_rate, details.content_score)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, Fraction(1), True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        ({"a": 1, "b": [2]}, {"b": (2.0,), "a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ([1, 2], [2, 1], False),
        ({1, 2}, {2, 1}, True),
        (float("nan"), float("nan"), True),
        (None, "None", False),
        ({"a": {"b": [{}]}}, {"a": {"b": [{}]}}, True),
    ],
)
def test_positions_are_compared_by_value(one, other, same):
    actual, expected = done(op("insert", "a", position=one)), wanted(op("insert", "a", position=other))
    assert float(same) == sc.OperationAccuracy().score(actual, expected)


def test_any_position_can_be_compared():
    class Odd:
        __hash__ = None

        def __repr__(self):
            raise RuntimeError

    endless = []
    endless.append(endless)
    for position in (endless, Odd(), {"a": [{1: Odd()}]}, bytearray(b"x"), 10**400):
        actual = done(op("insert", "a", position=position))
        assert 1.0 == sc.OperationAccuracy().score(actual, wanted(*actual.operations))


def test_a_position_of_any_depth_is_diagnosed():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    suite = sc.Suite([sc.Entry(sc.OperationAccuracy())])
    report = suite.evaluate(done(op("insert", "a", position=deep)), wanted(op("insert", "a", position=1)))
    assert ("  something that is nested too deeply to be shown",) == report.diagnosis[1:]


def test_the_closest_of_another_type_has_the_same_target():
    actual = done(op("move", "z"), op("delete", "a"), op("move", index=3))
    for expected, closest in ((op("update", "a"), 1), (op("update", "q", 3), 2), (op("update", "q"), 0)):
        (unmatched,) = sc.OperationAccuracy().details(actual, wanted(expected)).unmatched_operations
        assert ("type mismatch", actual.operations[closest]) == (unmatched.reason, unmatched.closest)


def test_much_that_does_not_match_is_explained():
    actual = done(*(op("update", f"b{number}") for number in range(20_000)))
    expected = wanted(*(op("update", f"c{number}") for number in range(20_000)))
    assert 20_000 == len(sc.OperationAccuracy().details(actual, expected).unmatched_operations)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: op(3), "type must be a text, not 3"),
        (lambda: op(None), "type must be a text, not None"),
        (lambda: op("x", 3), "target_block_id must be a text or None, not 3"),
        (lambda: op("x", None, "3"), "target_index must be a whole number or None, not '3'"),
        (lambda: op("x", None, 3.0), "target_index must be a whole number or None, not 3.0"),
        (lambda: op("x", None, False), "target_index must be a whole number or None, not False"),
        (lambda: done(op(), applied=[1]), r"applied\[0\] must be True or False, not 1"),
        (lambda: done(op(), applied=["no"]), r"applied\[0\] must be True or False, not 'no'"),
        (lambda: done({"type": "x"}), r"operations\[0\] must be of type Operation, not an object of 1"),
        (lambda: done(pages={"A": None}), "page 'A' must be a text, not None"),
        (lambda: done(pages={1: "x"}), "a page title must be a text, not 1"),
        (lambda: done(pages=["x"]), "pages must be texts by title"),
        (lambda: done(duration_ms=float("nan")), "duration_ms must be a number or None"),
        (lambda: sc.Block(1, "x"), "a block's id must be a text"),
        (lambda: wanted(ignore_case="yes"), "ignore_case must be True or False"),
        (lambda: sc.ContentQuality(ignore_case=1), "ignore_case must be True or False"),
        (lambda: sc.ContentQuality(timeout=0), "timeout must be a number above 0, not 0"),
        (lambda: sc.ContentQuality(timeout=float("inf")), "not inf"),
        (lambda: sc.OperationResult(timeout=float("nan")), "not nan"),
        (lambda: sc.OperationResult(timeout=True), "not True"),
        (lambda: sc.ResponseTime(True), "max_acceptable_ms must be a number above 0, not True"),
        (lambda: sc.ResponseTime(10**400), "a very large number"),
    ],
)
def test_types_are_checked_when_a_record_is_made(make, problem):
    with pytest.raises(ValueError, match=problem):
        make()


class TestPatterns:
    @pytest.mark.parametrize("make", [lambda given: wanted(patterns=given), sc.ContentQuality])
    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ({"A": "thanks"}, "page 'A': a list of patterns is needed, not 'thanks'"),
            ({"A": {"x": 1}}, "page 'A': a list of patterns is needed, not an object of 1"),
            ({"A": 3}, "page 'A': a list of patterns is needed, not 3"),
            ({"A": ["x", 3]}, "page 'A': a pattern must be a text, not int"),
            ({3: ["x"]}, "a page title must be a text, not 3"),
            (["a"], "patterns must be lists of patterns by page title, not a list of 1"),
            ("a", "patterns must be lists of patterns by page title, not 'a'"),
            ({"A": ["x" * 10_001]}, "page 'A': the pattern 'x.* has 10,001 characters, more than 10,000"),
            ({"A": ["((a{1000}){1000}){1000}"]}, "repeats a part 1,000,000 times"),
            ({"A": [r"(?:[)]a{2,400}\)){0,300}"]}, "repeats a part 120,000 times"),
            ({"A": ["(ab){900000}"]}, "repeats a part"),
            ({"A": ["(a{1000}){100}" * 20]}, "unfolds to more than 1,000,000 parts"),
            ({"A": ["(" * 3_000 + ")" * 3_000]}, "page 'A': the pattern .* is nested too deeply"),
        ],
    )
    def test_what_is_refused(self, make, given, problem):
        with pytest.raises(sc.PatternError, match=problem):
            make(given)

    @pytest.mark.parametrize("text", ["(a{1000}){100}", r"\d{4}-\d{2}", "x{,3}", "{", "a{}", r"[({]{3}", r"\({200}(b{600})", "(cart){e<=1}", "x" * 10_000])  # fmt: skip
    def test_what_is_not(self, text):
        assert text == wanted(patterns={"A": [text]}).compiled[0][1]

    def test_any_timeout_is_one(self):
        scorer = sc.ContentQuality({"A": ["x$"]}, timeout=1e300)
        assert 1.0 == scorer.score(done(pages={"A": "ax" * 100_000}), wanted())

    def test_a_slow_pattern_counts_as_not_found_with_every_scorer(self):
        slow = wanted(op(), patterns={"A": [r"(a|aa)+$"]})
        actual = done(op(), pages={"A": "a" * 60 + "b"})
        suite = sc.Suite([sc.Entry(sc.ContentQuality(timeout=0.4)), sc.Entry(sc.OperationResult(timeout=0.4))])
        report = suite.evaluate(actual, slow)
        assert [0.0, 0.6] == [one.score for one in report.results]
        assert "not found within 0.4 s" in report.diagnosis[-1]
