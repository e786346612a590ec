"""Gated tools of real agents: who is asked, what runs, what the history shows, and that it runs once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import signal
import threading

import pytest

pytest.importorskip("langchain", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel, field_validator

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.gating import PolicySet
from grace_kp.integrations.langchain import GraceCallbackHandler, GraceMiddleware
from tests.runtime.learned import Learned

from .conftest import (
    APPROVE,
    QUESTION,
    Bank,
    Script,
    answer,
    asked,
    both,
    call,
    config,
    edit,
    gated_agent,
    message_of,
    run_program,
    runtime,
    says,
)


def pays(*orders, also=()):
    """A model that proposes these payments in one turn, and is done after it."""
    return [
        [("pay", {"to": to, "euros": euros}) for to, euros in orders] + [("look", {"query": q}) for q in also],
        "done",
    ]


def agent_of(grace, bank, said, *, gates="confirm", saver="memory", **options):
    gates = {"pay": gates} if isinstance(gates, str | gk.Policy) else gates
    return gated_agent(grace, said, bank.tools, gates, saver=saver, **options)


def results(out):
    return {one.tool_call_id: (one.content, one.status) for one in out["messages"] if isinstance(one, ToolMessage)}


@both
async def test_one_question_for_all_gated_calls_of_a_turn(grace, handler, bank, world):
    """In the form of LangChain's own middleware, with what the level rests on beside each action."""
    agent = agent_of(grace, bank, pays(("bob", 5), ("eve", 7), also=["x"]))
    value = asked(await call(agent, QUESTION, world, handler))

    assert [("pay", {"to": "bob", "euros": 5}), ("pay", {"to": "eve", "euros": 7})] == [
        (one["name"], one["args"]) for one in value["action_requests"]
    ]
    assert [{"action_name": "pay", "allowed_decisions": ["approve", "edit", "reject", "respond"]}] * 2 == value[
        "review_configs"
    ]
    for one in value["action_requests"]:
        assert {"name", "args", "description", "level", "score", "breakdown", "penalties", "reason"} == one.keys()
        assert ("confirm", 0.7) == (one["level"], one["score"])
        assert {"search_quality", "source_agreement", "llm_self_eval", "tool_success", "query_coverage"} == one[
            "breakdown"
        ].keys()
    assert [] == bank.paid
    json.dumps(value)  # it has to go over a wire


@both
async def test_the_calls_of_a_turn_are_decided_on_with_the_same_evidence(grace, handler, world):
    """Whatever is recorded between two decisions, here by code of the second tool's arguments."""

    @grace.tool
    def look_up(name: str) -> str:
        raise LookupError(name)

    class Order(BaseModel):
        to: str

        @field_validator("to")
        @classmethod
        def known(cls, to: str) -> str:
            with contextlib.suppress(LookupError):
                look_up(to)
            return to

    @tool(args_schema=Order)
    def order(to: str) -> str:
        """Order something."""
        return "ordered"

    said = [[("pay", {"to": "bob", "euros": 5}), ("order", {"to": "bob"}), ("pay", {"to": "eve", "euros": 5})], "done"]
    tools = [*Bank().tools, order]
    agent = gated_agent(grace, said, tools, {"pay": "confirm", "order": "confirm"})
    value = asked(await call(agent, QUESTION, world, handler))
    assert [(0.7, value["action_requests"][0]["breakdown"])] * 3 == [
        (one["score"], one["breakdown"]) for one in value["action_requests"]
    ]


