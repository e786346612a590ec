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
    """The vocabularies are closed, and spelled one way."""
    for word in ("", "SILENT", "Thought", "maybe", None, 0):
        with pytest.raises(ValueError, match="is not a valid"):
            enum(word)


def test_severity_follows_the_order():
    """From 0 for going ahead silently to 3 for needing help."""
    assert [0, 1, 2, 3] == [level.severity for level in InterventionLevel]


def test_confirm_and_escalate_ask():
    """These two wait for a person, the others do not."""
    assert {"confirm", "escalate"} == {level for level in InterventionLevel if level.asks}


@given(LEVELS, LEVELS)
def test_a_floor_never_makes_a_level_milder(level, floor):
    """`at_least` gives the stricter of the two, whichever way round."""
    raised = level.at_least(floor)
    assert max(level.severity, floor.severity) == raised.severity
    assert raised is floor.at_least(level)
    assert raised is raised.at_least(floor)


def test_the_agent_goes_on_after_four_of_the_answers():
    """PROCEED, MODIFY, RETRY and SKIP go on; CANCEL and INPUT do not."""
    assert {"proceed", "modify", "retry", "skip"} == {action for action in InterventionAction if action.should_continue}


def test_only_private_keeps_identifiers():
    """What is aggregated or federated loses e-mail addresses and the like."""
    assert {"aggregated", "federated"} == {level for level in PrivacyLevel if level.hides_identifiers}
