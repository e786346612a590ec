"""LangChain and LangGraph: a handler that records every run, and a middleware that gates tools.

    from grace_kp.integrations.langchain import GraceCallbackHandler, GraceMiddleware

    agent = create_agent(model, tools, middleware=[GraceMiddleware(grace, gates={"send_mail": "confirm"})], checkpointer=saver)
    agent.invoke(question, {"callbacks": [GraceCallbackHandler(grace)], "configurable": {"thread_id": "42"}})

The handler needs langchain-core alone. The middleware and `gated_node` need langchain and langgraph, and load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from grace_kp.integrations.langchain._handler import GraceCallbackHandler, everywhere

if TYPE_CHECKING:
    from grace_kp.integrations.langchain._middleware import GraceMiddleware
    from grace_kp.integrations.langchain._node import gated_node

__all__ = ["GraceCallbackHandler", "GraceMiddleware", "everywhere", "gated_node"]

_MODULES = {
    "GraceMiddleware": "_middleware",
    "aresume_graph": "_resume",
    "gated_node": "_node",
    "resumable": "_node",
    "resume_graph": "_resume",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