@both
async def test_the_four_decisions(grace, handler, bank, world):
    orders = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    agent = agent_of(grace, bank, pays(*orders, also=["x"]))
    await call(agent, QUESTION, world, handler)
    decisions = [
        APPROVE,
        edit(to="b", euros=20),
        {"type": "reject", "message": "not c"},
        {"type": "respond", "message": "d is paid"},
    ]
    out = await call(agent, answer(*decisions), world, handler)

    assert [("a", 1), ("b", 20)] == sorted(bank.paid)
    told = results(out)
    assert ("paid a 1", "success") == told["call_0_0"]
    assert told["call_0_1"][0].endswith("paid b 20")
    assert '{"to": "b", "euros": 20}' in told["call_0_1"][0]
    assert "not c" in told["call_0_2"][0]
    assert "error" == told["call_0_2"][1]
    assert ("d is paid", "success") == told["call_0_3"]
    assert ("seen x", "success") == told["call_0_4"]
    proposed = next(one for one in out["messages"] if isinstance(one, AIMessage) and one.tool_calls)
    assert orders == [(one["args"]["to"], one["args"]["euros"]) for one in proposed.tool_calls if one["name"] == "pay"]
    assert "done" == out["messages"][-1].content

    (trace,) = grace.store.query()
    assert ["executed", "executed_modified", "cancelled", "redirected"] == [
        one["outcome"] for one in trace.grace["decisions"]
    ]
    assert {("pay", "ok"), ("look", "ok")} == {(one["name"], one["status"]) for one in trace.grace["calls"]}
    assert 3 == len(trace.grace["calls"])

    assert [f"call_0_{number}" for number in range(4)] == [one["tool_call_id"] for one in trace.grace["decisions"]]
    grace.feedback(trace.id, True, action="call_0_0")
    labelled = cal.action_labels(grace).actions
    assert [(0, True, "user"), (1, False, "edit"), (2, False, "rejection")] == [
        (one.position, one.correct, one.source) for one in labelled
    ]


@pytest.mark.parametrize(
    ("floor", "asks", "notices"),
    [("silent", False, 0), ("notify", False, 1), ("confirm", True, 0), ("escalate", True, 0)],
)
@both
async def test_levels(bank, world, floor, asks, notices):
    told = []
    grace = runtime(unmeasured="silent", on_notify=told.append)
    agent = agent_of(grace, bank, pays(("bob", 5)), gates=floor)
    out = await call(agent, QUESTION, world, GraceCallbackHandler(grace))
    assert asks == ("__interrupt__" in out)
    assert ([] if asks else [("bob", 5)]) == bank.paid
    assert notices == len(told)
    if asks:
        assert floor == asked(out)["action_requests"][0]["level"]
    if notices:
        assert ("pay", {"to": "bob", "euros": 5}) == (told[0].action, dict(told[0].arguments))


@both
async def test_without_a_checkpointer_the_runtime_s_reviewer_is_asked(handler, world):
    bank = Bank()
    answers = {"a": "proceed", "b": "cancel", "d": "skip"}

    def review(request):
        to = request.arguments["to"]
        if to == "c":
            return gk.InterventionResponse("modify", modified={"euros": 30})
        if to == "e":
            return gk.InterventionResponse("input", user_input="ask me later")
        return gk.InterventionResponse(answers[to])

    grace = runtime(unmeasured="notify", reviewer=review)
    agent = agent_of(grace, bank, pays(("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)), saver=None)
    out = await call(agent, QUESTION, world, GraceCallbackHandler(grace))
    assert [("a", 1), ("c", 30)] == sorted(bank.paid)
    told = results(out)
    assert ["success", "error", "success", "error", "success"] == [told[f"call_0_{n}"][1] for n in range(5)]
    assert "ask me later" == told["call_0_4"][0]
    (trace,) = grace.store.query()
    outcomes = [one["outcome"] for one in trace.grace["decisions"]]
    assert ["executed", "cancelled", "executed_modified", "skipped", "redirected"] == outcomes


@both
@pytest.mark.parametrize("wait", [True, "raise", "hand_over"])
async def test_an_inbox_needs_a_checkpointer(wait, handler, world):
    """The agent could not be carried on. Nothing runs, no request is filed, and the message says what is missing."""
    bank = Bank()
    grace = runtime(unmeasured="notify", reviewer=gk.InboxReviewer(wait=wait))
    agent = agent_of(grace, bank, pays(("bob", 5)), saver=None)
    out = await call(agent, QUESTION, world, GraceCallbackHandler(grace))
    assert ([], []) == (bank.paid, grace.approvals.pending())
    ((text, status),) = results(out).values()
    assert "an agent or graph that has a checkpointer" in text
    assert "error" == status


@both
@pytest.mark.parametrize("saver", ["memory", None])
async def test_deny_blocks_without_asking(grace, handler, bank, world, saver):
    agent = agent_of(grace, bank, pays(("bob", 5), also=["x"]), gates="deny", saver=saver)
    out = await call(agent, QUESTION, world, handler)
    assert "__interrupt__" not in out
    assert ([], "error") == (bank.paid, results(out)["call_0_0"][1])
    assert "seen x" == results(out)["call_0_1"][0]


def test_globs_defaults_and_the_runtime_s_own_policies():
    grace = runtime(unmeasured="notify", policies={"pay": "escalate", "wire": "deny"})
    middleware = GraceMiddleware(grace, {"delete_*": "confirm", "pay": "notify"}, default="silent")
    floors = {name: middleware.policy_for(name).floor for name in ("delete_all", "pay", "look", "wire")}
    assert {"delete_all": "confirm", "pay": "escalate", "look": "silent", "wire": "deny"} == floors
    plain = GraceMiddleware(grace, {"delete_*": "confirm"})
    assert (None, "deny") == (plain.policy_for("look"), plain.policy_for("wire").floor)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"gates": {"pay": "sometimes"}}, "policy 'pay': floor must be one of"),
        ({"gates": {"pay": None}}, "policy 'pay': None states no policy; write a floor"),
        ({"gates": {"pay ": "confirm"}}, "policy 'pay ': it can match no action: it has a blank"),
        ({"gates": {"{pay,look}": "confirm"}}, "a glob has no braces"),
        ({"default": "never"}, "floor must be one of"),
        ({"judge": "maybe"}, "judge must be one of"),
    ],
)
def test_what_cannot_be_used_is_an_error_at_once(grace, arguments, problem):
    with pytest.raises(ValueError, match=problem):
        GraceMiddleware(grace, **arguments)
    with pytest.raises(TypeError, match="takes a Grace, not dict"):
        GraceMiddleware({})


