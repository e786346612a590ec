"""Labels are bounded and comparable, and a document of any form gives the attributes that it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.trace import METADATA, PARENT, SESSION, TAG, USER, attributes_in, comparable, label
from grace_kp.trace._rules import MAX_LABEL, MAX_TAGS


@given(st.text(st.characters(codec=None, categories=None), max_size=600))
def test_a_label_is_stable_bounded_and_storable(text):
    """A label of a label is the label itself."""
    found = label(text)
    assert found == label(found)
    assert len(found) <= MAX_LABEL
    assert b"\0" not in found.encode()


def test_long_labels_of_different_texts_differ():
    """The fingerprint at the end tells apart what the beginning does not."""
    assert label("x" * 300 + "a") != label("x" * 300 + "b")


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


def test_tags_beyond_the_limit_are_left_out():
    """As in live recording."""
    assert MAX_TAGS == len(list(attributes_in({"grace": {"tags": [str(number) for number in range(MAX_TAGS + 5)]}})))


@pytest.mark.parametrize(
    "document", [{}, {"grace": None}, {"grace": {"tags": "a", "user": 3, "session": [], "metadata": [], "parent": "x"}}]
)
def test_a_foreign_document_may_hold_anything(document):
    """Values of other types count as absent."""
    assert [] == list(attributes_in(document))
