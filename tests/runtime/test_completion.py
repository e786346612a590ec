"""From an ended run to a complete one: the stages, hooks, journals and columns, then judgement, novelty and scores, in this process or the next."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading

import pytest

import grace_kp as gk
from grace_kp.runtime import record_of
from grace_kp.runtime._completion import Completer, Completion
from grace_kp.runtime._pipeline import Lost
from grace_kp.testing import make_grace
from tests import warm
from tests.store.samples import document


def test_hooks_hear_in_the_order_of_completion_and_may_fail(caplog, monkeypatch):
    """A failing hook costs a line in the log; async hooks are awaited; the trace is stored all the same."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING", raising=False)
    grace = gk.Grace(store="memory:", reviewer=None)
    heard = []

    @grace.on_complete
    def broken(trace):
        raise RuntimeError("no")

    @grace.on_complete
    async def note(trace):
        heard.append(trace.task.objective)

    for n in range(5):
        with grace.run(f"run {n}"):
            pass
    assert grace.flush()
    assert heard == [f"run {n}" for n in range(5)]
    assert len(grace.store.query()) == 5
    assert [r.levelno for r in caplog.records if "broken" in r.getMessage()] == [logging.WARNING]


def test_sampling_keeps_whole_runs_and_all_failed_and_gated_ones():
    grace = gk.Grace(store="memory:", reviewer=lambda request: gk.InterventionResponse("proceed"), sample_rate=0)

    @grace.gate(floor="confirm")
    def act(): ...

    @grace.agent
    def child(text): ...

    @grace.agent
    def plain(text):
        child("inner")

    @grace.agent
    def gated(text):
        act()

    @grace.agent
    def failing(text):
        raise ValueError

    plain("plain")
    gated("gated")
    with pytest.raises(ValueError, match="^$"):  # noqa: RUF043
        failing("failing")
    assert {t.task.objective for t in grace.store.query()} == {"gated", "failing"}
    assert grace.status()["sampled_out"] == 2


def test_a_journal_holds_only_what_is_new():
    """A second call returns no rows while nothing happens; together the rows rebuild the run."""
    grace = make_grace()
    with grace._writer._settling, grace.run("an objective") as run:
        grace.thought("first")
        (rows,) = grace._pipeline.journal()
        assert [[]] == list(grace._pipeline.journal())
        grace.thought("second")
        rows += next(grace._pipeline.journal())
        assert [*range(len(rows))] == [row.seq for row in rows]
        assert {run.id} == {row.run_id for row in rows}
    record, _ = grace._pipeline.settle(Lost(rows))
    lost = gk.ReasoningTrace.model_validate_json(record.data)
    assert ("an objective", "interrupted") == (lost.task.objective, lost.status)
    assert ["first", "second"] == [step.content for step in lost.steps]


def test_what_could_not_be_recorded_is_reported_once_per_change(monkeypatch):
    """No report without losses; the same counts are no news; a secret in a message is removed."""
    monkeypatch.setattr("grace_kp.runtime._pipeline.TROUBLES", type(gk.runtime._pipeline.TROUBLES)())
    pipeline = make_grace()._pipeline
    assert pipeline.report(0, 0) is None
    name, data = pipeline.report(2, 0)
    assert {"troubles": {}, "last_trouble": None, "dropped": 2, "lost": 0} == json.loads(data)
    assert pipeline.report(2, 0) is None
    assert name == pipeline.report(2, 1)[0]