class TestNames:
    @both
    @pytest.mark.parametrize(
        "stated", ["send_mial", "Send_Mail", "send-mail", "sendmail*", "sendMail", "snd_mial", "end_mail"]
    )
    async def test_a_misspelt_gate_is_an_error_before_anything_runs(self, grace, handler, stated, world):
        ran = []
        agent = agent_with(grace, ["send_mail", "look"], ran, {"look": "silent", stated: "deny"})
        with pytest.raises(gk.GateError, match=f"no tool is called '{re.escape(stated)}'; did you mean 'send_mail'"):
            await call(agent, QUESTION, world, handler)
        assert [] == ran

    def test_a_gate_for_no_tool_leads_to_one_warning(self, grace, handler, caplog):
        """It may be for the tool of a subagent. The status lists it until a tool has that name."""
        ran = []
        agent = agent_with(grace, ["look"], ran, {"pay": "deny", "delete_*": "deny", "lok": "deny"})
        for thread in "12":
            agent.invoke(QUESTION, config(handler, thread))
        warned = [record.getMessage() for record in caplog.records if record.name == "grace_kp.gate"]
        assert ["look"] * 2 == ran
        assert [
            "GraceMiddleware(gates=...): no tool of the agent is called 'pay', 'delete_*', 'lok' (nearest: look)"
        ] == warned
        assert {"pay": None, "delete_*": None, "lok": "look"} == grace.status()["unmatched_policies"]
        other = agent_with(grace, ["pay"], [], {"pay": "silent"})
        other.invoke(QUESTION, config(handler, "3"))
        assert {"delete_*": None, "lok": "look"} == grace.status()["unmatched_policies"]

    @both
    @pytest.mark.parametrize("also", [("send_mail",), ()])
    async def test_a_tool_that_looks_like_a_gated_one_is_gated(self, grace, handler, also, world, caplog):
        """With a warning; whether the tool of the very name is there, too, or not."""
        ran, other = [], "\u0455end_mail"
        agent = agent_with(grace, [other, *also], ran, {"send_mail": "deny"}, default="silent")
        await call(agent, QUESTION, world, handler)
        assert [] == ran
        assert f"the action {other!r} looks like 'send_mail' and gets the same policy" in caplog.text


