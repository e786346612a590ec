"""Every scorer and every row of the design guide with numbers worked by hand, and what holds for all of them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import scorers as sc
from grace_kp.scorers._matching import match_pairs

pytest.importorskip("regex", reason="needs the extra eval")
pytest.importorskip("yaml", reason="needs the extra eval")


def op(kind="update", target=None, index=None, position=None, content=None):
    return sc.Operation(kind, target, index, position, content)


def done(*operations, **more):
    return sc.EditResult(operations, **more)


def wanted(*operations, **more):
    return sc.EditExpectation(operations, **more)


class TestOperationAccuracy:
    @pytest.mark.parametrize(
        ("actual", "expected", "score", "reasons"),
        [
            ([], [], 1.0, []),
            ([op("update", "a")], [], 0.0, []),
            ([], [op("update", "a")], 0.0, ["type mismatch"]),
            ([op("update", "a")], [op("update", "a")], 1.0, []),
            ([op("update", "a")], [op("update", "b")], 0.0, ["target mismatch"]),
            ([op("delete", "a")], [op("update", "a")], 0.0, ["type mismatch"]),
            ([op("insert", "a", position="before")], [op("insert", "a", position="after")], 0.0, ["position mismatch"]),
            ([op("insert", "a", position="after")], [op("insert", "a", position="after")], 1.0, []),
            ([op("update", "a", position=1)], [op("update", "a", position=2)], 1.0, []),
            ([op("update", "a"), op("update", "b")], [op("update", "b"), op("update", "a")], 1.0, []),
            ([op("update", "a")], [op("update", "a"), op("update", "a")], 0.5, ["type mismatch"]),
            ([op("update", "a"), op("delete", "x")], [op("update", "a"), op("update", "b")], 0.5, ["type mismatch"]),
            ([op("insert", "a", position=1), op("insert", "b", position=2)], [op("insert", "b", position=9)], 0.0, ["position mismatch"]),
            ([op("update", "a"), op("update", "z")], [op("update", "a"), op("update", "b"), op("delete", "c")], 1 / 3, ["target mismatch", "type mismatch"]),
        ],
    )  # fmt: skip
    def test_by_hand(self, actual, expected, score, reasons):
        scorer, given_, should = sc.OperationAccuracy(), done(*actual), wanted(*expected)
        assert score == scorer.score(given_, should)
        details = scorer.details(given_, should)
        assert reasons == [one.reason for one in details.unmatched_operations]
        assert len(expected) == details.total_expected_operations
        assert len(expected) - len(reasons) == details.matched_operations

    operations = st.lists(
        st.builds(op, st.sampled_from(["insert", "update"]), st.sampled_from(["a", "b", None]), st.none(), st.sampled_from([1, 2])), max_size=6
    )  # fmt: skip

    @given(operations, operations, st.randoms())
    def test_order_does_not_matter_and_the_details_agree(self, actual, expected, random):
        scorer = sc.OperationAccuracy()
        score = scorer.score(done(*actual), wanted(*expected))
        mixed, should = list(actual), list(expected)
        random.shuffle(mixed)
        random.shuffle(should)
        assert score == scorer.score(done(*mixed), wanted(*should))
        assert 0 <= score <= 1
        details = scorer.details(done(*actual), wanted(*expected))
        if expected:
            assert score == details.matched_operations / len(expected)


class TestTargetBlockPrecision:
    @pytest.mark.parametrize(
        ("actual", "expected", "score"),
        [
            ([], [], 1.0),
            ([op(target="a")], [], 0.0),
            ([op(target="a")], [op(target="a")], 1.0),
            ([op(target="a", index=3)], [op(target="b", index=3)], 1.0),
            ([op(target="a", index=1)], [op(target="b", index=3)], 0.0),
            ([op("delete", "a")], [op("update", "a")], 1.0),
            (
                [op(target="a", index=1), op(target="b", index=2)],
                [op(target="b", index=1), op(target="x", index=2)],
                1.0,
            ),
            (
                [op(target="a", index=1), op(target="q", index=1)],
                [op(target="z", index=1), op(target="a", index=7)],
                1.0,
            ),
            ([op(target="a")], [op(target="a"), op(target="a")], 0.5),
        ],
    )
    def test_by_hand(self, actual, expected, score):
        scorer = sc.TargetBlockPrecision()
        assert score == scorer.score(done(*actual), wanted(*expected))
        details = scorer.details(done(*actual), wanted(*expected))
        assert round(score * len(expected)) == details.correct_targets or not expected
        assert len(expected) - details.correct_targets == len(details.incorrect_targets)

    @given(
        st.lists(st.lists(st.integers(0, 4), max_size=2), max_size=5),
        st.lists(st.lists(st.integers(0, 4), max_size=2), max_size=5),
    )
    def test_there_are_as_many_pairs_as_there_can_be(self, left, right):
        made = match_pairs(left, right)
        assert all(set(left[one]) & set(right[other]) for one, other in made)
        assert len(made) == len({one for one, _ in made}) == len({other for _, other in made})
        best = 0
        for order in itertools.permutations(range(len(right))):
            best = max(best, sum(bool(set(keys) & set(right[other])) for keys, other in zip(left, order, strict=False)))
        if len(left) > len(right):
            best = len(match_pairs(right, left))
        assert best == len(made)


class TestContentQuality:
    def test_by_hand(self):
        actual = done(pages={"A": "The SUMMARY of it", "B": "Cart, Cart and Cart again"})
        expected = wanted(patterns={"A": ["summary|overview", "^no$"], "B": ["Cart.*Cart.*Cart"], "C": ["x"]})
        scorer = sc.ContentQuality()
        assert 0.5 == scorer.score(actual, expected)
        assert (
            "Page 'A': Pattern '^no$' not found in content: 'The SUMMARY of it...'",
            "Page 'C': Pattern 'x' not found in content: '...'",
        ) == scorer.details(actual, expected).content_issues

    @pytest.mark.parametrize(("ignore_case", "score"), [(True, 1.0), (False, 0.0)])
    def test_capitals(self, ignore_case, score):
        expected = wanted(patterns={"A": ["summary"]}, ignore_case=ignore_case)
        assert score == sc.ContentQuality().score(done(pages={"A": "SUMMARY"}), expected)

    def test_japanese(self):
        assert 1.0 == sc.ContentQuality().score(
            done(pages={"頁": "本文の要約です"}), wanted(patterns={"頁": ["要約|まとめ|サマリー", ".*要約.*"]})
        )

    def test_nothing_expected_is_met(self):
        assert 1.0 == sc.ContentQuality().score(done(), wanted())

    def test_a_malformed_pattern_is_an_error_when_it_is_given(self):
        with pytest.raises(ValueError, match=r"page 'A': the pattern '\(' is malformed"):
            wanted(patterns={"A": ["("]})
        with pytest.raises(sc.PatternError, match="patterns, page 'A'"):
            sc.ContentQuality({"A": ["["]})
        with pytest.raises(ValueError, match="a pattern must be a text, not int"):
            wanted(patterns={"A": [3]})

    def test_a_pattern_that_runs_for_ever_counts_as_not_found(self):
        scorer = sc.ContentQuality({"A": [r"(a|aa)+$"]}, timeout=0.05)
        actual = done(pages={"A": "a" * 60 + "b"})
        assert 0.0 == scorer.score(actual, wanted())
        assert "not found within 0.05 s in content" in scorer.details(actual, wanted()).content_issues[0]


class TestOperationResult:
    @pytest.mark.parametrize(
        ("applied", "pages", "score"),
        [
            ([True, True], {"A": "x"}, 1.0),
            ([True, False], {"A": "x"}, 0.7),
            ([False, False], {"A": "x"}, 0.4),
            ([True, True], {"A": "-"}, 0.6),
            ([True, False], {}, 0.3),
            (None, {"A": "x"}, 1.0),
        ],
    )
    def test_by_hand(self, applied, pages, score):
        actual = done(op(target="a"), op(target="b"), applied=applied, pages=pages)
        expected = wanted(op(target="a"), patterns={"A": ["x"]})
        assert score == pytest.approx(sc.OperationResult().score(actual, expected))
        assert (applied is not None) is sc.OperationResult().details(actual, expected).application_known

    def test_nothing_done(self):
        assert 0.4 == sc.OperationResult().score(done(), wanted(op(target="a")))
        assert 1.0 == sc.OperationResult().score(done(), wanted())

    def test_flags_that_do_not_fit(self):
        with pytest.raises(ValueError, match="applied has 1 values for 2 operations"):
            done(op(), op(), applied=[True])


def blocks(**contents):
    return [sc.Block(name, content) for name, content in contents.items()]


class TestAntiHallucination:
    @pytest.mark.parametrize(
        ("before", "after", "expected", "problem"),
        [
            ({"a": "x"}, {"a": "x"}, [], None),
            ({"a": "x"}, {"a": "y"}, [op("update", "a")], None),
            ({"a": "x"}, {"a": "y"}, [op("update", "a", content="y")], None),
            ({"a": "x"}, {"a": "z"}, [op("update", "a", content="y")], "'a' has a change that was not asked for"),
            ({"a": "x"}, {"a": "y"}, [], "'a' has a change that was not asked for"),
            ({"a": "x", "b": "y"}, {"a": "x"}, [], "'b' is missing"),
            ({"a": "x", "b": "y"}, {"a": "x"}, [op("delete", "b")], None),
            ({"a": "x"}, {"a": "x", "n": "new"}, [], "'n' is new"),
            ({"a": "x"}, {"a": "x", "n": "new"}, [op("insert", "a", content="new")], None),
            ({"a": "x"}, {"a": "x", "n": "other"}, [op("insert", "a", content="new")], "'n' is new"),
            ({"a": "x"}, {"a": "x", "n": "new", "m": "new"}, [op("insert", "a", content="new")], "'m' is new"),
            ({"a": "x"}, {"a": "y"}, [op("delete", "a")], "'a' has a change that was not asked for"),
        ],
    )
    def test_by_hand(self, before, after, expected, problem):
        actual = done(blocks_before=blocks(**before), blocks_after=blocks(**after))
        details = sc.AntiHallucination().details(actual, wanted(*expected))
        assert (1.0 if problem is None else 0.0) == sc.AntiHallucination().score(actual, wanted(*expected))
        assert (problem or "") in "".join(details.problems)
        assert bool(problem) is bool(details.diff)

    def test_the_change_is_shown_as_a_diff(self):
        actual = done(blocks_before=blocks(a="one\ntwo"), blocks_after=blocks(a="one\nthree"))
        assert [
            "--- before a",
            "+++ after a",
            "@@ -1,2 +1,2 @@",
            " one",
            "-two",
            "+three",
        ] == sc.AntiHallucination().details(actual, wanted()).diff.splitlines()


class TestResponseTime:
    @pytest.mark.parametrize(
        ("taken", "score"),
        [(0, 1.0), (999, 1.0), (1_000, 1.0), (1_500, 0.5), (1_999, 0.001), (2_000, 0.0), (9_000, 0.0)],
    )
    def test_by_hand(self, taken, score):
        assert score == pytest.approx(sc.ResponseTime(1_000).score(done(duration_ms=taken), wanted()))

    @pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan"), "5"])
    def test_a_limit_that_is_none(self, limit):
        with pytest.raises(ValueError, match="max_acceptable_ms"):
            sc.ResponseTime(limit)

    def test_what_was_not_measured_is_no_score(self):
        with pytest.raises(ValueError, match="the duration of the result is unknown"):
            sc.ResponseTime(1_000).score(done(), wanted())


GOOD = (done(op("update", "a"), pages={"A": "x"}), wanted(op("update", "a"), patterns={"A": ["x"]}))
BAD = (done(op("delete", "b"), pages={"A": "y"}), wanted(op("update", "a"), patterns={"A": ["x"]}))


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

    @pytest.mark.parametrize(
        ("scorer", "threshold"),
        [(sc.OperationAccuracy(), 0.8), (sc.TargetBlockPrecision(), 0.75), (sc.ContentQuality(), 0.6), (sc.OperationResult(), 0.8), (sc.AntiHallucination(), 1.0)],
    )  # fmt: skip
    def test_thresholds_of_their_own(self, scorer, threshold):
        assert threshold == sc.Entry(scorer).threshold

    def test_the_overall_figure_is_the_weighted_average(self):
        """Accuracy 1 of 2, weight 2; precision 1 of 2, weight 1.5; content 0, weight 0.5: 1.75 of 4."""
        actual = done(op("update", "a"), pages={"A": "y"})
        expected = wanted(op("update", "a"), op("update", "b"), patterns={"A": ["x"]})
        report = sc.Suite.preset("operation-focused").evaluate(actual, expected)
        assert (0.4375, False) == (report.overall, report.passed)
        assert [0.5, 0.5, 0.0] == [one.score for one in report.results]

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

    def test_a_threshold_that_is_met_exactly_is_met(self):
        suite = sc.Suite([sc.Entry(sc.OperationAccuracy(), threshold=1 / 3)])
        assert suite.evaluate(done(op("update", "a")), wanted(op("update", "a"), op("x"), op("y"))).passed

    def test_a_scorer_that_fails_is_told(self):
        report = sc.Suite([sc.Entry(sc.ResponseTime(5)), sc.Entry(sc.OperationAccuracy())]).evaluate(*GOOD)
        assert (False, 0.5, 0.0) == (report.passed, report.overall, report.results[0].score)
        assert "could not be scored: ValueError: the duration of the result is unknown" in report.diagnosis[0]

    def test_for_tests_of_the_user_s(self):
        assert sc.assert_passes(sc.Suite.preset("standard"), *GOOD).passed
        with pytest.raises(AssertionError, match="type mismatch: expected"):
            sc.assert_passes(sc.Suite.preset("standard"), *BAD)

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

    def test_an_unknown_preset(self):
        with pytest.raises(sc.SuiteError, match="a preset must be one of standard, strict, operation-focused"):
            sc.Suite.preset("harsh")


def test_the_tool_calls_of_a_trace_are_operations():
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)

    @grace.tool
    def write(path, content, position=None):
        return "ok"

    with grace.run("edit") as run:
        write("a.md", "text", position="end")
        write("b.md", "more")
    for trace in (run.trace, run.trace.to_dict()):
        found = sc.operations_from_trace(trace)
        assert [op("write", "a.md", None, "end", "text"), op("write", "b.md", None, None, "more")] == found
    report = sc.Suite.preset("standard").evaluate(done(*found), wanted(op("write", "a.md"), op("write", "b.md")))
    assert report.passed
