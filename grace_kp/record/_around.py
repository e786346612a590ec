"""What a run has from the runs around it: its user and its session, unless it states its own; and what it leaves to them to seal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
