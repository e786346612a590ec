"""Which functions can be gated: methods and partials; what acts piece by piece cannot."""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
from types import SimpleNamespace
from typing import Annotated, Any, Optional

import numpy as np
import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.callbacks import CallbackManager, Callbacks
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, tool
from langgraph.prebuilt import InjectedState, InjectedStore
from langgraph.store.memory import InMemoryStore

import grace_kp as gk
from grace_kp.record import HOST, Framework
from grace_kp.testing import ScriptedReviewer, make_grace
from tests.gating.inboxes import approving, deciding, runtime
from tests.integrations.langchain.conftest import Script


def test_methods_and_what_cannot_be_gated():
    reviewer = ScriptedReviewer("proceed", "proceed")
    grace = make_grace(reviewer=reviewer)

    class Bank:
        @grace.gate(floor="confirm")
        @grace.tool
        def pay(self, euros):
            return euros

        @grace.gate(floor="confirm")
        @staticmethod
        def fixed(euros):
            return euros

    assert Bank().pay(5) == 5
    assert Bank.fixed(6) == 6
    assert [dict(request.arguments) for request in reviewer.requests] == [{"euros": 5}, {"euros": 6}]
    with pytest.raises(gk.GateError, match="generator"):

        @grace.gate
        def stream():
            yield 1

    with pytest.raises(gk.GateError, match="class"):
        grace.gate(type("A", (), {}))
    with pytest.raises(gk.GateError, match="release"):

        @grace.agent(release=True)
        async def writer():
            yield 1


@pytest.mark.parametrize("in_program", [False, True])
def test_a_call_that_does_not_fit_fails_before_anybody_is_asked(in_program, monkeypatch):
    """In a program that may run again, the calls behind it are not kept waiting."""
    steps = []
    program = SimpleNamespace(begin=lambda: steps.append("begin"), end=lambda: steps.append("end"))
    adapter = SimpleNamespace(resumable=lambda: program if in_program else None)
    fake = Framework("fake", package="sys", load=lambda: adapter, signals={})
    monkeypatch.setattr(HOST, "frameworks", {"fake": fake})
    reviewer = ScriptedReviewer("proceed")
    pay = make_grace(reviewer=reviewer).gate(floor="confirm")
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'dollars'"):
        pay(lambda euros: euros)(dollars=5)
    assert [] == steps
    with pytest.raises(TypeError, match="missing a required argument"):
        pay(math.sqrt)()
    assert [] == reviewer.requests
    assert (["begin", "end"] if in_program else []) == steps


R = gk.InterventionResponse


@pytest.mark.parametrize("default", [{}, np.zeros(3), None])
def test_every_default_value_is_shown(default):
    reviewer = ScriptedReviewer("proceed")

    @make_grace(reviewer=reviewer).gate(floor="confirm")
    def act(it, option=default, *rest, **more):
        return option

    assert act(1) is default
    assert ["it", "option"] == list(reviewer.requests[0].arguments)
    assert reviewer.requests[0].arguments["option"] is default


class Yielding:
    def __call__(self, it):
        yield it


class AsyncYielding:
    async def __call__(self, it):
        yield it


@pytest.mark.parametrize("action", [AsyncYielding(), functools.partial(Yielding(), 1)])
def test_a_callable_object_that_yields_cannot_be_gated(action):
    with pytest.raises(gk.GateError, match="is a generator"):
        make_grace().gate(floor="confirm")(action)


def transfer(account, euros, *, note=""):
    return f"{euros} to {account}{note}"


async def transfer_async(account, euros, *, note=""):
    return transfer(account, euros, note=note)


@pytest.mark.parametrize(
    "action",
    [
        functools.partial(transfer, "ana"),
        functools.partial(functools.partial(transfer, note="!"), "ana", note=""),
        functools.partial(transfer_async, "ana"),
    ],
)
def test_the_arguments_of_a_partial_are_shown_and_can_be_changed(action):
    reviewer = ScriptedReviewer("proceed", R("modify", modified={"account": "ben"}))
    gated = make_grace(reviewer=reviewer).gate(floor="confirm")(action)
    call = (lambda: asyncio.run(gated(50))) if inspect.iscoroutinefunction(gated) else (lambda: gated(50))
    assert "50 to ana" == call()
    assert {"account": "ana", "euros": 50, "note": ""} == reviewer.requests[0].arguments
    assert "50 to ben" == call()


def test_a_policy_knows_a_partial_by_the_name_of_its_function():
    gated = make_grace(policies={"transfer*": "deny"}).gate(functools.partial(transfer, "ana"))
    with pytest.raises(gk.ActionDenied):
        gated(50)


def test_a_change_within_an_argument_of_a_partial_is_found():
    items, ran = [1], []

    def change(request):
        items.append(2)
        return R("proceed")

    gated = make_grace(reviewer=change).gate(floor="confirm")(functools.partial(ran.append, items))
    with pytest.raises(gk.ActionCancelled):
        gated()
    assert [] == ran


