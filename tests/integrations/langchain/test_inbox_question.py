"""Gates in nodes whose requests also wait in the inbox: whichever is answered first decides, and the action runs once."""

from __future__ import annotations

import pytest

pytest.importorskip("langgraph", reason="needs the extra langchain")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

import grace_kp as gk

from .conftest import action_in, answer, both, built, call, in_world, node_of, runtime

CONFIG = {"configurable": {"thread_id": "1"}}


def app_of(node, saver=None):
    return built(node, checkpointer=saver or InMemorySaver())


def paying(grace, world, ran):
    """A node that pays ann 5 euros, and then mails her."""

    def pay(to: str, euros: int) -> str:
        ran.append((to, euros))
        return f"paid {euros} to {to}"

    def mail(to: str) -> str:
        ran.append(to)
        return f"mailed {to}"

    gated_pay, gated_mail = (grace.gate(floor="confirm")(in_world(act, world)) for act in (pay, mail))
    return node_of(world, lambda: gated_pay("ann", 5), lambda: gated_mail("ann"))


def only(grace):
    (approval,) = grace.approvals.pending()
    return approval


@both
async def test_a_question_is_listed_among_the_pending_approvals(inbox_of, world):
    """With its arguments and the thread that waits; the interrupt names it, and is otherwise as without an inbox."""
    grace, ran = inbox_of(), []
    out = await call(app_of(paying(grace, world, ran)), {"said": []}, world)
    approval = only(grace)
    assert ("langgraph", "interrupt") == (approval.origin, approval.waits)
    assert {"to": "ann", "euros": 5} == approval.arguments
    assert "1" == approval.note["thread_id"]
    asked = action_in(out)
    assert ("pay", approval.id, approval.arguments) == (asked["name"], asked["approval"], asked["args"])
    assert [] == ran


@both
async def test_without_an_inbox_nothing_is_filed(world):
    with runtime(reviewer=None) as grace:
        out = await call(app_of(paying(grace, world, [])), {"said": []}, world)
        assert "approval" not in action_in(out)
        assert [] == grace.approvals.pending()
        assert {} == grace.store.approvals.documents("langgraph waiting")


@both
async def test_an_answer_to_the_graph_is_written_to_the_inbox(inbox_of, world):
    """With the name that the answer states, or that of the framework."""
    grace, ran = inbox_of(), []
    app = app_of(paying(grace, world, ran))
    await call(app, {"said": []}, world)
    first = only(grace)
    await call(app, answer("approve", by="ana"), world)
    await call(app, answer("approve"), world)
    second = grace.approvals.history()[0]
    first = grace.approvals.get(first.id)
    assert ("done", "approved", "ana", "langgraph", False) == (
        first.state,
        first.decision.state,
        first.decision.actor.name,
        first.decision.actor.channel,
        first.decision.actor.authenticated,
    )
    assert ("mail", "langgraph") == (second.action, second.decision.actor.name)
    assert ([("ann", 5), "ann"], "paid 5 to ann") == (ran, first.outcome.result)


@both
@pytest.mark.parametrize("decide", ["reject", "withdraw", "expire"])
async def test_what_has_ended_in_the_inbox_does_not_run_when_the_graph_is_answered(inbox_of, let_pass, world, decide):
    """The first decision wins; the answer that came later is stated in the trace."""
    grace, ran = inbox_of(deadline=600.0 if decide == "expire" else None), []
    app = app_of(paying(grace, world, ran))
    await call(app, {"said": []}, world)
    if decide == "expire":
        let_pass(grace, 601.0)
    else:
        getattr(grace.approvals, decide)(only(grace).id, by="ana", reason="too much")
    expected = {"reject": gk.ActionCancelled, "withdraw": gk.ActionCancelled, "expire": gk.ActionTimedOut}[decide]
    with pytest.raises(expected):
        await call(app, answer("approve", by="ben"), world)
    assert [] == ran
    if decide == "reject":
        (stated,) = [
            entry for trace in grace.store.query() for entry in trace.grace["decisions"] if "ignored_answer" in entry
        ]
        assert {"action": "proceed", "by": "ben", "because": "rejected"} == stated["ignored_answer"]


@both
async def test_each_gate_gets_its_own_answers(inbox_of, world):
    """A gate that was answered several times asks as often again when the node runs again, though it is decided by then."""
    grace, ran = inbox_of(quorum=2, identity="stated"), []
    app = app_of(paying(grace, world, ran))
    out = await call(app, {"said": []}, world)
    first = only(grace).id
    out = await call(app, answer("approve", by="ana"), world)
    assert (first, "1 of 2") == (action_in(out)["approval"], out["__interrupt__"][0].value["problem"][:6])
    out = await call(app, answer("approve", by="Ana"), world)
    assert first == action_in(out)["approval"]
    assert [] == ran
    out = await call(app, answer("approve", by="ben"), world)
    second = only(grace).id
    assert second == action_in(out)["approval"] != first
    assert [("ann", 5)] == ran
    grace.approvals.approve(second, by="ana")
    out = await call(app, answer("approve", by="ben"), world)
    assert ["paid 5 to ann", "mailed ann"] == out["said"]
    assert [("ann", 5), "ann"] == ran


