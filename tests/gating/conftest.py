"""Someone at a pseudo-terminal, who is asked by a console reviewer."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import threading
from contextlib import contextmanager

import pytest
from pexpect.fdpexpect import fdspawn

import grace_kp as gk
from tests.gating.inboxes import request_for

PROMPT = r"\[i\]nput > "


class Person:
    """Someone at a pseudo-terminal who is asked by a ConsoleReviewer in another thread."""

    def __init__(self, request, columns, rows):
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
        """What is shown up to the pattern."""
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
def _asked(arguments, *, columns=80, rows=40, start=True, **fields):
    person = Person(request_for(arguments, **{"timeout": 30, **fields}), columns, rows)
    try:
        if start:
            person.start()
        yield person
    finally:
        person.goes()


@pytest.fixture(name="request_for", scope="session")
def request_for_fixture():
    """A request with these arguments."""
    return request_for


@pytest.fixture(name="asked", scope="session")
def asked_fixture():
    """A context in which somebody at a pseudo-terminal is asked about these arguments."""
    return _asked
