"""How a run becomes a trace: live runs, the wrapping core, threads, and the guard that makes recording fail open."""

from grace_kp.record._captured import NOT_CAPTURED, recorded_error
from grace_kp.record._current import BEYOND, CAPTURE, CURRENT, FORKABLE, TROUBLES, current_run, located
from grace_kp.record._decorate import RunBlock, decorate
from grace_kp.record._document import Documents, instant, to_json
from grace_kp.record._enter import call_alone, call_in, open_run
from grace_kp.record._events import ModelCall, Pause
from grace_kp.record._gaps import gaps_of
from grace_kp.record._gather import evidence_of, material_of
from grace_kp.record._guard import note, shielded
from grace_kp.record._ids import new_trace_id
from grace_kp.record._recorder import Recorder
from grace_kp.record._run import Call, Run
from grace_kp.record._signals import CANCELLED, CLOSED, FAILED, SUSPENDED, hands_off, pauses, way_out
from grace_kp.record._spec import AGENT, RETRIEVER, SCOPE, TOOL, Spec
from grace_kp.record._threads import instrument_threads, propagate

__all__ = [
    "AGENT",
    "BEYOND",
    "CANCELLED",
    "CAPTURE",
    "CLOSED",
    "CURRENT",
    "FAILED",
    "FORKABLE",
    "NOT_CAPTURED",
    "RETRIEVER",
    "SCOPE",
    "SUSPENDED",
    "TOOL",
    "TROUBLES",
    "Call",
    "Documents",
    "ModelCall",
    "Pause",
    "Recorder",
    "Run",
    "RunBlock",
    "Spec",
    "call_alone",
    "call_in",
    "current_run",
    "decorate",
    "evidence_of",
    "gaps_of",
    "hands_off",
    "instant",
    "instrument_threads",
    "located",
    "material_of",
    "new_trace_id",
    "note",
    "open_run",
    "pauses",
    "propagate",
    "recorded_error",
    "shielded",
    "to_json",
    "way_out",
]
