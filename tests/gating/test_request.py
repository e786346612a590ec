"""Requests and responses are values: what a reviewer was asked does not change, and an answer is checked when it is made."""

from __future__ import annotations

import dataclasses

import pytest

import grace_kp as gk
from grace_kp.gating._request import new_request_id

R = gk.InterventionResponse


@pytest.mark.parametrize("action", list(gk.InterventionAction))
def test_an_action_is_taken_by_name_too(action):
    response = R(str(action))
    assert action is response.action
    assert action.should_continue == response.should_continue


@pytest.mark.parametrize("action", ["yes", "", "PROCEED", None, True])
def test_an_unknown_action_is_an_error(action):
    with pytest.raises(ValueError, match=r"action must be one of proceed, .*, not"):
        R(action)


@pytest.mark.parametrize("modified", [["euros"], "euros", {1: 2}, {None: 2}])
def test_modified_arguments_have_names(modified):
    with pytest.raises(ValueError, match="modified must map parameter names to values"):
        R("modify", modified=modified)


def test_responses_and_requests_cannot_be_changed():
    response = R("proceed")
    with pytest.raises(dataclasses.FrozenInstanceError):
        response.action = gk.InterventionAction("cancel")


def test_no_two_requests_have_one_id():
    found = {new_request_id() for _ in range(200)}
    assert 200 == len(found)
    assert all(one.startswith("gate-") for one in found)
