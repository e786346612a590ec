"""The user of a run is that of the nearest run around it."""

from __future__ import annotations

from grace_kp.record import current_run, nearest
from grace_kp.testing import make_grace


def test_a_nested_run_has_the_user_around_it():
    """Unless it states its own."""
    grace = make_grace()
    seen = []

    @grace.agent
    def inner(question):
        seen.append(nearest(current_run(), "user"))

    @grace.agent(user="bo")
    def own(question):
        seen.append(nearest(current_run(), "user"))

    with grace.run("outer", user="ana"):
        inner("x")
        own("x")
    inner("x")
    assert ["ana", "bo", None] == seen
