"""Evidence that is lost or cannot be used never lets an action run unasked."""

import asyncio
import contextlib
import contextvars
import logging
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import background
from grace_kp.confidence import evidence_of_calls
from grace_kp.gating import Policy, Rules
from grace_kp.record import TROUBLES, current_run
from grace_kp.testing import ScriptedReviewer, make_grace
from tests.exhaustive import examples


def runtime(**settings):
    return make_grace(**{"unmeasured": "notify"} | settings)


def asked(grace, before=lambda: None):
    """The request that a gated action makes after `before` in one run; None where it runs unasked."""
    with grace.run("do it"):
        before()
        return outside(grace)


def gated(grace):
    """A gated action whose reviewer refuses it, and what the reviewer was asked."""
    requests = []
    act = grace.gate(name="act", reviewer=lambda request: requests.append(request) or False)(lambda: "done")
    return act, requests


def failing(grace, name="broken"):
    @grace.tool(name=name)
    def broken():
        raise ValueError("no")

    def survived():
        try:
            broken()
        except ValueError:
            return

    return survived


def in_thread(function, times=1):
    for _ in range(times):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()


def test_nothing_happened_is_no_gap():
    """Evidence that is merely absent keeps the documented 0.7, which runs with a notice."""
    grace = runtime()
    assert asked(grace) is None
    (trace,) = grace.store.query()
    assert "evidence_gaps" not in trace.grace["decisions"][0]
    assert (gk.InterventionLevel.NOTIFY, 0.7) == (trace.decisions[0].level, trace.decisions[0].score)


BAD = [math.nan, -1, 5, "0.1", None]


@pytest.mark.parametrize("profile", ["grace", "strict"])
@pytest.mark.parametrize("result", [*({"score": bad, "source": "a"} for bad in BAD), ("a text", 0.02)])
def test_an_unusable_score_asks(profile, result):
    """In every profile a gate that met one asks at least for CONFIRM and says why, also beside excellent scores."""
    grace = runtime(profile=profile)
    good = {"score": 0.99, "source": "b"}
    search = grace.retriever(lambda: [good, result], name="search")
    request = asked(grace, search)
    assert gk.InterventionLevel.CONFIRM is request.level
    assert "1 scores of search results cannot be used" in request.reason
    assert "cannot be used" in request.decision.reason
    (trace,) = grace.store.query()
    assert ("1 scores of search results cannot be used",) == trace.decisions[0].evidence_gaps


@pytest.mark.parametrize("profile", ["grace", "strict"])
def test_an_unread_search_asks(profile):
    grace = runtime(profile=profile)
    request = asked(grace, grace.retriever(lambda: iter("ab"), name="search"))
    assert "the results of 1 searches could not be read; return a list of results, or declare" in request.reason
    assert request.level.asks


async def left(search, hits, how):
    stream = search(hits)
    if how == "async, closed":
        await anext(stream)
        await stream.aclose()
    elif how == "async, open":
        await anext(stream)
    elif how == "closed":
        for _ in stream:
            break
    elif how == "an error thrown in":
        next(stream)
        with contextlib.suppress(LookupError):
            stream.throw(LookupError())
    else:
        next(stream)
    return stream


BAD_HITS = [{"score": 0.1, "source": "a"}] * 2
PARTLY_READ = {
    "bad": (BAD_HITS, "In the pessimistic reading"),
    "unusable": ([{"score": math.nan}, {"score": 0.9}], "1 scores of search results cannot be used"),
    "unscored": ([{"text": "x"}, {"text": "y"}], "the results of 1 searches carry no score"),
    "text": (["x", "y"], "the results of 1 searches carry no score"),
}


