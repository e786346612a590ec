"""Labels are bounded and comparable, documents give the attributes that they hold, and all agree on which errors a run survived."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.trace import (
    METADATA,
    PARENT,
    SESSION,
    TAG,
    USER,
    Failure,
    Failures,
    attributes_in,
    comparable,
    label,
    outcomes_of_calls,
)
from grace_kp.trace._rules import MAX_LABEL


@given(st.text(st.characters(codec=None, categories=None), max_size=600))
def test_a_label_is_stable_bounded_and_storable(text):
    """A label of a label is the label itself."""
    found = label(text)
    assert found == label(found)
    assert len(found) <= MAX_LABEL
    assert b"\0" not in found.encode()


@pytest.mark.parametrize(
    ("value", "text"), [("a b", "a b"), (3, "3"), ({"a": [1, None]}, '{"a": [1, null]}'), (True, "true")]
)
def test_metadata_values_are_compared_as_text(value, text):
    """A text itself, any other value as JSON."""
    assert text == comparable(value)


def test_attributes_of_a_document():
    """Tags, user, session, metadata and the parent, as kind, name and value."""
    grace = {
        "tags": ["a", 3],
        "user": "ana",
        "session": "s",
        "metadata": {"n": 1},
        "parent": {"trace_id": "kp:trace:1"},
    }
    assert [
        (TAG, "", "a"),
        (USER, "", "ana"),
        (SESSION, "", "s"),
        (METADATA, "n", "1"),
        (PARENT, "", "kp:trace:1"),
    ] == list(attributes_in({"grace": grace}))


@pytest.mark.parametrize(
    "document", [{}, {"grace": None}, {"grace": {"tags": "a", "user": 3, "session": [], "metadata": [], "parent": "x"}}]
)
def test_a_foreign_document_may_hold_anything(document):
    """Values of other types count as absent."""
    assert [] == list(attributes_in(document))


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
