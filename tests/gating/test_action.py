"""Which functions can be gated, and what identifies their arguments and objects while somebody decides."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import math
import sqlite3
import types
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
from grace_kp.gating import Coverage, Unknown, digest_of
from grace_kp.record import HOST, Framework
from grace_kp.testing import ScriptedReviewer, capture, make_grace
from tests.gating.inboxes import approving, deciding, gated, runtime
from tests.integrations.langchain.conftest import Script

R = gk.InterventionResponse


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

    assert (5, 6) == (Bank().pay(5), Bank.fixed(6))
    assert [dict(request.arguments) for request in reviewer.requests] == [{"euros": 5}, {"euros": 6}]
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


@pytest.mark.parametrize("default", [{}, np.zeros(3), None])
def test_every_default_value_is_shown(default):
    reviewer = ScriptedReviewer("proceed")

    @make_grace(reviewer=reviewer).gate(floor="confirm")
    def act(it, option=default, *rest, **more):
        return option

    assert act(1) is default
    assert ["it", "option"] == list(reviewer.requests[0].arguments)
    assert reviewer.requests[0].arguments["option"] is default


class AsyncYielding:
    async def __call__(self, it):
        yield it


@pytest.mark.parametrize("action", [AsyncYielding(), functools.partial(AsyncYielding(), 1)])
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


def test_a_change_within_a_partial_is_found_and_a_policy_knows_it_by_its_function():
    items, ran = [1], []

    def change(request):
        items.append(2)
        return R("proceed")

    gated = make_grace(reviewer=change).gate(floor="confirm")(functools.partial(ran.append, items))
    with pytest.raises(gk.ActionCancelled):
        gated()
    assert [] == ran
    gated = make_grace(policies={"transfer*": "deny"}).gate(functools.partial(transfer, "ana"))
    with pytest.raises(gk.ActionDenied):
        gated(50)


def account_class(grace, **gate):

    class Account:
        def __init__(self, name):
            self.name, self.paid = name, []

        @grace.gate(floor="confirm", key="pay:{invoice}", **gate)
        def pay(self, invoice: str) -> str:
            self.paid.append(invoice)
            return self.name

    return Account


def is_another_action(grace, first, second):
    """Approve a call of the first method; the same call of the second is another one."""
    with pytest.raises(gk.ActionPending) as raised:
        first("r-1")
    grace.approvals.approve(raised.value.approval.id, by="ana")
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
    ran = []

    class Account:
        def __init__(self, name):
            self.name = name

        def pay(self, invoice: str) -> None:
            ran.append(self.name)

    first, _second = (grace.gate(floor="confirm", identity="name")(Account(name).pay) for name in "AB")
    approval = grace.approvals.approve(first("r-1").approval.id, by="ana")
    with pytest.raises(gk.GraceError, match="does not permit this call"):
        grace.approvals.execute(approval.id)
    assert [] == ran


def test_a_callable_object_is_carried_out_by_its_own_gate(tmp_path):
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="hand_over"))

    class Pay:
        def __init__(self, name):
            self.name = name

        def __call__(self, invoice: str) -> str:
            return f"{self.name} pays {invoice}"

    pay = grace.gate(floor="confirm", name="pay", identity="name")(Pay("A"))
    approval = grace.approvals.approve(pay("r-1").approval.id, by="ana")
    assert "A pays r-1" == grace.approvals.execute(approval.id)


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


def test_recorded_tools_leave_it_out_too(grace):
    act = action_with(RunnableConfig, [])
    with grace.run("go") as run:
        grace.tool(act)(1, {"secret": "quiet plum"})
        grace.tool(act)(x=1, config={"secret": "quiet plum"})
    assert [{"x": 1}] * 2 == [step.input for step in run.trace.steps if step.type == "tool_call"]
    assert "quiet plum" not in run.trace.to_json()


def test_gates_under_tools_of_langchain_run(grace, reviewer):
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
    with pytest.raises(gk.ActionPending) as raised:
        gated(1, {"first": object()})
    assert {"x"} == set(raised.value.approval.arguments)
    grace.approvals.approve(raised.value.approval.id, by="ana")
    gated(1, other)
    assert [(1, other)] == ran


both = pytest.mark.parametrize("is_async", [False, True])


def test_an_argument_that_cannot_be_checked_is_not_asked_about(client):
    reviewer = ScriptedReviewer()
    act, ran = gated(make_grace(unmeasured="notify", reviewer=reviewer), floor="confirm")
    with capture() as captured, pytest.raises(gk.ActionCancelled) as refused:
        act(client.connection)
    message = str(refused.value)
    assert "argument 'it' holds a sqlite3.Connection, whose contents cannot be seen" in message
    assert "@grace.gate(identity={...})" in message
    assert (0, []) == (reviewer.asked, ran)
    entry = captured.only.grace["decisions"][0]
    assert ("cancelled", "") == (entry["outcome"], entry["digest"])
    assert "sqlite3.Connection" in entry["unchecked"]


def test_where_nobody_is_asked_it_runs():
    """Without a question there is no consent that a change could get around; the entry says what was not checked."""
    act, _ = gated(make_grace(unmeasured="notify", on_notify=lambda request: None), floor="notify")
    with capture() as captured:
        assert "done" == act(iter([1]))
    entry = captured.only.grace["decisions"][0]
    assert ("executed", True) == (entry["outcome"], "list_iterator" in entry["unchecked"])
    denied, ran = gated(make_grace(unmeasured="notify"), floor="deny")
    with pytest.raises(gk.ActionDenied):
        denied(iter([1]))
    assert [] == ran


@pytest.fixture
def client():
    with contextlib.closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        account = types.SimpleNamespace(id="a1")
        yield types.SimpleNamespace(base_url="https://bank.example", connection=connection, account=account)


@both
@pytest.mark.parametrize("changed", ["used", "base_url"])
@pytest.mark.parametrize("identifier", ["base_url", lambda client: {"url": [client.base_url]}])
def test_the_user_names_what_identifies_an_argument(is_async, identifier, changed, client):
    """A client that points elsewhere after the decision is another one; the rest of the value is not looked at."""

    def reviewer(request):
        setattr(request.arguments["it"], changed, "https://evil.example")
        return R("proceed")

    grace = make_grace(unmeasured="notify", reviewer=reviewer)
    act, ran = gated(grace, is_async=is_async, floor="confirm", identity={"it": identifier})
    if changed == "used":
        assert "done" == act(client)
        assert [client] == ran
    else:
        with pytest.raises(gk.ActionCancelled, match="were changed"):
            act(client)
        assert [] == ran


def test_an_attribute_further_in_identifies_an_argument(client):
    act, ran = gated(make_grace(reviewer=ScriptedReviewer("proceed")), floor="confirm", identity={"it": "account.id"})
    assert ("done", [client]) == (act(client), ran)


@pytest.mark.parametrize(
    ("identifier", "problem"),
    [
        ("nothing", "identity= failed with AttributeError"),
        (lambda client: 1 / 0, "identity= failed with ZeroDivisionError"),
        (lambda client: client.connection, "sqlite3.Connection"),
    ],
)
def test_what_identifies_an_argument_must_be_there_and_checkable(identifier, problem, client):
    reviewer = ScriptedReviewer()
    act, ran = gated(make_grace(unmeasured="notify", reviewer=reviewer), floor="confirm", identity={"it": identifier})
    with pytest.raises(gk.ActionCancelled, match=f"argument 'it' .*{problem}"):
        act(client)
    assert (0, []) == (reviewer.asked, ran)


@pytest.mark.parametrize("identity", [None, "account", lambda owner: owner.account, {"self": "account"}])
def test_the_user_names_what_identifies_a_method_s_own_object(identity):
    """What else ticks, is large or cannot be looked into inside of it costs nothing and cancels nothing."""

    def reviewer(request):
        owner.ticks += 1
        owner.account = "a1" if owner.ticks == 1 else "eve"
        return R("proceed")

    class Bank:
        ticks = 0

        def __init__(self):
            self.account = "a1"
            self.records = [0] * 600_000
            self.connection = iter(())

        @make_grace(unmeasured="notify", reviewer=reviewer).gate(floor="confirm", identity=identity)
        def pay(self, euros):
            return f"{self.account} {euros}"

    owner = Bank()
    assert "a1 5" == owner.pay(5)
    with contextlib.nullcontext() if identity is None else pytest.raises(gk.ActionCancelled, match="were changed"):
        assert "eve 5" == owner.pay(5)


class Teller:
    def __init__(self):
        self.account = "a1"
        self.paid = []

    def pay(self, euros):
        self.paid.append(euros)
        return euros

    def __call__(self, euros):
        return self.pay(euros)


@pytest.mark.parametrize("of", [lambda teller: teller.pay, lambda teller: teller])
@pytest.mark.parametrize("identity", [None, "account", {"self": lambda teller: teller.account}])
def test_bound_methods_and_callable_objects(of, identity):
    teller = Teller()

    def reviewer(request):
        teller.account = "eve"
        return R("proceed")

    act = make_grace(unmeasured="notify", reviewer=reviewer).gate(of(teller), name="pay")
    identified = make_grace(unmeasured="notify", reviewer=reviewer).gate(
        floor="confirm", name="pay", identity=identity
    )(of(teller))
    assert 5 == act(5)
    if identity is None:
        assert 5 == identified(5)
    else:
        with pytest.raises(gk.ActionCancelled, match="were changed"):
            identified(5)


@pytest.mark.parametrize(
    ("identity", "problem"),
    [
        ("account", "a method's own object, and .*plain has none; use a mapping"),
        ({"other": "a"}, "names 'other', and .*plain has no such parameter; it has it"),
        ({"self": "a"}, "names 'self'"),
        ({"it": 5}, "identity of 'it' must be the name of an attribute or a callable, not 5"),
        ({"it": "not a name"}, "not 'not a name'"),
        ({"it": "a..b"}, "not 'a..b'"),
    ],
)
def test_an_identity_that_cannot_be_used_is_an_error_at_once(identity, problem):

    def plain(it): ...

    with pytest.raises(gk.GateError, match=problem):
        make_grace(unmeasured="notify").gate(identity=identity)(plain)


def test_default_values_are_checked():
    ran = []

    def reviewer(request):
        request.arguments["lines"].append(2)
        return R("proceed")

    def act(lines=[1]):  # noqa: B006
        ran.append(lines)

    with pytest.raises(gk.ActionCancelled, match="were changed"):
        make_grace(reviewer=reviewer).gate(floor="confirm")(act)()
    assert [] == ran


def test_plain_and_unknown_defaults_leave_the_digest_that_of_the_arguments():
    reviewer = ScriptedReviewer("proceed")

    @make_grace(unmeasured="notify", reviewer=reviewer).gate(floor="confirm")
    def act(it, number=1, text="a", flag=True, ratio=0.5, nothing=None, raw=b""): ...

    act("ana")
    assert digest_of({"it": "ana"}) == reviewer.requests[0].digest
    signature = inspect.Signature([inspect.Parameter("it", inspect.Parameter.KEYWORD_ONLY, default=Unknown)])
    assert digest_of({}) == Coverage(None, signature, None).digest({})