@pytest.mark.parametrize("how", ["open", "closed", "an error thrown in", "async, open", "async, closed"])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("case", PARTLY_READ)
def test_what_was_read_of_a_streamed_search_counts(case, nested, how):
    """Also where it is still open at the gate, or was closed before its end; the trace has it."""
    hits, reason = PARTLY_READ[case]
    grace = runtime()
    good = grace.retriever(lambda: [{"score": 0.97, "source": "g"}, {"score": 0.95, "source": "g"}], name="good")
    if how.startswith("async"):

        @grace.retriever
        async def search(found):
            for hit in found:
                yield hit
    else:

        @grace.retriever
        def search(found):
            yield from found

    streams = []
    act, requests = gated(grace)

    @grace.agent
    async def helper():
        streams.append(await left(search, hits, how))

    async def main():
        with grace.run("do it") as run:
            await (helper if nested else helper.__wrapped__)()
            good()
            with pytest.raises(gk.ActionCancelled):
                act()
        return run

    run = asyncio.run(main())
    assert requests[0].level.asks
    assert reason in requests[0].reason
    (trace,) = [trace for trace in grace.store.query() if any(c["name"] == "search" for c in trace.grace["calls"])]
    (entry,) = [call for call in trace.grace["calls"] if call["name"] == "search"]
    assert 1 == entry["search"]["count"]
    if not nested:
        assert run.trace.id == trace.id
        stored = evidence_of_calls(trace.grace["calls"]).factors()
        assert requests[0].confidence.factors.search_avg_score == pytest.approx(stored.search_avg_score)


NO_SCORE = 'the results of 1 searches carry no score; declare scores=... or scores="none"'
UNSCORED = {
    "the text of an error": ("Error: index 'policies' not found", None),
    "a page of a gateway": ("<html><h1>502 Bad Gateway</h1></html>", None),
    "hits without a score": ([{"text": "x"}], None),
    "hits of an agent of documents": ([{"page_content": "x", "metadata": {"score": 1.0}}], None),
    "a text of JSON": ('[{"text": "x", "score": 1.0}]', "similarity"),
    "a declared kind without a known field": ([{"text": "x", "sim": 0.05}], "similarity"),
    "a declared field that is missing": ([{"text": "x", "score": 1.0}], "metadata.score"),
    "a function of a figure without a figure": ([{"content": "x", "@search.reranker_score": 0.2}], lambda v: v / 4),
    "a function that finds no field": ([{"content": "x"}], lambda hit: hit["rank"]),
    "texts": (["a", "b"], None),
}


@pytest.mark.parametrize("profile", ["grace", "strict"])
@pytest.mark.parametrize("case", UNSCORED)
def test_a_search_without_scores_asks(case, profile):
    """That something was found is no measurement of how good it is; the gap says so, and the trace reads the same again."""
    found, scores = UNSCORED[case]
    grace = runtime(profile=profile)
    search = grace.retriever(lambda: found, name="search") if scores is None else None
    search = search or grace.retriever(scores=scores, name="search")(lambda: found)
    request = asked(grace, search)
    assert gk.InterventionLevel.CONFIRM is request.level
    (trace,) = grace.store.query()
    assert (NO_SCORE,) == trace.decisions[0].evidence_gaps
    assert ("search_quality",) == trace.confidence.not_scored
    assert "the search results carry no score" in trace.confidence.reason
    assert evidence_of_calls(trace.grace["calls"]).factors() == request.confidence.factors


def test_a_search_that_is_declared_to_have_no_scores_does_not_ask():
    """It is no gap; nothing was measured, so the level is the one that is stated for that."""
    grace = runtime(thresholds=gk.Thresholds(0, 0, 0), unmeasured="silent")
    assert asked(grace, grace.retriever(scores="none", name="search")(lambda: [{"text": "x", "score": 0.0}])) is None
    (trace,) = grace.store.query()
    assert ((), 0, ("search_quality",)) == (
        trace.decisions[0].evidence_gaps,
        len(trace.calls[0].search.scores),
        trace.confidence.not_scored,
    )