@both
async def test_a_vote_counts_for_the_arguments_that_were_shown(inbox_of, world):
    """An edit in the inbox between two answers drops the vote before it, and the next question shows the edited arguments."""
    grace, ran = inbox_of(quorum=2, identity="stated"), []
    app = app_of(paying(grace, world, ran))
    await call(app, {"said": []}, world)
    await call(app, answer("approve", by="ana"), world)
    grace.approvals.edit(only(grace).id, {"euros": 700}, by="ben")
    out = await call(app, answer("approve", by="carl"), world)
    assert "changed" in out["__interrupt__"][0].value["problem"]
    assert {"to": "ann", "euros": 700} == action_in(out)["args"]
    assert [] == ran
    await call(app, answer("approve", by="ana"), world)
    assert [("ann", 700)] == ran


@both
async def test_whoever_answers_must_be_entitled(inbox_of, world):
    """A group on the policy holds for answers to the graph; the question is asked again."""
    grace = inbox_of(policies={"pay": gk.Policy(floor="confirm", group="finance")}, reviewers={"ana": ["finance"]})
    ran = []
    app = app_of(paying(grace, world, ran))
    await call(app, {"said": []}, world)
    for by in ({}, {"by": "eve"}):
        out = await call(app, answer("approve", **by), world)
        assert "may not decide" in out["__interrupt__"][0].value["problem"]
        assert [] == ran
    await call(app, answer("approve", by="ana"), world)
    assert [("ann", 5)] == ran


@both
async def test_an_answer_that_arrives_twice_decides_nothing_else(inbox_of, world):
    """The word to look into the inbox, meant for one question, is no answer to the next."""
    grace, ran = inbox_of(), []
    app = app_of(paying(grace, world, ran))
    out = await call(app, {"said": []}, world)
    approval = only(grace)
    grace.approvals.approve(approval.id, by="ana")
    look = Command(resume={out["__interrupt__"][0].id: {"approvals": [approval.id]}})
    await call(app, look, world)
    out = await call(app, look, world)
    if "__interrupt__" in out:
        assert "mail" == action_in(out)["name"]
    assert ([("ann", 5)], "mail") == (ran, only(grace).action)
    out = await call(app, answer("approve"), world)
    assert ([("ann", 5), "ann"], ["paid 5 to ann", "mailed ann"]) == (ran, out["said"])


@both
@pytest.mark.parametrize("verb", ["skip", "respond", "retry"])
async def test_the_other_verbs_of_the_inbox_reach_the_node(inbox_of, world, verb):
    """Skipped, the gate returns None; an answer in words is raised; a retry asks anew."""
    grace, ran = inbox_of(), []
    app = app_of(paying(grace, world, ran))
    await call(app, {"said": []}, world)
    approval = only(grace)
    if verb == "respond":
        grace.approvals.respond(approval.id, "ask for the receipt", by="ana")
    else:
        getattr(grace.approvals, verb)(approval.id, by="ana")
    (resumed,) = grace.approvals.resume(app) if world == "sync" else await grace.approvals.aresume(app)
    assert [] == ran
    if verb == "skip":
        assert ("paused", "mail") == (resumed.state, only(grace).action)
    elif verb == "respond":
        assert ("raised", "ask for the receipt") == (resumed.state, resumed.error.user_input)
    else:
        again = only(grace)
        assert ("paused", "pay", True) == (resumed.state, again.action, again.id != approval.id)
        await call(app, answer("approve"), world)
        assert [("ann", 5)] == ran


@both
async def test_a_gate_that_pauses_inside_keeps_its_decision(inbox_of, world):
    """An action that asks something itself gives its claim back, and runs with the same edited arguments when that is answered."""
    grace, ran = inbox_of(), []

    def act(euros: int):
        ran.append((euros, interrupt("which account?")))
        return "done"

    gated = grace.gate(floor="confirm")(in_world(act, world))
    app = app_of(node_of(world, lambda: gated(5)))
    await call(app, {"said": []}, world)
    approval = only(grace)
    out = await call(app, answer("edit", edited_action={"name": "act", "args": {"euros": 7}}), world)
    assert ("which account?", "approved") == (out["__interrupt__"][0].value, grace.approvals.get(approval.id).state)
    await call(app, Command(resume="savings"), world)
    assert ([(7, "savings")], "done") == (ran, grace.approvals.get(approval.id).state)


def test_a_process_with_another_reviewer_follows_the_inbox(inbox_of):
    """A question that was filed is decided there, also where the node is run again without an inbox."""
    grace, ran = inbox_of(), []
    app = app_of(paying(grace, "sync", ran))
    app.invoke({"said": []}, CONFIG)
    grace.approvals.reject(only(grace).id, by="ana")
    other = gk.Grace(store=grace.store, evaluator=None, embedder=None, reviewer=None)
    app2 = app_of(paying(other, "sync", ran), saver=app.checkpointer)
    with pytest.raises(gk.ActionCancelled, match="ana refused"):
        app2.invoke(answer("approve"), CONFIG)
    assert [] == ran
