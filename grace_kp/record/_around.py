"""What a run has from the runs around it: its user and its session, unless it states its own; and what it leaves to them to seal.

Also the last refusal of a gate in the run, which holds until anything else is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._location import located

if TYPE_CHECKING:
    from grace_kp.record._run import Run


def nearest(run: Run, name: str) -> str | None:
    """Return the user or session of the run itself, else of the nearest run around it."""
    around: Run | None = run
    while around is not None:
        stated: str | None = getattr(around.attributes, name, None)
        if stated is not None:
            return stated
        around = None if around.via is None else around.via.run
    return None


def register(run: Run, entry: dict[str, Any]) -> None:
    """Have the sealed arguments of a gated call removed from its run and from all runs around that and inside of it."""
    root = root_of(run)
    with root.owner.lock:
        if root.sealed is None:
            root.sealed = []
        root.sealed.append(entry)


def root_of(run: Run) -> Run:
    """Return the outermost run around a run."""
    while run.via is not None:
        run = run.via.run
    return run


def keep_refusal(run: Run, refusal: object) -> None:
    """Keep a refusal of a gate, with what the run has recorded by now and the calls around the gate."""
    here: Any = located()
    calls = []
    while here is not None and here is not run:
        calls.append(here)
        here = here.parent or here.run
    run.refusal = refusal, len(run.events), len(run.decisions), run.dropped, calls


def kept_refusal(run: Run) -> Any:
    """Return the last refusal of a gate; None if anything else has been recorded since.

    Ends of the calls around the gate, and repetitions of those calls, do not count as anything else: the loop that repeats the call may be
    outside a tool that calls the gate.
    """
    if run.refusal is None:
        return None
    refusal, events, decisions, dropped, calls = run.refusal
    since: list[Any] = run.events[events:]
    for event in since:
        again = (event.spec is call.spec and event.args == call.args and event.kwargs == call.kwargs for call in calls)
        if not hasattr(event, "spec") or not any(again):
            return None
    return refusal if (decisions, dropped) == (len(run.decisions), run.dropped) else None