@pytest.mark.parametrize("profile", ["grace", "strict"])
def test_with_recording_disabled_gates_ask(profile):
    """Nothing is known of the run, so the gate asks at least for CONFIRM and says why."""
    grace = runtime(profile=profile, enabled=False)
    request = asked(grace)
    assert gk.InterventionLevel.CONFIRM is request.level
    assert "recording is disabled" in request.reason

    @grace.agent
    def agent():
        failing(grace)()
        return outside(grace)

    assert gk.InterventionLevel.CONFIRM is agent().level


@pytest.mark.parametrize("kind", ["tools", "thoughts", "agents"])
def test_dropped_steps_ask(kind):
    """Steps beyond `max_steps` are lost, and with them what they would have shown."""
    grace = runtime(max_steps=4)
    one = {"tools": grace.tool(lambda: 1, name="one"), "thoughts": lambda: grace.thought("…")}
    one["agents"] = grace.agent(lambda: 1, name="inner")
    assert asked(grace, lambda: [one["tools"]() for _ in range(2)]) is None
    request = asked(grace, lambda: [one["tools"](), one["tools"](), one[kind]()])
    assert "steps of this run were not recorded" in request.reason


@pytest.mark.parametrize("profile", ["grace", "strict"])
def test_tools_in_plain_threads_ask(profile):
    """A tool that is called outside of any run, in a thread that began recording after this run did."""
    grace = runtime(profile=profile)
    request = asked(grace, lambda: in_thread(failing(grace), 3))
    assert request.level.asks
    assert "a thread that does not carry this run" in request.reason


def test_tools_in_threads_that_carry_the_run_are_evidence():
    grace = runtime()
    request = asked(grace, lambda: in_thread(gk.propagate(failing(grace)), 3))
    assert gk.InterventionLevel.ESCALATE is request.level
    assert "tools succeeded: 0 %" in request.confidence.reason
    assert "thread" not in request.reason


def test_a_thread_that_recorded_before_the_run_is_none_of_its_own():
    """A worker that was there before, and calls tools of its own accord, does not concern the run."""
    grace = runtime()
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(failing(grace)).result()
        assert asked(grace, lambda: pool.submit(failing(grace)).result()) is None


def stray_calls(grace, before):
    """How many tools called outside of their run were counted while `before` ran in a run, and what was logged."""
    counts, logged = TROUBLES.counts.copy(), []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: logged.append(record.getMessage())
    TROUBLES.counts.clear()
    logging.getLogger("grace_kp").addHandler(handler)
    try:
        with grace.run("do it"):
            before()
        return [number for kind, number in TROUBLES.counts.items() if "outside of any run" in kind], logged
    finally:
        logging.getLogger("grace_kp").removeHandler(handler)
        TROUBLES.counts.clear()
        TROUBLES.counts.update(counts)


@pytest.mark.parametrize("kind", ["thread", "gate"])
def test_tools_in_plain_threads_warn_once(kind):
    """They are counted in the status, and the warning names both remedies."""
    grace = runtime()
    tool = failing(grace)

    gated = grace.gate(floor="notify")(tool)

    def in_gate():
        with pytest.raises(gk.ActionNotApproved):
            gated()

    counts, (message,) = stray_calls(grace, lambda: in_thread(tool if kind == "thread" else in_gate, 3))
    assert [3] == counts
    assert "gk.propagate" in message
    assert "gk.instrument_threads" in message


def instrumented(tool):
    undo = gk.instrument_threads()
    try:
        in_thread(tool, 3)
    finally:
        undo()


