"""A question asked in one process and answered in another, offline: two files connect them, and the trace is one.

python examples/langgraph_resume.py           asks, then starts itself once more to answer
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler


class State(TypedDict):
    order: str
    said: str


def run(folder: Path, given: State | Command) -> dict:
    grace = gk.Grace(store=f"sqlite:///{folder / 'traces.db'}", evaluator=None, embedder=None)

    @grace.tool
    def look_up(order: str) -> str:
        return f"{order}: 40 euros"

    @grace.gate(floor="confirm")
    @grace.tool
    def refund(order: str, euros: int) -> str:
        return f"paid back {euros} euros for {order}"

    def desk(state: State) -> dict:
        look_up(state["order"])
        return {"said": refund(state["order"], 40)}

    graph = StateGraph(State)
    graph.add_node("desk", desk)
    graph.add_edge(START, "desk")
    config: RunnableConfig = {"configurable": {"thread_id": "ann"}, "callbacks": [GraceCallbackHandler(grace)]}
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        out = graph.compile(checkpointer=saver).invoke(given, config)
    for trace in grace.store.query():
        tools = [step.tool.name for step in trace.steps if step.tool]
        print(
            f"  {trace.id[-6:]} {trace.status:<10} {tools}, decisions {[decision.outcome for decision in trace.decisions]}"
        )
    grace.close()
    return out


if len(sys.argv) > 1:
    print("second process: approves")
    print(run(Path(sys.argv[1]), Command(resume={"decisions": [{"type": "approve"}]}))["said"])
else:
    with tempfile.TemporaryDirectory() as folder:
        print("first process: asks")
        print(run(Path(folder), {"order": "A7", "said": ""})["__interrupt__"][0].value["action_requests"][0]["args"])
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, folder], check=True)
