"""The design guide row by row: thresholds, the fields of each record of details, patterns, combinations, what to look at."""

from __future__ import annotations

from dataclasses import fields

import pytest

from grace_kp import scorers as sc

pytest.importorskip("regex", reason="needs the extra eval")

BLOCKS = (sc.Block("b1", "one"), sc.Block("b2", "two"))
WANTED = sc.EditExpectation(
    [sc.Operation("update", "b1", 0, content="uno"), sc.Operation("insert", "b2", 1, "after", "three")],
    {"P": ["uno", "three"]},
)
NOTHING_DONE = sc.EditResult([], [], BLOCKS, BLOCKS, {"P": "one two"}, 2_000)


@pytest.mark.parametrize(
    ("scorer", "threshold"),
    [
        (sc.OperationAccuracy(), 0.80), (sc.TargetBlockPrecision(), 0.75), (sc.ContentQuality(), 0.60),
        (sc.OperationResult(), 0.80), (sc.AntiHallucination(), 1.00),
    ],
)  # fmt: skip
def test_thresholds(scorer, threshold):
    assert threshold == scorer.threshold


@pytest.mark.parametrize(
    ("scorer", "names"),
    [
        (sc.OperationAccuracy(), {"matched_operations", "total_expected_operations", "unmatched_operations"}),
        (sc.TargetBlockPrecision(), {"correct_targets", "total_targets", "incorrect_targets"}),
        (sc.ContentQuality(), {"matched_patterns", "total_patterns", "content_issues"}),
        (sc.OperationResult(), {"application_success_rate", "content_score"}),
        (sc.AntiHallucination(), {"no_new_content", "no_deleted_blocks", "only_specified_changes"}),
        (sc.ResponseTime(1_000), {"response_time_ms", "max_acceptable_ms", "passed"}),
    ],
)
def test_details_have_the_fields_that_it_names(scorer, names):
    assert names <= {one.name for one in fields(scorer.details(NOTHING_DONE, WANTED))}


def test_what_stands_in_them():
    accuracy = sc.OperationAccuracy().details(NOTHING_DONE, WANTED)
    assert [("type mismatch", one) for one in WANTED.operations] == [
        (one.reason, one.expected) for one in accuracy.unmatched_operations
    ]
    wrong = sc.EditResult([sc.Operation("update", "b9", 9)])
    (first, second) = sc.TargetBlockPrecision().details(wrong, WANTED).incorrect_targets
    assert (("b1", 0), ("b9", 9)) == (
        (first.expected.target_block_id, first.expected.target_index),
        (first.actual.target_block_id, first.actual.target_index),
    )
    assert (("b2", 1), None) == ((second.expected.target_block_id, second.expected.target_index), second.actual)
    assert (
        "Page 'P': Pattern 'uno' not found in content: 'one two...'"
        == sc.ContentQuality().details(NOTHING_DONE, WANTED).content_issues[0]
    )
    assert (2_000, 1_000, False) == tuple(
        getattr(sc.ResponseTime(1_000).details(NOTHING_DONE, WANTED), name)
        for name in ("response_time_ms", "max_acceptable_ms", "passed")
    )


@pytest.mark.parametrize(
    ("pattern", "content", "found"),
    [
        ("要約|まとめ|サマリー", "会議のまとめ", True),  # good: several choices
        ("要約|まとめ|サマリー", "会議の記録", False),
        (".*置換後.*", "本文は置換後のものです", True),  # good: a part
        ("Cart.*Cart.*Cart", "Cart A, Cart B and Cart C", True),  # good: how often
        ("Cart.*Cart.*Cart", "Cart A and Cart B", False),
        ("^完全に一致するテキスト$", "完全に一致するテキスト", True),  # bad: all or nothing
        ("^完全に一致するテキスト$", "完全に一致するテキスト。", False),
    ],
)
def test_patterns(pattern, content, found):
    expected = sc.EditExpectation(patterns={"P": [pattern]})
    assert float(found) == sc.ContentQuality().score(sc.EditResult([], pages={"P": content}), expected)


