"""The inbox of a runtime, and the receivers that are notified."""

from __future__ import annotations

from grace_kp.approvals import Notifier
from grace_kp.store import open_store


def test_a_process_is_an_actor_of_the_gate():
    """Claims and withdrawals name it and its host."""
    from tests.gating.inboxes import runtime

    process = runtime()._gates().inbox.process
    assert ("gate", "gate", False) == (process.name, process.channel, process.authenticated)


def test_nobody_is_notified_without_receivers():
    """Then nothing is to be waited for."""
    notifier = Notifier(open_store("memory:").approvals)
    notifier.add(())
    notifier.wake()
    assert notifier.flush(0.1)
