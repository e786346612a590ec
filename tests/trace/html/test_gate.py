"""The decision of a gate in the timeline."""

from __future__ import annotations

import pytest

from grace_kp.trace import run_timeline
from tests.pages.reading import Elements
from tests.trace.html.traces import document, full


def shown(**decision):
    return Elements(
        run_timeline(document([{"type": "thought", "content": "x"}], decisions=[{"action": "pay", **decision}]))
    ).text


def test_a_decision_stands_where_it_was_made():
    """Before the step of its action, with level, reviewer, edit and outcome."""
    found = run_timeline(full())
    assert found.index('id="step-7"') < found.index("step gate") < found.index('id="step-8"')
    assert "<del>54.0</del> <ins>45.0</ins>" in found
    text = Elements(found).text
    for words in (
        "modify by ben after 1 min 4 s",
        "waited 1 min 4 s",
        "executed modified",
        "missing evidence",
        "policy version: 1aab7c72f51e",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ({"action": "cancel"}, "there was nobody to ask"),
        ({"action": "cancel", "timeout_reached": True}, "nobody answered in time; cancel"),
        ({"action": "input", "user_input": "ask sales", "reviewer": "ana"}, "ask sales"),
        ({"action": "proceed"}, "proceed by an unknown reviewer"),
    ],
)
def test_an_answer_or_why_there_is_none(response, words):
    """In words."""
    assert words in shown(response=response)


def test_a_formula_in_place_of_a_profile_is_marked():
    """A fallback never looks like a measurement."""
    assert "a formula stands in for the learned profile" in shown(score=0.5, fallback=True)
    assert "a formula" not in shown(score=0.5)
