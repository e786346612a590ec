"""State of recording is per context and per thread; troubles are counted for the process."""

from __future__ import annotations

import contextvars
import threading

import pytest

from grace_kp.record import CURRENT, TROUBLES, current_run, note
from grace_kp.testing import capture


def test_a_context_has_its_own_current_run(grace):
    """A copied context sees the run that was current when it was copied; a plain thread sees none."""
    seen = []
    with grace.run("q") as run:
        copied = contextvars.copy_context()
        thread = threading.Thread(target=lambda: seen.append(current_run()))
        thread.start()
        thread.join()
        assert run is CURRENT.get()
    assert [None] == seen
    assert run is copied.run(CURRENT.get)
    assert copied.run(current_run) is None  # it has ended
    assert CURRENT.get() is None


def test_captures_side_by_side_hold_their_own_runs(grace):
    def captured(objective):
        with capture() as traces:
            with grace.run(objective):
                pass
            return [trace.task.objective for trace in traces]

    assert (["a"], ["b"]) == (
        contextvars.copy_context().run(captured, "a"),
        contextvars.copy_context().run(captured, "b"),
    )


@pytest.mark.parametrize(
    ("error", "theirs", "own"), [("text", False, 0), (ValueError("x"), True, 0), (ValueError("x"), False, 1)]
)
def test_only_errors_of_our_own_may_have_cost_evidence(monkeypatch, error, theirs, own):
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING", raising=False)
    before, counted = TROUBLES.own, sum(TROUBLES.counts.values())
    note("a test", error, theirs=theirs)
    assert (own, 1) == (TROUBLES.own - before, sum(TROUBLES.counts.values()) - counted)
