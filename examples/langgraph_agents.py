"""A graph of two agents, offline: a researcher inside of a desk, each with a trace of its own, and a node that sends only after a yes."""

import operator
from typing import Annotated, TypedDict

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler, gated_node


class State(TypedDict):
    topic: str
    notes: Annotated[list, operator.add]
    letter: str


@tool
def read(page: str) -> str:
    """Read a page."""
    if page == "old":
        raise FileNotFoundError(page)
    return f"what {page} says"


def research(state: State) -> dict:
    notes = []
    for page in ("old", "new"):
        try:
            notes.append(read.invoke({"page": page}))
        except FileNotFoundError:
            continue
    return {"notes": notes}


def write(state: State) -> dict:
    return {"letter": f"About {state['topic']}: {'; '.join(state['notes'])}"}


grace = gk.Grace(store="memory:", evaluator=None, embedder=None)


def send(state: State) -> dict:
    return {"notes": [f"sent: {state['letter']}"]}


researcher = StateGraph(State)
researcher.add_node("research", research)
researcher.add_edge(START, "research")

desk = StateGraph(State)
desk.add_node("researcher", researcher.compile(name="researcher"))
desk.add_node("write", write)
desk.add_node("send", gated_node(grace, send, floor="confirm", show=["letter"]))
desk.add_edge(START, "researcher")
desk.add_edge("researcher", "write")
desk.add_edge("write", "send")
app = desk.compile(name="desk", checkpointer=InMemorySaver())

config: RunnableConfig = {
    "configurable": {"thread_id": "1"},
    "callbacks": [GraceCallbackHandler(grace, domain="office")],
}
out = app.invoke({"topic": "tea", "notes": [], "letter": ""}, config)
print("asked:", out["__interrupt__"][0].value["action_requests"][0]["args"])
out = app.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
print(out["notes"][-1])

for trace in grace.store.query():
    parent = (trace.parent_id or "-")[-6:]
    print(f"{trace.id[-6:]} {trace.name:<11} inside of {parent:<7} {', '.join(str(step.type) for step in trace.steps)}")