def agent_with(grace, names, ran, gates, *, more=(), unmeasured=None, default=None):
    """An agent that calls each of these tools once."""

    def named(name):
        def act() -> str:
            """Act."""
            ran.append(name)
            return "done"

        return tool(name)(act)

    gates = {stated: gk.Policy(floor=floor, unmeasured=unmeasured) for stated, floor in gates.items()}
    model = Script(responses=[message_of([(name, {}) for name in names]), message_of("done")])
    middleware = [*more, GraceMiddleware(grace, gates, default)]
    return create_agent(model, [named(name) for name in names], middleware=middleware, checkpointer=InMemorySaver())


class TestStricterPolicies:
    @both
    @pytest.mark.parametrize(
        "policy", ["confirm", "deny", gk.Policy(thresholds=gk.Thresholds(math.inf, math.inf, math.inf))]
    )
    async def test_a_call_that_needed_nobody_does_not_run(self, grace, handler, bank, world, policy):
        silent = gk.Policy(thresholds=gk.Thresholds(0, 0, 0), unmeasured="silent")
        agent = create_agent(
            says(*pays(("bob", 5))), bank.tools, middleware=[GraceMiddleware(grace, {"pay": silent})],
            checkpointer=InMemorySaver(), interrupt_before=["tools"],
        )  # fmt: skip
        await call(agent, QUESTION, world, handler)
        grace._gates().policies = PolicySet({"pay": policy})
        out = await call(agent, None, world, handler)
        assert [] == bank.paid
        text, status = results(out)["call_0_0"]
        assert "error" == status
        assert "forbidden" in text or "requires" in text


class TestUnusableAnswers:
    @both
    @pytest.mark.parametrize(
        ("bad", "problem"),
        [
            ({"decisions": []}, "1 decisions are needed"),
            ({"decisions": ["approve"]}, "must be an object with a type, not str"),
            ({"decisions": [{"type": "approve", "message": 5}]}, "message must be a string, not int"),
            ({"decisions": [{"type": "respond", "message": ""}]}, "respond needs a message"),
            ({"decisions": [{"type": "edit", "edited_action": {"args": {1: 2}}}]}, "edit needs edited_action"),
            ({"decisions": [{"type": "edit", "edited_action": {"args": {}}}]}, "edit needs arguments"),
            ({"decisions": [{"type": "yes"}]}, "type must be one of"),
            ({"decisions": [edit(to="bob", euros="many")]}, "euros"),
            ({"decisions": [edit(to="bob")]}, "'euros' is missing"),
            ({"decisions": [edit(to="bob", euros=1, cents=2)]}, "no argument 'cents'"),
            (
                {"decisions": [{"type": "edit", "edited_action": {"name": "look", "args": {"query": "x"}}}]},
                "name cannot be changed",
            ),
            (True, "decisions"),
        ],
    )
    async def test_they_are_asked_again(self, grace, handler, bank, bad, problem, world):
        agent = agent_of(grace, bank, pays(("bob", 5)))
        await call(agent, QUESTION, world, handler)
        value = asked(await call(agent, Command(resume=bad), world, handler))
        assert problem in value["problem"]
        assert [] == bank.paid
        out = await call(agent, answer(APPROVE), world, handler)
        assert ([("bob", 5)], "done") == (bank.paid, out["messages"][-1].content)

    def test_not_for_ever(self, grace, handler, bank):
        agent = agent_of(grace, bank, pays(("bob", 5)))
        out = agent.invoke(QUESTION, config(handler))
        for _ in range(10):
            if "__interrupt__" not in out:
                break
            out = agent.invoke(Command(resume="nonsense"), config(handler))
        assert ([], "error") == (bank.paid, results(out)["call_0_0"][1])


