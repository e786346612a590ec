"""Gates in LangGraph without agents: a gated node, and gated functions in a node that is run again, ask by an interrupt and act once."""

from __future__ import annotations

import asyncio
import contextvars
import operator
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig  # noqa: TC002 - LangGraph reads it
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler, gated_node
from grace_kp.integrations.langchain._node import RunningNode
from tests.runtime.learned import Learned

from .conftest import action_in, answer, both, built, call, config, in_world, runtime

pytest.importorskip("langgraph", reason="needs the extra langchain")


class State(TypedDict):
    to: str
    said: Annotated[list, operator.add]


def app_of(node, saver="memory", **options):
    graph = StateGraph(State)
    graph.add_node("node", node, **options)
    graph.add_edge(START, "node")
    return graph.compile(checkpointer=InMemorySaver() if saver == "memory" else saver)


@pytest.fixture
def acts():
    return []


GIVEN = {"to": "bob", "said": []}


class TestGatedFunction:
    @pytest.fixture
    def app(self, grace, acts):
        @grace.gate(floor="confirm")
        def pay(to, euros=5):
            acts.append((to, euros))
            return f"paid {to} {euros}"

        return app_of(lambda state: {"said": [pay(state["to"])]})

    @pytest.mark.parametrize("recorded", [True, False])
    def test_it_asks_by_an_interrupt(self, app, handler, acts, recorded):
        cfg = config(handler if recorded else None)
        action = action_in(app.invoke(GIVEN, cfg))
        assert ("pay", {"to": "bob", "euros": 5}, "confirm") == (action["name"], action["args"], action["level"])
        assert [] == acts
        assert ["paid bob 5"] == app.invoke(answer("approve"), cfg)["said"]
        assert [("bob", 5)] == acts

    def test_edit_reject_and_respond(self, app, handler, acts):
        app.invoke(GIVEN, config(handler))
        edited = {"name": "pay", "args": {"to": "eve", "euros": 7}}
        assert ["paid eve 7"] == app.invoke(answer("edit", edited_action=edited), config(handler))["said"]
        app.invoke(GIVEN, config(handler, "2"))
        with pytest.raises(gk.ActionCancelled, match="not now"):
            app.invoke(answer("reject", message="not now"), config(handler, "2"))
        app.invoke(GIVEN, config(handler, "3"))
        with pytest.raises(gk.ActionRedirected, match="ask her"):
            app.invoke(answer("respond", message="ask her"), config(handler, "3"))
        assert [("eve", 7)] == acts


def test_an_answer_to_another_question_runs_nothing(grace, acts):
    """The state was changed while the question waited; the node asks about what it has now, also when it runs once more."""

    @grace.gate(floor="confirm")
    def pay(to):
        acts.append(to)
        return f"paid {to}"

    app = built(
        ("before", lambda state: {}),
        ("node", lambda state: {"said": [pay(state["to"])]}),
        state=State,
        checkpointer=InMemorySaver(),
    )
    app.invoke(GIVEN, config())
    app.update_state(config(), {"to": "eve"}, as_node="before")
    action = action_in(app.invoke(answer("approve"), config()))
    assert ({"to": "eve"}, []) == (action["args"], acts)
    assert ["paid eve"] == app.invoke(answer("approve"), config())["said"]


