"""The label of a run is the newest one in its feedback that is about the run."""

from __future__ import annotations

import numpy as np
import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from tests.calibrate.gated import decision, document


def counts(*feedback, **options):
    actions = cal.replay([document(1, decision(), feedback=list(feedback))], gk.Thresholds(), **options).actions
    return actions.right, actions.wrong, actions.partly_right


@pytest.mark.parametrize(
    ("feedback", "expected"),
    [
        ([{"correct": True, "source": "user"}, {"correct": False, "source": "test"}], (0, 1, 0)),
        ([{"correct": 1, "source": "user"}, {"correct": "no", "source": "test"}, "text", None, {}], (1, 0, 0)),
        ([{"correct": 0.4, "source": "user"}], (0, 0, 1)),
        ([{"correct": 0.0}, {"correct": float("nan")}, {"correct": 2}], (0, 1, 0)),
        ([{"correct": True, "source": "approval"}], (0, 0, 0)),
    ],
)
def test_the_newest_usable_entry_counts(feedback, expected):
    """Approvals are no labels, unusable entries are passed over."""
    assert expected == counts(*feedback)


def test_truth_values_of_numpy_are_labels():
    """As arrays of labels hold them."""
    assert (1, 0, 0) == counts(labels=np.array([True]))
    assert (0, 1, 0) == counts(labels=np.array([0.0]))
