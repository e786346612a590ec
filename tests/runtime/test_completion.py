"""What comes after a run is stored: judgement, novelty, scores and hooks, in this process or in the next."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

import grace_kp as gk
from grace_kp.runtime._completion import Completer, Completion
from tests import warm

BOTH = '{"score": 0.9, "reason": "right", "coverage": 0.8, "coverage_reason": "nearly all"}'
LATER = ("judgement", "scores", "value")


def runtime(store="memory:", **parts):
    return gk.Grace(store=store, reviewer=None, **{"evaluator": None, "embedder": None, **parts})


def answering(grace):
    @grace.agent
    def agent(number):
        return f"answer {number}"

    return agent


@pytest.fixture
def gate():
    opened = threading.Event()
    yield opened
    opened.set()


def test_a_run_is_stored_before_anything_else_happens_to_it(gate):
    """Judge, embedder and scorers are slow; the trace is there meanwhile, and says what it awaits."""

    def slow(answer):
        assert gate.wait(60)
        return answer

    grace = runtime(
        evaluator=lambda _: slow(BOTH),
        embedder=lambda _: slow([1.0, 0.0]),
        scorers=[lambda _: slow(0.25)],
        judge_timeout=60,
        scorer_timeout=60,
    )
    agent, seen = answering(grace), []
    grace.on_complete(seen.append)
    agent(1)
    agent(2)
    assert grace._writer._write_through(None)
    assert not grace.flush(0)
    first, second = reversed(grace._writer.store().query())
    assert (LATER, LATER) == (first.awaits, second.awaits)
    assert (True, 0.0, []) == (first.grace["unscored"], first.metadata.quality_score, seen)
    gate.set()
    assert grace.flush(60)
    stored = list(reversed(grace.store.query()))
    assert [trace.to_dict() for trace in stored] == [trace.to_dict() for trace in seen]
    for trace in stored:
        assert {"awaits", "unscored"}.isdisjoint(trace.grace)
        assert (0.9, 0.25) == (trace.grace["evaluation"]["self_evaluation"]["score"], trace.grace["scores"][0]["score"])
        assert trace.metadata.quality_score > 0


def test_the_confidence_of_a_run_that_awaits_its_judgement_counts_the_judgement_as_missing(gate):
    """It is computed without it, never with a value in its place."""
    grace = runtime(evaluator=lambda _: gate.wait(60) and BOTH, judge_timeout=60)
    answering(grace)(1)
    assert grace._writer._write_through(None)
    (trace,) = grace._writer.store().query()
    assert ("llm_self_eval" in trace.grace["confidence"]["not_evaluated"], "evaluation" in trace.grace) == (
        True,
        False,
    )


def test_a_run_that_awaits_nothing_is_stored_once():
    """Without models and scorers it is complete when it ends."""
    grace = runtime()
    puts, store = [], grace.store
    put = store.put
    store.put = lambda records, *, ended=(): puts.extend(records) or put(records, ended=ended)
    answering(grace)(1)
    assert grace.flush()
    assert [()] == [record.awaits for record in puts]


def test_the_own_confidence_of_a_run_survives_its_judgement():
    """It replaces the computed one in both versions."""
    grace = runtime(evaluator=lambda _: BOTH)
    with grace.run("objective") as run:
        run.outcome(confidence=0.3, result="answer")
    assert (0.3, 0.3) == (run.trace.outcome.confidence, run.trace.grace["confidence"]["own"])


def test_hooks_run_outside_of_locks_that_a_fork_waits_for(gate):
    """A slow hook holds up no fork."""
    grace, began, statuses = runtime(), threading.Event(), []

    @grace.on_complete
    def slow(trace):
        began.set()
        gate.wait(60)

    answering(grace)(1)
    assert began.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        os._exit(0 if grace.flush(60) else 1)
    statuses.append(os.waitpid(child, 0)[1])
    assert [0] == statuses


PROGRAM = """
import os, signal, sys, threading, time
import grace_kp as gk

asked = threading.Event()

def slow(answer):
    print("asked", flush=True)
    asked.set()
    time.sleep(600)

