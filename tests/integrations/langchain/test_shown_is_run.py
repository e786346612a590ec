"""What a person is shown of a tool call is what the tool's function gets, as often as it was decided; what cannot run is shown to nobody."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import gzip
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic.v1
import pytest

pytest.importorskip("langchain", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain.tools import ToolRuntime  # noqa: TC002
from langchain_core.callbacks import CallbackManagerForToolRun  # noqa: TC002
from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig  # noqa: TC002
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, Tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.prebuilt import InjectedState
from langgraph.types import Command
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler, GraceMiddleware

from .conftest import Script, both, edit, runtime, says, statuses

APPROVE, REJECT = {"type": "approve"}, {"type": "reject"}
QUESTION = {"messages": [("user", "Do it.")]}


class Conversation:
    """An agent with one gated tool, whose model makes one turn of calls. `again` is another process with the same checkpoints."""

    def __init__(self, grace, used, *calls, ids=None, saver=None, floor="confirm", more=(), behind=()):
        ids = ids or [f"call_{number}" for number in range(len(calls))]
        proposed = [{"name": name, "args": args, "id": id_} for (name, args), id_ in zip(calls, ids, strict=True)]
        self.script, self.tools, self.floor = [AIMessage("", tool_calls=proposed), "done"], used, floor
        self.more, self.behind, self.gates = more, behind, {}
        self.saver, self.grace = InMemorySaver() if saver is None else saver, grace
        self.again()

    def again(self):
        replies = [AIMessage(one) if isinstance(one, str) else one for one in self.script]
        self.agent = create_agent(
            Script(responses=replies),
            self.tools,
            middleware=[*self.more, GraceMiddleware(self.grace, {"*": self.floor, **self.gates}), *self.behind],
            checkpointer=self.saver or None,
        )

    async def call(self, given, world="sync"):
        config = {"configurable": {"thread_id": "1"}, "callbacks": [GraceCallbackHandler(self.grace)]}
        self.out = self.agent.invoke(given, config) if world == "sync" else await self.agent.ainvoke(given, config)

    @property
    def shown(self):
        return [action["args"] for action in self.out["__interrupt__"][0].value["action_requests"]]

    async def answer(self, *decisions, world="sync"):
        await self.call(Command(resume={"decisions": list(decisions)}), world)

    @property
    def results(self):
        return [(one.content, one.status) for one in self.out["messages"] if isinstance(one, ToolMessage)]

    @property
    def decisions(self):
        self.grace.flush()
        return self.grace.store.query(limit=1)[0].decisions


class Transfer(BaseModel):
    to: str
    euros: int
    account: str = "savings"

    @field_validator("euros")
    @classmethod
    def at_least_50(cls, euros):
        return max(euros, 50)


class Cents(BaseModel):
    euros: int
    id: str = Field(default_factory=lambda: f"id {next(Cents.numbers)}")

    @field_validator("euros")
    @classmethod
    def in_cents(cls, euros):
        return euros * 100


class Color(enum.Enum):
    RED = "red"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]


@dataclasses.dataclass
class Box:
    size: int


class Typed(BaseModel):
    when: datetime.date
    at: datetime.datetime
    price: decimal.Decimal
    color: Color
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    boxes: list[Box]
    data: bytes = b"x"
    tags: set[str] = {"a"}


class Aliased(BaseModel):
    model_config = ConfigDict(extra="allow")
    from_: str = Field(alias="from")


class Whole(BaseModel):
    a: int
    b: int = 0

    @model_validator(mode="before")
    @classmethod
    def counted(cls, values):
        return {**values, "a": int(values["a"]) + 1}

    @model_validator(mode="after")
    def doubled(self):
        self.b = self.a * 2
        return self


class Secret(BaseModel):
    password: SecretStr
    user: str = "ann"


class Lazy(BaseModel):
    name: str
    _length: int | None = None

    def __repr__(self):
        self._length = len(self.name)
        return f"Lazy({self._length})"


class Holder(BaseModel):
    lazy: Lazy


SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string", "enum": ["ann", "bob"]}, "n": {"type": "integer", "maximum": 10}},
    "required": ["to"],
    "additionalProperties": False,
}

REFERRING = {
    "type": "object",
    "properties": {"o": {"$ref": "#/$defs/o"}},
    "$defs": {"o": {"type": "object", "properties": {"n": {"type": "integer", "maximum": 10}}}},
}


class Limited(BaseModel):
    n: int = Field(le=10)


def tool_with(schema, ran, name="act"):
    def act(**arguments):
        ran.append(arguments)
        return "acted"

    return StructuredTool(name=name, description="Act.", args_schema=schema, func=act)


async def begin(grace, schema, args, world="sync", **options):
    """A conversation after its first message, in which a model proposed a call; and the arguments that it will have run with."""
    ran = []
    talk = Conversation(grace, [tool_with(schema, ran)], ("act", args), **options)
    await talk.call(QUESTION, world)
    return talk, ran


CASES = {
    "defaults and validators": (Transfer, {"to": "ann", "euros": 5}),
    "coerced": (Whole, {"a": "1"}),
    "types": (
        Typed,
        {
            "when": "2026-01-02", "at": "2026-01-02T03:04:05+02:00", "price": "1.10", "color": "red",
            "pet": {"kind": "cat"}, "boxes": [{"size": 1}],
        },
    ),
    "an alias and more": (Aliased, {"from": "eve", "more": [1]}),
    "a secret": (Secret, {"password": "quiet plum"}),
    "lazy attributes": (Holder, {"lazy": {"name": "ann"}}),
    "JSON Schema": (SCHEMA, {"to": "ann"}),
}  # fmt: skip


@both
@pytest.mark.parametrize("case", CASES)
async def test_a_tool_gets_what_a_reviewer_was_asked_about(case, world):
    """Without a checkpointer the values are the same ones, in their types."""
    schema, args = CASES[case]
    ran, asked = [], []

    def reviewer(request):
        asked.append(dict(request.arguments))
        return "proceed"

    with runtime(reviewer=reviewer) as grace:
        talk = Conversation(grace, [tool_with(schema, ran)], ("act", args), saver=False)
        await talk.call(QUESTION, world)
        assert ([("acted", "success")], ran) == (talk.results, asked)
        assert ["executed"] == [entry.outcome for entry in talk.decisions]


@both
@pytest.mark.parametrize("case", CASES)
async def test_another_process_runs_what_was_shown(grace, case, world):
    """The checkpoint keeps what the tool made of the arguments, and no validator runs again."""
    schema, args = CASES[case]
    ran = []
    expected = schema(**args) if case != "JSON Schema" else None
    talk = Conversation(grace, [tool_with(schema, ran)], ("act", args))
    await talk.call(QUESTION, world)
    shown = talk.shown[0]
    talk.again()
    await talk.answer(APPROVE, world=world)
    assert [("acted", "success")] == talk.results
    if expected is None:
        assert [args] == ran
    else:
        values = {name: getattr(expected, name) for name in shown}
        assert repr(values)  # fills in what is lazy
        assert values == ran[0]
    assert ["executed"] == [entry.outcome for entry in talk.decisions]


async def test_a_default_is_made_once(grace):
    Cents.numbers = iter(range(9))
    talk, ran = await begin(grace, Cents, {"euros": "5"})
    for _ in range(2):
        talk.again()
    assert [{"euros": 500, "id": "id 0"}] == talk.shown
    await talk.answer(APPROVE)
    assert [{"euros": 500, "id": "id 0"}] == ran
    (entry,) = talk.decisions
    assert {"euros": 500, "id": "id 0"} == entry.arguments


@both
async def test_an_edit_runs_as_it_stands(grace, world):
    """Also where the tool converts what the model writes: an edit replaces what was shown, which is converted already."""
    Cents.numbers = iter(range(9))
    talk, ran = await begin(grace, Cents, {"euros": 5}, world)
    await talk.answer(edit("act", euros=300, id="id 0"), world=world)
    (entry,) = talk.decisions
    assert [{"euros": 300, "id": "id 0"}] == ran == [entry.executed_arguments]
    assert "executed_modified" == entry.outcome


@pytest.mark.parametrize(
    ("schema", "first", "wrong", "problem", "right"),
    [
        (Transfer, {"to": "ann", "euros": 70}, {"to": "ann", "euros": 5, "account": "x"}, "would run with", {"euros": 60}),
        (SCHEMA, {"to": "ann"}, {"to": "ann", "n": 50}, "50 is greater than the maximum of 10", {"n": 3}),
        (SCHEMA, {"to": "ann"}, {"to": "eve"}, "'eve' is not one of", {"to": "bob"}),
        (SCHEMA, {"to": "ann"}, {"to": "ann", "x": 1}, "no argument 'x'", {"to": "bob"}),
        (Whole, {"a": 1}, {"a": "2", "b": 1}, "valid integer", None),
    ],
)  # fmt: skip
async def test_an_edit_must_fit_the_whole_schema(grace, schema, first, wrong, problem, right):
    """A tool that would make another value of it would run with something that nobody was shown. It is asked again, also in another process."""
    talk, ran = await begin(grace, schema, first)
    talk.again()
    await talk.answer(edit("act", **wrong))
    assert problem in talk.out["__interrupt__"][0].value["problem"]
    assert [] == ran
    if right is not None:
        wanted = {**talk.shown[0], **right}
        await talk.answer(edit("act", **wanted))
        assert [wanted] == ran


async def test_an_edit_runs_with_nothing_that_nobody_saw(grace):
    """A reviewer who leaves out an argument is asked again, with what would run; a default that was shown stays."""
    talk, ran = await begin(grace, Transfer, {"to": "ann", "euros": 70, "account": "checking"})
    await talk.answer(edit("act", to="bob", euros=70))
    problem = talk.out["__interrupt__"][0].value["problem"]
    assert ([], True, True) == (ran, "lacks account" in problem, "'account': 'savings'" in problem)
    await talk.answer(edit("act", to="bob", euros=70, account="savings"))
    assert [{"to": "bob", "euros": 70, "account": "savings"}] == ran
    talk = Conversation(grace, [tool_with(Transfer, ran)], ("act", {"to": "ann", "euros": 70}))
    await talk.call(QUESTION)
    await talk.answer(edit("act", to="eve", euros=70))
    assert {"to": "eve", "euros": 70, "account": "savings"} == ran[1]


async def test_an_edit_may_leave_a_secret_as_it_is(grace):
    talk, ran = await begin(grace, Secret, {"password": "quiet plum"})
    talk.again()
    await talk.answer(edit("act", **{**talk.shown[0], "user": "eve"}))
    assert [{"password": SecretStr("quiet plum"), "user": "eve"}] == ran


class Pets(BaseModel):
    fees: dict[str, decimal.Decimal]
    pets: list[Cat]

    @field_validator("fees")
    @classmethod
    def doubled(cls, fees):
        return {name: fee * 2 for name, fee in fees.items()}

    @field_validator("pets")
    @classmethod
    def older(cls, pets):
        return [Cat(kind="cat", lives=pet.lives + 1) for pet in pets]


async def test_an_edit_has_the_types_of_the_function(grace):
    talk, ran = await begin(grace, Pets, {"fees": {"a": "1.5"}, "pets": [{"kind": "cat"}]})
    await talk.answer(edit("act", fees={"a": "7.5"}, pets=[{"kind": "cat", "lives": 3}]))
    assert [{"fees": {"a": decimal.Decimal("7.5")}, "pets": [Cat(kind="cat", lives=3)]}] == ran


class Named(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    from_: str = Field(alias="from")
    to: str = Field("bob", validation_alias=AliasChoices("recipient", "payee"))


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    n: int


class Older(pydantic.v1.BaseModel):
    day: datetime.date
    n: int = 1

    class Config:
        extra = "allow"


@pytest.mark.parametrize(
    ("schema", "args", "changes", "ran"),
    [
        (Named, {"from": "ann"}, {"to": "eve"}, {"from_": "ann", "to": "eve"}),
        (Open, {"n": 1, "more": {"b": 1, "a": 2}}, {"more": {"a": 2, "b": 1}}, {"n": 1, "more": {"a": 2, "b": 1}}),
        (Older, {"day": "2026-01-02", "more": 1}, {"day": "2027-03-04"}, {"day": datetime.date(2027, 3, 4), "n": 1, "more": 1}),
    ],
)  # fmt: skip
async def test_an_edit_goes_by_what_was_shown(grace, schema, args, changes, ran):
    """Aliases, additional arguments and models of pydantic 1 do not keep a person from changing another argument."""
    talk, found = await begin(grace, schema, args)
    await talk.answer(edit("act", **{**talk.shown[0], **changes}))
    assert ([ran], list(ran)) == (found, list(found[0]))
    assert [list(value) for value in ran.values() if isinstance(value, dict)] == [
        list(value) for value in found[0].values() if isinstance(value, dict)
    ]


def test_without_jsonschema_an_edit_is_not_taken(grace, monkeypatch):
    import sys

    from grace_kp.integrations.langchain._tool_schema import schema_problem

    monkeypatch.setitem(sys.modules, "jsonschema", None)
    assert "pip install 'grace-kp[approvals]'" in schema_problem(tool_with(SCHEMA, []), {"to": "ann"})


INVALID = {
    "wrong type": (Transfer, {"to": "ann", "euros": "many"}, "Please fix"),
    "missing": (Transfer, {"to": "ann"}, "Please fix"),
    "JSON Schema": (SCHEMA, {"to": "eve"}, "Please fix"),
    "unknown tool": (None, {"x": 1}, "not a valid tool"),
}


@both
@pytest.mark.parametrize("floor", ["confirm", "silent"])
@pytest.mark.parametrize("place", ["interrupt", "reviewer", "inbox"])
@pytest.mark.parametrize("case", INVALID)
async def test_a_call_that_cannot_run_is_put_to_nobody(case, place, floor, world):
    """The model gets the tool's own error, the trace a failed call, and nothing says that it ran."""
    schema, args, problem = INVALID[case]
    asked, ran = [], []
    reviewers = {"interrupt": None, "inbox": gk.InboxReviewer(deadline="1h"), "reviewer": asked.append}
    with runtime(reviewer=reviewers[place]) as grace:
        used = [tool_with(schema or Transfer, ran)]
        call = ("act" if schema else "action", args)
        talk = Conversation(grace, used, call, floor=floor, saver=False if place == "reviewer" else None)
        await talk.call(QUESTION, world)
        assert "__interrupt__" not in talk.out
        ((text, status),) = talk.results
        assert (True, "error", [], []) == (problem in text, status, asked, ran)
        assert [] == talk.decisions
        assert [(call[0], "error")] == statuses(grace.store.query()[0])
        if place == "inbox":
            assert [] == grace.approvals.history()


