"""Requests for tests: several processes at one store, a clock that tests set, and processes that tests end."""

from __future__ import annotations

import dataclasses
import json

from grace_kp.approvals import (
    Actor,
    ApprovalRequest,
    PolicyNow,
    RequestStore,
    RowQuery,
    digest,
    encode,
    new_approval_id,
    sealed_arguments,
)
from grace_kp.store import open_store

ANA, BO, CY = (Actor(name=name) for name in ("ana", "bo", "cy"))
GATE = Actor(name="gate", channel="gate")
SAME = PolicyNow()


def logged_in(name):
    return Actor(name=name, channel="web", authenticated=True)


class Clock:
    def __init__(self, now=1_000.0):
        self.now = now

    def __call__(self):
        return self.now


class ProcessTables:
    """The tables as one process sees them. `alive` is shared: what is known of each process."""

    def __init__(self, tables, process, alive):
        self._tables, self._process, self._alive = tables, process, alive
        alive[process] = True

    def __getattr__(self, name):
        return getattr(self._tables, name)

    def hold(self):
        return self._process

    def is_alive(self, process):
        return self._alive.get(process)


class Shop:
    """A store and its requests, as several processes see them."""

    def __init__(self, url="memory:", **settings):
        self.store = open_store(url)
        self.tables, self.alive, self.clock = self.store.approvals, {}, Clock()
        self.settings = settings
        self.requests = self.another("p1")

    def another(self, process, **settings):
        tables = ProcessTables(self.tables, process, self.alive)
        return RequestStore(tables, clock=self.clock, **{**self.settings, **settings})

    def kinds(self, approval=None):
        return [entry["kind"] for entry in self.entries(approval) if entry["kind"] != "viewed"]

    def entries(self, approval=None):
        return [json.loads(link.data) for link in self.tables.links(approval=approval, limit=100_000)]


def asked(arguments=None, **fields):
    """What a gate asks about `refund`."""
    values = {"invoice": "R-1", "euros": 500} if arguments is None else arguments
    encoded, problems = encode(values)
    assert {} == problems
    action, version = fields.pop("action", "refund"), fields.pop("version", "1")
    leave_out = fields.get("not_covered", ())
    closed = {name: {"$sealed": "AA==", "key": "another"} for name in fields.get("sealed", ())}
    usual = {
        "digest": digest(action, version, encoded, leave_out=leave_out),
        "encoded": {**encoded, **closed},
        "domain": "shop",
        "run_id": "run-1",
        "deadline_seconds": 3_600.0,
        "use_within_seconds": 600.0,
    }
    return ApprovalRequest(**{"action": action, "version": version, **usual, **fields})


def sealing(secret, arguments, names, **fields):
    """What a gate asks that has a key for secrets, and the arguments before sealing."""
    encoded, _ = encode(arguments)
    approval_id = new_approval_id()
    made = digest("refund", "1", encoded, secret=secret)
    stored, sealed = sealed_arguments(encoded, names, secret, approval_id=approval_id, digest=made)
    return asked(arguments, id=approval_id, digest=made, encoded=stored, sealed=sealed, **fields), encoded


def written(tables):
    """Everything that the tables hold, as one text."""
    texts = [link.data + (link.contents or b"") for link in tables.links(limit=100_000)]
    texts += [repr(row).encode() for row in tables.rows(RowQuery(limit=None))]
    texts += [data for kind in ("standing", "waiter", "webhook") for data in tables.documents(kind).values()]
    return b"".join(texts).decode("utf-8", "replace")


def keyed(arguments=None, **fields):
    new = asked(arguments, **fields)
    return dataclasses.replace(new, key=f"refund:{new.encoded['invoice']}", key_fields=("invoice",))


def claim(requests, approval, **changes):
    """Claim what was decided, as the gate does."""
    fields = {"digest": approval.digest, "version": approval.version, "policy": SAME, "by": GATE}
    return requests.claim(approval.id, **{**fields, **changes})
