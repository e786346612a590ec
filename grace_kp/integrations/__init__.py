"""What connects the runtime with other libraries and services: LangChain, LangGraph, the knowledge registry."""

from __future__ import annotations

__all__: list[str] = []
