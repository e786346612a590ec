"""Gated actions, and people who decide while a gate waits in another thread: about requests in an inbox, and at a pseudo-terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import termios
import threading
from contextlib import contextmanager

import grace_kp as gk
from grace_kp.testing import make_grace


def request_for(arguments, level="confirm", **fields):
    decision = gk.ActionDecision(gk.InterventionLevel(level), 0.5, "because")
    stated = {"id": "1", "action": "act", "digest": "", "level": decision.level, "decision": decision}
    return gk.InterventionRequest(arguments=arguments, **{**stated, **fields})


def runtime(tmp_path=None, **settings):
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
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.seen


def deciding(grace, decide, count=1):
    """Let a person decide the next requests: `decide(approvals, id)`."""
    return Person(grace, decide, count)


def approving(grace, count=1):
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


PROMPT = r"\[i\]nput > "


class PersonAtTerminal:
    """Someone at a pseudo-terminal who is asked by a ConsoleReviewer in another thread."""

    def __init__(self, request, columns, rows):
        from pexpect.fdpexpect import fdspawn  # which the environments of other interpreters lack

        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen = fdspawn(self.master, encoding="utf-8", timeout=60)
        self.screen.delaybeforesend = None
        self._stdin = os.fdopen(slave, encoding="utf-8")
        self._stdout = os.fdopen(os.dup(slave), "w", encoding="utf-8")
        self.response = None
        self._thread = threading.Thread(target=self._review, args=[request], daemon=True)

    def _review(self, request):
        self.response = gk.ConsoleReviewer(stdin=self._stdin, stdout=self._stdout).review(request)

    def start(self):
        self._thread.start()

    def sees(self, pattern=PROMPT):
        self.screen.expect(pattern)
        return self.screen.before

    def types(self, text):
        os.write(self.master, text.encode())

    def answered(self):
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.response

    def goes(self):
        """Answer no where the question is still open, and close the terminal."""
        if self._thread.is_alive() and self._thread.ident:
            self.types("n\n")
            self.sees("Why?")
            self.types("\n")
            self._thread.join(60)
        self._stdin.close()
        self._stdout.close()
        os.close(self.master)


@contextmanager
def asked(arguments, *, columns=80, rows=40, start=True, **fields):
    """Somebody at a pseudo-terminal who is asked about these arguments."""
    person = PersonAtTerminal(request_for(arguments, **{"timeout": 30, **fields}), columns, rows)
    try:
        if start:
            person.start()
        yield person
    finally:
        person.goes()
