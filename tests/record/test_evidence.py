"""A gate sees the same evidence in a live run as a reader sees in its finished trace."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grace_kp.calibrate._facts import facts_of
from grace_kp.confidence import ConfidenceFactors, factors_from_trace
from grace_kp.record import Documents, ModelCall, current_run, keep_evidence, material_of, survey_of
from grace_kp.runtime._pipeline import Pipeline
from grace_kp.testing import make_grace


def live_and_stored(grace, work):
    found = []

    @grace.agent
    def agent(question):
        work()
        found.append(survey_of(current_run()).evidence.factors())

    agent("q")
    (trace,) = [trace for trace in grace.store.query() if trace.metadata.agent_id == "kp:agent:agent"]
    return found[0], factors_from_trace(trace)


@pytest.mark.parametrize("fails", [False, True])
def test_tools_searches_and_agents_as_tools_count_alike(grace, fails):
    """An agent that is used as a tool counts once, and failures count as failures."""

    @grace.agent
    def expert(question):
        if fails:
            raise LookupError("unknown")
        return "known"

    @grace.tool
    def ask(question):
        return expert(question)

    @grace.retriever
    def search(query):
        return [{"text": "a", "score": 0.9, "source": "s1"}, {"text": "b", "score": 0.4, "source": "s2"}]

    def work():
        search("x")
        with contextlib.suppress(LookupError):
            ask("y")
        with contextlib.suppress(LookupError):
            expert("z")

    live, stored = live_and_stored(grace, work)
    assert stored == live
    assert (3, 1 if fails else 3, 2) == (live.tool_execution_count, live.tool_success_count, live.source_count)


def test_outside_of_any_run_there_is_no_evidence():
    survey = survey_of(None)
    assert (ConfidenceFactors(), 0) == (survey.evidence.factors(), survey.steps)


def test_material_is_the_objective_the_proposed_action_and_what_tools_returned(grace):
    """A call that has not ended yet, or that failed, gives no source."""
    case = SimpleNamespace(action="pay", shown_arguments=lambda: {"amount": 5, "to": "bob"})
    found = []

    @grace.tool
    def look(name):
        return f"{name} is here"

    @grace.tool
    def fail():
        raise LookupError("gone")

    @grace.tool
    def act():
        found.append(material_of(current_run(), case.action, case.shown_arguments()))

    @grace.agent(objective="Pay bob")
    def agent():
        grace.thought("bob first")
        look("bob")
        try:
            fail()
        except LookupError:
            act()

    agent()
    assert [("Pay bob", "pay(amount=5, to=bob)", ["bob first", "look: bob is here"])] == found
    assert ("pay", "pay(amount=5, to=bob)", []) == material_of(None, case.action, case.shown_arguments())


EVENTS = ("call", "failing call", "passing failure", "thought", "model", "silent model", "failing model")


def happen(grace, run, kind):
    @grace.tool
    def work(fails=False):
        if fails:
            raise LookupError("nothing there")
        return "x"

    @grace.tool
    def pass_on():
        return work(fails=True)

    if kind == "call":
        work()
    elif kind == "thought":
        grace.thought("hm")
    elif kind.endswith("model"):
        failed = {"status": "error", "error": ("TimeoutError", "late")} if kind == "failing model" else {}
        run.model_called(
            ModelCall("m", start=run.clock(), end=run.clock(), text="" if "silent" in kind else "I see", **failed)
        )
    else:
        with contextlib.suppress(LookupError):
            pass_on() if kind == "passing failure" else work(fails=True)


@given(st.lists(st.sampled_from(EVENTS), max_size=8))
def test_the_steps_so_far_are_those_of_the_trace(kinds):
    """Counted at each point of a run, they are those that stand before the next step; recoveries count once the run has gone on."""
    grace, documents = make_grace(), Documents(privacy_level="private", visibility="private", max_text=1_000)
    counts = []

    @grace.agent
    def agent(question):
        run = current_run()
        for kind in kinds:
            happen(grace, run, kind)
            counts.append(survey_of(run).steps)
            document = documents.build_open(run)
            assert len(document["steps"]) == counts[-1]
            assert facts_of(document) == facts_of(documents.outline(run))
        grace.thought("the end")

    with grace.collect() as traces:
        agent("q")
    types = [step.type for step in traces[0].steps]
    assert sorted(counts) == counts
    recovered = types[: counts[-1] if counts else 0]
    assert types[len(recovered) :].count("thought") == 1
    assert set(types[len(recovered) : -1]) <= {"error_recovery"}


def test_an_outline_has_the_names_from_before_a_run_was_resumed(grace):
    documents = Documents(privacy_level="private", visibility="private", max_text=1_000)
    with grace.run("Pay bob") as run:
        happen(grace, run, "call")
        happen(grace, run, "model")
        earlier = documents.build_open(run)
    earlier["metadata"]["task_domain"] = "billing"
    with grace.run("Go on") as run:
        run.earlier, run.earlier_nested = earlier, {}
        happen(grace, run, "call")
        survey_of(run)
        assert facts_of(documents.build_open(run)) == facts_of(documents.outline(run))
        assert ["billing"] == facts_of(documents.outline(run))["domains"]


class Pause:
    """Hands over to another branch when it is awaited."""

    def __await__(self):
        yield


class Program:
    """A program of tools, searches, streams, nested agents and branches side by side, whose gates compare two readings of the run.

    Its branches are coroutines that hand over at `pause`; which goes on next is drawn.
    """

    def __init__(self, turns):
        self.grace, self.turns, self.runs, self.gates = make_grace(), turns, [], 0

        @self.grace.tool
        def work(fails=False):
            if fails:
                raise LookupError("down")

        @self.grace.retriever
        def search(score):
            return [{"text": "t", "source": f"s{score}", "score": score}]

        @self.grace.retriever
        def stream(score):
            yield {"text": "t", "source": "first", "score": score}
            yield {"text": "t", "source": "second", "score": 1.0}

        async def inside(steps, fails):
            self.runs.append(current_run())
            await self.play(steps)
            if fails:
                raise LookupError("gone")

        self.work, self.search, self.stream = work, search, stream
        self.agent, self.tool = self.grace.agent(name="helper")(inside), self.grace.tool(name="outer tool")(inside)

    async def play(self, steps):
        for step in steps:
            kind, inner = step if isinstance(step, tuple) else (step, [])
            if kind == "parallel":
                await self.side_by_side(inner)
            elif kind.endswith(("agent", "tool")):
                with contextlib.suppress(LookupError):
                    await (self.agent if "agent" in kind else self.tool)(inner, kind.startswith("failing"))
            elif kind.endswith("stream"):
                found = self.stream(0.7)
                next(found)
                await self.play(inner)
                _ = found.close() if "left" in kind else list(found)
            elif kind == "pause":
                await Pause()
            else:
                self.do(kind)

    def do(self, kind):
        if kind == "gate":
            self.compare(current_run())
        elif kind == "thought":
            self.grace.thought("hm")
        elif kind == "words":
            current_run().user_message("and now?")
        elif kind == "release":
            for run in self.runs:
                if not run.open:
                    keep_evidence(run)
        elif kind.endswith("search"):
            self.search(0.2 if "bad" in kind else 0.9)
        else:
            with contextlib.suppress(LookupError):
                self.work(fails=kind == "fail")

    async def side_by_side(self, branches):
        open_branches = [(contextvars.copy_context(), self.play(steps)) for steps in branches]
        while open_branches:
            branch = open_branches[next(self.turns, 0) % len(open_branches)]
            try:
                branch[0].run(branch[1].send, None)
            except StopIteration:
                open_branches.remove(branch)
            await Pause()

    def compare(self, run):
        """Compare the evidence that was kept up to date with evidence gathered anew from all events."""
        self.gates += 1
        with self.grace.recorder.lock:
            kept, readings = survey_of(run), [each.reading for each in self.runs]
            for each in self.runs:
                each.reading = None
            anew = survey_of(run)
            for each, reading in zip(self.runs, readings, strict=True):
                each.reading = reading
        for seen, expected in zip(flat_readings(kept), flat_readings(anew), strict=True):
            assert pytest.approx(expected, abs=1e-12) == seen
        assert (anew.steps, anew.lost, anew.has_others) == (kept.steps, kept.lost, kept.has_others)

    def run(self, steps):
        """Run the program; nothing of its runs is released before its end."""
        may_release, prepare = threading.Event(), Pipeline._prepare

        def held(pipeline, run):
            assert may_release.wait(20)
            return prepare(pipeline, run)

        with mock.patch.object(Pipeline, "_prepare", held):
            try:
                with self.grace.run("work") as run:
                    self.runs.append(run)
                    program = self.play([*steps, "gate"])
                    with contextlib.suppress(StopIteration):
                        while True:
                            program.send(None)
            finally:
                may_release.set()
                self.grace.close()


def flat_readings(survey):
    readings = survey.evidence.readings()
    parts = [value for value in readings.values() if isinstance(value, dict)]
    return [*parts, {name: value for name, value in readings.items() if not isinstance(value, dict)}]


LEAVES = ("succeed", "fail", "good search", "bad search", "words", "thought", *["pause", "gate"] * 2, "release")
AROUND = ("agent", "failing agent", "tool", "failing tool", "stream", "left stream")


def steps_around(steps):
    several = st.lists(steps, max_size=5)
    return st.tuples(st.sampled_from(AROUND), several) | st.tuples(
        st.just("parallel"), st.lists(several, min_size=2, max_size=3)
    )


programs = st.lists(st.recursive(st.sampled_from(LEAVES), steps_around, max_leaves=20), max_size=8)


@example([("tool", [("failing agent", []), "gate", ("agent", [])])], [])
@example([("failing tool", [("failing agent", []), "gate"]), "succeed"], [])
@given(programs, st.lists(st.integers(0, 2), max_size=30))
def test_evidence_that_is_kept_up_to_date_equals_evidence_gathered_anew(steps, turns):
    """At each gate, also with nested runs, tools side by side, open streams, and runs whose events are about to be released."""
    program = Program(iter(turns))
    program.run(steps)
    assert program.gates > 0
