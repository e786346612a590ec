"""Secrets and identifiers out of one text.

The time is linear in the text: each rule reads the text once in a pass, and the number of passes is bounded. What still changes after
the last pass is removed as a whole, with everything after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.trace._rule import MARK
from grace_kp.trace._scan import candidates, remember

if TYPE_CHECKING:
    from collections import Counter

MAX_PASSES = 4
MAX_CHARACTERS = 16_000_000
UNSCANNED = "unscanned"
UNSCANNED_MARK = MARK.format(UNSCANNED)


def clean(text: str, identifiers: bool, counts: Counter[str] | None) -> str:
    """Apply the rules until nothing changes: what was removed may have hidden the beginning of the next secret."""
    if len(text) > MAX_CHARACTERS:
        text = _without_rest(text, MAX_CHARACTERS, counts)
    for number in range(MAX_PASSES):
        before = text
        text = _one_pass(text, identifiers, counts)
        if text is before:
            if number == 0:
                remember(text, identifiers=identifiers)
            return text
    return _given_up(text, identifiers, counts)


def _one_pass(text: str, identifiers: bool, counts: Counter[str] | None) -> str:
    """Apply every rule once, in order.

    A rule that changes the text may let a later one match, or keep it from matching. So the text is scanned again after a change,
    and the result does not depend on how many rules a scan lets through.
    """
    rules = candidates(text, identifiers=identifiers)
    place = 0
    while place < len(rules):
        rule = rules[place]
        place += 1
        changed = rule.sub(text, counts)
        if changed is not text:
            text, place = changed, 0
            rules = candidates(text, identifiers=identifiers, after=rule)
    return text


def _given_up(text: str, identifiers: bool, counts: Counter[str] | None) -> str:
    """Remove what another pass would change, and everything after it."""
    after = _one_pass(text, identifiers, None)
    if after is text:
        return text
    same = next((place for place, (old, new) in enumerate(zip(text, after, strict=False)) if old != new), 0)
    short = _without_rest(text, same, counts)
    if all(rule.sub(short, None) is short for rule in candidates(short, identifiers=identifiers)):
        return short
    return UNSCANNED_MARK


def _without_rest(text: str, place: int, counts: Counter[str] | None) -> str:
    """Cut at the last blank before the place, so that no half of a secret is left behind."""
    if counts is not None:
        counts[UNSCANNED] += 1
    cut = max(text.rfind(blank, 0, place) for blank in " \n\t")
    return text[: cut + 1] + UNSCANNED_MARK
