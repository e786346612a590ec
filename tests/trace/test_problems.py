"""Problems of a document are one line that names the place, the value found and what is allowed."""

from __future__ import annotations

import math

import pytest

from grace_kp import InvalidTrace, ReasoningTrace
from grace_kp.trace import refuse_what_json_cannot_hold
from grace_kp.trace._model import MAX_DEPTH, location_text


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a": [1, {"b": math.nan}]}, r"^a\[1\]\.b: must be a finite number \(got nan\)$"),
        ({"a": -math.inf}, r"^a: must be a finite number"),
        ({"a": 10**5_000}, r"^a: must be a number that can be written out"),
        ({"a": {1: 2}}, r"^a: has a key that is not a text: 1$"),
        ({"a": (1,)}, r"^a: must be a JSON value \(got one of type tuple\)$"),
        ({"a": nested(MAX_DEPTH + 1)}, rf"is nested more than {MAX_DEPTH} levels deep$"),
    ],
)
def test_values_without_a_form_in_json_are_refused(document, message):
    """The message names the place of the first such value."""
    with pytest.raises(InvalidTrace, match=message):
        refuse_what_json_cannot_hold(document)


@pytest.mark.parametrize("document", [{}, [], None, "x", {"a": [True, 1, 1.5, None, "\ud800"]}, nested(MAX_DEPTH)])
def test_json_values_pass(document):
    """Half a surrogate pair included, which JSON holds as an escape."""
    assert refuse_what_json_cannot_hold(document) is None


def test_other_wrong_fields_are_counted():
    """One line names the first field, and how many more there are."""
    with pytest.raises(InvalidTrace, match=r"^id: is missing; 4 more fields are wrong$"):
        ReasoningTrace.model_validate({"@type": "ReasoningTrace"})


def test_a_document_that_is_not_an_object_is_named_by_its_type():
    """There is no field to name."""
    with pytest.raises(InvalidTrace, match=r"^a ReasoningTrace must be an object \(got 3\)$"):
        ReasoningTrace.model_validate(3)


@pytest.mark.parametrize(
    ("location", "text"),
    [((), ""), (("steps", 2, "tool"), "steps[2].tool"), ((0, "a"), "[0].a"), (("x" * 80,), "x" * 57 + "...")],
)
def test_locations_are_paths(location, text):
    """Long names are shortened."""
    assert text == location_text(location)