def account_class(grace, **gate):
    """A class with a gated method."""

    class Account:
        def __init__(self, name):
            self.name, self.paid = name, []

        @grace.gate(floor="confirm", key="pay:{invoice}", **gate)
        def pay(self, invoice: str) -> str:
            self.paid.append(invoice)
            return self.name

    return Account


def asked(grace):
    """The one pending request."""
    (approval,) = grace.approvals.pending()
    return approval


def is_another_action(grace, first, second):
    """Approve a call of the first method; the same call of the second is another one."""
    with pytest.raises(gk.ActionPending):
        first("r-1")
    grace.approvals.approve(asked(grace).id, by="ana")
    with pytest.raises(gk.KeyReused, match="other arguments"):
        second("r-1")


def test_an_approval_of_one_account_is_not_claimed_by_another(tmp_path):
    """Key and arguments are the same; the account is not. The reviewer sees which one it is."""
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="raise"))
    first, second = map(account_class(grace, identity="name"), ("A", "B"))
    is_another_action(grace, first.pay, second.pay)
    assert "A" == grace.approvals.history()[0].arguments["self"]["identity"]
    assert [] == second.paid
    again = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="raise"))
    assert "A" == account_class(again, identity="name")("A").pay("r-1")


def test_classes_that_share_a_method_are_told_apart(tmp_path):
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="raise"))
    base = account_class(grace, identity="name")
    savings, current = type("Savings", (base,), {})("A"), type("Current", (base,), {})("A")
    is_another_action(grace, savings.pay, current.pay)


@pytest.mark.parametrize("wait", ["raise", "hand_over"])
def test_an_object_that_nothing_identifies_needs_a_process_that_waits(wait, tmp_path):
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait=wait))
    with pytest.raises(gk.ActionCancelled, match=r"self: is the object whose method is called; .*identity="):
        account_class(grace)("A").pay("r-1")
    assert [] == grace.approvals.pending()


def test_while_its_process_waits_it_needs_no_identity():
    grace = runtime(reviewer=gk.InboxReviewer())
    ana = approving(grace)
    assert "A" == account_class(grace)("A").pay("r-1")
    (approval,) = ana.leaves()
    assert (("self",), ()) == (approval.unencoded, approval.not_covered)


def test_what_identifies_it_cannot_be_edited():
    grace = runtime(reviewer=gk.InboxReviewer())
    problems = []

    def decide(approvals, name):
        try:
            approvals.edit(name, {"self": {"type": "Account", "identity": "B"}}, by="ana")
        except gk.ApprovalError as error:
            problems.append(str(error))
        approvals.approve(name, by="ana")

    ana = deciding(grace, decide)
    assert "A" == account_class(grace, identity="name")("A").pay("r-1")
    ana.leaves()
    assert "has no parameter 'self'" in problems[0]


def test_an_account_that_became_another_while_it_waited_does_not_pay():
    grace = runtime(reviewer=gk.InboxReviewer())
    account = account_class(grace, identity="name")("A")

    def decide(approvals, name):
        account.name = "B"
        approvals.approve(name, by="ana")

    ana = deciding(grace, decide)
    with pytest.raises(gk.ActionCancelled, match="changed"):
        account.pay("r-1")
    ana.leaves()
    assert [] == account.paid


def test_a_class_is_identified_by_its_name(tmp_path):
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="raise"))

    class Bank:
        @classmethod
        @grace.gate(floor="confirm", key="close:{branch}")
        def close(cls, branch: str) -> str:
            return cls.__name__

    class Other(Bank):
        pass

    is_another_action(grace, Bank.close, Other.close)
    assert "Bank" == Bank.close("r-1")


def test_the_bound_methods_of_two_objects_are_told_apart(tmp_path):
    """Also where an approved action is carried out later: the last one that was defined is not taken for the first."""
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="hand_over"))

    class Account:
        def __init__(self, name):
            self.name, self.paid = name, []

        def pay(self, invoice: str) -> None:
            self.paid.append(invoice)

    first, second = Account("A"), Account("B")
    gates = [grace.gate(floor="confirm", identity="name")(account.pay) for account in (first, second)]
    gates[0]("r-1")
    grace.approvals.approve(asked(grace).id, by="ana")
    with pytest.raises(gk.GraceError, match="does not permit this call"):
        grace.approvals.execute(grace.approvals.history()[0].id)
    assert ([], []) == (first.paid, second.paid)


def test_a_callable_object_is_carried_out_by_its_own_gate(tmp_path):
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="hand_over"))

    class Pay:
        def __init__(self, name):
            self.name = name

        def __call__(self, invoice: str) -> str:
            return f"{self.name} pays {invoice}"

    pay = grace.gate(floor="confirm", name="pay", identity="name")(Pay("A"))
    pay("r-1")
    name = asked(grace).id
    grace.approvals.approve(name, by="ana")
    assert "A pays r-1" == grace.approvals.execute(name)