class TestOnce:
    def test_a_decision_is_not_made_again_when_the_graph_resumes(self, bank):
        """The confidence has changed by the time of the answer."""
        sure = {"now": False}

        grace = runtime(unmeasured="notify")
        handler = GraceCallbackHandler(grace)

        class Moody(GraceMiddleware):
            def policy_for(self, tool):
                unmeasured = "silent" if sure["now"] else "confirm"
                return gk.Policy(unmeasured=unmeasured) if tool == "pay" else None

        agent = create_agent(
            says(*pays(("bob", 5))), bank.tools, middleware=[Moody(grace)], checkpointer=InMemorySaver()
        )
        asked(agent.invoke(QUESTION, config(handler)))
        # From now on the call would go ahead silently.
        sure["now"] = True
        out = agent.invoke(answer({"type": "reject", "message": "no"}), config(handler))
        assert ([], "error") == (bank.paid, results(out)["call_0_0"][1])

    def test_going_back_to_the_question_and_answering_again_runs_nothing(self, grace, handler, bank):
        """LangGraph can be sent back to an earlier checkpoint; the approval was for one payment."""
        agent = agent_of(grace, bank, [*pays(("bob", 5)), "done again"])
        agent.invoke(QUESTION, config(handler))
        here = agent.get_state(config()).config
        agent.invoke(answer(APPROVE), config(handler))
        again = {**here, "callbacks": [handler]}
        out = agent.invoke(answer(APPROVE), again)
        assert [("bob", 5)] == bank.paid
        assert ("paid bob 5", "success") == results(out)["call_0_0"]

    def test_calls_that_were_added_behind_the_model_are_asked_about(self, grace, handler, bank):
        """Whatever the level would be: nobody can tell whether it has been decided before."""

        class Pushy(AgentMiddleware):
            def after_model(self, state, runtime):
                last = state["messages"][-1]
                if last.content == "nothing":
                    call = {"name": "pay", "args": {"to": "eve", "euros": 9}, "id": "own"}
                    return {"messages": [AIMessage("x", id=last.id, tool_calls=[call])]}
                return None

        grace = runtime(unmeasured="silent")
        agent = agent_of(grace, bank, ["nothing", "done"], gates="silent", behind=[Pushy()])
        value = asked(agent.invoke(QUESTION, config(GraceCallbackHandler(grace))))
        assert ("confirm", []) == (value["action_requests"][0]["level"], bank.paid)

    def test_the_same_call_in_another_turn_is_another_call(self, grace, handler, bank):
        """Models use the same ids again; each turn is decided on for itself."""
        one = AIMessage("", tool_calls=[{"name": "pay", "args": {"to": "bob", "euros": 5}, "id": "same"}])
        two = one.model_copy()
        agent = agent_of(grace, bank, [one, two, "done"])
        agent.invoke(QUESTION, config(handler))
        assert 1 == len(asked(agent.invoke(answer(APPROVE), config(handler)))["action_requests"])
        assert [("bob", 5)] == bank.paid
        agent.invoke(answer({"type": "reject"}), config(handler))
        assert [("bob", 5)] == bank.paid

    def test_a_store_that_cannot_keep_the_claim_keeps_the_tool_from_running(self, handler, bank, tmp_path):
        grace = gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, unmeasured="notify")
        agent = agent_of(grace, bank, pays(("bob", 5)))
        agent.invoke(QUESTION, config(GraceCallbackHandler(grace)))
        grace.store.put_action = lambda *args, **kwargs: (_ for _ in ()).throw(OSError("disk full"))
        out = agent.invoke(answer(APPROVE), config(GraceCallbackHandler(grace)))
        assert ([], "error") == (bank.paid, results(out)["call_0_0"][1])
        assert "disk full" in results(out)["call_0_0"][0]

    def test_a_tool_that_asks_a_question_of_its_own(self, grace, handler):
        done = []

        @tool
        def pay(to: str, euros: int) -> str:
            """Send money."""
            pin = interrupt("PIN?")
            done.append((to, euros, pin))
            return "paid"

        bank = Bank()
        bank.tools = [pay]
        agent = agent_of(grace, bank, pays(("bob", 5)))
        agent.invoke(QUESTION, config(handler))
        assert "PIN?" == asked(agent.invoke(answer(APPROVE), config(handler)))
        out = agent.invoke(Command(resume="1234"), config(handler))
        assert [("bob", 5, "1234")] == done
        assert "done" == out["messages"][-1].content


