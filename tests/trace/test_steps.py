"""Recording and readers agree on which errors a run survived."""

from __future__ import annotations

import pytest

from grace_kp.trace import Failure, Failures, outcomes_of_calls

ERROR = ("ValueError", "no such city")


def recovered(failures):
    """The texts of the recovery steps that are due, numbered from 0."""
    texts = []

    def add_step(failure):
        texts.append(failure.recovery)
        return {"step_id": len(texts) - 1}

    failures.recover(add_step)
    return texts


def test_each_error_gets_one_recovery_step():
    """The step names what failed, the call gets its number, and the next step adds no other."""
    failures, entry = Failures(), {"name": "search"}
    failures.add(Failure("search", ERROR, entry))
    failures.add(Failure("a model", ("Timeout", ""), None))
    assert ["Recovered from search: ValueError: no such city", "Recovered from a model: Timeout"] == recovered(failures)
    assert {"name": "search", "recovery": 0} == entry
    assert [] == recovered(failures)


@pytest.mark.parametrize(
    ("error", "names"), [(ERROR, ["outer"]), (("KeyError", "'x'"), ["inner", "outer"])], ids=["same", "another"]
)
def test_an_error_that_passes_through_the_outer_call_counts_once(error, names):
    """The call around it fails with the same error; another error of that call counts as well."""
    failures, outer, inner = Failures(), object(), object()
    failures.add(Failure("inner", ERROR, {}, outer), inner)
    failures.add(Failure("outer", error, {}), outer)
    assert names == [text.split()[2].rstrip(":") for text in recovered(failures)]


def test_the_same_error_of_two_parallel_calls_counts_twice():
    """Only a call and the call around it share an error."""
    failures = Failures()
    failures.add(Failure("left", ERROR, {}), object())
    failures.add(Failure("right", ERROR, {}), object())
    assert 2 == len(recovered(failures))


@pytest.mark.parametrize(
    ("kinds", "outcomes"),
    [
        ("", []),
        ("t c o t", [True]),
        ("c o r", [False]),
        ("c r", [False]),
        ("c o t r", [True]),
        ("c c o r o", [False, True]),
        ("c c o o r", [True, False]),
        ("o r c", [True]),
        ("c r o c o", [False, True]),
    ],
)
def test_a_recovery_marks_the_call_before_it_as_failed(kinds, outcomes):
    """From the types of the steps alone: t thought, c tool_call, o observation, r error_recovery."""
    names = {"t": "thought", "c": "tool_call", "o": "observation", "r": "error_recovery"}
    assert outcomes == outcomes_of_calls([names[kind] for kind in kinds.split()])