@pytest.mark.parametrize(
    "before",
    [
        lambda tool: in_thread(gk.propagate(tool), 3),
        instrumented,
        lambda tool: asyncio.run(asyncio.to_thread(tool)),
        lambda tool: background.call_within(60, tool, name="judge"),
        lambda tool: background.call_within(60, lambda: contextvars.Context().run(tool), name="judge"),
        lambda tool: tool(),
        lambda tool: contextvars.Context().run(tool),
    ],
    ids=["propagated", "instrumented", "asyncio", "background", "background without context", "here", "here alone"],
)  # fmt: skip
def test_tools_that_are_no_concern_of_a_run_do_not_warn(before):
    """Neither those in the run, nor those of a judge or scorer, nor those that the main thread calls outside of it."""
    grace = runtime()
    assert ([], []) == stray_calls(grace, lambda: before(failing(grace)))


def test_an_action_in_a_plain_thread_of_a_run_asks():
    """Neither its own run, nor the one that started the thread, knows what the other has seen."""
    grace = runtime()
    requests = []

    def act():
        failing(grace)()
        requests.append(outside(grace))

    with grace.run("around"):
        in_thread(act)
    assert "does not carry the run that started it" in requests[0].reason
    in_thread(act)
    assert requests[1] is None


@pytest.mark.parametrize("profile", ["grace", "strict"])
def test_an_action_of_a_tool_in_a_plain_thread_of_a_run_asks(profile):
    """A tool that is called outside of its run knows no more of it than the action alone."""
    grace = runtime(profile=profile)
    act, requests = gated(grace)

    @grace.tool
    def deploy():
        with pytest.raises(gk.ActionCancelled):
            act()

    with grace.run("do it"):
        in_thread(deploy)
    assert "in a thread that does not carry the run that started it" in requests[0].reason


def test_an_action_of_a_tool_after_the_end_of_its_run_asks():
    """The tool opens a run for itself, without the evidence of the one that is over."""
    grace = runtime()
    act, requests = gated(grace)
    deploy = grace.tool(name="deploy")(act)
    with grace.run("do it"):
        later = gk.propagate(deploy)
    with pytest.raises(gk.ActionCancelled):
        later()
    assert "had already ended" in requests[0].reason


def test_a_tool_outside_of_any_run_does_not_ask():
    """A program that calls a tool with a gate in it, and no agent, is asked no more than before."""
    grace = runtime()
    act = grace.gate(name="act")(lambda: "done")
    deploy = grace.tool(name="deploy")(act)
    results = []
    in_thread(lambda: results.append(deploy()), times=2)
    assert ["done", "done"] == results


def test_a_gate_of_another_runtime_asks_where_tools_of_the_run_were_called_outside_of_it():
    """What its run has lost counts, whichever runtime the gate belongs to."""
    grace, other = runtime(), runtime()
    act, requests = gated(other)
    with grace.run("do it"):
        in_thread(failing(grace))
        with pytest.raises(gk.ActionCancelled):
            act()
    assert "a tool was called in a thread" in requests[0].reason


def outside(grace):
    """The request that a gated action makes outside of any run; None where it runs unasked."""
    reviewer = ScriptedReviewer("cancel")
    try:
        grace.gate(name="act", reviewer=reviewer)(lambda: "done")()
    except gk.ActionCancelled as cancelled:
        return cancelled.request
    return None


def test_a_failure_of_recording_asks(monkeypatch, caplog):
    """A step that could not be recorded may have been a failure."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING")
    caplog.set_level(logging.CRITICAL, "grace_kp")
    grace = runtime()

    def clock():
        raise RuntimeError("no time")

    def before():
        run = current_run()
        right, run.clock = run.clock, clock
        failing(grace)()
        run.clock = right

    assert "recording failed" in asked(grace, before).reason
    assert asked(grace) is None


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_that_could_not_be_recorded_asks(monkeypatch, caplog, is_async):
    """The agent goes on, its gates know that they do not see what it does, and the next run is recorded again."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING")
    caplog.set_level(logging.CRITICAL, "grace_kp")
    grace = runtime()
    requests = []

    def work():
        failing(grace)()
        requests.append(outside(grace))
        return "done"

    if is_async:

        @grace.agent
        async def agent_async():
            return work()

        agent = lambda: asyncio.run(agent_async())  # noqa: E731
    else:
        agent = grace.agent(work)

    def no_run(run):
        raise RuntimeError("no run")

    with monkeypatch.context() as broken:
        broken.setattr(grace.recorder, "opened", no_run)
        assert "done" == agent()
    assert "this run could not be recorded" in requests[0].reason
    assert outside(grace) is None
    assert "done" == agent()
    assert [1] == [len(trace.calls) for trace in grace.store.query() if trace.grace["name"] != "act"]