KILLED = """
import os, signal, sys
from langchain.agents import create_agent
from grace_kp.integrations.langchain import GraceMiddleware
from tests.integrations.langchain.conftest import *
folder, step, when = sys.argv[1:]
def die(): os.kill(os.getpid(), signal.SIGKILL)
def pay(to: str, euros: int) -> str:
    "Send money."
    if step == "approve" and when == "before the effect": die()
    with open(f"{folder}/paid", "a") as file: file.write(f"{to} {euros}\\n")
    if step == "approve" and when == "after the effect": die()
    return f"paid {to} {euros}"
class Saver(SqliteSaver):
    def put_writes(self, config, writes, task_id, *rest):
        texts = str(writes)
        if step == "approve" and when == "before the checkpoint" and "paid bob" in texts: die()
        super().put_writes(config, writes, task_id, *rest)
        if step == "approve" and when == "before the tool" and "grace_gates" in texts: die()
said = [[("pay", {"to": "bob", "euros": 5})]] if step == "ask" else []
grace = runtime(store=f"sqlite:///{folder}/traces.db", unmeasured="notify")
with Saver.from_conn_string(f"{folder}/checkpoints.db") as saver:
    agent = create_agent(says(*said, "done"), [pay], middleware=[GraceMiddleware(grace, {"pay": "confirm"})], checkpointer=saver)
    given = {"ask": QUESTION, "again": None}.get(step, answer("approve"))
    out = agent.invoke(given, config(GraceCallbackHandler(grace)), durability="sync")
    for message in out["messages"]: print(message.type, getattr(message, "status", ""), message.content.replace("\\n", " "))
grace.close()
"""


@pytest.mark.parametrize("when", ["before the tool", "before the effect", "after the effect", "before the checkpoint"])
@pytest.mark.parametrize("again", ["again", "answer again"])
def test_a_process_that_is_killed_pays_once_at_most(tmp_path, when, again):
    """Between approval and execution, in the middle of it, and between execution and the checkpoint.

    Where nobody can know whether it has paid, it is not paid again, and the model is told that it is not known.
    """
    assert 0 == run_program(KILLED, tmp_path, "ask", "-").returncode
    assert -signal.SIGKILL == run_program(KILLED, tmp_path, "approve", when).returncode
    paid = (tmp_path / "paid").read_text() if (tmp_path / "paid").exists() else ""
    assert ("" if when in {"before the tool", "before the effect"} else "bob 5\n") == paid

    ran = run_program(KILLED, tmp_path, again, "-")
    assert (0, "") == (ran.returncode, ran.stderr)
    paid = (tmp_path / "paid").read_text() if (tmp_path / "paid").exists() else ""
    if when in {"before the tool", "before the checkpoint"}:  # it had not begun, or has come to its end
        assert "bob 5\n" == paid
        assert "tool success paid bob 5" in ran.stdout
    else:
        assert ("" if when == "before the effect" else "bob 5\n") == paid
        assert "tool error" in ran.stdout
        assert "its outcome is unknown" in ran.stdout


@both
async def test_answers_that_come_at_the_same_time_pay_once(grace, handler, bank, world):
    saver = InMemorySaver()
    agents = [agent_of(grace, bank, said, saver=saver) for said in (pays(("bob", 5)), *[["done"]] * 7)]
    await call(agents[0], QUESTION, world, handler)
    await asyncio.gather(
        *(
            asyncio.to_thread(agent.invoke, answer(APPROVE), config(handler))
            if world == "sync"
            else agent.ainvoke(answer(APPROVE), config(handler))
            for agent in agents
        ),
        return_exceptions=True,
    )
    assert [("bob", 5)] == bank.paid
    grace.flush()
    outcomes = [entry.outcome for trace in grace.store.query() for entry in trace.decisions]
    assert (1, 0) == (outcomes.count("executed"), outcomes.count("waiting"))


@both
async def test_the_middleware_works_without_the_handler(grace, world):
    """Confidence then rests on the messages: a tool message with an error counts."""
    bank = Bank()
    agent = agent_of(grace, bank, [[("look", {"query": "x"})], *pays(("bob", 5))])
    (action,) = asked(await call(agent, QUESTION, world))["action_requests"]
    assert 1.0 == action["breakdown"]["tool_success"]
    await call(agent, answer(APPROVE), world)
    assert [("bob", 5)] == bank.paid


