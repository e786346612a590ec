"""Suites: presets, the weighted average for any weights, and what a report says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import scorers as sc
from grace_kp.scorers import Result, SuiteReport, _entry
from tests.pages.reading import Elements, problems
from tests.scorers.records import BAD, GOOD, NEEDS_REGEX, Odd, done, op, wanted

ACTUAL = sc.EditResult([sc.Operation("update", "a")], pages={"A": "y"}, duration_ms=7)


EXPECTED = sc.EditExpectation([sc.Operation("update", "a")], patterns={"A": ["x"]})


class TestSuite:
    @pytest.mark.parametrize(
        ("name", "entries"),
        [
            ("standard", [("operation-accuracy", 1.0, 0.8), ("target-block-precision", 1.0, 0.75), ("content-quality", 1.0, 0.6)]),
            ("strict", [("operation-accuracy", 1.0, 0.9), ("target-block-precision", 1.0, 0.9), ("content-quality", 1.0, 0.8), ("anti-hallucination", 2.0, 1.0)]),
            ("operation-focused", [("operation-accuracy", 2.0, 0.9), ("target-block-precision", 1.5, 0.85), ("content-quality", 0.5, 0.5)]),
        ],
    )  # fmt: skip
    def test_presets(self, name, entries, tmp_path):
        suite = sc.Suite.preset(name)
        assert entries == [(one.scorer.type, one.weight, one.threshold) for one in suite.entries]
        path = tmp_path / "suite.yaml"
        path.write_text(suite.to_yaml(), "utf-8")
        assert suite.to_yaml() == sc.Suite.from_yaml(path).to_yaml()
        assert sc.Suite.preset(name).evaluate(*GOOD).passed

    def test_the_overall_figure_is_the_weighted_average(self):
        """Accuracy 1 of 2, weight 2; precision 1 of 2, weight 1.5; content 0, weight 0.5: 1.75 of 4."""
        actual = done(op("update", "a"), pages={"A": "y"})
        expected = wanted(op("update", "a"), op("update", "b"), patterns={"A": ["x"]})
        report = sc.Suite.preset("operation-focused").evaluate(actual, expected)
        assert (0.4375, False) == (report.overall, report.passed)
        assert [0.5, 0.5, 0.0] == [one.score for one in report.results]

    def test_for_tests_of_the_user_s(self):
        assert sc.assert_passes(sc.Suite.preset("standard"), *GOOD).passed
        with pytest.raises(AssertionError, match="type mismatch: expected"):
            sc.assert_passes(sc.Suite.preset("standard"), *BAD)
        with pytest.raises(sc.SuiteError, match="a preset must be one of standard, strict, operation-focused"):
            sc.Suite.preset("harsh")


class TestOverall:
    @given(st.lists(st.floats(0, 1e308), min_size=3, max_size=3).filter(any))
    def test_is_between_the_scores_whatever_the_weights(self, weights):
        scorers = sc.OperationAccuracy(), sc.ContentQuality(), sc.TargetBlockPrecision()
        suite = sc.Suite([sc.Entry(one, weight) for one, weight in zip(scorers, weights, strict=True)])
        overall = suite.evaluate(ACTUAL, EXPECTED).overall
        assert 0.0 <= overall <= 1.0
        assert (weights[1] == 0) <= (overall == 1.0)


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


class TestEvaluate:
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

    def test_a_threshold_that_is_met_exactly_is_met(self):
        suite = sc.Suite([sc.Entry(sc.OperationAccuracy(), threshold=1 / 3)])
        assert suite.evaluate(done(op("update", "a")), wanted(op("update", "a"), op("x"), op("y"))).passed

    def test_a_scorer_that_fails_is_told(self):
        report = sc.Suite([sc.Entry(sc.ResponseTime(5)), sc.Entry(sc.OperationAccuracy())]).evaluate(*GOOD)
        assert (False, 0.5, 0.0) == (report.passed, report.overall, report.results[0].score)
        assert "could not be scored: ValueError: the duration of the result is unknown" in report.diagnosis[0]


class TestDiagnosis:
    def test_a_failing_suite_says_what_to_look_at(self):
        report = sc.Suite.preset("standard").evaluate(*BAD)
        told = "\n".join(report.diagnosis)
        assert "operation-accuracy: 0.00, and 0.80 is needed" in told
        assert (
            "type mismatch: expected {'type': 'update', 'target_block_id': 'a'}; closest was {'type': 'delete', 'target_block_id': 'b'}"
            in told
        )
        assert "Page 'A': Pattern 'x' not found" in told
        assert () == sc.Suite.preset("standard").evaluate(*GOOD).diagnosis
        assert report.to_dict()["results"][0]["details"]["total_expected_operations"] == 1


def test_a_position_of_any_depth_is_diagnosed():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    suite = sc.Suite([sc.Entry(sc.OperationAccuracy())])
    report = suite.evaluate(done(op("insert", "a", position=deep)), wanted(op("insert", "a", position=1)))
    assert ("  something that is nested too deeply to be shown",) == report.diagnosis[1:]


@NEEDS_REGEX
def test_what_the_result_lacks_is_an_error_from_each_method():
    """A trace has no blocks."""
    result = sc.EditResult([], blocks_before=None, blocks_after=None)
    scorer = sc.AntiHallucination()
    for method in (scorer.score, scorer.details, scorer.score_with_details):
        with pytest.raises(ValueError, match="the blocks of the document are unknown"):
            method(result, sc.EditExpectation())


HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'


def report(*results, overall=0.4):
    lines = tuple(line for result in results for line in result.diagnosis)
    return SuiteReport(all(result.passed for result in results), overall, results, lines)


def test_a_report_shows_each_scorer_and_where_to_look():
    found = report(
        Result("content-quality", 0.25, 1.0, 0.6, False), Result("response-time", 1.0, 2.0, 0.5, True)
    )._repr_html_()
    text = Elements(found).text
    for words in (
        "0.400",
        "fails",
        "content-quality",
        "0.250",
        "0.60",
        "✗ fails",
        "passes",
        "where to look",
        "see whether the patterns",
    ):
        assert words in text
    assert [] == problems(found)


def test_every_text_is_text_and_the_size_is_bounded():
    result = Result(HOSTILE * 99, float("nan"), 1.0, 0.5, False, error=HOSTILE * 9_999)
    found = report(*[result] * 300, overall=float("nan"))._repr_html_()
    assert [] == problems(found)
    assert len(found) < 200_000
    assert "200 more scorers are not shown." in found
    assert "more characters are not shown" in found


@pytest.fixture
def registered():
    names = []

    def register(name, factory):
        names.append(name)
        sc.register(name, factory)

    yield register
    for name in names:
        _entry.REGISTERED.pop(name)


@pytest.fixture
def read(tmp_path):

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
        with pytest.raises(ValueError, match="is a scorer of the library"):
            sc.register("operation-accuracy", Odd)

        class Other(sc.OperationAccuracy):
            pass

        for scorer, problem in (
            (Odd(), r"scorers\[1\]: 'odd' is not known"),
            (Other(), "'operation-accuracy' is not known"),
        ):
            with pytest.raises(sc.SuiteError, match=problem):
                sc.Suite([sc.Entry(sc.ContentQuality()), sc.Entry(scorer)]).to_yaml()
        registered("odd", Odd)
        for limit, problem in ((object(), "an option is not plain data"), (Odd, "an option is not plain data")):
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
            (A + "    weight: 1\n    weight: 2", 4, "duplicate key 'weight'"),
            (A + "    weight: 0", 1, "at least one scorer of a suite must have a weight above 0"),
            (A + "    timeout: .nan", 2, "timeout must be a number above 0"),
            (A + "    when: !!timestamp x", 3, "not valid YAML"),
            (A.encode() + b"    patterns: {A: [caf\xe9]}", 3, "not UTF-8"),
            ("\nscorers: []", 2, "a suite needs at least one scorer"),
            ("\n" + "[" * 3_000, 2, "nested too deeply"),
            ("scorers: &a [*a]", 1, r"scorers\[0\]: must be an object with the fields type, weight, threshold, not a list of 1"),
            ("", 1, "must be an object with the fields scorers, not None"),
            ("scorers: 3", 1, "scorers: must be a list, not 3"),
            ("scorers:\n  - type: nonsense", 2, r"scorers\[0\]: the scorer 'nonsense' is unknown"),
            (A + "  - weight: 1", 3, r"scorers\[1\]\.type: is missing"),
            ("scorers:\n  - type: response-time", 2, r"scorers\[0\]: .*max_acceptable_ms"),
            (A + "    weight: -1", 2, "a weight must be a number from 0"),
            (A + "    threshold: 2", 3, "threshold must be a number from 0 to 1"),
            (A + "more: 1", 3, "unknown field 'more'; known are scorers"),
            ("scorers: [{type: broken}]", 1, r"scorers\[0\]: KeyError: 'x'"),
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
