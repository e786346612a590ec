"""The detection rubric (SPEC §9): whether a variant of an agent or prompt is better than the current best, and how sure that is."""

from grace_kp.rubric._compare import Recommendation, compare, converged
from grace_kp.rubric._history import History, Round
from grace_kp.rubric._judgement import Detection, Run, run_score
from grace_kp.rubric._statistics import Evidence, Interval, permutation_p
from grace_kp.rubric._summary import Summary, Variant
from grace_kp.rubric._test_set import Document, Problem, TestSet

__all__ = [
    "Detection",
    "Document",
    "Evidence",
    "History",
    "Interval",
    "Problem",
    "Recommendation",
    "Round",
    "Run",
    "Summary",
    "TestSet",
    "Variant",
    "compare",
    "converged",
    "permutation_p",
    "run_score",
]
