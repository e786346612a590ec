"""Rules about the order of steps, shared by live recording and by readers of finished traces.

An error that the run goes on after was survived: an `error_recovery` step follows it. What a step looks like is `_model`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Entry = dict[str, Any]


class Failure:
    """An error of a call, until the run goes on after it."""

    __slots__ = ("entry", "error", "name", "outer", "place")

    def __init__(
        self, name: str, error: tuple[str, str], entry: Entry | None, outer: object = None, place: str | None = None
    ) -> None:
        self.name = name
        self.error = error
        self.entry = entry
        self.outer = outer
        self.place = place

    @property
    def recovery(self) -> str:
        """Text of the recovery step: what failed, and with which error."""
        kind, message = self.error
        return f"Recovered from {self.name}: {kind}" + (f": {message}" if message else "")


class Failures:
    """The errors of a run that no later step has followed yet."""

    __slots__ = ("pending",)

    def __init__(self) -> None:
        self.pending: list[Failure] = []

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
        elif kind == "error_recovery":
            if last is not None:
                outcomes[last] = False
                if last in waiting:
                    waiting.remove(last)
            last = None
        else:
            last = None
    return outcomes
