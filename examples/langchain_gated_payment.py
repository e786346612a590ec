"""An agent of LangChain with a payment behind a gate, offline: it stops and asks, a person changes the sum, and it pays once."""

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler, GraceMiddleware


class Model(GenericFakeChatModel):
    """Says what it is given; a real chat model takes its place."""

    def bind_tools(self, tools, **kwargs):
        return self


def look_up(order: str) -> str:
    """Look up an order."""
    return f"order {order}: 40 euros, returned"


def refund(order: str, euros: int) -> str:
    """Pay money back."""
    return f"paid back {euros} euros for {order}"


model = Model(
    messages=iter([
        AIMessage("", tool_calls=[{"name": "look_up", "args": {"order": "A7"}, "id": "1"}]),
        AIMessage("", tool_calls=[{"name": "refund", "args": {"order": "A7", "euros": 400}, "id": "2"}]),
        AIMessage("Your money is on its way."),
    ])
)  # fmt: skip
grace = gk.Grace(store="memory:", evaluator=None, embedder=None)
agent = create_agent(
    model,
    [look_up, refund],
    middleware=[GraceMiddleware(grace, gates={"refund": "confirm"})],
    checkpointer=InMemorySaver(),
)
config: RunnableConfig = {"configurable": {"thread_id": "ann"}, "callbacks": [GraceCallbackHandler(grace)]}

out = agent.invoke({"messages": [HumanMessage("Where is my money for A7?")]}, config)
(request,) = out["__interrupt__"][0].value["action_requests"]
print(f"asked: {request['name']} {request['args']}, {request['level']} at {request['score']}: {request['reason']}")

edited = {"type": "edit", "edited_action": {"name": "refund", "args": {"order": "A7", "euros": 40}}}
out = agent.invoke(Command(resume={"decisions": [edited]}), config)
for message in out["messages"]:
    print(f"  {message.type:<6} {message.content or message.tool_calls}")

(trace,) = grace.store.query()
(decision,) = trace.decisions
reviewer = decision.response.reviewer if decision.response else "nobody"
print(f"{decision.action}: {decision.outcome}, by {reviewer}; {len(trace.steps)} steps, one trace")
