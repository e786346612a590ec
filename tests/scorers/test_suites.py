"""Suites: their figure for any weights, written as YAML and read back the same, and each fault of a file told once with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import scorers as sc
from grace_kp.scorers import _entry

pytest.importorskip("regex", reason="needs the extra eval")
pytest.importorskip("yaml", reason="needs the extra eval")

ACTUAL = sc.EditResult([sc.Operation("update", "a")], pages={"A": "y"}, duration_ms=7)
EXPECTED = sc.EditExpectation([sc.Operation("update", "a")], patterns={"A": ["x"]})


class Odd:
    """A scorer of one's own that says what it was built with."""

    type = "odd"
    threshold = 0.5

    def __init__(self, limit=1):
        self.options = {"limit": limit}

    def score(self, actual, expected):
        return 1.0

    def details(self, actual, expected):
        return None


@pytest.fixture
def registered():
    """Registers scorers, and takes them back."""
    names = []

    def register(name, factory):
        names.append(name)
        sc.register(name, factory)

    yield register
    for name in names:
        _entry.REGISTERED.pop(name)


@pytest.fixture
def read(tmp_path):
    """Gives the suite in a text or bytes."""

    def from_text(text):
        path = tmp_path / "s.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return sc.Suite.from_yaml(path)

    return from_text


class TestOverall:
    @given(st.lists(st.floats(0, 1e308), min_size=3, max_size=3).filter(any))
    def test_is_between_the_scores_whatever_the_weights(self, weights):
        scorers = sc.OperationAccuracy(), sc.ContentQuality(), sc.TargetBlockPrecision()
        suite = sc.Suite([sc.Entry(one, weight) for one, weight in zip(scorers, weights, strict=True)])
        overall = suite.evaluate(ACTUAL, EXPECTED).overall
        assert 0.0 <= overall <= 1.0
        assert (weights[1] == 0) <= (overall == 1.0)

    def test_the_largest_weights_there_are(self):
        suite = sc.Suite([sc.Entry(sc.OperationAccuracy(), 1.7e308), sc.Entry(sc.ContentQuality(), 1.7e308)])
        assert 0.5 == suite.evaluate(ACTUAL, EXPECTED).overall

    def test_what_is_all_right_is_1(self):
        suite = sc.Suite([sc.Entry(sc.OperationAccuracy(), weight) for weight in (0.1, 0.2, 0.3, 0.7, 1e-9)])
        assert 1.0 == suite.evaluate(ACTUAL, EXPECTED).overall

    def test_a_subclass_scores_as_it_says(self):
        """What a scorer of the library offers besides does not pass by what a subclass of it replaces."""

        class Half(sc.OperationAccuracy):
            def score(self, actual, expected):
                return super().score(actual, expected) / 2

        class Mute(sc.OperationAccuracy):
            def details(self, actual, expected):
                return "nothing"

        report = sc.Suite([sc.Entry(Half()), sc.Entry(Mute())]).evaluate(ACTUAL, EXPECTED)
        assert [0.5, 1.0] == [one.score for one in report.results]
        assert "nothing" == report.results[1].details


class TestToYaml:
    def test_suites_built_in_python_keep_their_options(self, read, registered):
        registered("odd", Odd)
        suite = sc.Suite(
            [
                sc.Entry(sc.ContentQuality({"P": ["x", "y|z"], "頁": ["要約"]}, ignore_case=False, timeout=0.25), 2),
                sc.Entry(sc.ContentQuality(), 1e308),
                sc.Entry(sc.ResponseTime(5), threshold=0.25),
                sc.Entry(sc.OperationResult(timeout=2), 0.1),
                sc.Entry(sc.AntiHallucination()),
                sc.Entry(Odd(limit=3)),
            ]
        )
        again = read(suite.to_yaml())
        assert suite.to_yaml() == again.to_yaml()
        content, _, timed, result, _, odd = [one.scorer for one in again.entries]
        assert ({"P": ["x", "y|z"], "頁": ["要約"]}, False, 0.25) == (
            content.patterns,
            content.ignore_case,
            content.timeout,
        )
        assert (5, 2, {"limit": 3}) == (timed.max_acceptable_ms, result.timeout, odd.options)
        assert [(one.weight, one.threshold) for one in suite.entries] == [
            (one.weight, one.threshold) for one in again.entries
        ]
        case = (sc.EditResult([], pages={"P": "X"}, duration_ms=8, blocks_before=[]), EXPECTED)
        assert suite.evaluate(*case).to_dict() == again.evaluate(*case).to_dict()

    def test_what_could_not_be_read_back_is_not_written(self, registered):
        class Other(sc.OperationAccuracy):
            pass

        for scorer, problem in (
            (Odd(), r"scorers\[1\]: 'odd' is not known"),
            (Other(), "'operation-accuracy' is not known"),
        ):
            with pytest.raises(sc.SuiteError, match=problem):
                sc.Suite([sc.Entry(sc.ContentQuality()), sc.Entry(scorer)]).to_yaml()
        registered("odd", Odd)
        for limit, problem in ((object(), "an option is no plain data"), (Odd, "an option is no plain data")):
            with pytest.raises(sc.SuiteError, match=rf"scorers\[0\] \(odd\): {problem}"):
                sc.Suite([sc.Entry(Odd(limit=limit))]).to_yaml()
        with pytest.raises(sc.SuiteError, match="an option cannot be called 'weight'"):
            sc.Suite([sc.Entry(Odd(), options={"weight": 1})]).to_yaml()


