"""Evaluation frameworks: Inspect AI, pydantic-evals and autoevals. Users import `grace_kp.integrations.inspect_ai` and its siblings."""

from __future__ import annotations

__all__: list[str] = []
