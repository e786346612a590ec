"""The detection rubric (SPEC §9): whether a variant of an agent or prompt is better than the current best, and how certain that is."""

from grace_kp.rubric._compare import Evidence, Interval, Recommendation, compare, converged, permutation_p
from grace_kp.rubric._files import RubricFileError, read_test_set, read_variant, write_variant
from grace_kp.rubric._history import History, HistoryChanged, Round
from grace_kp.rubric._rating import (
    Agreement,
    Dispute,
    Gap,
    ModelRater,
    NotRated,
    Output,
    PersonRater,
    Rated,
    Rater,
    Rating,
    agreement_of,
    rate,
)
from grace_kp.rubric._report import comparison_page, history_page, require_plots
from grace_kp.rubric._variants import Detection, Document, Problem, Run, Summary, TestSet, Variant, run_score

__all__ = [
    "Agreement", "Detection", "Dispute", "Document", "Evidence", "Gap", "History", "HistoryChanged", "Interval",
    "ModelRater", "NotRated", "Output", "PersonRater", "Problem", "Rated", "Rater", "Rating", "Recommendation",
    "Round", "RubricFileError", "Run", "Summary", "TestSet", "Variant", "agreement_of", "compare",
    "comparison_page", "converged", "history_page", "permutation_p", "rate", "read_test_set", "read_variant",
    "require_plots", "run_score", "write_variant",
]  # fmt: skip
