"""Evidence follows the work: what a nested run did counts at the gates around it, and what the runs around it did counts inside."""

from __future__ import annotations

import contextlib
import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk
from grace_kp.record import Pause
from grace_kp.testing import make_grace


class Program:
    """A runtime with tools that fail, find something or do nothing, and an action that a reviewer refuses."""

    def __init__(self, **settings):
        self.grace = grace = make_grace(reviewer=lambda request: gk.InterventionResponse("cancel"), **settings)
        self.entries = []

        @grace.tool
        def look(fails=False):
            if fails:
                raise LookupError("down")
            return "x"

        @grace.retriever
        def search(score):
            return [{"text": "t", "source": "s", "score": score}]

        @grace.gate
        def pay(euros):
            return "paid"

        @grace.agent
        def helper(work):
            return work()

        self.look, self.search, self.pay, self.helper = look, search, pay, helper

    def fail(self):
        with contextlib.suppress(LookupError):
            self.look(fails=True)

    def act(self):
        run = gk.record.current_run()
        with contextlib.suppress(gk.ActionCancelled):
            self.pay(5)
        entry = run.decisions[-1]
        self.entries.append((entry["level"], entry["score"], tuple(entry.get("evidence_gaps", ()))))
        return self.entries[-1][:2]


def flat(*steps, **settings):
    program = Program(**settings)
    with program.grace.run("work"):
        for step in steps:
            step(program)
        return program.act()


FAIL, GOOD, BAD = Program.fail, lambda program: program.search(0.95), lambda program: program.search(0.1)


@pytest.mark.parametrize("profile", ["grace", "strict"])
@pytest.mark.parametrize(
    "steps", [[FAIL] * 3, [BAD], [BAD, FAIL], [GOOD]], ids=["failures", "bad search", "both", "good"]
)
def test_a_gate_inside_sees_what_was_done_around_it(profile, steps):
    program, found = Program(profile=profile), []

    def inside():
        program.search(0.95)
        found.append(program.act())

    with program.grace.run("work"):
        for step in steps:
            step(program)
        program.helper(lambda: program.helper(inside))
    assert [flat(*steps, GOOD, profile=profile)] == found
    assert [] == list(program.entries[0][2])


@pytest.mark.parametrize("profile", ["grace", "strict"])
@pytest.mark.parametrize(
    "steps", [[FAIL] * 3, [BAD, GOOD], [GOOD, FAIL], [GOOD]], ids=["failures", "bad search", "failure last", "good"]
)
def test_a_gate_around_sees_what_was_done_inside(profile, steps):
    program = Program(profile=profile)
    with program.grace.run("work"):
        program.search(0.95)
        program.helper(lambda: program.helper(lambda: [step(program) for step in steps]))
        first = program.act()
        program.grace.store.query()
        assert first == program.act()
    assert flat(GOOD, *steps, profile=profile)[0] == first[0]


def test_a_failing_subagent_counts_once():
    """The error that leaves it is that of its tool; an error of its own is one failure, too."""
    program = Program()

    def raises():
        raise ValueError("own")

    for work in (lambda: program.look(fails=True), raises):
        with program.grace.run("work"):
            program.search(0.95)
            with contextlib.suppress(LookupError, ValueError):
                program.helper(functools.partial(program.helper, work))
            assert ("confirm", 0.693) == program.act()


@pytest.mark.parametrize("asks_between", [False, True])
def test_an_agent_that_is_tried_again_inside_a_tool_is_repaired(asks_between):
    """It counts once with the tool around it, but its last call succeeded."""
    program, outcomes = Program(), [ValueError("first"), "found"]

    def once():
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome

    @program.grace.tool
    def ask():
        with contextlib.suppress(ValueError):
            program.helper(once)
        if asks_between:
            program.act()
        program.helper(once)

    with program.grace.run("work") as run:
        program.search(0.95)
        ask()
        program.act()
        assert not gk.record.survey_of(run).evidence.has_failed


def test_an_error_that_leaves_a_nested_run_after_its_tool_worked_again_is_one_of_its_own():
    program = Program()

    def raises_the_first_error():
        try:
            program.look(fails=True)
        except LookupError as error:
            first = error
        program.look()
        raise first

    with program.grace.run("work"):
        program.search(0.95)
        with contextlib.suppress(LookupError):
            program.helper(raises_the_first_error)
        assert "confirm" == program.act()[0]