class TestOnce:
    def test_acts_before_a_later_question_are_not_repeated(self, grace, handler, acts):
        """The node runs again from its first line for every answer; each action in it runs once, and gives its result again."""

        @grace.gate(floor="confirm")
        def pay(to, euros):
            acts.append((to, euros))
            return {"paid": [to, euros]}

        @grace.gate
        def log(line):
            acts.append(line)
            return len(acts)

        def node(state):
            first = log("begin")
            return {"said": [first, pay("a", 1), pay("a", 1), interrupt("go on?"), log("end")]}

        app = app_of(node)
        app.invoke(GIVEN, config(handler))
        app.invoke(answer("approve"), config(handler))
        app.invoke(answer("approve"), config(handler))
        out = app.invoke(Command(resume="yes"), config(handler))
        assert [1, {"paid": ["a", 1]}, {"paid": ["a", 1]}, "yes", 4] == out["said"]
        assert ["begin", ("a", 1), ("a", 1), "end"] == acts

    @pytest.mark.parametrize(
        "result", [object(), (1, 2), "api_key=sk-abcdefghijklmnopqrstuvwxyz123456", {1: 2}, float("nan")]
    )
    def test_a_result_that_cannot_be_kept_is_said_to_be_lost(self, grace, handler, acts, result):
        """It has run, and does not run again; what it gave is not made up, and no secret is written."""

        @grace.gate
        def act():
            acts.append(1)
            return result

        def node(state):
            act()
            return {"said": [interrupt("ok?")]}

        app = app_of(node)
        app.invoke(GIVEN, config(handler))
        with pytest.raises(gk.ActionOutcomeUnknown, match=r"has run already .* its result was not kept") as caught:
            app.invoke(Command(resume="yes"), config(handler))
        assert ("done", [1]) == (caught.value.state, acts)

    def test_a_call_with_other_arguments_is_not_what_was_decided_on(self, grace, handler, acts):
        amounts = iter([5, 500])

        @grace.gate(floor="confirm")
        def pay(euros):
            acts.append(euros)

        app = app_of(lambda state: {"said": [pay(next(amounts))]})
        app.invoke(GIVEN, config(handler))
        with pytest.raises(gk.ActionCancelled, match="other arguments than were decided on"):
            app.invoke(answer("approve"), config(handler))
        assert [] == acts

    def test_even_where_the_ledger_was_lost(self, handler, acts, tmp_path):
        """The graph remembers its question; a runtime that remembers nothing does not take the answer away."""

        def made(unmeasured):
            grace = runtime(unmeasured=unmeasured)

            @grace.gate
            def pay(to):
                acts.append(to)

            return lambda state: {"said": [pay(state["to"])]}

        with SqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
            app_of(made("confirm"), saver).invoke(GIVEN, config())
            with pytest.raises(gk.ActionCancelled):
                app_of(made("silent"), saver).invoke(answer("reject"), config())
        assert [] == acts

    def test_retries_of_a_node_do_not_act_again_on_one_approval(self, grace, handler, acts):
        @grace.gate(floor="confirm")
        def pay(to):
            acts.append(to)
            raise ConnectionError("bank down")

        app = app_of(
            lambda state: {"said": [pay(state["to"])]},
            retry_policy=RetryPolicy(max_attempts=3, initial_interval=0, jitter=False, retry_on=Exception),
        )
        app.invoke(GIVEN, config(handler))
        try:
            out = app.invoke(answer("approve"), config(handler))
        except (gk.ActionNotApproved, ConnectionError):
            out = None
        # Some versions of LangGraph tell which attempt this is; where they do not, a person is asked anew.
        assert out is None or action_in(out)
        assert ["bob"] == acts

    @pytest.mark.parametrize("world", ["threads", "tasks"])
    async def test_calls_side_by_side_hear_their_own_answers(self, grace, handler, acts, world, monkeypatch):
        begun, begin = threading.Semaphore(0), RunningNode.begin

        def begin_and_tell(call):
            begin(call)
            begun.release()

        monkeypatch.setattr(RunningNode, "begin", begin_and_tell)

        @grace.gate(floor="confirm")
        async def pay(to):
            await asyncio.sleep(0)
            acts.append(to)
            return to

        async def node(state):
            said = await asyncio.gather(*(pay(to) for to in "abcd"), return_exceptions=True)
            for error in (one for one in said if isinstance(one, BaseException)):
                raise error  # once no payment runs any more
            return {"said": said}

        @grace.gate(floor="confirm", name="pay")
        def pay_sync(to):
            acts.append(to)
            return to

        def threads(state):
            with ThreadPoolExecutor(4) as pool:
                work = []
                for to in "abcd":  # threads begin their calls in one order, each time the node is run
                    work.append(pool.submit(contextvars.copy_context().run, pay_sync, to))
                    assert begun.acquire(timeout=30)
                return {"said": [one.result() for one in work]}

        app = app_of(node if world == "tasks" else threads)
        out = await app.ainvoke(GIVEN, config(handler))
        for _ in range(4):
            to = action_in(out)["args"]["to"]
            before = list(acts)
            out = await app.ainvoke(answer("approve"), config(handler))
            assert [*before, to] == acts
        assert (list("abcd"), "abcd") == (out["said"], "".join(sorted(acts)))


