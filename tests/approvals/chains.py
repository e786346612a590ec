"""Tables in a dictionary, and chains in them that tests damage as an accident or an attacker would."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager

from grace_kp.approvals import Actor, Row, append

ANA = Actor(name="ana", channel="cli")
STEPS = (("requested", "pending"), ("decided", "approved"), ("claimed", "claimed"), ("settled", "done"))


class DictTables:
    """Rows and entries of one process, without documents."""

    identity = "store-1"

    def __init__(self):
        self.table, self.chain = {}, []

    @contextmanager
    def transaction(self):
        yield self

    def row(self, approval):
        return self.table.get(approval)

    def rows(self, query):
        found = sorted(self.table.values(), key=lambda row: (-row.changed, row.id))
        return found[query.offset :][: query.limit]

    def count(self, _query):
        return len(self.table)

    def put(self, row):
        self.table[row.id] = row
        return True

    def link(self, seq):
        return next((link for link in self.chain if link.seq == seq), None)

    def links(self, *, after=0, limit=1_000, approval=None, kept=False):
        found = [link for link in self.chain if link.seq > after and approval in {None, link.approval}]
        return [link for link in found if link.contents is not None or not kept][:limit]

    def head(self):
        return (self.chain[-1].seq, self.chain[-1].hash) if self.chain else (0, "")

    def append(self, link):
        self.chain.append(link)

    def documents(self, _kind):
        return {}

    def forget(self, seqs):
        seqs = {link.seq for link in self.chain if link.seq in set(seqs) and link.salt is not None}
        self.chain = [
            dataclasses.replace(link, salt=None, contents=None) if link.seq in seqs else link for link in self.chain
        ]
        return len(seqs)


def new_row(name, at, **changes):
    usual = {"id": name, "state": "pending", "action": "refund", "domain": "shop", "key": None, "digest": "sha256:00"}
    times = {"run_id": None, "level": 2, "deadline": at + 60.5, "created": at, "changed": at, "revision": 1}
    return Row(**{**usual, **times, **changes})


def advance(tables, name, at):
    """Take an approval one step further, from the request to the outcome."""
    with tables.transaction() as writes:
        known = writes.row(name)
        kind, state = STEPS[known.revision if known else 0]
        row = (
            dataclasses.replace(known, state=state, revision=known.revision + 1, changed=at)
            if known
            else new_row(name, at)
        )
        assert writes.put(row)
        contents = None if kind == "claimed" else {"note": f"contents of {name}"}
        return append(writes, kind, at=at, approval=name, revision=row.revision, actor=ANA, contents=contents)


def chain_of(steps, tables=None):
    """Tables with a chain: each step is the number of the approval that goes on."""
    tables = DictTables() if tables is None else tables
    for at, number in enumerate(steps, 1):
        name = f"ap-{number}"
        known = tables.row(name)
        if known is None or known.revision < len(STEPS):
            advance(tables, name, float(at))
    return tables


def damage(tables, seq, **changes):
    tables.chain[seq - 1] = dataclasses.replace(tables.chain[seq - 1], **changes)


def found(verification):
    return [(problem.seq, problem.kind) for problem in verification.problems]
