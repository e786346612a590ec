"""What a trace says of its confidence: parts that were evaluated, how a run failed, and the words that people read."""

import asyncio

import pytest

import grace_kp as gk
from grace_kp.runtime import ProfileSet
from grace_kp.runtime._assessor import Assessor
from grace_kp.value import ValueScorer

PARTS = {"search_quality", "source_agreement", "llm_self_eval", "tool_success", "query_coverage"}


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as runtime:
        yield runtime


def only(grace):
    (trace,) = grace.store.query()
    return trace


def test_parts_that_were_not_evaluated_are_none(grace):
    """A run that called one tool has a figure for that and for nothing else."""
    tool = grace.tool(lambda: "x", name="look")
    with grace.run("look"):
        tool()
    confidence = only(grace).grace["confidence"]
    assert dict.fromkeys(PARTS) | {"tool_success": 1.0} == confidence["breakdown"]
    assert PARTS - {"tool_success"} == set(confidence["not_evaluated"])


@pytest.mark.parametrize("profile", ["grace", "strict"])
def test_a_known_confidence_is_recorded_as_a_new_one(profile):
    """The records of runs with the same factors are equal, and a sentence added to one does not appear in the next."""
    profiles = ProfileSet.of(profile)
    known, calls = Assessor(profiles, ValueScorer), [{"status": "ok"}, {"status": "error"}, {"status": "ok"}]
    for success in (False, True, False, True):
        documents = [
            {
                "metadata": {"success": success, "task_domain": "x"},
                "steps": [{"type": "tool_call", "tool": {"name": "look"}}],
                "outcome": {},
                "grace": {"calls": calls},
            }
            for _ in range(2)
        ]
        known.assess(documents[0], own_confidence=0.25)
        Assessor(profiles, ValueScorer).assess(documents[1], own_confidence=0.25)
        assert documents[1] == documents[0]
        assert success is ("run_failed" not in documents[0]["grace"]["confidence"])


def test_a_run_without_calls_mentions_no_tools(grace):
    """Nothing was evaluated, so no part has a figure, and the reason says that there is no evidence."""
    with grace.run("think"):
        pass
    confidence = only(grace).grace["confidence"]
    assert dict.fromkeys(PARTS) == confidence["breakdown"]
    assert confidence["reason"].startswith("No evidence: ")
    assert "tool" not in confidence["reason"]
    assert "run_failed" not in confidence


def test_agreement_that_was_not_measured_is_none(grace):
    """Several sources without an embedder have no agreement."""
    search = grace.retriever(lambda: [{"score": 0.9, "source": "a"}, {"score": 0.8, "source": "b"}], name="search")
    with grace.run("search"):
        search()
    confidence = only(grace).grace["confidence"]
    assert (0.9, None) == tuple(confidence["breakdown"][name] for name in ("search_quality", "source_agreement"))
    assert "source agreement (fallback 0.5)" in confidence["reason"]
    assert {"source_agreement": 0.5} == confidence["fallbacks"] == only(grace).confidence.fallbacks


def test_a_failed_run_says_that_it_failed(grace):
    """The number is the formula's; the record beside it says that the run failed, and with which error."""
    with pytest.raises(KeyError), grace.run("break"):
        raise KeyError("x")
    confidence = only(grace).grace["confidence"]
    assert (0.7, True) == (confidence["score"], confidence["run_failed"])
    assert confidence["reason"].startswith("The run failed with KeyError. No evidence: ")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (asyncio.CancelledError, "The run was cancelled."),
        (KeyboardInterrupt, "The run was cancelled."),
        (SystemExit, "The run ended with the program's exit."),
        (GeneratorExit, "The run was closed before its end."),
    ],
)
def test_every_unsuccessful_end_has_words(grace, error, words):
    """A run that did not come to its end says how it ended."""
    with pytest.raises(error), grace.run("break"):
        raise error
    confidence = only(grace).grace["confidence"]
    assert confidence["run_failed"]
    assert confidence["reason"].startswith(words)


def test_a_run_that_calls_itself_unsuccessful_has_failed(grace):
    """`outcome(success=False)` counts as a failure, `success=True` after an error does not."""
    with grace.run("own"):
        grace.outcome(success=False)
    assert only(grace).grace["confidence"]["reason"].startswith("The run did not succeed. ")
    grace.store.clear()

    @grace.agent
    def late():
        grace.outcome(success=True)
        raise ValueError("late")

    with pytest.raises(ValueError, match="late"):
        late()
    assert "run_failed" not in only(grace).grace["confidence"]


def test_a_run_that_an_unapproved_action_ended_says_so(grace):
    """A refusal is no error of the run's own."""

    @grace.gate(floor="confirm")
    def delete():
        return "gone"

    with pytest.raises(gk.ActionCancelled), grace.run("clean up"):
        delete()
    confidence = only(grace).grace["confidence"]
    assert confidence["reason"].startswith("The run stopped because an action was not approved. ")
