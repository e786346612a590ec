"""What carrying on a thread has led to."""

from __future__ import annotations

from grace_kp.approvals import Resumed


def test_it_does_not_print_what_the_graph_returned():
    """Which may be large, or not for every eye."""
    assert "secret" not in repr(Resumed(thread="1", output={"messages": ["secret"]}))