class Counting(BaseTool):
    """A tool of its own kind, which counts in its fields."""

    name: str = "act"
    description: str = "Act."
    calls: int = 0
    ran: list = Field(default_factory=list)

    def _run(self, x: str, y: int = 3, run_manager: CallbackManagerForToolRun | None = None) -> str:
        self.calls += 1
        assert run_manager is not None
        self.ran.append({"x": x, "y": y})
        return "acted"


class NeedsState(BaseModel):
    x: int
    state: Annotated[dict, InjectedState]

    @model_validator(mode="after")
    def of_a_conversation(self):
        if not self.state:
            raise ValueError("no state")
        return self


@both
async def test_a_validator_that_needs_the_state_runs_where_nobody_is_asked(grace, world):
    """Elsewhere the call is refused with the reason; a value of a wrong type is the model's error."""
    ran = []

    @tool(args_schema=NeedsState)
    def act(x, state):
        """Act."""
        ran.append(x)
        return "acted"

    quiet = Conversation(grace, [act], ("act", {"x": 1}), floor="silent")
    await quiet.call(QUESTION, world)
    assert ([1], [("acted", "success")]) == (ran, quiet.results)
    talk = Conversation(grace, [act], ("act", {"x": 1}))
    await talk.call(QUESTION, world)
    assert "without what LangChain fills in (state): " in talk.results[0][0]
    talk = Conversation(grace, [act], ("act", {"x": "many"}))
    await talk.call(QUESTION, world)
    assert ([1], True) == (ran, "Please fix" in talk.results[0][0])


