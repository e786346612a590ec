"""Suites as YAML: written and read back the same, and each fault of a file reported once with its line."""

from __future__ import annotations

import pytest

from grace_kp import scorers as sc
from grace_kp.scorers import _entry
from tests.scorers.records import GOOD, Odd

EXPECTED = sc.EditExpectation([sc.Operation("update", "a")], patterns={"A": ["x"]})


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


A = "scorers:\n  - type: content-quality\n"


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

    def test_a_scorer_of_the_user_s(self, tmp_path):
        class Short:
            type = "short"
            threshold = 1.0

            def __init__(self, limit=10):
                self.limit = limit

            def score(self, actual, expected):
                return 1.0 if len(actual.pages["A"]) <= self.limit else 0.0

            def details(self, actual, expected):
                return None

        sc.register("short", Short)
        path = tmp_path / "s.yaml"
        path.write_text("scorers:\n  - type: short\n    limit: 0\n    weight: 2\n", "utf-8")
        suite = sc.Suite.from_yaml(path)
        assert not suite.evaluate(*GOOD).passed
        assert "limit: 0" in suite.to_yaml()
        with pytest.raises(ValueError, match="is a scorer of the library"):
            sc.register("operation-accuracy", Short)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "s.yaml:1: must be an object with the fields scorers, not None"),
            ("scorers: 3", "s.yaml:1: scorers: must be a list, not 3"),
            ("scorers: []", "at least one scorer"),
            ("scorers:\n  - type: nonsense", r":2: scorers\[0\]: there is no scorer 'nonsense'"),
            (
                "scorers:\n  - type: content-quality\n  - weight: 1",
                r":3: scorers\[1\]\.type: is missing",
            ),
            (
                "scorers:\n  - type: content-quality\n    patterns: {A: ['(']}",
                r":3: scorers\[0\]: patterns, page 'A': the pattern '\('",
            ),
            ("scorers:\n  - type: response-time", r":2: scorers\[0\]: .*max_acceptable_ms"),
            ("scorers:\n  - type: operation-accuracy\n    nonsense: 1", r":2: scorers\[0\]"),
            ("scorers:\n  - type: operation-accuracy\n    weight: -1", "a weight must be a number from 0"),
            ("scorers:\n  - type: operation-accuracy\n    threshold: 2", "threshold must be a number from 0 to 1"),
            ("scorers:\n  - type: operation-accuracy\n    weight: 0", "must have a weight above 0"),
            ("scorers: [", ":1: not valid YAML"),
            ("scorers:\n  - type: operation-accuracy\nmore: 1", ":3: unknown field 'more'; known are scorers"),
        ],
    )
    def test_a_file_that_is_no_suite(self, tmp_path, text, problem):
        path = tmp_path / "s.yaml"
        path.write_text(text, "utf-8")
        with pytest.raises(sc.SuiteError, match=problem):
            sc.Suite.from_yaml(path)
