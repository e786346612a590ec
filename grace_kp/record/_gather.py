"""What the run so far says about confidence, read off the live run; for gates, which cannot wait for its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.record._run import Call

if TYPE_CHECKING:
    from grace_kp.confidence import Evidence
    from grace_kp.record._run import Run

COUNTED = {"ok": True, "error": False, "cancelled": False}
"""Ways a call can end that say something about the tool; a pause or a person's no does not."""


def evidence_of(run: Run | None) -> Evidence:
    """Tools that succeeded and failed, search results and their scores, sources, of the calls that have ended so far."""
    from grace_kp.confidence import Evidence

    evidence = Evidence()
    if run is None:
        return evidence
    seen: set[int] = set()
    for event in list(run.events):
        if type(event) is not Call:
            continue
        if id(event) not in seen:
            seen.add(id(event))
            continue
        ok = COUNTED.get(event.status or "")
        if ok is None:
            continue
        evidence.tool_finished(ok)
        if event.hits is not None:
            evidence.search_finished(event.hits)
    return evidence
