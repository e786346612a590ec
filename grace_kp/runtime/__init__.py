"""Everything wired together: `Grace`, the pipeline of completion, and the default runtime.

Names that only finished runs and gates need are resolved on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from grace_kp.runtime._default import (
    agent,
    configure,
    default,
    feedback,
    gate,
    outcome,
    retriever,
    run,
    thought,
    tool,
    update,
)
from grace_kp.runtime._front import Front
from grace_kp.runtime._grace import Grace

if TYPE_CHECKING:
    from grace_kp.runtime._assessment import Assessor
    from grace_kp.runtime._feedback import (
        add_feedback,
        feedback_entry,
        find_action,
        mark_action,
        program_problem,
        resolve_label,
        stated_correct,
        store_feedback,
    )
    from grace_kp.runtime._gates import GateSpec, Scope
    from grace_kp.runtime._live import LiveCall, LiveRun
    from grace_kp.runtime._pipeline import record_of, with_outcomes
    from grace_kp.runtime._profiles import ProfileSet
    from grace_kp.runtime._promise import promises_in
    from grace_kp.runtime._seam import Action, ActionScope, Call

__all__ = [
    "Action", "ActionScope", "Assessor", "Call", "Front", "GateSpec", "Grace", "LiveCall", "LiveRun", "ProfileSet",
    "Scope", "add_feedback", "agent", "configure", "default", "feedback", "feedback_entry", "find_action", "gate",
    "mark_action", "outcome", "program_problem", "promises_in", "record_of", "resolve_label", "retriever", "run",
    "stated_correct", "store_feedback", "thought", "tool", "update", "with_outcomes",
]  # fmt: skip

_MODULES = {
    "Assessor": "_assessment",
    **dict.fromkeys(("add_feedback", "feedback_entry", "find_action", "mark_action", "program_problem"), "_feedback"),
    **dict.fromkeys(("resolve_label", "stated_correct", "store_feedback"), "_feedback"),
    **dict.fromkeys(("GateSpec", "Scope"), "_gates"),
    **dict.fromkeys(("LiveCall", "LiveRun"), "_live"),
    **dict.fromkeys(("Action", "ActionScope", "Call"), "_seam"),
    **dict.fromkeys(("record_of", "with_outcomes"), "_pipeline"),
    "ProfileSet": "_profiles",
    "promises_in": "_promise",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
