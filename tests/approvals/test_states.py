"""The table of states: what may follow what, and what is final."""

from __future__ import annotations

import pytest

from grace_kp.approvals import ENTITLING, FOLLOWING, OPEN, RESPONSES, ApprovalState
from grace_kp.levels import InterventionAction

S = ApprovalState
FINAL = {S.REJECTED, S.RESPONDED, S.SKIPPED, S.RETRIED, S.EXPIRED, S.CANCELLED, S.DONE, S.FAILED, S.NOT_DONE}


def test_every_state_is_in_the_table_and_in_the_drawing():
    """Nothing is left out of either."""
    import grace_kp.approvals._request as states

    assert set(FOLLOWING) == set(S)
    assert [] == [state for state in S if state.value not in (states.__doc__ or "")]


def test_final_states_have_no_way_out():
    """What has ended stays as it is."""
    assert FINAL == {state for state in S if not FOLLOWING[state]}


@pytest.mark.parametrize("state", S)
def test_only_a_decision_in_favour_is_claimed_and_only_a_claim_ends_in_an_outcome(state):
    """No other state leads to an execution."""
    assert (S.CLAIMED in FOLLOWING[state]) == (state in ENTITLING)
    assert (S.DONE in FOLLOWING[state]) == (state in {S.CLAIMED, S.UNKNOWN})


def test_every_decision_of_a_person_is_a_response():
    """The verbs map one to one to the responses of a reviewer."""
    assert set(RESPONSES.values()) == set(InterventionAction)
    assert set(RESPONSES) < FOLLOWING[S.PENDING]


@pytest.mark.parametrize(("state", "is_open", "may_have_run"), [
    (S.PENDING, True, False), (S.APPROVED, True, False), (S.EDITED, True, False), (S.CLAIMED, True, True),
    (S.UNKNOWN, False, True), (S.DONE, False, True), (S.FAILED, False, True), (S.NOT_DONE, False, False),
])  # fmt: skip
def test_what_a_state_means_for_the_next_call(state, is_open, may_have_run):
    """Whether a later call joins the request, and whether the action may have happened."""
    assert (is_open, may_have_run) == (state.is_open, state.may_have_run)
    assert (state in OPEN) == is_open