@both
async def test_a_judge_is_asked_where_the_gate_wants_it(bank, world):
    from grace_kp.testing import ScriptedJudge

    judge = ScriptedJudge(0.1)
    grace = gk.Grace(store="memory:", evaluator=judge, embedder=None, profile="strict")
    agent = agent_of(grace, bank, pays(("bob", 5)), gates="silent", judge="always")
    (action,) = asked(await call(agent, QUESTION, world, GraceCallbackHandler(grace)))["action_requests"]
    assert ("escalate", 1) == (action["level"], judge.asked)
    assert "pay(to=bob, euros=5)" in judge.prompts[0]


@both
async def test_gated_tools_ask_where_recording_is_disabled(bank, world):
    """Without a recorded run nothing is known of it, whatever its messages say; the request says so."""
    grace = gk.Grace(store="memory:", enabled=False, evaluator=None, embedder=None, unmeasured="notify")
    agent = agent_of(grace, bank, pays(("bob", 5)), gates={"pay": "silent"})
    (action,) = asked(await call(agent, QUESTION, world, GraceCallbackHandler(grace)))["action_requests"]
    assert "confirm" == action["level"]
    assert "recording is disabled" in action["reason"]
    assert [] == bank.paid


@both
async def test_what_a_suspended_run_lost_is_known_when_it_goes_on(grace, handler, bank, world):
    @tool
    def fan_out(query: str) -> str:
        """Call a tool in a plain thread."""
        thread = threading.Thread(target=grace.tool(lambda: 1, name="inner"))
        thread.start()
        thread.join()
        return "done"

    bank.tools.append(fan_out)
    said = [[("fan_out", {"query": "q"})], *pays(("bob", 5))[:1], *pays(("eve", 7))]
    agent = agent_of(grace, bank, said, gates={"pay": "silent"})
    (first,) = asked(await call(agent, QUESTION, world, handler))["action_requests"]
    (second,) = asked(await call(agent, answer(APPROVE), world, handler))["action_requests"]
    for action in (first, second):
        assert "a thread that does not carry this run" in action["reason"]


class TestLearnedProfiles:
    @both
    @pytest.mark.parametrize("handled", [True, False])
    @pytest.mark.parametrize("failure", [ValueError("x"), SystemExit(1), None])
    async def test_a_person_is_asked_where_there_is_no_learned_confidence(self, world, bank, handled, failure):
        """The profile fails, or no handler records a run that it could read."""
        options = {"profile": Learned(failure or 1.0), "thresholds": gk.Thresholds(0, 0, 0)}
        grace = runtime(unmeasured="notify", reviewer=None, **options)
        agent = agent_of(grace, bank, pays(("ana", 5)), gates={"pay": gk.Policy()})
        out = await call(agent, QUESTION, world, GraceCallbackHandler(grace) if handled else None)
        if failure is None and handled:
            assert [("ana", 5)] == bank.paid
            return
        (action,) = asked(out)["action_requests"]
        reason = "nothing is recorded of the run" if not handled else "the profile learned failed"
        assert "confirm" == action["level"]
        assert reason in action["reason"]
        assert [] == bank.paid


@pytest.mark.parametrize("records", ["handler", "a run around", "nobody"])
def test_a_refusal_holds_in_its_turn_only(bank, records):
    """Another message of the model is something else, also where no handler records it. Equal calls of one turn are refused together."""
    asked_about = []

    def reviewer(request):
        asked_about.append(request.arguments["euros"])
        return gk.InterventionResponse("cancel" if len(asked_about) == 1 else "proceed")

    grace = runtime(reviewer=reviewer)
    calls = [("pay", {"to": "bob", "euros": 5})]
    agent = agent_of(grace, bank, [calls * 2, calls, "done"], saver=None)
    handler = GraceCallbackHandler(grace) if records == "handler" else None
    with grace.run("q") if records == "a run around" else contextlib.nullcontext():
        agent.invoke(QUESTION, config(handler))
    if records == "nobody":  # nothing holds where nothing is recorded
        assert ([5, 5, 5], 2) == (asked_about, len(bank.paid))
    else:
        assert ([5, 5], 1) == (asked_about, len(bank.paid))
