"""Live recording: runs, calls and events, the wrapping core, threads, and the guard that makes recording fail open.

`Documents` and `to_json` are resolved on first use, because documents need the rules of redaction.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from grace_kp.record._current import CAPTURE, CURRENT, HOST, OPERATIONS, PICKLED, TROUBLES
from grace_kp.record._decorate import RunBlock, decorate
from grace_kp.record._evidence import (
    gaps_of,
    keep_evidence,
    keep_refusal,
    kept_refusal,
    material_of,
    nearest,
    register,
    root_of,
    survey_of,
)
from grace_kp.record._failure import TOOL_ERROR, reported_failure
from grace_kp.record._guard import attempt, finish_late, note, shielded
from grace_kp.record._host import CANCELLED, CLOSED, COMPLETED, FAILED, INTERRUPTED, SUSPENDED, Framework, Signal
from grace_kp.record._resume import Conversations, Pause, facts_of, node_of
from grace_kp.record._run import (
    NOT_CAPTURED,
    Call,
    Listener,
    ModelCall,
    Recorder,
    Run,
    current_run,
    find_frame,
    instant,
    new_trace_id,
)
from grace_kp.record._sight import UNREAD as UNREAD_RUN
from grace_kp.record._sight import history_of, keep_events
from grace_kp.record._spec import AGENT, RETRIEVER, SCOPE, SEALED, TOOL, Spec, argument_check, fitting, reseal, seal
from grace_kp.record._threads import instrument_threads, propagate
from grace_kp.record._wrap import call_alone, call_in, open_run, silent_run

if TYPE_CHECKING:
    from grace_kp.record._document import Documents, to_json

__all__ = [
    "AGENT", "CANCELLED", "CAPTURE", "CLOSED", "COMPLETED", "CURRENT", "FAILED", "HOST", "INTERRUPTED",
    "NOT_CAPTURED", "OPERATIONS", "PICKLED", "RETRIEVER", "SCOPE", "SEALED", "SUSPENDED", "TOOL", "TOOL_ERROR",
    "TROUBLES", "UNREAD_RUN", "Call", "Conversations", "Documents", "Framework", "Listener", "ModelCall", "Pause",
    "Recorder", "Run", "RunBlock", "Signal", "Spec", "argument_check", "attempt", "call_alone", "call_in",
    "current_run", "decorate", "facts_of", "find_frame", "finish_late", "fitting", "gaps_of", "history_of", "instant",
    "instrument_threads", "keep_events", "keep_evidence", "keep_refusal", "kept_refusal", "material_of", "nearest",
    "new_trace_id", "node_of", "note", "open_run", "propagate", "register", "reported_failure", "reseal", "root_of",
    "seal", "shielded", "silent_run", "survey_of", "to_json",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in {"Documents", "to_json"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}._document"), name)
    globals()[name] = value
    return value
