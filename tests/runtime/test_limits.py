"""What bounds a writer and what it counts reach users through settings and the status."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.runtime._backlog import WriterStats


def test_the_status_shows_every_count():
    """A runtime that has recorded nothing has no writer and no counts."""
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as grace:
        assert {} == grace.status()["writer"]
        with grace.run("x"):
            pass
        assert grace.flush()
        counts = grace.status()["writer"]
    assert set(WriterStats.__slots__) == set(counts)
    assert (1, 1, 0, 0, 0) == tuple(counts[name] for name in ("settled", "written", "dropped", "lost", "pending"))


@pytest.mark.parametrize(("name", "value"), [("durability", "always"), ("overflow", "block")])
def test_other_promises_are_refused(name, value):
    """The message names the values that exist."""
    with pytest.raises(gk.SettingsError, match=name):
        gk.Grace(**{name: value})