class TestGatedNode:
    @both
    @pytest.mark.parametrize("show", [None, ["to"]])
    async def test_it_runs_with_consent(self, grace, handler, acts, show, world):
        def pay(state, config: RunnableConfig):
            acts.append((state["to"], config["configurable"]["thread_id"]))
            return {"said": ["paid"]}

        app = app_of(gated_node(grace, in_world(pay, world), floor="confirm", show=show))
        action = action_in(await call(app, GIVEN, world, handler))
        assert ("pay", {"to": "bob"} if show else {"state": GIVEN}) == (action["name"], action["args"])
        out = await call(app, answer("approve"), world, handler)
        assert (["paid"], [("bob", "1")]) == (out["said"], acts)

        await call(app, GIVEN, world, handler, "2")
        args = {"to": "eve"} if show else {"state": {"to": "eve", "said": []}}
        await call(app, answer("edit", edited_action={"name": "pay", "args": args}), world, handler, "2")
        assert ("eve", "2") == acts[-1]

    def test_what_happens_otherwise_is_the_user_s(self, grace, handler, acts):
        node = gated_node(
            grace, lambda state: acts.append(1), name="pay", floor="confirm",
            otherwise=lambda state, error: {"said": [type(error).__name__]},
        )  # fmt: skip
        app = app_of(node)
        app.invoke(GIVEN, config(handler))
        assert ["ActionCancelled"] == app.invoke(answer("reject"), config(handler))["said"]
        assert [] == acts

    def test_as_a_decorator_and_with_messages_in_the_state(self, grace, handler, acts, tmp_path):
        """Messages come back from the checkpointer as they went in, so the decision is found again."""

        @gated_node(grace, floor="confirm")
        def reply(state):
            acts.append(state["messages"][-1].content)
            return {"messages": [("ai", "done")]}

        with SqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
            app = built(reply, state=MessagesState, checkpointer=saver)
            app.invoke({"messages": [("user", "hello")]}, config(handler))
            out = app.invoke(answer("approve"), config(handler))
        assert (["hello"], "done") == (acts, out["messages"][-1].content)

    def test_what_cannot_be_gated_is_an_error_at_once(self, grace):
        def stream(state):
            yield 1

        with pytest.raises(gk.GateError, match="generator"):
            gated_node(grace, stream)


def test_what_a_decision_rests_on_is_decided_once():
    """A node that runs again after an interrupt finds the draw of its audit, its shadow and the profile's confidence as they were."""
    profile, seen = Learned(0.95), []
    grace = runtime(reviewer=None, profile=profile, shadow=Learned(0.1), audit_rate=0.5)
    look = grace.tool(lambda: "seen", name="look")

    @grace.gate
    def pay(to):
        return f"paid {to}"

    def node(state):
        look()
        return {"said": [pay(state["to"]), interrupt("and now?")]}

    app = app_of(node)
    for number in range(12):
        handler, thread = GraceCallbackHandler(grace), str(number)
        profile.answer = 0.95
        app.invoke(GIVEN, config(handler, thread))
        grace.flush()
        before = grace.store.query(limit=1)[0].decisions[0]
        profile.answer = 0.2
        app.invoke(Command(resume="nothing"), config(handler, thread))
        grace.flush()
        (after,) = grace.store.query(limit=1)[0].decisions
        for name in ("level", "score", "profile", "step", "audit", "shadow"):
            assert getattr(before, name) == getattr(after, name)
        seen.append(after.audit["selected"])
    assert 12 == grace.store.count()
    assert sum(seen) == len(grace.store.query(tags=["audit:selected"]))
