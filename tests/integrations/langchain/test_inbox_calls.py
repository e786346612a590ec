"""Tool calls of agents whose requests wait in the inbox: one question for a turn, a request for each call, and one execution."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("langchain.agents", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import grace_kp as gk
from grace_kp.gating import PolicySet
from grace_kp.integrations.langchain import GraceMiddleware

from .conftest import Script, answer, both, message_of

CONFIG = {"configurable": {"thread_id": "1"}}
TWO = [("pay", {"to": "ann", "euros": 5}), ("pay", {"to": "bob", "euros": 6})]


class Desk:
    """An agent with a gated tool, whose runtime has an inbox."""

    def __init__(self, grace, calls, before):
        self.ran, self.grace = [], grace

        @tool
        def pay(to: str, euros: int = 3) -> str:
            """Pay."""
            self.ran.append((to, euros))
            return f"paid {euros} to {to}"

        script = Script(responses=[message_of(calls), message_of("done")])
        self.middleware = GraceMiddleware(grace, gates={"pay": "confirm"})
        self.agent = create_agent(
            script, [pay], middleware=[self.middleware], checkpointer=InMemorySaver(), interrupt_before=list(before)
        )

    async def call(self, given, world):
        if world == "sync":
            return self.agent.invoke(given, CONFIG)
        return await self.agent.ainvoke(given, CONFIG)

    async def ask(self, world):
        out = await self.call({"messages": [("user", "pay them")]}, world)
        return {approval.arguments["to"]: approval for approval in self.grace.approvals.pending()}, out

    async def resume(self, world):
        approvals = self.grace.approvals
        return approvals.resume(self.agent) if world == "sync" else await approvals.aresume(self.agent)

    def states(self):
        approvals = [*self.grace.approvals.pending(), *self.grace.approvals.history()]
        return {approval.arguments["to"]: str(approval.state) for approval in approvals}


@pytest.fixture
def desk_of(inbox_of):
    return lambda calls=TWO, before=(), **reviewer: Desk(inbox_of(**reviewer), calls, before)


def approve(**more):
    return {"type": "approve", **more}


def tool_texts(out):
    return [message.content for message in out["messages"] if message.type == "tool"]


@both
async def test_each_call_of_a_turn_is_a_request(desk_of, world):
    desk = desk_of()
    waiting, out = await desk.ask(world)
    asked = out["__interrupt__"][0].value["action_requests"]
    assert [waiting["ann"].id, waiting["bob"].id] == [action["approval"] for action in asked]
    assert [{"to": "ann", "euros": 5}, {"to": "bob", "euros": 6}] == [action["args"] for action in asked]
    assert ("pay", "langgraph", "1") == (waiting["ann"].action, waiting["ann"].origin, waiting["ann"].note["thread_id"])


@both
async def test_an_agent_goes_on_when_all_calls_are_decided(desk_of, world):
    desk = desk_of()
    waiting, _ = await desk.ask(world)
    desk.grace.approvals.edit(waiting["ann"].id, {"euros": 4}, by="ana")
    assert ([], []) == (await desk.resume(world), desk.ran)
    desk.grace.approvals.reject(waiting["bob"].id, by="ana", reason="not him")
    (resumed,) = await desk.resume(world)
    assert ("finished", [("ann", 4)]) == (resumed.state, desk.ran)
    refused, paid = sorted(tool_texts(resumed.output), reverse=True)
    assert "not him" in refused
    assert 'The call that ran: pay with {"to": "ann", "euros": 4}.\n\npaid 4 to ann' in paid
    assert {"ann": "done", "bob": "rejected"} == desk.states()


@both
@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("skip", "was skipped"),
        ("retry", "assessed again"),
        ("respond", "ask for the receipt"),
        ("withdraw", "was cancelled"),
        ("expire", "no reviewer decided about `pay` in time; it was not run."),
        ("approve and withdraw", "was cancelled"),
    ],
)
async def test_the_other_ends_of_a_request_reach_the_model(desk_of, let_pass, world, verb, expected):
    desk = desk_of(TWO[:1], before=["tools"], deadline=600.0)
    waiting, _ = await desk.ask(world)
    request, approvals = waiting["ann"].id, desk.grace.approvals
    if verb == "approve and withdraw":
        await desk.call(answer(approve()), world)
        approvals.withdraw(request, by="eve")
        out = await desk.call(None, world)
    elif verb == "expire":
        let_pass(desk.grace, 601.0)
        out = await desk.call(answer(approve()), world)
    else:
        by = {"by": "ana"} | ({"words": "ask for the receipt"} if verb == "respond" else {})
        getattr(approvals, verb)(request, **by)
        (resumed,) = await desk.resume(world)
        out = resumed.output
    assert ([], [True]) == (desk.ran, [expected in text for text in tool_texts(out)])


@both
async def test_a_quorum_holds_for_answers_to_the_agent(desk_of, world):
    desk = desk_of(quorum=2, identity="stated")
    waiting, _ = await desk.ask(world)
    desk.grace.approvals.approve(waiting["bob"].id, by="carl")
    out = await desk.call(answer(approve(by="ana"), approve(by="ana")), world)
    value = out["__interrupt__"][0].value
    assert ("decision 0: 1 of 2", [waiting["ann"].id, waiting["bob"].id]) == (
        value["problem"][:18],
        [action["approval"] for action in value["action_requests"]],
    )
    assert [] == desk.ran
    await desk.call(answer(approve(by="ben"), approve(by="ben")), world)
    assert [("ann", 5), ("bob", 6)] == sorted(desk.ran)


@both
async def test_edits_that_cannot_be_used_are_asked_about_again(desk_of, world):
    desk = desk_of(TWO[:1])
    waiting, _ = await desk.ask(world)
    for args, problem in (
        ({"to": "ann", "euros": "many"}, "do not fit"),
        ({"to": "ann"}, "lacks euros"),
        ({"to": "ann", "euros": 5, "more": 1}, "do not fit"),
    ):
        out = await desk.call(answer({"type": "edit", "edited_action": {"name": "pay", "args": args}}), world)
        assert problem in out["__interrupt__"][0].value["problem"]
        assert "pending" == desk.grace.approvals.get(waiting["ann"].id).state
    out = await desk.call(answer(approve(approval="ap-0")), world)
    assert "names the request 'ap-0'" in out["__interrupt__"][0].value["problem"]
    await desk.call(
        answer({"type": "edit", "edited_action": {"name": "pay", "args": {"to": "ann", "euros": 1}}}), world
    )
    assert [("ann", 1)] == desk.ran


async def test_a_tool_whose_schema_has_changed_does_not_run(desk_of):
    desk = desk_of(TWO[:1], before=["tools"])
    await desk.ask("sync")
    await desk.call(answer(approve()), "sync")

    @tool
    def pay(to: str, euros: int, purpose: str = "") -> str:
        """Pay."""
        desk.ran.append(to)
        return "paid"

    script = Script(responses=[message_of(TWO[:1]), message_of("done")])
    agent = create_agent(script, [pay], middleware=[desk.middleware], checkpointer=desk.agent.checkpointer)
    agent.invoke(None, CONFIG)
    assert [] == desk.ran


async def test_a_secret_in_a_call_needs_a_key(desk_of):
    """Without one the request cannot be kept, so the call does not run; the error names the argument and not the secret."""
    secret = "sk-proj-4f9aK2mPq8Rt6Vw1Xy3Zb5Cd7Ef9Gh0Jk2"
    desk = desk_of([("pay", {"to": secret, "euros": 5}), TWO[1]])
    out = await desk.call({"messages": [("user", "pay them")]}, "sync")
    assert ["bob"] == [action["args"]["to"] for action in out["__interrupt__"][0].value["action_requests"]]
    await desk.call(answer(approve()), "sync")
    assert [("bob", 6)] == desk.ran
    (text,) = [text for text in tool_texts(desk.agent.get_state(CONFIG).values) if "not run" in text]
    assert (True, False) == ("to" in text, secret in text)


STRICTER = {
    "deny": "deny",
    "floor": "escalate",
    "quorum": gk.Policy(quorum=2),
    "group": gk.Policy(group="finance"),
    "thresholds": gk.Policy(thresholds=gk.Thresholds(math.inf, math.inf, math.inf)),
}


@both
@pytest.mark.parametrize("policy", STRICTER)
async def test_an_approved_call_whose_policy_became_stricter_is_cancelled(desk_of, world, policy):
    """Also where the action is forbidden, so that nothing is claimed any more."""
    desk = desk_of([("pay", {"to": "ann", "euros": 5})], before=["tools"])
    waiting, _ = await desk.ask(world)
    desk.grace.approvals.approve(waiting["ann"].id, by="ana")
    await desk.resume(world)
    desk.grace._gates().policies = PolicySet({"pay": STRICTER[policy]})
    out = await desk.call(None, world)
    assert ([], {"ann": "cancelled"}) == (desk.ran, desk.states())
    assert any(reason in text for text in tool_texts(out) for reason in ("forbidden by its policy", "requires"))


@both
@pytest.mark.parametrize("is_decided", [True, False])
async def test_a_call_that_is_forbidden_while_it_waits_is_cancelled(desk_of, world, is_decided):
    """Whether it was approved or not: nobody can approve it later for the agent's next attempt."""
    desk = desk_of([("pay", {"to": "ann", "euros": 5})])
    waiting, _ = await desk.ask(world)
    if is_decided:
        desk.grace.approvals.approve(waiting["ann"].id, by="ana")
    desk.grace._gates().policies = PolicySet({"pay": "deny"})
    await desk.call(answer(approve(by="ben")), world)
    assert ([], {"ann": "cancelled"}) == (desk.ran, desk.states())
    assert [] == desk.grace.approvals.pending()
