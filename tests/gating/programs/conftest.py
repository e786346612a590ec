"""A program that pauses to ask and runs again, without any framework."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.gating import ProgramAnswer
from grace_kp.record import HOST, Framework, Signal


class Paused(Exception):
    """The program stops here."""


class Program:
    """Runs a function again for each answer, and gives its questions the answers in their order."""

    origin = "fake"
    pause = Paused

    def __init__(self):
        self.answers, self.asked, self.remembered = [], [], 0
        self._number = self._question = 0

    def run(self, function):
        self._number = self._question = 0
        return function()

    def begin(self):
        self._number += 1

    def wait(self):
        pass

    async def wait_async(self):
        pass

    def end(self):
        pass

    def may_have_forgotten(self, ledger):
        return False

    def ledger_key(self, action):
        return f"fake|{self._number}|{action}"

    def whereabouts(self):
        return {"place": "here"}

    def remember(self, inbox):
        self.remembered += 1

    def asking(self, approval):
        def review(request):
            self._question += 1
            if self._question <= len(self.answers):
                return self.answers[self._question - 1]
            self.asked.append((approval, dict(request.arguments), request.problem))
            raise Paused

        return SimpleNamespace(review=review, pauses=True, name="fake", stores=lambda text: True)

    @property
    def reviewer(self):
        return self.asking("")


@pytest.fixture
def program():
    program = Program()
    adapter = SimpleNamespace(resumable=lambda: program)
    HOST.register(
        Framework("fake", package="sys", load=lambda: adapter, signals={"Paused": Signal("suspended", pauses=True)})
    )
    yield program
    del HOST.frameworks["fake"], HOST.signals["Paused"]


@pytest.fixture
def grace():
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=gk.InboxReviewer())
    yield grace
    grace.close()


@pytest.fixture
def says():
    """An answer to the program."""
    return lambda action, **more: ProgramAnswer(action, **more)
