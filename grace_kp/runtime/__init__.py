"""Everything wired together: `Grace`, the pipeline of completion, and the default runtime."""

from grace_kp.runtime._assessor import Assessor
from grace_kp.runtime._default import agent, configure, default, gate, outcome, retriever, run, thought, tool, update
from grace_kp.runtime._front import Front
from grace_kp.runtime._gates import GateSpec, Scope
from grace_kp.runtime._grace import Grace
from grace_kp.runtime._records import record_of

__all__ = [
    "Assessor",
    "Front",
    "GateSpec",
    "Grace",
    "Scope",
    "agent",
    "configure",
    "default",
    "gate",
    "outcome",
    "record_of",
    "retriever",
    "run",
    "thought",
    "tool",
    "update",
]
