"""What the run so far says, read off the live run: evidence for confidence, and what a judge is shown; for gates, which cannot wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._call import Call
from grace_kp.record._resume import EarlierPart
from grace_kp.trace import render, to_text

if TYPE_CHECKING:
    from grace_kp.confidence import Evidence
    from grace_kp.record._run import Run

COUNTED = {"ok": True, "error": False, "cancelled": False}
"""Ways a call can end that say something about the tool; a pause or a person's no does not."""


def evidence_of(run: Run | None) -> Evidence:
    """Tools that succeeded and failed, search results and their scores, sources, of the calls that have ended so far."""
    from grace_kp.confidence import Evidence, evidence_of_calls

    evidence = Evidence()
    if run is None:
        return evidence
    if run.resumes is not None:
        run.owner.recall(run)
    if run.earlier is not None:
        evidence = evidence_of_calls(EarlierPart(run.earlier).calls)
    seen: set[int] = set()
    for event in list(run.events):
        if type(event) is not Call:
            continue
        if id(event) not in seen:
            seen.add(id(event))
            continue
        ok = COUNTED.get(event.status or "")
        if ok is None or _is_told_by_its_tool(event, ok):
            continue
        evidence.tool_finished(ok)
        if event.hits is not None:
            evidence.search_finished(event.hits)
    return evidence


def _is_told_by_its_tool(call: Call, ok: bool) -> bool:
    """Whether a call opened a run for a tool and ended like it: an agent that is used as a tool counts once."""
    if call.child is None or call.parent is None:
        return False
    return ok or COUNTED.get(call.parent.status or "") is False


MAX_MATERIAL = 20
_LONGEST = 4_000


def material_of(run: Run | None, case: Any) -> tuple[str, str, list[str]]:
    """Question, answer and sources as they are before an action: the objective, the action that is proposed, and what tools gave.

    Args:
        run: the run so far.
        case: the gated call, with `action` and `shown()`.
    """
    shown = ", ".join(f"{name}={to_text(render(value, _LONGEST))}" for name, value in case.shown().items())
    answer = f"{case.action}({shown})"
    if run is None:
        return case.action, answer, []
    texts: list[str] = []
    seen: set[int] = set()
    for event in list(run.events):
        if type(event) is not Call:
            text = getattr(event, "text", "")
            texts += [text] if text else []
        elif id(event) not in seen:
            seen.add(id(event))
        elif event.status == "ok" and event.result is not None:
            texts.append(f"{event.spec.name}: {to_text(render(event.result, _LONGEST))}"[:_LONGEST])
    return run.objective, answer, texts[-MAX_MATERIAL:]
