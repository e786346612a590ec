"""The label of a run is the newest one in its feedback that is about the run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        (
            [
                {"correct": 0.0, "source": "user"},
                {"correct": float("nan"), "source": "user"},
                {"correct": 2, "source": "user"},
            ],
            (0, 1, 0),
        ),
        ([{"correct": True}, {"correct": True, "source": 3}], (0, 0, 0)),
        ([{"correct": True, "source": "approval"}], (0, 0, 0)),
    ],
)
def test_the_newest_usable_entry_counts(feedback, expected):
    """Approvals are no labels, unusable entries are passed over."""
    assert expected == counts(*feedback)


ENTRIES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "correct": st.sampled_from([True, False, 0, 1, 0.5, "yes", None, 2]),
            "source": st.sampled_from(["user", "approval", "audit", None]),
            "probability": st.just(1.0),
        },
    )
    | st.just("text"),
    max_size=4,
)


@given(st.lists(ENTRIES, max_size=6))
def test_the_label_is_that_of_the_labels_of_a_list(feedback):
    """`cal.labels` and a replay take the same entry of each run."""
    documents = [
        {**document(number, decision()), "grace": {"feedback": entries, "decisions": [decision()]}}
        for number, entries in enumerate(feedback)
    ]
    traces = [gk.ReasoningTrace.model_validate(found) for found in documents]
    expected = [label for label in each(traces) if label is not None]
    actions = cal.replay(traces, gk.Thresholds()).actions
    found = (actions.right, actions.wrong, actions.partly_right)
    assert (expected.count(True), expected.count(False), sum(label == 0.5 for label in expected)) == found


def each(traces):
    """The label of each trace, None without one."""
    for trace in traces:
        _, labels = cal.labels([trace], volunteered=True)
        yield labels[0] if labels else None


def test_truth_values_of_numpy_are_labels():
    """As arrays of labels hold them."""
    assert (1, 0, 0) == counts(labels=np.array([True]))
    assert (0, 1, 0) == counts(labels=np.array([0.0]))
