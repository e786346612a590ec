"""Chains for the tests of verification, export and retention: written by the library, then damaged as an accident or an attacker would."""

from __future__ import annotations

import dataclasses

from grace_kp.approvals import Actor, Row, append
from tests.approvals.tables import DictTables

ANA = Actor(name="ana", channel="cli")
STEPS = (("requested", "pending"), ("decided", "approved"), ("claimed", "claimed"), ("settled", "done"))


def new_row(name, at, **changes):
    """A row with what matters in a test."""
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
    """Replace fields of one link."""
    tables.chain[seq - 1] = dataclasses.replace(tables.chain[seq - 1], **changes)


def found(verification):
    """What was found, as pairs of number and kind."""
    return [(problem.seq, problem.kind) for problem in verification.problems]
