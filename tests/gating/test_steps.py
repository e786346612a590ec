"""Steps are values: equal where they ask for the same, and unchangeable on their way to a driver."""

from __future__ import annotations

import asyncio
import dataclasses
import threading

import pytest

from grace_kp.gating import drive, drive_async
from grace_kp.gating._steps import Failed, NoAnswer, Run, Work


def test_steps_are_values():
    assert Run(None) == Run(None)
    assert NoAnswer() == NoAnswer()
    with pytest.raises(dataclasses.FrozenInstanceError):
        Run(None).consent = 1


@pytest.mark.parametrize("blocks", [False, True])
def test_work_that_blocks_is_kept_off_the_event_loop(blocks):
    """A plain call does it in its own thread, a coroutine in another one."""

    def engine():
        return (yield Work(threading.current_thread, blocks))

    here = threading.current_thread()
    assert here is drive(engine())
    assert blocks == (here is not asyncio.run(drive_async(engine())))


@pytest.mark.parametrize("blocks", [False, True])
def test_work_that_fails_comes_back_as_a_value(blocks):
    """The engine decides what follows."""
    error = OSError("disk full")

    def work():
        raise error

    def engine():
        return (yield Work(work, blocks))

    assert Failed(error) == drive(engine()) == asyncio.run(drive_async(engine()))
