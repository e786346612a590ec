"""The kit for users' tests: captured traces, fixed clocks and ids, reviewers and judges that follow a script."""

from __future__ import annotations

import threading

import pytest

from grace_kp.testing import FakeClock, ScriptedJudge, ScriptedReviewer, capture, fixed_ids, make_grace


def test_capture_is_of_this_context_only():
    grace = make_grace()
    seen = {}

    def work(name):
        with capture() as captured:
            for n in range(20):
                with grace.run(f"{name} {n}"):
                    pass
            seen[name] = [t.task.objective for t in captured]

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {name: [f"{name} {n}" for n in range(20)] for name in "ab"}


def test_a_fixed_clock_and_fixed_ids_make_a_trace_reproducible():
    def once():
        grace = make_grace(clock=FakeClock(tick_ns=1_000_000), new_id=fixed_ids())

        @grace.tool
        def add(a, b):
            return a + b

        with grace.collect() as traces, grace.run("sum"):
            add(1, 2)
        return traces[0].to_json()

    assert once() == once()
    assert '"created_at":"2026-01-02T03:04:05.000Z"' in once()


def test_fixed_ids_count_the_runs_in_the_order_in_which_they_begin():
    grace = make_grace()
    with grace.run("first") as first, grace.run("second") as second:
        drawn = [second.id[-1], first.id[-1]]
    assert ["2", "1"] == drawn


def test_a_script_ends_with_an_error_that_counts():
    """One question more than the script has answers fails the user's test."""
    reviewer = ScriptedReviewer("proceed", lambda request: "cancel", ValueError("busy"))
    assert ["proceed", "cancel"] == [reviewer.review(None).action for _ in range(2)]
    with pytest.raises(ValueError, match="busy"):
        reviewer.review(None)
    with pytest.raises(AssertionError, match="asked 4 times, the script has 3 answers"):
        reviewer.review(None)
    assert 4 == reviewer.asked


def test_a_scripted_judge_repeats_its_last_reply():
    judge = ScriptedJudge("first", lambda prompt: prompt.upper())
    assert ["first", "B", "C"] == [judge(prompt) for prompt in "abc"]
    assert (["a", "b", "c"], 3) == (judge.prompts, judge.asked)


def test_a_clock_advances_on_request_only():
    clock = FakeClock(start_ns=0, tick_ns=5)
    clock.advance(1.5)
    assert (1_500_000_000, 1_500_000_005) == (clock.ns(), clock.ns())
    with pytest.raises(ValueError, match="-1"):
        clock.advance(-1)
