"""A gate sees the same evidence in a live run as a reader sees in its finished trace."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.confidence import ConfidenceFactors, factors_from_trace
from grace_kp.record import Documents, ModelCall, current_run, evidence_of, material_of, survey_of
from grace_kp.testing import make_grace


def live_and_stored(grace, work):
    """The factors of a run at its end, live and from its trace."""
    found = []

    @grace.agent
    def agent(question):
        work()
        found.append(evidence_of(current_run()).factors())

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
    assert ConfidenceFactors() == evidence_of(None).factors()


def test_material_is_the_objective_the_proposed_action_and_what_tools_returned(grace):
    """A call that has not ended yet, or that failed, gives no source."""
    case = SimpleNamespace(action="pay", shown=lambda: {"amount": 5, "to": "bob"})
    found = []

    @grace.tool
    def look(name):
        return f"{name} is here"

    @grace.tool
    def fail():
        raise LookupError("gone")

    @grace.tool
    def act():
        found.append(material_of(current_run(), case))

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
    assert ("pay", "pay(amount=5, to=bob)", []) == material_of(None, case)


EVENTS = ("call", "failing call", "passing failure", "thought", "model", "silent model", "failing model")


def happen(grace, run, kind):
    """Record an event of a kind."""

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
            assert len(documents.open(run)["steps"]) == counts[-1]
        grace.thought("the end")

    with grace.collect() as traces:
        agent("q")
    types = [step.type for step in traces[0].steps]
    assert sorted(counts) == counts
    recovered = types[: counts[-1] if counts else 0]
    assert types[len(recovered) :].count("thought") == 1
    assert set(types[len(recovered) : -1]) <= {"error_recovery"}


def test_outside_of_any_run_there_are_no_steps():
    assert 0 == survey_of(None).steps
