"""Traces state what happened to each decision, in whichever order and run it happened; arguments are checked by the schema of the tool."""

from __future__ import annotations

import threading

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler, GraceMiddleware
from grace_kp.integrations.langchain._tool_schema import (
    _json_schema_problem,
    argument_names,
    argument_types,
    schema_problem,
)

from .conftest import QUESTION, config, says

pytest.importorskip("langchain", reason="needs the extra langchain")


PAY = [("pay", {"to": "bob", "euros": 5})]
APPROVE = Command(resume={"decisions": [{"type": "approve"}]})
SECONDS = 30


def outcomes(grace):
    """The outcomes of the decisions of each stored trace."""
    grace.flush()
    return sorted([entry["outcome"] for entry in trace.grace.get("decisions", ())] for trace in grace.store.query())


def in_thread(call):
    """Run a call in another thread; join it with the result."""
    box = []
    thread = threading.Thread(target=lambda: box.append(call()))
    thread.start()

    def join():
        thread.join(SECONDS)
        assert not thread.is_alive()
        return box[0]

    return join


class Gate(AgentMiddleware):
    """Holds a tool call of one agent until the test lets it go on."""

    def __init__(self):
        super().__init__()
        self.reached, self.go_on = threading.Event(), threading.Event()

    def wrap_tool_call(self, request, handler):
        self.reached.set()
        assert self.go_on.wait(SECONDS)
        return handler(request)


@pytest.mark.parametrize("runtimes", [1, 2])
@pytest.mark.parametrize("first_pays", [True, False])
@pytest.mark.parametrize("payer_ends", ["before the other", "after the other"])
def test_two_answers_at_once_leave_the_payment_in_a_trace(tmp_path, runtimes, first_pays, payer_ends):
    """The run that pays shows the payment and its decision as executed; no decision stays waiting. Two runtimes are two processes."""
    saver, paid = InMemorySaver(), []
    paying, pay_on = threading.Event(), threading.Event()
    graces = [
        gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, unmeasured="notify")
        for _ in range(runtimes)
    ]
    handlers = [GraceCallbackHandler(grace) for grace in graces]

    @tool
    def pay(to: str, euros: int) -> str:
        """Send money."""
        paid.append(to)
        paying.set()
        assert pay_on.wait(SECONDS)
        return "paid"

    def run(number, given, *messages, more=()):
        grace, handler = graces[number % runtimes], handlers[number % runtimes]
        middleware = [*more, GraceMiddleware(grace, {"pay": "confirm"})]
        agent = create_agent(says(*messages), [pay], middleware=middleware, checkpointer=saver)
        return agent.invoke(given, config(handler))

    run(0, QUESTION, PAY)
    graces[0].flush()
    gates, joins = [Gate(), Gate()], []
    for number, gate in enumerate(gates):  # one after the other, so that the first one takes the suspended trace over
        joins.append(in_thread(lambda number=number, gate=gate: run(number, APPROVE, "done", more=[gate])))
        assert gate.reached.wait(SECONDS)
    payer, other = (0, 1) if first_pays else (1, 0)
    gates[payer].go_on.set()
    assert paying.wait(SECONDS)

    def pay_and_end():
        pay_on.set()
        joins[payer]()
        graces[payer % runtimes].flush()

    def end_other():
        gates[other].go_on.set()
        joins[other]()
        graces[other % runtimes].flush()

    for step in (pay_and_end, end_other) if payer_ends == "before the other" else (end_other, pay_and_end):
        step()
    assert ["bob"] == paid
    before = "executed_before" if payer_ends == "before the other" else "running_before"
    assert [["executed"], [before]] == outcomes(graces[0])
    traces = graces[0].store.query()
    (trace,) = [trace for trace in traces if "executed" == trace.decisions[0].outcome]
    assert [("pay", "ok")] == [(call["name"], call["status"]) for call in trace.grace["calls"]]
    assert {"completed"} == {trace.grace["status"] for trace in traces}
    for grace in graces:
        grace.close()


pytest.importorskip("langchain_core", reason="needs the extra langchain")


