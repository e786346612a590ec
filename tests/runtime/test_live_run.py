"""Live runs, which an adapter opens and ends itself: their trace, who is current, how they are found, suspended and continued."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextvars import copy_context
from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

import grace_kp as gk
from grace_kp.record import CURRENT, current_run
from grace_kp.runtime import _live
from grace_kp.testing import FakeClock, ScriptedReviewer, make_grace

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WHO = {"name": "support", "framework": "some-agents", "session": "s1", "user": "u1"}


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def grace(clock):
    with make_grace(clock=clock) as runtime:
        yield runtime


def gated(grace, run, name="pay"):
    """Return the confidence behind a gate in a run, and the gaps in its evidence."""
    reviewer = ScriptedReviewer("proceed")

    @grace.gate(floor="confirm", name=name, reviewer=reviewer)
    def act():
        return "done"

    with run.current():
        act()
        entry = current_run().decisions[-1]
    return reviewer.requests[0].decision.confidence_score, entry.get("evidence_gaps", [])


def fail_twice(run):
    for _ in range(2):
        run.open_tool("look", {"q": 1}).fail("no answer")
    search = run.open_tool("search", {"q": 2}, kind="search", scores="similarity")
    search.close([{"text": "a", "score": 0.2}])


def test_a_live_run_becomes_a_trace_of_what_the_adapter_reports(grace, clock):
    """Parallel calls, odd names of arguments, failures as exceptions, messages and results, models, handoffs and nested runs."""
    run = grace.open_run("Refund it", id=7, tags="beta", metadata={"n": 1}, **WHO)
    first, second = run.open_tool("look", {"from": "a", "user-id": 3}), run.open_tool("look", {"from": "b"})
    second.close({"ok": False}, ended=clock())
    first.fail(TimeoutError("late"))
    inner = grace.open_run("Check it", name="checker", inside=run.open_tool("ask", {}))
    assert (inner.framework, inner.session, inner.user) == ("some-agents", "s1", "u1")
    inner.open_tool("count", {}, failed=lambda result: result < 0).close(-1)
    inner.fail("gave up")
    run.open_tool("write", {}).drop()
    run.open_tool("wait", {})
    run.model_call("m1", text="I pay.", usage={"input_tokens": 3, "model": "x"}, error=ValueError("cut"))
    run.handoff(["billing", "legal"], source="support")
    assert run.open
    run.close("paid")
    run.fail("too late")
    trace = run.trace
    assert (trace.metadata.framework, trace.id, trace.grace["status"]) == ("some-agents", run.id, "completed")
    assert {(call.name, call.status) for call in trace.calls} == {
        ("look", "error"), ("look", "ok"), ("checker", "error"), ("ask", "unfinished"), ("write", "closed"), ("wait", "unfinished")
    }  # fmt: skip
    assert trace.steps[0].input == {"from": "a", "user-id": 3}
    assert [(call["model"], call["status"], call["input_tokens"]) for call in trace.grace["model_calls"]] == [
        ("m1", "error", 3)
    ]
    assert "support handed off to billing, legal" in [step.content for step in trace.steps]
    assert (trace.grace["tags"], trace.grace["session"], trace.grace["metadata"]) == (["beta"], "s1", {"n": 1})
    assert inner.trace.grace["parent"]["trace_id"] == run.id
    assert inner.trace.calls[0].status == "error"


def test_times_are_those_that_the_adapter_states(grace, clock):
    """On the clock of the run, from its beginning to now; thoughts, model calls and decisions have times, too."""
    clock.advance(10)
    run = grace.open_run("Refund it", started=START.timestamp() + 2)
    call = run.open_tool("look", {}, started=datetime.fromtimestamp(START.timestamp() + 3, UTC))
    call.close("found", ended=START.timestamp() + 4.5)
    run.model_call("m1", text="I see.", started=START.timestamp() + 5, ended=START.timestamp() + 6)
    run.thought("So it is.")
    early = run.open_tool("look", {}, started=0)
    early.close("found", ended=START.timestamp() + 99)
    gated(grace, run)
    clock.advance(1)
    run.close("done", ended=START.timestamp() + 10.5)
    trace = run.trace
    assert trace.metadata.created_at == "2026-01-02T03:04:07.000Z"
    assert trace.grace["duration_ms"] == 8_500
    assert [(call["started_ms"], call["latency_ms"]) for call in trace.grace["calls"]] == [(1_000, 1_500), (0, 8_000)]
    assert [(call["started_ms"], call["latency_ms"]) for call in trace.grace["model_calls"]] == [(3_000, 1_000)]
    assert [step.started_ms for step in trace.steps if step.type == "thought"] == [3_000, 8_000]
    assert (trace.decisions[0].asked_at, trace.decisions[0].decided_at) == ("2026-01-02T03:04:15.000Z",) * 2


@pytest.mark.parametrize("wrong", [START.replace(tzinfo=None), True, float("nan"), "now"])
def test_a_time_that_cannot_be_used_is_now(grace, clock, wrong):
    """It is noted, and nothing raises."""
    run = grace.open_run("Refund it", started=wrong)
    clock.advance(1)
    run.open_tool("look", {}, started=wrong).close("found", ended=wrong)
    run.close(ended=wrong)
    assert run.trace.grace["calls"][0]["started_ms"] == run.trace.grace["duration_ms"] == 1_000
    assert any("aware datetime" in trouble for trouble in grace.status()["troubles"])


def test_without_recording_gates_still_work_and_ask():
    """The live run records nothing and has no id."""
    with make_grace(enabled=False) as grace:
        run = grace.open_run("Refund it", id="r", framework="x")
        fail_twice(run)
        run.thought("So it is.")
        assert (run.run, run.id, grace.live_run("x", "r")) == (None, None, run)
        assert gated(grace, run)[0] is not None
        run.suspend("k")
        assert not run.open


def test_what_breaks_in_recording_changes_nothing_for_the_adapter(grace, monkeypatch):
    """Unusable arguments and declarations, and ends in the wrong order."""
    monkeypatch.setenv("GRACE_KP_STRICT_RECORDING", "0")
    run = grace.open_run(object(), name="")
    for stated in ({"kind": "odd"}, {"scores": "none"}, {"kind": "search", "scores": "odd"}):
        run.open_tool("look", {}, **stated).close("found")
    call = run.open_tool("look", None)
    run.close()
    call.close("found")
    run.open_tool("look", {}).close("found")
    assert [call.status for call in run.trace.calls] == []


def test_what_is_not_captured_is_nowhere():
    """Objective, arguments, results, messages and what a model wrote."""
    with make_grace(capture_input=False, capture_output=False) as grace, grace.open_run("secret", name="n") as run:
        grace.open_run("secret", inside=run).fail("secret")
        run.open_tool("look", {"q": "secret"}).fail("secret")
        run.model_call("m", text="secret", error="secret")
        run.close("secret")
    assert run.trace.task.objective == "n"
    assert "secret" not in run.trace.model_dump_json()


def test_search_scores_are_read_only_by_declaration(grace):
    """Whoever wrote a result may have written a score into it."""
    found = [{"text": "a", "score": 1.0}]
    with grace.open_run("Refund it") as run:
        run.open_tool("search", {"q": 1}, kind="search").close(found)
        assert any("carry no score" in gap for gap in gated(grace, run)[1])
        run.open_tool("search", {"q": 1}, kind="search", scores="similarity").close(found)
    assert [call.search.scores for call in run.trace.calls] == [(), (1.0,)]


def test_what_an_action_ignores_or_seals_is_not_recorded(grace):
    """Also where the result repeats it, and only the action's name is passed."""

    @grace.gate(name="pay", ignore=["trace_id"], sealed=["iban"])
    def pay(amount, iban, trace_id=None): ...

    with grace.open_run("Refund it") as run:
        run.open_tool("pay", {"amount": 3, "iban": "DE0012345678", "trace_id": "t"}).close("paid to DE0012345678")
    assert run.trace.steps[0].input == {"amount": 3, "iban": "[SEALED]"}
    assert "DE0012345678" not in run.trace.model_dump_json()