def test_an_agent_that_begins_after_the_run_that_started_it_lacks_the_evidence_of_that():
    """It has a trace of its own, and its gates do not know what failed before."""
    program = Program()
    with program.grace.run("work"):
        program.fail()
        later = gk.propagate(program.helper)
    assert "confirm" == later(lambda: (program.search(0.95), program.act()[0])[1])
    assert ("the run that started this one had already ended, so what it did is not known here",) == program.entries[0][
        2
    ]


def test_siblings_and_parallel_calls_count():
    """A run in another thread that goes on, and one that outlives the call that started it."""
    program, go_on, failed = Program(), threading.Event(), threading.Event()

    def outlives():
        program.fail()
        failed.set()
        assert go_on.wait(60)

    with program.grace.run("work"), ThreadPoolExecutor(1) as pool:
        program.search(1.0)
        task = pool.submit(gk.propagate(program.helper), outlives)
        assert failed.wait(60)
        assert "confirm" == program.act()[0]
        go_on.set()
        task.result(60)
        assert "confirm" == program.helper(program.act)[0]


def test_gates_of_many_threads_agree():
    program = Program(max_steps=100_000)

    def work():
        return [(program.look(), program.search(0.95), program.act())[2] for _ in range(40)]

    with program.grace.run("work"), ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(gk.propagate(program.helper), work) for _ in range(4)]
        assert {("silent", 0.97)} == {found for task in tasks for found in task.result(60)}
        assert ("silent", 0.97) == program.act()


def test_steps_that_a_nested_run_lost_are_a_gap_around_it():
    """And a run that could not be linked to the one around it knows nothing of what that did."""
    program = Program(max_steps=6)
    with program.grace.run("work"):
        program.search(0.95)
        program.helper(lambda: [program.look() for _ in range(9)])
        assert "confirm" == program.act()[0]
    with program.grace.run("work"):
        program.search(0.95)
        program.look()
        program.look()
        assert "confirm" == program.helper(lambda: (program.search(0.95), program.act()[0])[1])
    assert all(gaps for _, _, gaps in program.entries)


def suspended(url, *steps):
    """A run with these steps, stored as suspended; the runtime that continues it, and the run that does."""
    pause = Pause("thread", "checkpoint", None)
    first = Program(store=url)
    with first.grace.run("work") as run:
        run.framework, run.facts = "langgraph", {"thread_id": "thread", "checkpoint_id": "checkpoint"}
        for step in steps:
            step(first)
        run.suspend(pause)
    first.grace.close()
    return Program(store=url), pause


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("step", "level"),
    [(FAIL, "confirm"), (BAD, "confirm"), (lambda program: program.look(), "silent")],
    ids=["failure", "bad search", "success"],
)
def test_a_resumed_run_keeps_the_evidence_from_before(tmp_path, nested, step, level):
    """Its own, and that of runs nested in it that had ended, which are read from the store."""
    inside = (lambda program: program.helper(lambda: step(program))) if nested else step
    program, pause = suspended(f"sqlite:///{tmp_path}/t.db", GOOD, inside)
    with program.grace.run("work") as run:
        run.resumes = pause
        assert level == program.act()[0]
        assert level == program.helper(program.act)[0]


@pytest.mark.parametrize(("step", "level"), [(FAIL, "confirm"), (GOOD, "silent")], ids=["failure", "success"])
@pytest.mark.parametrize("url", ["memory:", "sqlite"])
def test_a_run_that_is_resumed_at_once_keeps_the_evidence_of_nested_runs(tmp_path, url, step, level):
    """Also while what ended inside it waits to be stored, whoever asks for its id first."""
    program = Program(store=f"sqlite:///{tmp_path}/t.db" if url == "sqlite" else url)
    program.grace.recorder.draws_early = False
    for look_up in (lambda run: None, lambda run: run.id):
        with program.grace.run("work") as first:
            program.search(0.95)
            program.helper(lambda: step(program))
            first.suspend(Pause("thread", "checkpoint", None))
        with program.grace.run("work") as run:
            run.resumes = Pause("thread", "checkpoint", None, previous=first)
            look_up(run)
            assert level == program.act()[0], program.entries[-1]


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("step", [FAIL, BAD], ids=["failure", "bad search"])
def test_a_resumed_run_that_goes_on_before_its_gate_keeps_the_evidence_from_before(tmp_path, step, around):
    """Its earlier part is read first, however much it records before a gate, also where the gate is around it."""
    program, pause = suspended(f"sqlite:///{tmp_path}/t.db", step)
    with program.grace.run("around") if around else contextlib.nullcontext():
        with program.grace.run("work") as run:
            run.resumes = pause
            program.search(0.95)
            program.search(0.95)
            assert "confirm" == program.act()[0]
            assert "confirm" == program.helper(program.act)[0]
        if around:
            assert "confirm" == program.act()[0]


