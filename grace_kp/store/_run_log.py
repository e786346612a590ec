"""The order in which a store in memory got its runs and labels, so that a catalog can follow it."""

from __future__ import annotations

import itertools


class RunLog:
    """Numbers the runs and labels of a store in memory, so that a catalog sees what is new."""

    def __init__(self) -> None:
        self._next = itertools.count(1)
        self.runs: dict[str, int] = {}
        """The number of each run, in ascending order."""
        self.labels: dict[str, int] = {}
        """The number of the latest label of a run."""
        self.changes = 0
        """Grows with every change."""

    def stored(self, name: str) -> None:
        """Note that a run was stored, or stored again."""
        self.runs.pop(name, None)
        self.runs[name] = next(self._next)
        self.changes += 1

    def was_labelled(self, name: str) -> None:
        """Note a label."""
        self.labels.pop(name, None)
        self.labels[name] = next(self._next)
        self.changes += 1

    def dropped(self, name: str) -> None:
        """Note that a run was removed."""
        self.runs.pop(name, None)
        self.labels.pop(name, None)
        self.changes += 1

    def clear(self) -> None:
        """Note that all runs were removed."""
        self.runs.clear()
        self.labels.clear()
        self.changes += 1