grace = gk.Grace(
    store=sys.argv[1], reviewer=None, embedder=None, judge_timeout=600, scorer_timeout=600,
    evaluator=(lambda prompt: slow("")) if "judge" in sys.argv else None,
    scorers=[lambda trace: slow(1.0)] if "scorer" in sys.argv else (),
)
grace.on_complete(lambda trace: print("hook", flush=True))

@grace.agent
def agent(question):
    return "the answer"

agent("a question")
assert asked.wait(60)  # nothing is asked before the run is stored
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(tmp_path, *parts):
    """Return the URL of a store whose process was killed while its judge or scorer was at work."""
    url = f"sqlite:///{tmp_path / 't.db'}"
    ran = warm.run([sys.executable, "-c", PROGRAM, url, *parts], capture_output=True, text=True)
    assert (-signal.SIGKILL, "asked\n") == (ran.returncode, ran.stdout)
    return url


def completed(url, **parts):
    """Return the only trace of a store after a runtime with these parts has worked on it, and what its hooks saw."""
    seen = []
    with runtime(url, **parts) as grace:
        grace.on_complete(seen.append)
        _ = grace.store
        assert grace.flush(60)
        (trace,) = grace.store.query()
    return trace, seen


def test_the_next_process_completes_what_it_can(tmp_path):
    """The run was never lost; its hooks were those of the process that died."""
    url = killed(tmp_path, "judge")
    before, _ = completed(url)
    assert ("completed", ["judgement"]) == (before.status, before.grace["awaits"])
    trace, seen = completed(url, evaluator=lambda _: BOTH)
    assert (0.9, []) == (trace.grace["evaluation"]["self_evaluation"]["score"], seen)
    assert "awaits" not in trace.grace


def test_a_process_leaves_to_others_what_it_cannot_add(tmp_path):
    """Scores come from one process, the judgement from another; neither is invented."""
    url = killed(tmp_path, "judge", "scorer")
    trace, _ = completed(url, scorers=[lambda trace: 0.5])
    assert (["judgement"], 0.5) == (trace.grace["awaits"], trace.grace["scores"][0]["score"])
    trace, _ = completed(url, evaluator=lambda _: BOTH)
    assert ("awaits" in trace.grace, 0.9, 0.5) == (
        False, trace.grace["evaluation"]["self_evaluation"]["score"], trace.grace["scores"][0]["score"],
    )  # fmt: skip


def test_a_run_that_is_deleted_while_it_is_judged_does_not_come_back(gate):
    """The judgement comes too late."""
    grace = runtime(evaluator=lambda _: gate.wait(60) and BOTH, judge_timeout=60)
    answering(grace)(1)
    assert grace._writer._write_through(None)
    store = grace._writer.store()
    assert 1 == store.delete(id=store.query()[0].id)
    gate.set()
    assert grace.flush(60)
    assert 0 == store.count()


def test_a_completer_is_not_busy_once_everything_is_handed_out():
    """Completions without anything to add are handed out in their order."""
    seen = []
    completer = Completer(None, None, lambda: None, str, lambda completion: None, seen.append)
    completions = [Completion(b"1"), Completion(b"2")]
    completer.add(completions)
    assert completer.complete(None)
    assert (completions, False) == (seen, completer.is_busy)


def test_a_run_that_cannot_be_completed_stays_as_it_is_stored(monkeypatch):
    """It holds up no other run, and the trouble is counted."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING", raising=False)
    grace = runtime(evaluator=lambda _: BOTH)
    agent = answering(grace)
    assess = grace._pipeline.assessor.assess

    def breaks(document, **options):
        if options["judgement"] is not None and document["outcome"]["result_summary"] == "answer 1":
            raise RuntimeError("no")
        assess(document, **options)

    monkeypatch.setattr(grace._pipeline.assessor, "assess", breaks)
    agent(1)
    agent(2)
    assert grace.flush(60)
    second, first = grace.store.query()
    assert (["judgement"], False) == (first.grace["awaits"], "awaits" in second.grace)
    assert "completing a run: RuntimeError" in grace.status()["troubles"]