async def test_a_run_is_current_by_task_and_block(grace):
    """Blocks may be repeated and interleave; a block that is left in another context raises nothing and leaks nothing."""
    first, second = grace.open_run("one"), grace.open_run("two")

    @grace.tool
    def look():
        return current_run()

    async def work(run):
        with run.current(), run.current():
            await asyncio.sleep(0)
            assert look() is run.run
        await asyncio.sleep(0)
        return CURRENT.get()

    assert await asyncio.gather(work(first), work(second)) == [None, None]
    block, copied = first.current(), copy_context()
    copied.run(block.__enter__)
    block.__exit__(None, None, None)
    assert (CURRENT.get(), copied[CURRENT]) == (None, first.run)
    inner, other = second.current(), copied.copy()
    other.run(inner.__enter__)
    copied.run(inner.__exit__, None, None, None)
    other.copy().run(inner.__exit__, None, None, None)
    assert (copied[CURRENT], other[CURRENT]) == (first.run, second.run)
    with first.open_tool("outer", {}).current():
        look()
    async with second:
        assert current_run() is second.run
    first.close()
    assert [call.parent for call in first.trace.calls] == [None, None, "c1"]
    assert second.trace.grace["status"] == "completed"


def test_a_run_is_nested_in_the_current_one(grace):
    """As recorded functions are; outside of any run it is a run of its own."""
    with grace.run("around") as around:
        inner = grace.open_run("inside")
    inner.close()
    other = grace.open_run("alone")
    other.close()
    assert inner.trace.grace["parent"]["trace_id"] == around.id
    assert "parent" not in other.trace.grace