@pytest.mark.parametrize(
    ("created_at", "column"),
    [("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000Z"), ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z")],
)
def test_times_are_compared_in_one_form(created_at, column):
    """UTC with milliseconds, where the calendar knows the time."""
    assert column == record_of(document("a", created_at=created_at)).created_at


@pytest.mark.parametrize(
    ("scores", "rows"),
    [
        ([{"name": "a", "score": 0.5, "passed": True}], (("a", 0.5, True),)),
        ([{"name": "a", "score": 1}], (("a", 1.0, None),)),
        ([{"name": "a", "score": 2, "passed": "yes"}], (("a", None, None),)),
        ([{"name": 3}, "x", {"score": 1}], ()),
        ("x", ()),
        (None, ()),
    ],
)
def test_scores_from_elsewhere_may_hold_anything(scores, rows):
    assert rows == record_of(document("a", scores=scores)).scores


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
    grace = runtime(evaluator=lambda _: gate.wait(60) and BOTH, judge_timeout=60)
    answering(grace)(1)
    assert grace._writer._write_through(None)
    (trace,) = grace._writer.store().query()
    assert ("llm_self_eval" in trace.grace["confidence"]["not_evaluated"], "evaluation" in trace.grace) == (
        True,
        False,
    )


def test_a_run_that_awaits_nothing_is_stored_once():
    grace = runtime()
    puts, store = [], grace.store
    put = store.put
    store.put = lambda records, *, ended=(): puts.extend(records) or put(records, ended=ended)
    answering(grace)(1)
    assert grace.flush()
    assert [()] == [record.awaits for record in puts]


def test_the_own_confidence_of_a_run_survives_its_judgement():
    grace = runtime(evaluator=lambda _: BOTH)
    with grace.run("objective") as run:
        run.outcome(confidence=0.3, result="answer")
    assert (0.3, 0.3) == (run.trace.outcome.confidence, run.trace.grace["confidence"]["own"])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_hooks_run_outside_of_locks_that_a_fork_waits_for(gate):
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
import os, signal, sys, threading
import grace_kp as gk

asked = threading.Event()

def slow(answer):
    print("asked", flush=True)
    asked.set()
    threading.Event().wait()

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


def test_a_process_leaves_to_others_what_it_cannot_add(tmp_path):
    """Scores come from one process, the judgement from another; neither is invented. The hooks were those of the process that died."""
    url = killed(tmp_path, "judge", "scorer")
    trace, seen = completed(url, scorers=[lambda trace: 0.5])
    assert ("completed", [], ["judgement"], 0.5) == (
        trace.status,
        seen,
        trace.grace["awaits"],
        trace.grace["scores"][0]["score"],
    )
    trace, _ = completed(url, evaluator=lambda _: BOTH)
    assert ("awaits" in trace.grace, 0.9, 0.5) == (
        False, trace.grace["evaluation"]["self_evaluation"]["score"], trace.grace["scores"][0]["score"],
    )  # fmt: skip


def test_a_run_that_cannot_be_completed_stays_as_it_is_stored(monkeypatch):
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


def test_a_trace_that_cannot_be_handed_out_holds_up_no_other(monkeypatch):
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING", raising=False)
    grace, seen = runtime(), []
    grace.on_complete(lambda trace: seen.append(trace.outcome.result_summary))
    hand_out, broken = grace._pipeline.completer._hand_out, [b"no JSON"]
    grace._pipeline.completer._hand_out = lambda item: hand_out(Completion(broken.pop()) if broken else item)
    agent = answering(grace)
    agent(1)
    agent(2)
    assert grace.flush(60)
    assert ["answer 2"] == seen
    assert "handing out a run: InvalidTrace" in grace.status()["troubles"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_whatever_a_judge_raises_is_a_fallback(interrupt):
    def judge(prompt):
        raise interrupt

    grace = runtime(evaluator=judge, judge="always", judge_workers=1)
    agent = answering(grace)
    for number in range(3):
        agent(number)
    assert grace.flush(60)
    assert [interrupt.__name__] * 3 == [
        trace.grace["evaluation"]["self_evaluation"]["error"].partition(":")[0] for trace in grace.store.query()
    ]


def test_a_judge_that_flushes_does_not_wait_for_itself():
    answers = []
    grace = runtime(evaluator=lambda _: (answers.append(grace.flush(60)), BOTH)[1], judge_timeout=60)
    answering(grace)(1)
    assert grace.flush(60)
    assert [False] == answers


def test_what_ends_a_run_inside_a_completion_does_not_complete_others():
    """An embedder may be recorded, and a finalizer may end a run anywhere."""
    answers = []
    completer = Completer(
        None, None, lambda: None, str, lambda item: answers.append(completer.complete(None)), lambda item: None
    )
    completer.add([Completion(b"1", document={"grace": {}}), Completion(b"2", document={"grace": {}})])
    assert completer.complete(None)
    assert [False, False] == answers


def test_an_interrupt_in_a_hook_leaves_no_lock_behind():
    seen, interrupts = [], [KeyboardInterrupt]

    def hook(item):
        if interrupts:
            raise interrupts.pop()
        seen.append(item)

    completer = Completer(None, None, lambda: None, str, lambda item: None, hook)
    completer._worker.stop(0)
    completer.add([Completion(b"1"), Completion(b"2")])
    with pytest.raises(KeyboardInterrupt):
        completer.complete(None)
    assert (False, False) == (completer._turn.is_mine, completer._handing.is_mine)
    assert completer.complete(None)
    assert [b"2"] == [item.data for item in seen]


@pytest.mark.parametrize(("name", "value"), [("MAX_WAITING", 3), ("DOCUMENT_FACTOR", 1 << 30)])
def test_runs_behind_a_judge_that_hangs_do_not_fill_the_memory(gate, monkeypatch, name, value):
    monkeypatch.setattr(f"grace_kp.runtime._completion.{name}", value)
    grace = runtime(evaluator=lambda _: gate.wait(60) and BOTH, judge="always", judge_timeout=60, judge_workers=1)
    agent, seen = answering(grace), threading.Event()
    grace.on_complete(lambda trace: seen.set())
    for number in range(8):
        agent(number)
    assert seen.wait(60)
    first = grace._writer.store().query()[-1]
    assert first.grace["evaluation"]["self_evaluation"]["error"].startswith("more than")
    assert "awaits" not in first.grace
    gate.set()
    assert grace.flush(60)
    assert 8 == len(grace.store.query())


def test_beyond_the_bound_novelty_is_left_to_another_process(gate, monkeypatch):
    """An embedder cannot be hurried, and what is missing is never a measurement."""
    monkeypatch.setattr("grace_kp.runtime._completion.MAX_WAITING", 2)
    grace = runtime(embedder=lambda _: gate.wait(60) and [1.0, 0.0])
    agent = answering(grace)
    for number in range(6):
        agent(number)
    grace.flush(0.2)
    gate.set()
    assert grace.flush(60)
    waiting = [trace.grace["unscored"] for trace in grace.store.query() if trace.grace.get("awaits") == ["value"]]
    scored = [trace for trace in grace.store.query() if "value" in trace.grace]
    assert 6 == len(waiting) + len(scored)
    assert set(waiting) <= {True}


def test_an_async_hook_that_flushes_does_not_wait_for_itself():
    grace, flushed, ended = make_grace(), [], threading.Event()

    @grace.on_complete
    async def hook(trace):
        flushed.append(grace.flush(None))
        ended.set()

    with grace.run("objective"):
        pass
    assert ended.wait(60)
    assert [False] == flushed