def test_a_resumed_run_that_ends_without_a_gate_counts_for_the_run_around_it(tmp_path):
    program, pause = suspended(f"sqlite:///{tmp_path}/t.db", BAD)
    with program.grace.run("around"):
        with program.grace.run("work") as run:
            run.resumes = pause
            program.search(0.95)
        assert "confirm" == program.act()[0]


def test_the_lost_part_of_a_resumed_run_that_goes_on_before_its_gate_is_a_gap():
    program = Program()
    with program.grace.run("work") as run:
        run.resumes = Pause("thread", "checkpoint", None)
        program.search(0.95)
        assert "confirm" == program.act()[0]
    assert ("what this run recorded before it was suspended cannot be found",) == program.entries[0][2]


def test_what_a_nested_run_did_before_and_cannot_be_found_is_a_gap(tmp_path):
    url = f"sqlite:///{tmp_path}/t.db"
    program, pause = suspended(url, GOOD, lambda program: program.helper(program.look))
    store = program.grace.store
    (inner,) = [trace.id for trace in store.query() if trace.name == "helper"]
    store.delete(id=inner)
    with program.grace.run("work") as run:
        run.resumes = pause
        assert "confirm" == program.act()[0]
    assert "cannot be found" in program.entries[0][2][0]


def nested(step):
    return lambda program: program.helper(lambda: step(program))


def words(program):
    gk.record.current_run().user_message("No, I mean the other one.")


LOOK, BEST = (lambda program: program.look()), (lambda program: program.search(1.0))


@pytest.mark.parametrize(
    "steps",
    [
        [BEST, FAIL, "confirm", nested(LOOK), "notify", nested(FAIL), "confirm"],
        [GOOD, FAIL, words, "confirm"],
        [BAD, nested(GOOD), "confirm", words, "confirm", GOOD, "silent", nested(BAD), "confirm"],
    ],
    ids=[
        "a tool that works again elsewhere",
        "words of the user after a failure",
        "words of the user and a new search",
    ],
)
def test_levels_follow_what_was_done_everywhere(steps):
    """Words of the user begin a new question: once it is searched for, earlier searches no longer count. The objective of a nested run begins none."""
    program = Program()
    with program.grace.run("work"):
        for step in steps:
            if isinstance(step, str):
                assert step == program.act()[0]
            else:
                step(program)


@pytest.mark.parametrize(
    ("steps", "level"),
    [([BAD, words, GOOD], "silent"), ([BAD, GOOD, words], "confirm"), ([words, BAD, GOOD], "confirm")],
    ids=["searched after them", "nothing after them", "before all"],
)
def test_words_of_the_user_count_in_a_resumed_run(tmp_path, steps, level):
    program, pause = suspended(f"sqlite:///{tmp_path}/t.db", *steps)
    with program.grace.run("work") as run:
        run.resumes = pause
        assert level == program.act()[0]


@pytest.mark.parametrize("text", ["", " \n\t", None, "\u200b", "\xa0\ufeff"])
def test_words_that_nobody_can_see_begin_no_new_question(text):
    program = Program()
    with program.grace.run("work") as run:
        program.search(0.1)
        run.user_message(text)
        program.search(0.95)
        assert "confirm" == program.act()[0]
    assert not [step for step in run.trace.steps if getattr(step, "role", None)]
    assert any("user_message" in trouble for trouble in program.grace.status()["troubles"])


@pytest.mark.parametrize("error", [SystemExit, SystemExit(0), KeyboardInterrupt, StopIteration])
@pytest.mark.parametrize("nested", [False, True])
def test_an_exit_that_the_agent_caught_is_a_failure(error, nested):
    program = Program()

    @program.grace.tool
    def leave():
        raise error

    with program.grace.run("work") as run:
        program.search(0.95)
        program.search(0.95)
        with contextlib.suppress(BaseException):
            (program.helper(leave) if nested else leave())
        assert "confirm" == program.act()[0]
        assert (3, 2) == counts(run)


def counts(run):
    factors = gk.record.survey_of(run).evidence.factors()
    return factors.tool_execution_count, factors.tool_success_count
