"""How a run becomes a trace: live runs, the wrapping core, threads, and the guard that makes recording fail open."""

from grace_kp.record._current import CAPTURE, CURRENT, FORKABLE, TROUBLES, current_run
from grace_kp.record._decorate import RunBlock, decorate
from grace_kp.record._document import Documents, instant, to_json
from grace_kp.record._gather import evidence_of, material_of
from grace_kp.record._ids import new_trace_id
from grace_kp.record._run import Recorder, Run
from grace_kp.record._shield import note, shielded
from grace_kp.record._spec import AGENT, RETRIEVER, SCOPE, TOOL
from grace_kp.record._threads import instrument_threads, propagate

__all__ = [
    "AGENT",
    "CAPTURE",
    "CURRENT",
    "FORKABLE",
    "RETRIEVER",
    "SCOPE",
    "TOOL",
    "TROUBLES",
    "Documents",
    "Recorder",
    "Run",
    "RunBlock",
    "current_run",
    "decorate",
    "evidence_of",
    "instant",
    "instrument_threads",
    "material_of",
    "new_trace_id",
    "note",
    "propagate",
    "shielded",
    "to_json",
]
