"""Remove secrets and identifiers from one text.

The time is linear in the text: each rule reads the text once in a pass, and the number of passes is bounded. If the last pass still
changes the text, everything from the first change on is removed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from grace_kp.levels import PrivacyLevel
from grace_kp.trace._render import error_text
from grace_kp.trace.redaction._rule import MARK
from grace_kp.trace.redaction._scan import candidates, scanner

MAX_PASSES = 4
MAX_CHARACTERS = 16_000_000
UNSCANNED = "unscanned"
UNSCANNED_MARK = MARK.format(UNSCANNED)


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text after redaction, and the number of removed places by type (types without any are absent)."""

    text: str
    counts: dict[str, int]


def redact(text: str, level: str | PrivacyLevel = PrivacyLevel.AGGREGATED) -> Redaction:
    """Replace secrets, and from `aggregated` on identifiers too, by `[REDACTED:<type>]`.

    Types of secrets: connection_string, bearer_token, api_key, password (any secret recognised by its name). Types of
    identifiers: email, phone, ip, filepath (below a home folder), card, iban, ssn. The type `unscanned` stands for the rest of a
    text that exceeds the budget. Redacting a redacted text changes nothing.

    Args:
        text: any text.
        level: `private` removes secrets; `aggregated` and `federated` remove identifiers too.

    Raises:
        ValueError: an unknown level.
        TypeError: not a text.
    """
    if not isinstance(text, str):
        raise TypeError(f"redact takes a text, not {type(text).__name__}")
    counts: Counter[str] = Counter()
    return Redaction(redact_text(text, identifiers=PrivacyLevel(level).hides_identifiers, counts=counts), dict(counts))


def redacted_error(error: BaseException, max_text: int = 500) -> str:
    """Return type and message of an error as one bounded text without secrets, for logs and messages."""
    return redact_text(error_text(error, max_text), identifiers=False)


def redact_text(text: str, *, identifiers: bool, counts: Counter[str] | None = None) -> str:
    """Return the text without secrets, and without identifiers if asked; the same object if it holds none.

    `counts` is increased by the number of removed places, by type.
    """
    scan = scanner(identifiers)
    if text in scan.known:
        return text
    if len(text) > MAX_CHARACTERS:
        text = _without_rest(text, MAX_CHARACTERS, counts)
    # A removed secret may have hidden the beginning of the next one.
    for number in range(MAX_PASSES):
        before = text
        text = _one_pass(text, identifiers, counts)
        if text is before:
            if number == 0:
                scan.remember([text])
            return text
    return _without_changes(text, identifiers, counts)


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


def _without_changes(text: str, identifiers: bool, counts: Counter[str] | None) -> str:
    """Remove the first place that another pass would change, and everything after it."""
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
