"""Calls in threads: deadlines, event loops, several at a time, and when a service wants to be asked again."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from grace_kp.background import (
    DeadlineExceeded,
    await_within,
    call_within,
    finish,
    for_each,
    in_thread,
    retry_after,
)
from grace_kp.background._calls import BackgroundThread

PLACE = contextvars.ContextVar("place", default="nowhere")


async def soon(value):
    await asyncio.sleep(0)
    return value


@pytest.fixture
def no_threads(monkeypatch):

    def start(_thread):
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(BackgroundThread, "start", start)


class TestCallWithin:
    def test_gives_the_result(self):
        token = PLACE.set("here")
        try:
            place, thread = call_within(60, lambda: (PLACE.get(), threading.current_thread()), name="probe")
        finally:
            PLACE.reset(token)
        assert ("here", "grace_kp probe", True) == (place, thread.name, thread.daemon)

    @pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
    def test_raises_what_the_call_raises(self, error):
        def fail():
            raise error

        with pytest.raises(type(error)) as caught:
            call_within(60, fail, name="probe")
        assert error is caught.value

    def test_abandons_a_call_that_takes_too_long(self):
        release, ended = threading.Event(), threading.Event()

        def hang():
            release.wait(60)
            ended.set()

        with pytest.raises(DeadlineExceeded, match=r"^probe took longer than 0\.01 s$"):
            call_within(0.01, hang, name="probe")
        release.set()
        assert ended.wait(60)

    def test_at_exit_it_runs_inline_where_that_is_wanted(self, no_threads):
        assert threading.current_thread() is call_within(1, threading.current_thread, name="probe", or_inline=True)
        with pytest.raises(RuntimeError, match="interpreter shutdown"):
            call_within(1, threading.current_thread, name="probe")


class TestFinish:
    def test_an_awaitable_is_run_beside_a_running_loop(self):

        async def outer():
            return finish(soon(4))

        assert 4 == asyncio.run(outer())

    def test_the_loop_that_is_set_in_this_thread_stays_set(self):
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            assert 5 == finish(soon(5))
            assert loop is asyncio.get_event_loop()
        finally:
            asyncio.set_event_loop(None)
            loop.close()


class TestAsync:
    async def test_a_plain_call_leaves_the_loop_free(self):
        release = threading.Event()
        PLACE.set("here")

        def wait():
            assert release.wait(60)
            return PLACE.get()

        task = asyncio.ensure_future(in_thread(wait, name="probe"))
        await asyncio.sleep(0)
        release.set()
        assert "here" == await task

    def test_the_loop_may_close_while_a_thread_runs(self):
        """Neither the loop nor its `asyncio.run` waits for a thread that nobody waits for any more."""
        release, ended = threading.Event(), threading.Event()

        def hang():
            release.wait(60)
            ended.set()

        async def outer():
            with pytest.raises(DeadlineExceeded, match=r"^it took longer than 0\.01 s$"):
                await await_within(0.01, in_thread(hang, name="probe"))

        asyncio.run(outer())
        release.set()
        assert ended.wait(60)

    async def test_what_takes_too_long_is_cancelled_and_not_waited_for(self):
        """A coroutine that swallows its cancellation does not hold the caller up."""
        cancelled, release = asyncio.Event(), asyncio.Event()

        async def stubborn():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                await release.wait()

        with pytest.raises(DeadlineExceeded):
            await await_within(0.01, stubborn())
        await cancelled.wait()
        release.set()

    async def test_cancelling_the_caller_cancels_the_awaitable(self):
        started, cancelled = asyncio.Event(), asyncio.Event()

        async def work():
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        task = asyncio.ensure_future(await_within(None, work()))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await cancelled.wait()


class TestForEach:
    @pytest.mark.parametrize("threads", [1, 2, 4])
    def test_does_the_work_for_each_item(self, threads):
        done = []
        for_each(done.append, range(20), threads=threads, name="probe")
        assert list(range(20)) == sorted(done)

    @pytest.mark.parametrize("threads", [1, 3])
    def test_raises_what_the_work_raises(self, threads):
        with pytest.raises(ZeroDivisionError):
            for_each(lambda number: 1 / number, [2, 0, 1], threads=threads, name="probe")

    def test_at_exit_the_work_is_done_here(self, monkeypatch):
        from concurrent.futures import ThreadPoolExecutor

        def submit(*_):
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")

        monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
        done = []
        for_each(done.append, range(3), threads=2, name="probe")
        assert [0, 1, 2] == done


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0), ("7", 7), ("-5", 0), ("1e400", 1e9), ("nan", None), ("soon", None), (None, None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Thu, 99 Jan 1970 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_seconds_of_a_header(header, seconds):
    assert seconds == retry_after(header)


def test_a_date_is_seconds_from_now():
    asked = retry_after(format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True))
    assert 3_500 < asked <= 3_600