class Arguments(BaseModel):
    to: str
    euros: int = 5


SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string"}, "euros": {"type": "integer"}, "ratio": {"type": ["number", "null"]},
        "fast": {"type": "boolean"}, "lines": {"type": "array"}, "more": {"type": "object"}, "any": {}, "odd": {"type": "x"},
    },
    "required": ["to"],
}  # fmt: skip


def made_of(schema):
    return StructuredTool(name="pay", description="Send money.", args_schema=schema, func=lambda **_: "paid")


CHECKED_ALIKE = [
    ({"to": "bob"}, ""), ({"to": "bob", "euros": 5}, ""), ({"to": "bob", "euros": "5"}, "euros"),
    ({"to": "bob", "euros": 5.5}, "euros"), ({"to": "bob", "euros": True}, "euros"), ({"to": 5}, "to"),
    ({"euros": 5}, "'to' is missing"), ({"to": "bob", "cents": 5}, "no argument 'cents'"),
]  # fmt: skip
# As JSON schema has them: 5.0 is an integer, True is none.
JSON_TYPES = [
    ({"ratio": None}, ""), ({"ratio": 5}, ""), ({"ratio": "5"}, "ratio"), ({"fast": True}, ""), ({"fast": 1}, "fast"),
    ({"lines": "a"}, "lines"), ({"any": object}, ""), ({"odd": 5}, ""), ({"euros": 5.0}, ""), ({"ratio": True}, "ratio"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "arguments", "problem"),
    [(schema, *case) for schema in (Arguments, SCHEMA) for case in CHECKED_ALIKE]
    + [(SCHEMA, {"to": "bob", **arguments}, problem) for arguments, problem in JSON_TYPES],
)
def test_models_and_json_schemas_are_checked(schema, arguments, problem):
    found = schema_problem(made_of(schema), arguments)
    assert bool(problem) == bool(found)
    assert problem in found


def test_a_tool_without_a_schema_takes_the_names_that_are_known():
    """A process that has not seen the tool yet knows them from the decision."""
    assert argument_names(None) is None
    assert {} == argument_types(None)
    assert "" == schema_problem(None, {"any": 1})
    assert "the tool has no argument 'cents'; its arguments are to, euros" == schema_problem(
        None, {"to": "bob", "cents": 1}, {"to": True, "euros": False}
    )
    assert "the argument 'to' is missing" == schema_problem(None, {"euros": 1}, {"to": True, "euros": False})


def test_a_schema_that_takes_more_takes_any_name():
    more = {**SCHEMA, "additionalProperties": True}
    assert "" == schema_problem(made_of(more), {"to": "bob", "cents": 1})


@pytest.mark.parametrize(
    ("declared", "value", "problem"),
    [
        (True, 1, ""), (False, 1, "a"), ({"type": {"x": 1}}, 1, ""), ({"type": [{}]}, 1, ""), (None, 1, ""), ([], 1, ""),
        ({"type": "string", "nullable": True}, None, ""), ({"type": "string", "nullable": True}, 5, "a"),
        ({"type": "array", "items": {"type": "string", "nullable": True}}, [None], ""),
        ({"$ref": "#/$defs/A", "nullable": True}, None, ""), ({"$ref": "#/$defs/A"}, None, "a"),
    ],
)  # fmt: skip
def test_any_schema_can_be_checked(declared, value, problem):
    """A schema may be a boolean, nonsense, or of OpenAPI; one that no validator can use is a problem of an edit alone."""
    schema = {"type": "object", "properties": {"a": declared}, "$defs": {"A": {"type": "integer"}}}
    found = _json_schema_problem(schema, {"a": value}, is_edit=False)
    assert problem in found
    assert bool(problem) == bool(found)


@pytest.mark.parametrize("part", [{"properties": None}, {"properties": [1]}, {"required": True}, {"type": 5}])
def test_a_schema_that_cannot_be_used_is_a_problem_of_an_edit(part):
    assert isinstance(schema_problem(made_of({**SCHEMA, **part}), {"to": "bob"}), str)
