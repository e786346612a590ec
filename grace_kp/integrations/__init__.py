"""Adapters for other libraries and services: LangChain and LangGraph, evaluation frameworks, the knowledge registry.

Each module loads on first use, because it needs the package that it adapts. This file registers the control-flow exceptions of LangGraph.
Recording and gates need them even without the adapter, because a graph may run inside decorated functions.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from grace_kp.record import CANCELLED, COMPLETED, HOST, SUSPENDED, Framework, Signal

if TYPE_CHECKING:
    from types import ModuleType

    from grace_kp.integrations import autoevals as autoevals
    from grace_kp.integrations import inspect_ai as inspect_ai
    from grace_kp.integrations import knowledgepulse as knowledgepulse
    from grace_kp.integrations import langchain as langchain
    from grace_kp.integrations import pydantic_evals as pydantic_evals

__all__: list[str] = []


def __getattr__(name: str) -> ModuleType:
    if name not in __dir__():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    import pkgutil

    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def _langchain() -> ModuleType:
    from grace_kp.integrations import langchain  # gates call this often, and a plain import is faster than importlib

    return langchain


def _nodes(error: BaseException) -> list[str]:
    """Return the names of the nodes in the `goto` of an exception's command, which holds names and `Send`s."""
    goto = getattr(error.args[0] if error.args else None, "goto", None)
    names = [getattr(target, "node", target) for target in (goto if isinstance(goto, list | tuple) else [goto])]
    return [name for name in names if isinstance(name, str)]


_LANGGRAPH = {
    "GraphInterrupt": Signal(SUSPENDED, pauses=True),
    "GraphDrained": Signal(CANCELLED, pauses=True),
    "ParentCommand": Signal(COMPLETED, targets=_nodes),
}


def _injects(declared: object) -> bool:
    from grace_kp.integrations.langchain._tool_schema import is_injected

    return is_injected(declared)


def _runs_here() -> bool:
    config = sys.modules.get("langchain_core.runnables.config")
    return config is not None and bool(config.var_child_runnable_config.get())


HOST.register(
    Framework(
        "langchain",
        "langgraph",
        _langchain,
        _LANGGRAPH,
        injects=_injects,
        injects_with="langchain_core",
        runs_here=_runs_here,
    )
)