@pytest.mark.parametrize("floor", ["silent", "confirm"])
async def test_a_runtime_may_have_no_type(grace, floor):
    """LangGraph goes by the name; it is no argument of the call, nor of an edit."""
    ran = []

    @tool
    def act(x: int, runtime) -> str:
        """Act."""
        ran.append((x, runtime.tool_call_id))
        return "acted"

    talk = Conversation(grace, [act], ("act", {"x": 1, "runtime": "forged"}), floor=floor)
    await talk.call(QUESTION)
    if floor == "confirm":
        assert [{"x": 1}] == talk.shown
        await talk.answer(edit("act", x=2))
    assert [(1 if floor == "silent" else 2, "call_0")] == ran


class Config(BaseModel):
    config: str
    n: int = 1


NAMED_CONFIG = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("config", "callbacks", "run_manager", "n")},
    "required": ["config", "n"],
}


@pytest.mark.parametrize("floor", ["silent", "confirm"])
@pytest.mark.parametrize("schema", [Config, NAMED_CONFIG])
async def test_what_langchain_takes_for_itself_is_not_shown(grace, schema, floor):
    ran, given = [], {"config": "prod.yaml", "n": 1 if schema is Config else "a"}
    talk = Conversation(grace, [tool_with(schema, ran)], ("act", given), floor=floor)
    await talk.call(QUESTION)
    if floor == "confirm":
        assert [{"n": given["n"]}] == talk.shown
        await talk.answer(APPROVE)
    assert [{"n": given["n"]}] == ran == [entry.arguments for entry in talk.decisions]


