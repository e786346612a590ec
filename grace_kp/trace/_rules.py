"""Rules about a run that live recording, readers of finished traces and stores share: its attributes, and the order of its steps.

Tags, user, session and metadata have limits, and a form in which they are compared, so that a query compares values in the form in which
they were stored. Secrets are removed elsewhere (`redaction`). An error that the run goes on after was survived: an `error_recovery` step
follows it.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.trace._render import storable, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Entry = dict[str, Any]

MAX_TAGS = 50
MAX_METADATA = 50
MAX_LABEL = 200
"""Characters of a tag, a user, a session or a metadata key."""
MAX_VALUE = 2_000
"""Characters of one string in a metadata value."""

TAG, USER, SESSION, METADATA, PARENT = "tag", "user", "session", "metadata", "parent"


def label(text: str) -> str:
    """Return a string as a label: without NUL and half surrogate pairs, and at most `MAX_LABEL` characters long.

    A longer label keeps its beginning and ends with its length and a fingerprint, so that different labels stay different.
    """
    text = storable(text).replace("\0", " ")
    if len(text) <= MAX_LABEL:
        return text
    end = f"… [cut: {len(text):,} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}]"
    return text[: MAX_LABEL - len(end)] + end


def comparable(value: object) -> str:
    """Return the label by which a metadata value is found: a string itself, any other value as compact JSON."""
    return label(to_text(value))


def attributes_in(document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the attributes of a trace as (kind, name, value). A foreign document may hold values of any type here."""
    grace = document.get("grace")
    if not isinstance(grace, dict):
        return
    tags = grace.get("tags")
    for tag in tags[:MAX_TAGS] if isinstance(tags, list) else ():
        if isinstance(tag, str):
            yield TAG, "", label(tag)
    for kind in (USER, SESSION):
        value = grace.get(kind)
        if isinstance(value, str):
            yield kind, "", label(value)
    metadata = grace.get("metadata")
    for name, value in list(metadata.items())[:MAX_METADATA] if isinstance(metadata, dict) else ():
        yield METADATA, label(name), comparable(value)
    parent = grace.get("parent")
    if isinstance(parent, dict) and isinstance(parent.get("trace_id"), str):
        yield PARENT, "", parent["trace_id"]


@dataclass(slots=True, eq=False)
class Failure:
    """An error of a call, until the run goes on after it."""

    name: str
    error: tuple[str, str]
    entry: Entry | None
    outer: object = None
    """The call around it."""
    place: str | None = None

    @property
    def recovery(self) -> str:
        """Content of the recovery step: the name of the call and its error."""
        kind, message = self.error
        return f"Recovered from {self.name}: {kind}" + (f": {message}" if message else "")


@dataclass(slots=True, eq=False)
class Failures:
    """The errors of a run that no later step has followed yet."""

    pending: list[Failure] = field(default_factory=list)

    def add(self, failure: Failure, call: object = None) -> None:
        """Add the error of a call. The same error of a call inside it, which has passed through, is forgotten."""
        if call is not None:
            self.pending = [item for item in self.pending if item.outer is not call or item.error != failure.error]
        self.pending.append(failure)

    def recover(self, add_step: Callable[[Failure], Entry]) -> None:
        """Add a recovery step for each error and forget the errors; call it when the run goes on."""
        for failure in self.pending:
            step = add_step(failure)
            if failure.entry is not None:
                failure.entry["recovery"] = step["step_id"]
        self.pending.clear()


def outcomes_of_calls(kinds: Iterable[str]) -> list[bool]:
    """Return for each tool_call whether it succeeded, from the types of the steps alone.

    A call failed if an error_recovery follows it or its observation. Calls that ran in parallel get their observations in order.
    """
    outcomes: list[bool] = []
    waiting: list[int] = []
    last: int | None = None
    for kind in kinds:
        if kind == "tool_call":
            last = len(outcomes)
            outcomes.append(True)
            waiting.append(last)
        elif kind == "observation":
            last = waiting.pop(0) if waiting else None
        else:
            if kind == "error_recovery" and last is not None:
                outcomes[last] = False
                waiting = [number for number in waiting if number != last]
            last = None
    return outcomes


def number_of(value: object) -> float | None:
    """Return a finite number, and None for any other value."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number with hundreds of digits
        return None
