"""The closed vocabularies: their words, their order, and what follows from each."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.levels import InterventionAction, InterventionLevel, PrivacyLevel, StepType, Visibility

LEVELS = st.sampled_from(InterventionLevel)


@pytest.mark.parametrize(
    ("enum", "words"),
    [
        (InterventionLevel, "silent notify confirm escalate"),
        (InterventionAction, "proceed modify cancel input retry skip"),
        (StepType, "thought tool_call observation error_recovery"),
        (PrivacyLevel, "aggregated federated private"),
        (Visibility, "private org network"),
    ],
)
def test_the_words(enum, words):
    """Each is exactly these words, which are plain texts in JSON, in comparisons and as keys."""
    assert words.split() == list(enum)
    for word in words.split():
        assert enum(word) == word
        assert {word: 1} == {enum(word): 1}
        assert json.dumps(word) == json.dumps(enum(word))
        assert enum(word) is pickle.loads(pickle.dumps(enum(word)))
        assert word == f"{enum(word)}"


@pytest.mark.parametrize("enum", [InterventionLevel, InterventionAction, StepType, PrivacyLevel, Visibility])
def test_another_word_is_refused(enum):
    for word in ("", "SILENT", "Thought", "maybe", None, 0):
        with pytest.raises(ValueError, match="is not a valid"):
            enum(word)


def test_what_follows_from_each_word():
    """Severity follows the order; two levels ask; CANCEL and INPUT end the run; only `private` keeps identifiers."""
    assert [0, 1, 2, 3] == [level.severity for level in InterventionLevel]
    assert {"confirm", "escalate"} == {level for level in InterventionLevel if level.asks}
    assert {"proceed", "modify", "retry", "skip"} == {action for action in InterventionAction if action.should_continue}
    assert {"aggregated", "federated"} == {level for level in PrivacyLevel if level.hides_identifiers}


@given(LEVELS, LEVELS)
def test_a_floor_never_makes_a_level_milder(level, floor):
    raised = level.at_least(floor)
    assert max(level.severity, floor.severity) == raised.severity
    assert raised is floor.at_least(level)
    assert raised is raised.at_least(floor)