@pytest.mark.parametrize(
    ("preset", "entries"),
    [
        ("standard", [("operation-accuracy", 1.0, 0.8), ("target-block-precision", 1.0, 0.75), ("content-quality", 1.0, 0.6)]),
        ("strict", [("operation-accuracy", 1.0, 0.9), ("target-block-precision", 1.0, 0.9), ("content-quality", 1.0, 0.8), ("anti-hallucination", 2.0, 1.0)]),
        ("operation-focused", [("operation-accuracy", 2.0, 0.9), ("target-block-precision", 1.5, 0.85), ("content-quality", 0.5, 0.5)]),
    ],
)  # fmt: skip
def test_combinations(preset, entries):
    assert entries == [(one.scorer.type, one.weight, one.threshold) for one in sc.Suite.preset(preset).entries]


class Says:
    """A scorer of one's own."""

    type, threshold = "says", 0.5

    def __init__(self, score):
        self._score = score

    def score(self, actual, expected):
        return self._score

    def details(self, actual, expected):
        return {}


@pytest.mark.parametrize(
    ("scores", "weights", "passed", "overall"),
    [
        ([0.5, 0.9], [1.0, 1.0], True, 0.7),
        ([0.49, 1.0], [1.0, 1.0], False, 0.745),  # all of them, however good the average is
        ([0.5, 0.8], [1.0, 3.0], True, 0.725),
        ([0.6], [0.1], True, 0.6),
    ],
)
def test_passing_and_the_weighted_average(scores, weights, passed, overall):
    suite = sc.Suite([sc.Entry(Says(score), weight) for score, weight in zip(scores, weights, strict=True)])
    report = suite.evaluate(None, None)
    assert (passed, pytest.approx(overall)) == (report.passed, report.overall)


@pytest.mark.parametrize(
    ("taken", "score"), [(0, 1.0), (1_000, 1.0), (1_250, 0.75), (1_500, 0.5), (2_000, 0.0), (3_000, 0.0)]
)
def test_the_response_time_of_the_guide(taken, score):
    assert score == pytest.approx(
        sc.ResponseTime(1_000).score(sc.EditResult([], duration_ms=taken), sc.EditExpectation())
    )


@pytest.mark.parametrize(
    ("scorer", "look_at", "evidence"),
    [
        (
            sc.OperationAccuracy(),
            "type, target or position",
            "type mismatch: expected {'type': 'update', 'target_block_id': 'b1'",
        ),
        (
            sc.TargetBlockPrecision(),
            "why the target was not found",
            "expected target_block_id 'b1', target_index 0, chosen was nothing",
        ),
        (sc.ContentQuality(), "whether the patterns are too strict", "Page 'P': Pattern 'uno' not found"),
    ],
)
def test_where_to_look_when_a_score_is_low(scorer, look_at, evidence):
    diagnosis = sc.Suite([sc.Entry(scorer)]).evaluate(NOTHING_DONE, WANTED).diagnosis
    assert look_at in diagnosis[0]
    assert evidence in diagnosis[1]


def test_where_to_look_when_something_was_made_up():
    """The difference of what went in and what came out."""
    invented = sc.EditResult([], blocks_before=BLOCKS, blocks_after=(sc.Block("b1", "one"), sc.Block("b9", "made up")))
    diagnosis = sc.Suite([sc.Entry(sc.AntiHallucination())]).evaluate(invented, sc.EditExpectation()).diagnosis
    assert "compare what went in with what came out" in diagnosis[0]
    assert "block 'b9' is new and was not asked for" in diagnosis[1]
    assert "block 'b2' is gone and was not to be deleted" in diagnosis[2]
    assert {"+made up", "-two"} <= {line.strip() for line in diagnosis}
