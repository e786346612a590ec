"""Expectations of cases of other frameworks: values of ours, objects with their fields, and everything else."""

from __future__ import annotations

import re

import pytest

from grace_kp.errors import brief
from grace_kp.integrations.evals._expected import as_expectation
from grace_kp.scorers import EditExpectation


def test_an_expectation_is_taken_as_it_is():
    """An `EditExpectation` needs no reading."""
    expectation = EditExpectation(patterns={"result": ["paid"]})
    assert expectation is as_expectation(expectation, "expected_output")


def test_an_object_with_its_fields_is_read():
    """What a dataset's file can hold means the same."""
    expected = EditExpectation(patterns={"result": ["paid"]})
    assert expected == as_expectation({"patterns": {"result": ["paid"]}}, "expected_output")


@pytest.mark.parametrize("value", [3, None, "paid", ["paid"]])
def test_anything_else_is_refused_with_its_place(value):
    """The error names the place in the case, what is allowed, and the value."""
    message = re.escape(f"the place must be an EditExpectation or an object with its fields, not {brief(value)}")
    with pytest.raises(ValueError, match=f"^{message}$"):
        as_expectation(value, "the place")