@pytest.mark.parametrize("capture", [{"capture_output": False}, {"capture_input": False}])
def test_what_is_not_captured_is_evidence_all_the_same(capture):
    """Contents are left out of the trace; failures, scores and sources are not."""
    grace = runtime(**capture)
    search = grace.retriever(lambda: [{"score": 0.9, "source": "a"}], name="search")
    assert asked(grace, search) is None
    assert asked(grace, lambda: (search(), failing(grace)())).level.asks


def test_a_release_with_a_gap_asks():
    reviewer = ScriptedReviewer("proceed", "proceed")
    grace = runtime(reviewer=reviewer)
    search = grace.retriever(lambda: [("text", 0.02)], name="search")
    assert "yes" == grace.agent(release=True)(lambda: "yes")()
    assert 0 == reviewer.asked
    assert "yes" == grace.agent(release=True)(lambda: search() and "yes")()
    assert 1 == reviewer.asked


LEVELS = [*gk.InterventionLevel]


@given(st.sampled_from(LEVELS), st.sampled_from([None, *map(str, LEVELS)]), st.lists(st.text(max_size=5), max_size=3))
def test_no_gap_makes_a_level_milder(level, floor, gaps):
    """Whatever the confidence and the policy say, a gap keeps the level or raises it, and any gap asks."""
    decision = gk.ActionDecision(level, 0.5, "")
    without = Rules(Policy(floor), gk.Thresholds()).apply(decision)
    with_gaps = Rules(Policy(floor), gk.Thresholds(), tuple(gaps)).apply(decision)
    assert with_gaps.level is without.level.at_least(with_gaps.level)
    assert not gaps or (with_gaps.level.asks and with_gaps.reason)


EVENTS = {
    "ok": lambda grace: grace.tool(lambda: 1, name="ok")(),
    "failed": lambda grace: failing(grace)(),
    "found": lambda grace: grace.retriever(lambda: [{"score": 0.95, "source": "a"}], name="s")(),
    "poor": lambda grace: grace.retriever(lambda: [{"score": 0.2, "source": "a"}], name="s")(),
}
LOSSES = {
    "unusable": lambda grace: grace.retriever(lambda: [{"score": math.nan, "source": "a"}], name="s")(),
    "pair": lambda grace: grace.retriever(lambda: [("text", 0.02)], name="s")(),
    "unread": lambda grace: grace.retriever(lambda: iter([1]), name="s")(),
    "unscored": lambda grace: grace.retriever(lambda: [{"text": "x", "metadata": {"score": 1.0}}], name="s")(),
    "stray": lambda grace: in_thread(failing(grace)),
    "dropped": lambda grace: [grace.thought("…") for _ in range(60)],
}


@examples(60)
@given(
    st.lists(st.sampled_from(sorted(EVENTS)), max_size=4),
    st.sampled_from(sorted(LOSSES)),
    st.integers(0, 4),
    st.sampled_from(["grace", "strict"]),
)
def test_no_action_runs_unasked_after_a_loss(events, loss, at, profile):
    """Whatever else a run has seen, before or after, an action is never run unasked once evidence is lost."""
    grace = runtime(profile=profile, max_steps=50)
    steps = [EVENTS[name] for name in events]
    steps.insert(min(at, len(steps)), LOSSES[loss])

    def before():
        for step in steps:
            step(grace)

    assert asked(grace, before).level.asks
