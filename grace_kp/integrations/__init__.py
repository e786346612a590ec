"""Connects the runtime with other libraries and services: LangChain and LangGraph, evaluation frameworks, the knowledge registry.

Each module is loaded on first use, because it needs the package that it adapts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from grace_kp.integrations import autoevals as autoevals
    from grace_kp.integrations import inspect_ai as inspect_ai
    from grace_kp.integrations import knowledgepulse as knowledgepulse
    from grace_kp.integrations import langchain as langchain
    from grace_kp.integrations import pydantic_evals as pydantic_evals

__all__: list[str] = []

_MODULES = ("autoevals", "inspect_ai", "knowledgepulse", "langchain", "pydantic_evals")


def __getattr__(name: str) -> ModuleType:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return list(_MODULES)
