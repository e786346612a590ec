"""Gated actions, and people who decide requests in an inbox while a gate waits in another thread."""

from __future__ import annotations

import asyncio
import threading

import grace_kp as gk
from grace_kp.testing import make_grace


def request_for(arguments, level="confirm", **fields):
    """A request with these arguments."""
    decision = gk.ActionDecision(gk.InterventionLevel(level), 0.5, "because")
    stated = {"id": "1", "action": "act", "digest": "", "level": decision.level, "decision": decision}
    return gk.InterventionRequest(arguments=arguments, **{**stated, **fields})


def runtime(tmp_path=None, **settings):
    """A runtime with an inbox, in memory or in a file."""
    store = "memory:" if tmp_path is None else f"sqlite:///{tmp_path}/app.db"
    return make_grace(store=store, **settings)


class Person:
    """Somebody who does the same with each of the next requests."""

    def __init__(self, grace, decide, count):
        self._grace, self._decide, self._count = grace, decide, count
        self.seen = []
        self._changes = grace.approvals.watch()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self):
        for change in self._changes:
            if change.kind == "requested":
                self.seen.append(self._grace.approvals.get(change.approval))
                self._decide(self._grace.approvals, change.approval)
                if len(self.seen) == self._count:
                    return

    def leaves(self):
        """Return what was asked, once all is decided."""
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.seen


def deciding(grace, decide, count=1):
    """Let a person decide the next requests: `decide(approvals, id)`."""
    return Person(grace, decide, count)


def approving(grace, count=1):
    """Let a person approve the next requests."""
    return deciding(grace, lambda approvals, name: approvals.approve(name, by="ana"), count)


def gated(grace, *, is_async=False, **options):
    """An action on one value, sync or async, as a plain function; and the values with which it ran."""
    ran = []

    def act(it):
        ran.append(it)
        return "done"

    async def act_async(it):
        return act(it)

    gate = grace.gate(**{"name": "act", **options})
    return (lambda it: asyncio.run(gate(act_async)(it))) if is_async else gate(act), ran
