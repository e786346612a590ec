"""How probable it was that a run would be labelled, read from the decisions in its trace.

A gate that asks has each action looked at. Of the actions that run unasked, a random share is selected for an audit; a decision states the
share and the draw under `audit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.errors import is_unit
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ASKING = frozenset(str(level) for level in InterventionLevel if level.asks)


def audit_probability(decisions: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the probability that a run with these decisions is put up for an audit, or asked about anyway.

    The draws for several actions are independent, so it is 1 − ∏(1 − rate). It is 1 where a person was asked about one of the actions.

    Args:
        decisions: the entries of `grace.decisions`.

    Returns:
        A number above 0 and at most 1; None if no decision asked and none states a rate above 0.
    """
    unselected = 1.0
    for entry in decisions:
        if entry.get("level") in _ASKING:
            return 1.0
        audit = entry.get("audit")
        rate = audit.get("rate") if isinstance(audit, dict) else None
        if is_unit(rate):
            unselected *= 1.0 - rate
    return 1.0 - unselected if unselected < 1 else None
