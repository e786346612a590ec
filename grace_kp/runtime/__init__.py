"""Everything wired together: `Grace`, the pipeline of completion, and the default runtime."""

from grace_kp.runtime._default import agent, configure, default, gate, outcome, retriever, run, thought, tool, update
from grace_kp.runtime._front import Front
from grace_kp.runtime._grace import Grace

__all__ = [
    "Front",
    "Grace",
    "agent",
    "configure",
    "default",
    "gate",
    "outcome",
    "retriever",
    "run",
    "thought",
    "tool",
    "update",
]
