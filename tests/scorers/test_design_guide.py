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
    wrong = sc.EditResult([sc.Operation("update", "b9", 9)])
    (first, second) = sc.TargetBlockPrecision().details(wrong, WANTED).incorrect_targets
    expected, chosen = first.expected, first.actual
    assert ("b1", 0) == (expected.target_block_id, expected.target_index)
    assert ("b9", 9) == (chosen.target_block_id, chosen.target_index)
    assert second.actual is None
    timed = sc.ResponseTime(1_000).details(NOTHING_DONE, WANTED)
    assert (2_000, 1_000, False) == (timed.response_time_ms, timed.max_acceptable_ms, timed.passed)


@pytest.mark.parametrize(
    ("scorer", "look_at", "evidence"),
    [
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
