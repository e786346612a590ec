"""A scripted pipeline, for tests of the writer."""

from __future__ import annotations

from grace_kp.runtime._pipeline import Lost
from tests.store.samples import record


class Pipeline:
    """Settles numbers as records, and notes what follows once they are stored. It is its own completer."""

    has_open_runs = False
    is_busy = False
    is_mine = False
    parts = frozenset()

    def __init__(self):
        self.settled, self.followed, self.adopted, self.reports = [], [], [], []
        self.given_up = False
        self.completer = self
        self.completes = True

    def prepare(self):
        pass

    def settle(self, item):
        if item == "broken":
            raise ValueError("no")
        item = 90 + len(item.rows) if isinstance(item, Lost) else item
        self.settled.append(item)
        return (None, None) if item == "sampled out" else (record(item), f"after {item}")

    def add(self, stored):
        self.followed += stored

    def adopt(self, documents):
        self.adopted += documents

    def complete(self, deadline):
        return self.completes

    def give_up(self):
        self.given_up = True

    def journal(self):
        return iter(())

    def report(self, dropped, lost):
        self.reports.append((dropped, lost))
        return ("process", b"{}") if dropped or lost else None