def test_open_runs_are_found_by_the_id_of_their_framework(grace, monkeypatch):
    """The latest of an id; the oldest of too many is closed as interrupted, with its claims."""
    older, newer = (grace.open_run("Refund it", framework="x", id=1) for _ in range(2))
    assert grace.live_run("x", "1") is newer
    older.close()
    assert (grace.live_run("x", 1), grace.live_run("y", 1)) == (newer, None)
    newer.claims.add(claim := Mock())
    monkeypatch.setattr(_live, "MAX_OPEN", 2)
    rest = [grace.open_run("Refund it", framework="x", id=number) for number in (2, 3)]
    assert (newer.open, claim.unknown.call_count, grace.live_run("x", 1)) == (False, 1, None)
    assert (newer.trace.grace["status"], newer.trace.metadata.success) == ("interrupted", False)
    for run in rest:
        run.close()
    assert grace.live_run("x", 2) is None


@pytest.mark.parametrize("end", ["close", "fail", "suspend"])
def test_claims_that_a_run_leaves_open_become_unknown(grace, end):
    """Once, whichever way the run ends, and also where one of them raises."""
    run = grace.open_run("Refund it")
    claims = [Mock(), Mock(unknown=Mock(side_effect=OSError)), Mock()]
    run.claims.update(claims)
    for _ in range(2):
        getattr(run, end)("x")
    assert [claim.unknown.call_count for claim in claims] == [1, 1, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_own_the_runs_of_its_parent(grace):
    """It neither ends them nor touches their claims."""
    run = grace.open_run("Refund it", framework="x", id=1)
    run.claims.add(claim := Mock())
    child = os.fork()
    if child == 0:
        run.close()
        os._exit(run.open + claim.unknown.called + (grace.live_run("x", 1) is not None))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run.open
    run.close()


def test_a_suspended_run_continues_its_trace_once_with_its_evidence(grace):
    """Its confidence does not rise over the pause. Whoever comes later, or is not the same, finds nothing, and gates ask."""
    run = grace.open_run("Refund it", **WHO)
    fail_twice(run)
    inner = grace.open_run("Check it", name="checker", inside=run)
    for error in (ValueError("x"), "no answer"):
        inner.open_tool("count", {}).fail(error)
    inner.fail(ValueError("x"))  # which is not the last error in it
    before = gated(grace, run)
    run.suspend("k")
    other = grace.open_run("Refund it", resume="k", **{**WHO, "user": "u2"})
    again = grace.open_run("Refund it", resume="k", **WHO)
    assert (again.id, other.id != run.id) == (run.id, True)
    assert gated(grace, again) == before
    later = grace.open_run("Refund it", resume="k", **WHO)
    for lost in (other, later):
        assert [gap for gap in gated(grace, lost)[1] if "cannot be found" in gap]
        assert gk.InterventionLevel(lost.run.decisions[0]["level"]) >= gk.InterventionLevel.CONFIRM
        lost.close()
    again.suspend("k")
    last = grace.open_run("Refund it", resume="k", **WHO)
    assert gated(grace, last) == before
    last.close("done")
    assert [call.name for call in last.trace.calls] == ["look", "look", "search", "checker"]
    assert (len(last.trace.decisions), last.trace.grace["resumed"]) == (3, 2)
    assert [trace.id for trace in grace.store.query(status="suspended")] == []


def test_of_several_runs_that_wait_under_one_key_the_last_is_continued(grace, clock):
    """Also where another process continues it, which has only the store, and the other one began later."""
    first, second = grace.open_run("Refund it", **WHO), grace.open_run("Refund it", **WHO)
    for run in (second, first):
        clock.advance(1)
        run.suspend("k")
    with make_grace(store=grace.store, new_id=str) as other:
        assert other.open_run("Refund it", resume="k", **WHO).id == first.id


def test_a_nested_run_that_waits_too_is_continued_with_its_evidence(grace):
    """Until then, gates of the run around it know that evidence is missing."""
    run = grace.open_run("Refund it", **WHO)
    inner = grace.open_run("Check it", name="checker", inside=run)
    fail_twice(inner)
    before = gated(grace, inner)
    inner.suspend("k")
    run.suspend("k")
    run = grace.open_run("Refund it", resume="k", **WHO)
    assert any("has not been continued" in gap for gap in gated(grace, run)[1])
    inner = grace.open_run("Check it", name="checker", inside=run, resume="k")
    assert gated(grace, inner) == before
    assert gated(grace, run)[1] == before[1]
    inner.close()
    run.close()
    assert inner.trace.grace["resumed"] == run.trace.grace["resumed"] == 1


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_nested_run_that_is_continued_without_the_run_around_it_lacks_its_evidence(grace, elsewhere):
    run = grace.open_run("Refund it", **WHO)
    fail_twice(run)
    inner = grace.open_run("Check it", name="checker", inside=run)
    inner.suspend("k")
    run.suspend("k")
    inside = grace.open_run("Another", **WHO) if elsewhere else None
    inner = grace.open_run("Check it", resume="k", inside=inside, **{**WHO, "name": "checker"})
    assert any("without that" in gap for gap in gated(grace, inner)[1])


SECOND = """
import os, sys
import grace_kp as gk
from tests.runtime.test_live_run import WHO, fail_twice, gated
from grace_kp.testing import make_grace

grace = make_grace(store=sys.argv[1], new_id=gk.record.new_trace_id)
if sys.argv[2] == "first":
    run = grace.open_run("Refund it", **WHO)
    fail_twice(run)
    fail_twice(inner := grace.open_run("Check it", name="checker", inside=run))
    inner.close()
    print(run.id, *gated(grace, run), flush=True)
    run.suspend("k")
else:
    run = grace.open_run("Refund it", resume="k", **WHO)
    print(run.id, *gated(grace, run), flush=True)
os._exit(0)  # killed: nothing is flushed
"""


def test_a_suspended_run_is_continued_once_by_another_process(tmp_path):
    """Suspending stores it at once, so that a kill after it loses nothing; a third process finds that it was continued."""
    store = f"sqlite:///{tmp_path}/traces.db"

    def process(part):
        done = subprocess.run([sys.executable, "-c", SECOND, store, part], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = process("first")
    assert process("second") == first
    assert "cannot be found" in process("third")