pytest.importorskip("langchain", reason="needs the extra langchain")


class Mark(InjectedToolArg):
    """A way of a user's own to fill in a parameter."""


Runtime = ToolRuntime[Any, Any]
FILLED_IN = {
    "runtime": ToolRuntime, "generic runtime": Runtime, "optional runtime": Optional["ToolRuntime"], "text": "ToolRuntime",
    "union": ToolRuntime | None, "config": RunnableConfig, "annotated config": Annotated[RunnableConfig, "x"],
    "state": Annotated[dict, InjectedState], "field": Annotated[list, InjectedState("messages")],
    "store": Annotated[Any, InjectedStore()], "call id": Annotated[str, InjectedToolCallId], "own": Annotated[str, Mark],
    "callbacks": Callbacks, "manager": CallbackManager,
}  # fmt: skip
OTHERS = {
    "a dict": dict, "no type": None, "a text": str, "optional config": RunnableConfig | None, "annotated": Annotated[dict, "InjectedState"],
    "text that cannot be resolved": "NoSuchType",
}  # fmt: skip


def action_with(declared, ran):
    def act(x, config=None):
        ran.append((x, config))
        return "acted"

    act.__annotations__ = {"x": int} if declared is None else {"x": int, "config": declared}
    return act


@pytest.fixture
def reviewer():
    return ScriptedReviewer("proceed")


@pytest.fixture
def grace(reviewer):
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=reviewer) as made:
        yield made


@pytest.mark.parametrize("declared", FILLED_IN.values(), ids=FILLED_IN)
def test_what_is_filled_in_is_left_out(grace, reviewer, declared):
    """Its value may change while somebody decides, and cannot be read at all."""
    ran, value = [], (each for each in ())
    with grace.run("go") as run:
        grace.gate(action_with(declared, ran), floor="confirm")(1, value)
    (entry,) = run.trace.decisions
    assert ({"x": 1}, {"x": 1}, [(1, value)]) == (reviewer.requests[0].arguments, entry.arguments, ran)


@pytest.mark.parametrize("declared", OTHERS.values(), ids=OTHERS)
def test_a_name_alone_hides_nothing(grace, reviewer, declared):
    """A caller who chooses the value of a parameter called `config` does not get past the reviewer with it."""
    grace.gate(action_with(declared, []), floor="confirm")(1, {"to": "eve"})
    assert {"x": 1, "config": {"to": "eve"}} == reviewer.requests[0].arguments


def test_an_edit_cannot_fill_it_in():
    ran = []
    grace = make_grace(reviewer=lambda _: R("modify", modified={"config": {"forged": 1}}))
    with pytest.raises(gk.ActionCancelled, match="no parameter 'config'"):
        grace.gate(action_with(RunnableConfig, ran), floor="confirm")(1, {})
    assert [] == ran


@pytest.mark.parametrize("declared", FILLED_IN.values(), ids=FILLED_IN)
def test_recorded_tools_leave_it_out_too(grace, declared):
    with grace.run("go") as run:
        grace.tool(action_with(declared, []))(1, {"secret": "quiet plum"})
        grace.tool(action_with(declared, []))(x=1, config={"secret": "quiet plum"})
    assert [{"x": 1}] * 2 == [step.input for step in run.trace.steps if step.type == "tool_call"]
    assert "quiet plum" not in run.trace.to_json()


def test_gates_under_tools_of_langchain_run(grace, reviewer):
    """The agent fills everything in, and the reviewer sees the argument of the model."""
    ran = []

    @tool
    @grace.gate(floor="confirm")
    def act(
        x: int,
        runtime: ToolRuntime,
        config: RunnableConfig,
        state: Annotated[dict, InjectedState],
        store: Annotated[Any, InjectedStore()],
        call_id: Annotated[str, InjectedToolCallId],
        callbacks: Callbacks = None,
    ) -> str:
        """Act."""
        ran.append((x, runtime.tool_call_id, call_id, len(state["messages"]), store is not None, "metadata" in config))
        return "acted"

    script = [AIMessage("", tool_calls=[{"name": "act", "args": {"x": 1}, "id": "c"}]), AIMessage("done")]
    agent = create_agent(Script(responses=script), [act], store=InMemoryStore())
    agent.invoke({"messages": [("user", "go")]})
    assert ({"x": 1}, [(1, "c", "c", 2, True, True)]) == (reviewer.requests[0].arguments, ran)


def test_an_inbox_keeps_none_of_it():
    """Whoever carries the request out fills it in anew."""
    grace, ran, other = runtime(reviewer=gk.InboxReviewer(wait="raise")), [], {"second": object()}
    gated = grace.gate(action_with(RunnableConfig, ran), floor="confirm", key="act:{x}")
    with pytest.raises(gk.ActionPending):
        gated(1, {"first": object()})
    assert {"x"} == set(asked(grace).arguments)
    grace.approvals.approve(asked(grace).id, by="ana")
    gated(1, other)
    assert [(1, other)] == ran
