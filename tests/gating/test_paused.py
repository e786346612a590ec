"""The way to a decision in a program that pauses: each question once for each answer, and none is answered before it was asked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.gating import InMemory, LedgerEntry, ProgramAnswer, Questions
from grace_kp.record import HOST, Framework, Signal


class Paused(Exception): ...


class Program:
    """Runs a function again for each answer, and gives its questions the answers in their order."""

    origin = "fake"
    pause = Paused

    interrupts = True

    def __init__(self):
        self.answers, self.asked, self.remembered = [], [], 0
        self._number = self._question = 0

    def run(self, function):
        self._number = self._question = 0
        return function()

    def begin(self):
        self._number += 1

    def end(self): ...

    def wait(self): ...

    async def wait_async(self): ...

    def may_have_forgotten(self, ledger): ...

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


def asks(program, function):
    with pytest.raises(program.pause):
        program.run(function)
    return program.asked[-1]


def test_a_question_pauses_the_program_until_it_is_decided(grace, program):
    pay = grace.gate(floor="confirm", name="pay")(lambda euros: f"paid {euros}")
    approval, arguments, _ = asks(program, lambda: pay(5))
    assert ({"euros": 5}, 1) == (arguments, program.remembered)
    asked = grace.approvals.get(approval)
    assert ("fake", "interrupt", "here", True) == (
        asked.origin, asked.waits, asked.note["place"], "fake|1|pay" in asked.key,
    )  # fmt: skip
    program.answers.append(ProgramAnswer("retry", looks=True))
    assert approval == asks(program, lambda: pay(5))[0]
    grace.approvals.approve(approval, by="ana")
    program.answers.append(ProgramAnswer("retry", looks=True))
    assert "paid 5" == program.run(lambda: pay(5)) == program.run(lambda: pay(5))
    assert (1, "done") == (program.remembered, grace.approvals.get(approval).state)


def test_an_answer_that_was_there_before_its_question_is_void(grace, program):
    """It was meant for another question, also when the program runs once more."""
    ran = []
    pay = grace.gate(floor="confirm", name="pay")(ran.append)
    program.answers.append(ProgramAnswer("proceed"))
    approval, _, _ = asks(program, lambda: pay(5))
    asks(program, lambda: pay(5))
    assert ([], "pending") == (ran, grace.approvals.get(approval).state)
    program.answers.append(ProgramAnswer("proceed"))
    program.run(lambda: pay(5))
    assert [5] == ran


def test_the_next_call_never_gets_an_answer_of_this_one(grace, program):
    """A call that took two answers takes two each time, though it is decided before the second."""
    ran = []
    first = grace.gate(floor="confirm", name="first")(ran.append)
    second = grace.gate(floor="confirm", name="second")(ran.append)

    def body():
        first(1)
        second(2)

    asks(program, body)
    program.answers.append(ProgramAnswer("proceed", problem="not usable"))
    assert "not usable" == asks(program, body)[2]
    program.answers.append(ProgramAnswer("proceed"))
    approval, _, _ = asks(program, body)
    assert ([1], "pending") == (ran, grace.approvals.get(approval).state)
    for _ in range(2):
        assert approval == asks(program, body)[0]
    program.answers.append(ProgramAnswer("cancel"))
    with pytest.raises(Exception, match="fake refused second"):
        program.run(body)
    assert [1] == ran


def test_a_standing_approval_asks_nobody(grace, program):
    grace.approvals.grant("pay", {"euros": {"from": 0, "to": 10}}, until="1h", uses=5, by="ana")
    pay = grace.gate(floor="confirm", name="pay")(lambda euros: f"paid {euros}")
    assert "paid 5" == program.run(lambda: pay(5)) == program.run(lambda: pay(5))
    assert [] == program.asked
    assert 1 == grace.approvals.standing()[0].used


def questions_in(ledger):
    return Questions(lambda: ledger, "call")


def test_a_question_is_kept_as_it_was_first_asked():
    """With the digests that it showed; without any where its answer was void."""
    ledger = InMemory()
    first, again = questions_in(ledger), questions_in(ledger)
    assert None is first.asked_digests(0)
    assert ["sha256:a"] == first.ask(0, ["sha256:a"]) == again.ask(0, [])
    assert [] == again.ask(1, []) == first.ask(1, ["sha256:b"])
    assert (["sha256:a"], [], None) == (first.asked_digests(0), first.asked_digests(1), first.asked_digests(2))
    assert "ap-1" == first.file("ap-1") == again.file("ap-2") == again.approval()
    assert ["sha256:a"] == again.asked_digests(0)
    ledger = Busy()
    ledger.others = [b'{"approval": "ap-other", "shown": [["sha256:other"]]}']
    assert "ap-other" == questions_in(ledger).file("ap-1")
    assert ["sha256:other"] == questions_in(ledger).ask(0, ["sha256:a"])


class Busy(InMemory):
    """A ledger whose entry another process changes right before the first write."""

    def put_action(self, key, data, *, only_if):
        if self.others:
            super().put_action(key, self.others.pop(), only_if=only_if)
        return super().put_action(key, data, only_if=only_if)


def test_what_a_process_without_the_inbox_has_run_is_not_run_again(grace, program):
    """The claim of the ledger stands beside that of the inbox, and its outcome is taken over."""
    ran = []
    pay = grace.gate(floor="confirm", name="pay")(ran.append)
    approval, _, _ = asks(program, lambda: pay(5))
    grace.approvals.approve(approval, by="ana")
    entry = LedgerEntry(lambda: grace.store, "fake|1|pay")
    assert None is entry.claim()
    entry.record("done", "paid there", keep=True)
    program.answers.append(ProgramAnswer("retry", looks=True))
    assert "paid there" == program.run(lambda: pay(5))
    assert ([], "done") == (ran, grace.approvals.get(approval).state)


def test_what_it_has_begun_is_unknown(grace, program):
    pay = grace.gate(floor="confirm", name="pay")(lambda euros: euros)
    approval, _, _ = asks(program, lambda: pay(5))
    grace.approvals.approve(approval, by="ana")
    LedgerEntry(lambda: grace.store, "fake|1|pay").claim()
    program.answers.append(ProgramAnswer("retry", looks=True))
    with pytest.raises(gk.ActionOutcomeUnknown):
        program.run(lambda: pay(5))
    assert "unknown" == grace.approvals.get(approval).state