A = "scorers:\n  - type: content-quality\n"


class TestFromYaml:
    @pytest.mark.parametrize(
        ("text", "line", "problem"),
        [
            (A + "    patterns: [a]", 3, "patterns must be lists of patterns by page title"),
            (A + "    patterns: {A: thanks}", 3, "page 'A': a list of patterns is needed, not 'thanks'"),
            (A + "    patterns:\n      B: [x]\n      A:\n        - x\n        - '('", 7, "patterns, page 'A': the pattern '[(]' is malformed"),
            (A + "    patterns: {A: ['" + "(" * 3_000 + ")" * 3_000 + "']}", 3, "nested too deeply"),
            (A + "    threshold: 2020-13-45", 3, "month must be in 1..12"),
            (A + "    weight: 1" + "0" * 400, 3, "a weight must be a number from 0, not a very large number"),
            (A + "    weight: 1" + "0" * 5_000, 3, "Exceeds the limit"),
            (A + "    weight: true", 3, "a weight must be a number from 0, not True"),
            (A + "    weight: 1\n    weight: 2", 4, "duplicate key 'weight'"),
            (A + A, 3, "duplicate key 'scorers'"),
            (A + "    patterns: {A: [a], A: [b]}", 3, "duplicate key 'A'"),
            (A + "    weight: 0", 1, "at least one scorer of a suite must have a weight above 0"),
            (A + "    x\x07: 1", 3, "the character #x07 is not allowed"),
            (A + "    timeout: .nan", 2, "timeout must be a number above 0"),
            (A + "    when: !!timestamp x", 3, "not valid YAML"),
            (A.encode() + b"    patterns: {A: [caf\xe9]}", 3, "not UTF-8"),
            ("\nscorers: []", 2, "a suite needs at least one scorer"),
            ("<<: {scorers: [{type: nonsense}]}", 1, "there is no scorer 'nonsense'"),
            ("\n" + "[" * 3_000, 2, "nested too deeply"),
            ("scorers: &a [*a]", 1, r"scorers\[0\]: must be an object with the fields type, weight, threshold, not a list of 1"),
            ("scorers: [{type: broken}]", 1, r"scorers\[0\]: KeyError: 'x'"),
            ("scorers: [{type: endless}]", 1, r"scorers\[0\]: RecursionError"),
            ("scorers: [{type: nothing}]", 1, r"scorers\[0\]: a scorer has a type and score"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_told_with_its_line(self, read, registered, text, line, problem):
        def broken():
            raise KeyError("x")

        def endless():
            return endless()

        for name, factory in (("broken", broken), ("endless", endless), ("nothing", lambda: None)):
            registered(name, factory)
        with pytest.raises(sc.SuiteError, match=rf"s\.yaml:{line}: .*{problem}") as caught:
            read(text)
        assert 1 == len(str(caught.value).splitlines())

    def test_merge_keys_anchors_and_a_byte_order_mark(self, read):
        text = "\ufeffscorers:\n  - &one {type: content-quality, weight: 3}\n  - {<<: *one, threshold: 0.25}\n"
        assert [(3, 0.6), (3, 0.25)] == [(one.weight, one.threshold) for one in read(text).entries]
        assert 1 == len(read("<<: {scorers: [{type: content-quality}]}").entries)


def test_an_entry_holds_a_scorer():
    for scorer in (None, "content-quality", object()):
        with pytest.raises(ValueError, match="a scorer has a type and score"):
            sc.Entry(scorer)


def test_an_error_that_cannot_be_shown_is_told_all_the_same():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    class Broken(Odd):
        def score(self, actual, expected):
            raise Mute

    (result,) = sc.Suite([sc.Entry(Broken())]).evaluate(ACTUAL, EXPECTED).results
    assert (0.0, True) == (result.score, result.error.startswith("Mute: "))
