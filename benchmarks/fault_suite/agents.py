"""Agents that are broken by the fault suite. They keep a log of their own: which runs began and returned, when, and what `flush()` returned.

The log is appended by `os.write`, so it survives every end of the process. It holds monotonic times, which all processes of a
machine share.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import struct
import threading
import time
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import grace_kp as gk
from grace_kp.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

# A token as GitHub issues them, in two pieces so that scanners of source code let it pass. It must never reach a file.
SECRET = "ghp_" + "qT7mW2xK9vB4nR6yL1sD8hJ3" + "cF5gZ0pUaEiO"
ENTRY = struct.Struct("<cqq")
BEGUN, RETURNED, FLUSHING, FLUSHED, UNFLUSHED = b"B", b"R", b"f", b"T", b"N"
JUDGEMENT = '{"score": 0.8, "reason": "fine", "coverage": 0.7, "coverage_reason": "fine"}'
STEADY_PER_SECOND = 400
KNOWN = {item.name for item in fields(Settings)}


class Log:
    """Appends entries to a file; any number of threads and processes may share it."""

    def __init__(self, path: Path | str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, kind: bytes, number: int) -> None:
        os.write(self._file, ENTRY.pack(kind, number, time.monotonic_ns()))


@dataclass
class History:
    """A log that was read back. Times are monotonic nanoseconds."""

    begun: set[int] = field(default_factory=set)
    returned: dict[int, int] = field(default_factory=dict)
    flushed: set[int] = field(default_factory=set)
    """Runs that had returned before a `flush()` began that returned True."""
    flushes: list[bool] = field(default_factory=list)
    last: int = 0

    @classmethod
    def read(cls, path: Path) -> History:
        history, ended_before = cls(), {}
        data = path.read_bytes() if path.exists() else b""
        for kind, number, moment in ENTRY.iter_unpack(data[: len(data) - len(data) % ENTRY.size]):
            history.last = max(history.last, moment)
            if kind == BEGUN:
                history.begun.add(number)
            elif kind == RETURNED:
                history.returned[number] = moment
            elif kind == FLUSHING:
                ended_before[number] = set(history.returned)
            else:
                history.flushes.append(kind == FLUSHED)
                if kind == FLUSHED:
                    history.flushed |= ended_before[number]
        return history


@dataclass(frozen=True)
class Plan:
    """How an agent records, and in which surroundings."""

    durability: str = "fast"
    overflow: str = "drop"
    style: str = "sync"
    """`sync`, `threads` or `async`."""
    steady: bool = True
    """True for 400 runs a second, False for as many as possible."""
    judged: bool = True
    """Whether a slow judge and a scorer are configured."""
    judge_seconds: float = 0.05
    flush_share: float = 0.02
    """Share of the runs after which the agent calls `flush()`."""
    seed: int = 0
    settings: tuple[tuple[str, Any], ...] = ()


def runtime(path: Path | str, plan: Plan) -> gk.Grace:
    """A runtime on this file. Settings that this version does not know are left out, so that earlier versions can be measured."""

    def judge(prompt: str) -> str:
        time.sleep(plan.judge_seconds)
        return JUDGEMENT

    def has_answer(trace: Any) -> float:
        return 1.0

    wanted = {
        "durability": plan.durability,
        "overflow": plan.overflow,
        "judge_calls_per_minute": 0,
        **dict(plan.settings),
    }
    return gk.Grace(
        store=f"sqlite:///{path}",
        embedder=None,
        evaluator=judge if plan.judged else None,
        scorers=[has_answer] if plan.judged else (),
        **{name: value for name, value in wanted.items() if name in KNOWN},
    )


class Agents:
    """Recorded agents and their log. `objective` carries the number of a run into the store."""

    def __init__(self, grace: gk.Grace, log: Log, *, first: int = 0) -> None:
        self.grace, self.log = grace, log
        self._numbers, self._flushes = itertools.count(first), itertools.count(first)

        @grace.tool
        def search(query: str) -> str:
            return query[::-1]

        @grace.agent(objective="run {number}")
        def agent(number: int, note: str) -> str:
            search(f"{note} {SECRET}")
            return "done"

        @grace.tool
        async def search_async(query: str) -> str:
            await asyncio.sleep(0)
            return query[::-1]

        @grace.agent(objective="run {number}")
        async def agent_async(number: int, note: str) -> str:
            await search_async(f"{note} {SECRET}")
            return "done"

        self._agent, self._agent_async = agent, agent_async

    def renumber(self, first: int) -> None:
        """Number the next runs from `first`: processes that share a runtime must not share numbers."""
        self._numbers, self._flushes = itertools.count(first), itertools.count(first)

    def run(self) -> None:
        number = next(self._numbers)
        self.log.note(BEGUN, number)
        self._agent(number, "what is the password?")
        self.log.note(RETURNED, number)

    async def run_async(self) -> None:
        number = next(self._numbers)
        self.log.note(BEGUN, number)
        await self._agent_async(number, "what is the password?")
        self.log.note(RETURNED, number)

    def flush(self, timeout: float = 30.0) -> bool:
        number = next(self._flushes)
        self.log.note(FLUSHING, number)
        flushed = self.grace.flush(timeout)
        self.log.note(FLUSHED if flushed else UNFLUSHED, number)
        return flushed

    def work(self, plan: Plan) -> None:
        """Run for ever in the style of the plan."""
        if plan.style == "async":
            asyncio.run(self._work_async(plan))
            return
        threads = 4 if plan.style == "threads" else 1
        for index in range(1, threads):
            threading.Thread(target=self._loop, args=(plan, index, threads), daemon=True).start()
        self._loop(plan, 0, threads)

    def _loop(self, plan: Plan, index: int, threads: int) -> None:
        chance = random.Random(plan.seed * 10 + index)
        due = time.monotonic()
        while True:
            if plan.steady:
                due += threads / STEADY_PER_SECOND
                time.sleep(max(0.0, due - time.monotonic()))
            self.run()
            if chance.random() < plan.flush_share:
                self.flush()

    async def _work_async(self, plan: Plan) -> None:
        tasks = 8
        await asyncio.gather(*(self._loop_async(plan, index, tasks) for index in range(tasks)))

    async def _loop_async(self, plan: Plan, index: int, tasks: int) -> None:
        chance = random.Random(plan.seed * 10 + index)
        due = time.monotonic()
        while True:
            if plan.steady:
                due += tasks / STEADY_PER_SECOND
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self.run_async()
            if chance.random() < plan.flush_share:
                await asyncio.to_thread(self.flush)
