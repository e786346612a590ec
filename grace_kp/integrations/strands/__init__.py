"""Strands Agents: hooks that record every invocation of an agent and gate its tools.

    from grace_kp.integrations.strands import GraceHooks, responses

    agent = Agent(tools=[refund], hooks=[GraceHooks(grace, gates={"refund": "confirm"})], session_manager=sessions)

The hooks and `responses` need strands-agents 1.14 or later.
"""

from __future__ import annotations

from grace_kp.integrations.strands._hooks import GraceHooks, responses

__all__ = ["GraceHooks", "responses"]