class Mutable(BaseModel):
    tags: set[str]
    pet: Cat
    box: Box


class Parsing(Counting):
    def _parse_input(self, tool_input, tool_call_id):
        return {**tool_input, "y": 7}


class Invoking(Counting):
    def invoke(self, call, config=None, **kwargs):
        return super().invoke({**call, "args": {"x": "other"}}, config, **kwargs)


class Variadic(Counting):
    def _run(self, *args: Any, **kwargs: Any) -> str:
        self.calls += 1
        self.ran.append({**kwargs, "y": len(args)})
        return "acted"


async def test_variable_parameters_have_no_default(grace):
    used = Variadic()
    talk = Conversation(grace, [used], ("act", {"x": "a"}), floor="silent")
    await talk.call(QUESTION)
    assert [{"x": "a", "y": 0}] == used.ran


class Hiding(Counting):
    def __getattribute__(self, name):
        return BaseTool._parse_input.__get__(self) if name == "_parse_input" else super().__getattribute__(name)


class Running(Counting):
    def run(self, tool_input, *args, **kwargs):
        self.ran.append("other")
        return ToolMessage("acted", tool_call_id="call_0")


@both
@pytest.mark.parametrize(("kind", "y"), [(Counting, 3), (Parsing, 7)])
async def test_tools_of_other_kinds_run_with_what_was_shown(grace, kind, y, world):
    used = kind()
    talk = Conversation(grace, [used], ("act", {"x": "a"}))
    await talk.call(QUESTION, world)
    assert [{"x": "a", "y": y}] == talk.shown
    await talk.answer(APPROVE, world=world)
    assert (1, [{"x": "a", "y": y}]) == (used.calls, used.ran)


