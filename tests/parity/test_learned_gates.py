"""A learned profile decides the same before a plain action and an async one."""

from __future__ import annotations

import asyncio
import math

import pytest

import grace_kp as gk
from grace_kp.testing import ScriptedReviewer, make_grace
from tests.runtime.learned import Learned

SCORES = [0.95, 0.75, 0.5, 0.1, ValueError("no head"), SystemExit(2), math.nan]


def plain(grace, act):
    @grace.agent
    def agent(question):
        return act()

    agent("q")


def in_a_coroutine(grace, act):
    @grace.agent
    async def agent(question):
        return await act()

    asyncio.run(agent("q"))


WORLDS = {plain: False, in_a_coroutine: True}


def decided(world, score, **settings):
    """The entry of a gated action after one call of a tool, and what the profile was asked."""
    profile = Learned(score)
    reviewer = ScriptedReviewer("proceed", "proceed")
    grace = make_grace(profile=profile, reviewer=reviewer, shadow="strict", audit_rate=1.0, **settings)
    look = grace.tool(lambda: "x", name="look")
    ran = []

    if WORLDS[world]:

        @grace.gate(name="act")
        async def act():
            return ran.append(1)

        @grace.tool(name="go on")
        async def go_on():
            look()
            return await act()

    else:

        @grace.gate(name="act")
        def act():
            return ran.append(1)

        @grace.tool(name="go on")
        def go_on():
            look()
            return act()

    with grace.collect() as traces:
        world(grace, go_on)
    (entry,) = traces[0].grace["decisions"]
    for name in ("id", "digest", "waited_ms", "response", "notice"):
        entry.pop(name, None)
    asked = [(moment, len(document["steps"])) for moment, document in profile.asked]
    return entry, asked, ran, reviewer.asked


@pytest.mark.parametrize("score", SCORES, ids=str)
def test_both_worlds_decide_alike(score):
    expected, found = decided(plain, score), decided(in_a_coroutine, score)
    assert expected == found
    assert 3 == found[0]["step"]
    if score != 0.95 and score != 0.75:
        assert found[0]["level"] in {"confirm", "escalate"}
        assert 1 == found[3]


@pytest.mark.parametrize("world", WORLDS)
def test_never_is_never_in_either_world(world):
    entry, _, _, asked = decided(world, 1.0, thresholds=gk.Thresholds(math.inf, math.inf, math.inf))
    assert ("escalate", 1) == (entry["level"], asked)
