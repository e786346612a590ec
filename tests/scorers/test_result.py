"""Results of a scorer and their diagnosis: where to look when a score is too low."""

from __future__ import annotations

from grace_kp import scorers as sc
from tests.scorers.records import BAD, GOOD, done, op, wanted


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