@both
@pytest.mark.parametrize("saver", [None, False])
@pytest.mark.parametrize("kind", [Invoking, Running, Hiding])
async def test_a_tool_that_cannot_be_held_to_what_is_shown_is_refused(kind, saver, world):
    asked, used = [], kind()
    with runtime(reviewer=asked.append) as grace:
        talk = Conversation(grace, [used], ("act", {"x": "a"}), saver=saver)
        await talk.call(QUESTION, world)
        ((text, status),) = talk.results
        assert ("error", [], []) == (status, used.ran, asked)
        assert "its class replaces " in text


async def test_a_value_that_no_checkpoint_can_keep_is_refused(grace):
    class Live(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        thing: Any = Field(default_factory=object)

    talk, ran = await begin(grace, Live, {})
    assert ([], "error") == (ran, talk.results[0][1])
    assert "the checkpoint cannot keep the argument 'thing'" in talk.results[0][0]
    quiet = Conversation(grace, [tool_with(Live, ran)], ("act", {}), floor="silent")
    await quiet.call(QUESTION)
    assert [("acted", "success")] == quiet.results


@both
async def test_a_tool_of_one_argument_takes_one(grace, world):
    ran = []
    used = Tool(name="act", description="Act.", func=lambda text: ran.append(text) or "acted")
    talk = Conversation(grace, [used], ("act", {"__arg1": "a"}))
    await talk.call(QUESTION, world)
    assert [{"__arg1": "a"}] == talk.shown
    await talk.answer(APPROVE, world=world)
    assert ["a"] == ran
    wrong = Conversation(grace, [used], ("act", {"a": "1", "b": "2"}))
    await wrong.call(QUESTION, world)
    assert "`act` refused its arguments when they were proposed; it was not run." == wrong.results[0][0]


@both
async def test_what_langchain_fills_in_is_no_argument(grace, world):
    """The model cannot choose it, the reviewer does not see it, and the tool gets it."""
    ran = []

    @tool
    def act(
        x: int,
        state: Annotated[dict, InjectedState],
        runtime: ToolRuntime,
        config: RunnableConfig,
        call_id: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Act."""
        ran.append((x, len(state["messages"]), runtime.tool_call_id, call_id, "callbacks" in config))
        return "acted"

    forged = {"state": {"messages": []}, "runtime": "r", "call_id": "c", "config": {}}
    talk = Conversation(grace, [act], ("act", {"x": "1", **forged}))
    await talk.call(QUESTION, world)
    assert [{"x": 1}] == talk.shown
    await talk.answer(APPROVE, world=world)
    assert [(1, 2, "call_0", "call_0", True)] == ran
    assert {"x": 1} == talk.decisions[0].arguments


class TestEqualCalls:
    """Models give several calls of a turn one id. Each is a call of its own, and runs if that was decided about it."""

    CALL = ("act", {"to": "ann", "euros": 60})

    @both
    @pytest.mark.parametrize("number", [2, 3])
    async def test_all_that_were_approved_run(self, grace, number, world):
        ran = []
        talk = Conversation(grace, [tool_with(Transfer, ran)], *[self.CALL] * number, ids=["act"] * number)
        await talk.call(QUESTION, world)
        talk.again()
        await talk.answer(*[APPROVE] * number, world=world)
        assert (number, ["executed"] * number) == (len(ran), [entry.outcome for entry in talk.decisions])
        await talk.answer(*[APPROVE] * number, world=world)
        assert number == len(ran)

    @both
    async def test_each_has_its_own_decision(self, grace, world):
        ran = []
        talk = Conversation(grace, [tool_with(Transfer, ran)], *[self.CALL] * 3, ids=["act"] * 3)
        await talk.call(QUESTION, world)
        changed = edit("act", to="ann", euros=99, account="savings")
        await talk.answer(APPROVE, REJECT, changed, world=world)
        assert [60, 99] == sorted(arguments["euros"] for arguments in ran)
        assert ["executed", "cancelled", "executed_modified"] == [entry.outcome for entry in talk.decisions]
        assert ["success", "error", "success"] == [status for _, status in talk.results]

    @both
    @pytest.mark.parametrize("floor", ["silent", "confirm"])
    async def test_without_a_checkpointer(self, floor, world):
        ran, answers = [], iter(["proceed", "proceed", "cancel"])
        with runtime(unmeasured="silent", reviewer=lambda _: next(answers)) as grace:
            talk = Conversation(
                grace, [tool_with(Transfer, ran)], *[self.CALL] * 3, ids=["act"] * 3, saver=False, floor=floor
            )
            await talk.call(QUESTION, world)
            assert (3 if floor == "silent" else 2) == len(ran)

    async def test_in_the_inbox(self):
        ran = []
        with runtime(reviewer=gk.InboxReviewer(deadline="1h")) as grace:
            talk = Conversation(grace, [tool_with(Transfer, ran)], *[self.CALL] * 2, ids=["act"] * 2)
            await talk.call(QUESTION)
            for waiting in grace.approvals.pending():
                grace.approvals.approve(waiting.id, by="ana")
            grace.approvals.resume(talk.agent)
            assert 2 == len(ran)
            assert {"done"} == {str(approval.state) for approval in grace.approvals.history()}


class TestInTheInbox:
    @pytest.fixture
    def filed(self):
        with runtime(reviewer=gk.InboxReviewer(deadline="1h")) as grace:
            yield grace

    def decide(self, filed, talk, changes=None):
        (waiting,) = filed.approvals.pending()
        if changes is None:
            filed.approvals.approve(waiting.id, by="ana")
        else:
            filed.approvals.edit(waiting.id, changes, by="ana")
        talk.again()
        filed.approvals.resume(talk.agent)

    @pytest.mark.parametrize("case", [name for name in CASES if name != "a secret"])
    async def test_what_was_approved_runs(self, filed, case):
        schema, args = CASES[case]
        talk, ran = await begin(filed, schema, args)
        self.decide(filed, talk)
        assert args.keys() <= {name.rstrip("_") for name in ran[0]}
        assert ["done"] == [str(approval.state) for approval in filed.approvals.history()]

    async def test_an_edit_runs_in_the_types_of_the_tool(self, filed):
        schema, args = CASES["types"]
        talk, ran = await begin(filed, schema, args)
        self.decide(filed, talk, {"when": "2027-03-04", "color": "red"})
        assert (datetime.date(2027, 3, 4), Color.RED) == (ran[0]["when"], ran[0]["color"])

    @pytest.mark.parametrize(
        ("schema", "args", "wrong", "right"),
        [
            (SCHEMA, {"to": "ann", "n": 1}, {"n": 50}, {"n": 9}),
            (SCHEMA, {"to": "ann"}, {"to": "eve"}, {"to": "bob"}),
            (REFERRING, {"o": {"n": 1}}, {"o": {"n": 50}}, {"o": {"n": 9}}),
            (Limited, {"n": 1}, {"n": 50}, {"n": 9}),
        ],
    )
    async def test_an_edit_that_does_not_fit_is_refused_at_once(self, filed, schema, args, wrong, right):
        talk, ran = await begin(filed, schema, args)
        with pytest.raises(gk.EditRefused, match=r"50 is greater than the maximum of 10|'eve' is not one of"):
            self.decide(filed, talk, wrong)
        self.decide(filed, talk, right)
        assert [{**args, **right}] == ran

    async def test_a_schema_that_refers_elsewhere_keeps_no_edit_from_running(self, filed):
        ran = []
        schema = {"properties": {"o": {"$ref": "#/definitions/o"}}, "definitions": {"o": {"type": "object"}}}
        talk = Conversation(filed, [tool_with({"type": "object", **schema}, ran)], ("act", {"o": {"n": 1}}))
        await talk.call(QUESTION)
        self.decide(filed, talk, {"o": {"n": 2}})
        assert [{"o": {"n": 2}}] == ran


class TestBesideOthers:
    @pytest.fixture(autouse=True)
    def _no_complaints(self):
        """LangChain logs that the guard has stopped a tool."""

    @both
    @pytest.mark.parametrize("floor", ["silent", "confirm"])
    async def test_a_tool_may_change_what_it_gets(self, grace, floor, world):
        """The next attempt gets what was decided on; without one, the call has failed."""
        ran = []

        def act(tags, pet, box):
            ran.append((set(tags), pet.lives, box.size))
            tags.add("b")
            pet.lives, box.size = 0, 0
            raise RuntimeError("flaky")

        used = StructuredTool(name="act", description="Act.", args_schema=Mutable, func=act)
        retry = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
        args = {"tags": ["a"], "pet": {"kind": "cat"}, "box": {"size": 1}}
        talk = Conversation(grace, [used], ("act", args), floor=floor, behind=(retry,))
        await talk.call(QUESTION, world)
        if floor == "confirm":
            await talk.answer(APPROVE, world=world)
        assert [({"a"}, 9, 1)] * (3 if floor == "silent" else 1) == ran
        assert ["failed"] == [entry.outcome for entry in talk.decisions]

    @both
    async def test_a_tool_in_the_place_of_the_one_that_was_decided_on_does_not_run(self, grace, world):
        ran = []
        other = tool_with(Transfer, ran)

        class Swaps(AgentMiddleware):
            def wrap_tool_call(self, request, handler):
                return handler(request.override(tool=other))

            async def awrap_tool_call(self, request, handler):
                return await handler(request.override(tool=other))

        call = ("act", {"to": "a", "euros": 1})
        talk = Conversation(grace, [tool_with(Transfer, ran)], call, floor="silent", behind=(Swaps(),))
        await talk.call(QUESTION, world)
        assert ([], True) == (ran, "another tool has replaced" in talk.results[0][0])


class TestAStateThatIsChangedWhileAQuestionWaits:
    """The answer was given to the question that was shown, and to no other call."""

    CALL = ("act", {"to": "ann", "euros": 60})

    def change(self, talk, change):
        place = {"configurable": {"thread_id": "1"}}
        message = talk.agent.get_state(place).values["messages"][-1].model_copy(deep=True)
        change(message.tool_calls)
        talk.agent.update_state(place, {"messages": [message]}, as_node="model")

    @both
    async def test_other_arguments_are_asked_about(self, grace, world):
        talk, ran = await begin(grace, Transfer, self.CALL[1], world)
        self.change(talk, lambda calls: calls[0]["args"].update(to="eve", euros=5000))
        await talk.answer(APPROVE, world=world)
        assert ([], "eve") == (ran, talk.shown[0]["to"])
        assert "belongs to other calls" in talk.out["__interrupt__"][0].value["problem"]
        talk.again()
        await talk.answer(APPROVE, world=world)
        assert [5000] == [arguments["euros"] for arguments in ran]

    @pytest.mark.parametrize("how", ["replaced", "followed"])
    @both
    async def test_so_is_another_message_of_the_model(self, grace, world, how):
        ran, place = [], {"configurable": {"thread_id": "1"}}
        talk = Conversation(grace, [tool_with(Transfer, ran)], self.CALL)
        await talk.call(QUESTION, world)
        old = talk.agent.get_state(place).values["messages"][-1]
        first = (
            RemoveMessage(id=old.id) if how == "replaced" else ToolMessage("no", tool_call_id=old.tool_calls[0]["id"])
        )
        call = {"name": "act", "args": {"to": "eve", "euros": 5000}, "id": "another"}
        talk.agent.update_state(place, {"messages": [first, AIMessage("", tool_calls=[call])]}, as_node="model")
        await talk.answer(APPROVE, world=world)
        assert ([], "eve") == (ran, talk.shown[0]["to"])
        await talk.answer(REJECT, world=world)
        assert [] == ran

    async def test_a_process_whose_store_did_not_last_asks_no_more_often(self, grace):
        """It does not know what the question showed, and takes the answer; also when the node runs again."""
        talk, ran = await begin(grace, Transfer, self.CALL[1])
        with runtime(reviewer=None) as talk.grace:
            talk.again()
            await talk.answer(edit("act", whom="eve"))
            assert "do not fit" in talk.out["__interrupt__"][0].value["problem"]
            await talk.answer(APPROVE)
        assert [60] == [arguments["euros"] for arguments in ran]

    async def test_so_are_calls_in_another_order(self, grace):
        ran = []
        talk = Conversation(grace, [tool_with(Transfer, ran)], self.CALL, ("act", {"to": "eve", "euros": 70}))
        await talk.call(QUESTION)
        self.change(talk, lambda calls: calls.reverse())
        await talk.answer(APPROVE, REJECT)
        assert ([], ["eve", "ann"]) == (ran, [shown["to"] for shown in talk.shown])
        await talk.answer(REJECT, APPROVE)
        assert ["ann"] == [arguments["to"] for arguments in ran]

    async def test_so_are_calls_that_another_policy_is_about(self, grace):
        """The answer allowed `act`, which is forbidden by now; it says nothing about `pay`, which nobody was asked about before."""
        ran = []
        used = [tool_with(Transfer, ran), tool_with(Transfer, ran, "pay")]
        talk = Conversation(grace, used, self.CALL, ("pay", {"to": "eve", "euros": 70}), floor="silent")
        talk.gates = {"act": "confirm"}
        talk.again()
        await talk.call(QUESTION)
        talk.gates = {"act": "deny", "pay": "confirm"}
        talk.again()
        await talk.answer(APPROVE)
        assert ([], ["eve"]) == (ran, [shown["to"] for shown in talk.shown])


class TestThreadsOfAnEarlierVersion:
    """Written by the version before tools validated their calls first: `two equal` are two calls with one id, which it kept as one."""

    ONE = ("ann", 5, "x")

    @pytest.mark.parametrize(
        ("thread", "calls", "paid"),
        [
            ("one", 1, [ONE]),
            ("a default", 1, [("ann", 5, "-")]),
            ("a conversion", 1, []),
            ("two of one id", 2, [ONE, ("eve", 6, "y")]),
            ("two equal", 2, [ONE, ONE]),
        ],
    )
    def test_they_go_on(self, grace, tmp_path, thread, calls, paid):
        """With what was shown: a call whose tool would run with other values than were shown does not run."""
        vector = Path(__file__).parents[2] / "vectors" / "earlier_checkpoints.db.gz"
        file = tmp_path / "checkpoints.db"
        file.write_bytes(gzip.decompress(vector.read_bytes()))
        ran = []

        @tool
        def pay(to: str, euros: int, note: str = "-") -> str:
            """Pay."""
            ran.append((to, euros, note))
            return "paid"

        with SqliteSaver.from_conn_string(str(file)) as saver:
            config = {"configurable": {"thread_id": thread}, "callbacks": [GraceCallbackHandler(grace)]}
            gates = [GraceMiddleware(grace, {"pay": "confirm"})]
            agent = create_agent(says("done"), [pay], middleware=gates, checkpointer=saver)
            out = agent.invoke(Command(resume={"decisions": [APPROVE] * calls}), config)
            assert "done" == out["messages"][-1].text
            assert paid == sorted(ran)
            grace.flush()
            outcomes = [entry.outcome for entry in grace.store.query(limit=1)[0].decisions]
            assert (["executed"] * len(paid) or ["cancelled"]) == outcomes
