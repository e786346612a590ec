"""What a decision may see of a run: nothing after it, and no label."""

from __future__ import annotations

from grace_kp.calibrate._features import finished_calls, transcript_of
from tests.calibrate.examples import run

STEPS = [
    ("thought", "Look up."),
    ("tool_call", ("find", {"order": 1})),
    ("observation", "Error: gone"),
    ("error_recovery", "Recovered from find"),
    ("tool_call", ("find", {"order": 2})),
    ("observation", "order 2"),
    ("observation", "a user's message"),
]


def seen(document, **how):
    return transcript_of(document, **{"has_ended": True, "upto": None, **how})


def test_results_belong_to_calls_and_messages_to_nobody():
    """Without `grace.calls` the oldest open call gets the next observation, and further observations are messages."""
    transcript = seen(run(STEPS))
    assert ["Error: gone", "order 2"] == [call.result for call in transcript.calls] == transcript.results
    assert [True, False] == [call.failed for call in transcript.calls]
    assert ["a user's message"] == transcript.messages
    assert ["Look up."] == transcript.thoughts


def test_recorded_calls_say_which_result_is_whose():
    """Parallel calls get their results by `grace.calls`, and a call is failed if its record says so."""
    steps = [("tool_call", ("a", {})), ("tool_call", ("b", {})), ("observation", "of b"), ("observation", "of a")]
    calls = [
        {"name": "a", "tool_call": 0, "observation": 3, "status": "error"},
        {"name": "b", "tool_call": 1, "observation": 2, "status": "ok"},
    ]
    transcript = seen(run(steps, calls=calls))
    assert [("of a", True), ("of b", False)] == [(call.result, call.failed) for call in transcript.calls]
    assert [calls[1]] == finished_calls(seen(run(steps, calls=calls), upto=3))


def test_a_status_counts_once_the_result_is_there():
    """A record that already holds the end of a call says nothing at a moment before that end."""
    calls = [{"name": "a", "tool_call": 0, "observation": 1, "status": "error"}]
    document = run([("tool_call", ("a", {})), ("observation", "x")], calls=calls)
    assert [False] == [call.failed for call in seen(document, upto=1).calls]
    assert [] == finished_calls(seen(document, upto=1))
    assert [True] == [call.failed for call in seen(document).calls]


def test_a_recovery_at_the_end_is_not_seen():
    """A reader that knows that the run was right adds this step, so it would give the label away."""
    failed = STEPS[:3]
    assert seen(run(failed)) == seen(run([*failed, ("error_recovery", "Recovered")]))


def test_the_answer_is_seen_after_the_end_only():
    """Before an action there is neither an answer nor a judgement of it."""
    document = run(STEPS, evaluation={"coverage": {"score": 0.9}})
    assert (None, {}) == (seen(document, has_ended=False).answer, seen(document, has_ended=False).evaluation)
    assert ("The order 1234 was sent.", 0.9) == (seen(document).answer, seen(document).evaluation["coverage"]["score"])


def test_a_document_of_any_form_is_read():
    """Parts of unknown form are left out."""
    for document in (
        {},
        {"steps": 3},
        {"steps": [1, {"type": 3}, {"tool": "x", "type": "tool_call"}], "grace": [], "task": "?"},
    ):
        transcript = seen(document)
        assert ("", "") == (transcript.objective, transcript.answer)
