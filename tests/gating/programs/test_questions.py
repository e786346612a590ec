"""What is kept of the questions about one call, so that a program that runs again asks the same number of them."""

from __future__ import annotations

from grace_kp.gating import InMemory
from grace_kp.gating.programs import Questions


def questions_in(ledger, key="call"):
    return Questions(lambda: ledger, key)


def test_the_first_approval_stays():
    """Whoever files a second finds the first."""
    ledger = InMemory()
    assert None is questions_in(ledger).approval()
    assert "ap-1" == questions_in(ledger).file("ap-1") == questions_in(ledger).file("ap-2")
    assert None is questions_in(ledger, "another").approval()


def test_a_question_is_kept_as_it_was_first_asked():
    """With the digests that it showed; without any where its answer was void."""
    ledger = InMemory()
    first, again = questions_in(ledger), questions_in(ledger)
    assert None is first.shown(0)
    assert ["sha256:a"] == first.ask(0, ["sha256:a"]) == again.ask(0, [])
    assert [] == again.ask(1, []) == first.ask(1, ["sha256:b"])
    assert (["sha256:a"], [], None) == (first.shown(0), first.shown(1), first.shown(2))
    first.file("ap-1")
    assert (["sha256:a"], "ap-1") == (again.shown(0), again.approval())


class Busy(InMemory):
    """A ledger whose entry another process changes right before the first write."""

    def put_action(self, key, data, *, only_if):
        if self.others:
            super().put_action(key, self.others.pop(), only_if=only_if)
        return super().put_action(key, data, only_if=only_if)


def test_two_processes_agree():
    """The one whose write came second takes what is there."""
    ledger = Busy()
    ledger.others = [b'{"approval": "ap-other", "shown": [["sha256:other"]]}']
    assert "ap-other" == questions_in(ledger).file("ap-1")
    assert ["sha256:other"] == questions_in(ledger).ask(0, ["sha256:a"])
