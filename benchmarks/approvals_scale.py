"""What approvals cost when there are many: listing, deciding, waking and verifying beside 100, 10,000 and 1,000,000 past requests.

Each store also holds 10,000 pending requests. Past and pending requests are copies of one that went through the real verbs, with their own ids,
keys and digests, and one entry of the chain each, so that they have the size of real ones. The store is a file on the disk, and every decision
waits for it (`synchronous=FULL`).

Waking is the time from a decision, committed in another process, to the first line of the action in the process that waits. `--task gates`
measures gates without an inbox alone, and runs with earlier versions, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from _measure import figure, flags, machine, median_seconds, print_table

import grace_kp as gk
import grace_kp.calibrate as cal
from grace_kp.calibrate._actions import MODELLED
from grace_kp.confidence import LOWERING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PENDING = 10_000
ACTIONS = 30
MOST_CHAINED = 100_000
"""Beyond this, entries are copies whose hashes are not computed, so that filling takes a minute; the chain of such a store is not verified."""
BATCH = 20_000
ALONE = 20
REFUND = "refund"


# Filling


def templates(grace: gk.Grace) -> tuple[Any, Any, Any]:
    """Return the rows of a pending and of a done request, and the first entry of the chain with its contents."""

    @grace.gate(floor="confirm", key="refund:{invoice}", reviewer=gk.InboxReviewer(deadline="30d", wait="raise"))
    def refund(invoice: str, euros: int, note: str) -> str:
        return "refunded"

    @grace.agent(objective="refund what was paid twice")
    def agent() -> None:
        with suppress(gk.ActionPending):
            refund("A-1", 20, "the customer was charged twice for the same order")

    tables = grace.store.approvals
    agent()
    approval = grace.approvals.pending()[0]
    pending, entry = tables.row(approval.id), tables.links(approval=approval.id)[0]
    grace.approvals.approve(approval.id, by="ana", note="checked with the shop")
    refund("A-1", 20, "the customer was charged twice for the same order")
    return pending, tables.row(approval.id), entry


def fill(path: Path, past: int) -> None:
    """Write past and pending requests."""
    from grace_kp.approvals import Actor, append
    from grace_kp.approvals._chain import contents_of

    grace = runtime(path)
    pending, done, entry = templates(grace)
    contents, actor, chance = contents_of(entry), Actor.here("gate", channel="gate"), random.Random(1)
    facts = {"level": "confirm", "quorum": 1, "groups": [], "run": None}
    tables = grace.store.approvals
    data = {row.state: json.loads(row.data) for row in (pending, done)}
    total = past + PENDING
    for begin in range(0, total, BATCH):
        with tables.transaction() as writes:
            for number in range(begin, min(begin + BATCH, total)):
                kind = done if number < past else pending
                seq = writes.head()[0] + 1
                deadline = None if number < past else time.time() + 86_400 * (1 + chance.random())
                text = {**data[kind.state], "request": seq, "deadline": deadline}
                row = replace(
                    kind,
                    id=f"ap-{number:016x}",
                    action=f"{REFUND}_{number % ACTIONS}",
                    key=f"{number:064x}",
                    digest=f"sha256:{number:064x}",
                    run_id=f"kp:trace:{number:032x}",
                    deadline=deadline,
                    created=1.7e9 + number,
                    changed=1.7e9 + number,
                    revision=1,
                    data=json.dumps({**text, "asked_digest": f"sha256:{number:064x}"}, separators=(",", ":")).encode(),
                )
                writes.put(row)
                if past <= MOST_CHAINED:
                    append(
                        writes,
                        "requested",
                        at=row.created,
                        approval=row.id,
                        revision=1,
                        actor=actor,
                        facts=facts,
                        contents=contents,
                    )
                else:
                    writes.append(replace(entry, seq=seq, hash=f"{seq:064x}", approval=row.id))
    grace.close()


def runtime(path: Path | str) -> gk.Grace:
    """Return a runtime on a file."""
    return gk.Grace(store=f"sqlite:///{path}", embedder=None, evaluator=None)


# Listing and deciding


def milliseconds(work: Callable[[], object], times: int) -> tuple[float, float]:
    """Return the median and the 95th percentile of so many calls."""
    spent = []
    for _ in range(times):
        start = perf_counter()
        work()
        spent.append((perf_counter() - start) * 1e3)
    spent.sort()
    return statistics.median(spent), spent[int(0.95 * (times - 1))]


def verbs(path: Path, past: int) -> dict[str, tuple[float, float]]:
    """Measure lists and verbs."""
    grace = runtime(path)
    approvals = grace.approvals
    ids = iter([f"ap-{number:016x}" for number in range(past, past + PENDING)])
    old = f"ap-{past // 2:016x}"
    since = 1.7e9 + past - 50
    return {
        "list 100 pending": milliseconds(lambda: approvals.pending(limit=100), 15),
        "list 100 pending of an action": milliseconds(lambda: approvals.pending(f"{REFUND}_7", limit=100), 15),
        "history, newest 100": milliseconds(lambda: approvals.history(limit=100), 15),
        "history since a moment": milliseconds(lambda: approvals.history(since=since, limit=100), 15),
        "show one": milliseconds(lambda: approvals.get(old), 50),
        "approve": milliseconds(lambda: approvals.approve(next(ids), by="ana"), 100),
        "reject": milliseconds(lambda: approvals.reject(next(ids), by="ana"), 100),
        "sweep with nothing due": milliseconds(approvals.sweep, 15),
        "ask (raise)": asking(grace),
    }


def asking(grace: gk.Grace) -> tuple[float, float]:
    """Measure a call of a gate that files a request and does not wait."""
    numbers = iter(range(1_000))

    @grace.gate(floor="confirm", key="ask:{n}", reviewer=gk.InboxReviewer(wait="raise"))
    def ask(n: int) -> None:
        return None

    def call() -> None:
        with suppress(gk.ActionPending):
            ask(next(numbers))

    call()
    return milliseconds(call, 50)


# Waking


DECIDER = """
import sys, time
import grace_kp as gk
grace = gk.Grace(store="sqlite:///" + sys.argv[1], embedder=None, evaluator=None)
grace.approvals.pending(limit=1)
print("ready", flush=True)
for line in sys.stdin:
    grace.approvals.approve(line.strip(), by="ana")
    print(time.monotonic(), flush=True)
"""


class Decider:
    """A process that approves the ids it reads, and prints when each decision was committed."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [*flags(), "-c", DECIDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def approve(self, approval_id: str) -> float:
        """Return the monotonic time at which the decision was committed."""
        assert self._process.stdin is not None
        print(approval_id, file=self._process.stdin, flush=True)
        return float(self._line())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


class Waiting:
    """A gate that waits, and when its action began."""

    def __init__(self, path: Path, *, is_async: bool) -> None:
        self.grace = runtime(path)
        self.begun: dict[int, float] = {}
        self.is_async = is_async
        gate = self.grace.gate(floor="confirm", reviewer=gk.InboxReviewer(), name="wake")
        if is_async:

            async def wake_async(n: int) -> None:
                self.begun[n] = time.monotonic()

            self.act: Any = gate(wake_async)
        else:

            def wake(n: int) -> None:
                self.begun[n] = time.monotonic()

            self.act = gate(wake)

    def call(self, number: int) -> None:
        """Call the gate and wait."""
        if self.is_async:
            asyncio.run(self.act(number))
        else:
            self.act(number)

    def asked(self, count: int) -> dict[int, str]:
        """Return the ids of the requests that wait, by number, once there are so many."""
        while len(found := self.grace.approvals.pending("wake", limit=count)) < count:
            time.sleep(0.01)
        return {each.arguments["n"]: each.id for each in found}


def waking(path: Path, *, is_async: bool, rounds: int) -> tuple[float, float]:
    """Return the median and the worst time, in ms, until a waiting gate goes on."""
    waiting, decider = Waiting(path, is_async=is_async), Decider(path)
    spent = []
    for number in range(rounds):
        thread = threading.Thread(target=waiting.call, args=(number,))
        thread.start()
        name = waiting.asked(1)[number]
        time.sleep(random.random() * 0.1)
        committed = decider.approve(name)
        thread.join()
        spent.append((waiting.begun[number] - committed) * 1e3)
    decider.close()
    waiting.grace.close()
    return statistics.median(spent), max(spent)


async def crowd(path: Path, count: int) -> dict[str, float]:
    """Let so many coroutines wait on one loop. Return, in ms, when they go on, some decided alone and the others as fast as possible, and how
    long the loop pauses.
    """
    waiting, decider = Waiting(path, is_async=True), Decider(path)
    tasks = [asyncio.create_task(waiting.act(number)) for number in range(count)]
    ids = await asyncio.to_thread(waiting.asked, count)
    pauses: list[float] = []

    async def beat() -> None:
        while True:
            start = time.monotonic()
            await asyncio.sleep(0.005)
            pauses.append((time.monotonic() - start - 0.005) * 1e3)

    beating = asyncio.create_task(beat())
    await asyncio.sleep(1)
    found = {"quiet": max(pauses)}
    pauses.clear()
    committed: dict[int, float] = {}
    first, rest = [*ids][:ALONE], [*ids][ALONE:]
    for number in first:
        committed[number] = await asyncio.to_thread(decider.approve, ids[number])
        await tasks[number]

    def decide() -> None:
        for number in rest:
            committed[number] = decider.approve(ids[number])

    await asyncio.gather(asyncio.to_thread(decide), *tasks)
    beating.cancel()
    decider.close()
    await asyncio.to_thread(waiting.grace.close)
    spent = {number: (waiting.begun[number] - committed[number]) * 1e3 for number in ids}
    alone = [spent[number] for number in first]
    found |= {
        "alone": statistics.median(alone),
        "worst alone": max(alone),
        "worst": max(spent.values()),
        "busy": max(pauses),
    }
    per_second = len(rest) / (max(waiting.begun.values()) - min(committed[number] for number in rest))
    return {**found, "per second": per_second}


# Gates without an inbox, and with one


def gates(folder: Path) -> dict[str, float]:
    """Return microseconds per call of an action that is not gated, and gated in several ways, inside of a recorded run."""
    grace = runtime(folder / "gates.db")
    inbox = getattr(gk, "InboxReviewer", None)

    def plain(n: int) -> int:
        return n

    def agree(_request: object) -> gk.InterventionResponse:
        return gk.InterventionResponse(gk.InterventionAction.PROCEED)

    def found(_query: str) -> list[dict[str, object]]:
        return [{"text": "t", "score": 0.97, "source": "s"}]

    search = grace.retriever(found)
    subjects: dict[str, Callable[[int], object]] = {
        "bare function": plain,
        "recorded, not gated": grace.tool(plain),
        "gate, silent after a search": grace.gate(floor="silent")(plain),
        "gate, a callback confirms": grace.gate(floor="confirm", reviewer=agree)(plain),
    }
    spent = {}
    for name, call in subjects.items():

        @grace.agent(objective="measure")
        def agent(call: Callable[[int], object] = call, searches: bool = name.startswith("gate, silent")) -> None:
            if searches:  # without a measurement the gate would ask
                search("q")
            for number in range(10):
                call(number)

        spent[name] = median_seconds(agent, rounds=9) / 10 * 1e6
        grace.flush()

    many = grace.retriever(lambda n: [{"text": "t", "score": 0.97, "source": f"s{n}-{part}"} for part in range(9)])
    gated = subjects["gate, silent after a search"]

    @grace.agent(objective="measure")
    def long(steps: int) -> float:
        for number in range(steps):
            many(number)
        gated(0)
        return median_seconds(lambda: gated(1), rounds=31) * 1e6

    @grace.agent(objective="measure around")
    def nested(steps: int) -> float:
        return long(steps)

    for steps in (10, 1_000):
        spent[f"a later one in a run of {steps:,} searches"] = long(steps)
        spent[f"a later one in a nested run of {steps:,} searches"] = nested(steps)
    judging = gk.Grace(store="memory:", reviewer=None, evaluator=None, embedder=None, profile=profile_of_actions())
    for steps in (20, 200, 1_000):
        plain_gate, with_alarms = warm_gates(grace, steps)
        (judged,) = warm_gates(judging, steps, ["none"])
        spent[f"silent gate in a run of {steps:,} steps"] = plain_gate
        spent[f"the same with warm alarms, {with_alarms / plain_gate:.2f} times as long"] = with_alarms
        spent[f"the same with `profile.action`, {judged / plain_gate:.2f} times as long"] = judged
    if inbox is not None:
        spent.update(inbox_gates(grace, inbox))
    grace.close()
    judging.close()
    return spent


def profile_of_actions() -> cal.CalibratedProfile:
    """Return a profile that judges single actions, and was fitted on runs like those of `warm_gates`."""
    weights = {name: [0.0, 3.0, 0.0, 1.0, -0.2] for name in MODELLED if name in LOWERING}
    regression = {
        "intercept": 4.0, "features": weights, "tools": {"send": 0.0}, "models": {"": 0.0},
        "calibration": {"slope": 1.0, "offset": 0.0},
    }  # fmt: skip
    stated = {"repeat_rate": 0.9, "gain": 0.1, "reason": "", "thresholds": {}, "fitted_on": {}}
    model = cal.ActionModel.from_dict(
        {"rates": {"send": 0.9}, "counts": {"send": 90}, "models": [""], "regression": regression, **stated}
    )
    fitted_on = {"agents": ["kp:agent:agent"], "models": [], "tools": ["read", "send"]}
    promise = {"kind": "selective", "risks": {"silent": 0.1}, "moment": "action", "unit": "action"}
    profile = cal.CalibratedProfile(fitted_on=fitted_on, action=model)
    return profile.with_thresholds(gk.Thresholds(0.6, 0.4, 0.2), promise)


CALLS = 30
"""Gated calls that are timed one by one: each adds its arguments to what later ones look up."""


def warm_gates(grace: gk.Grace, steps: int, chosen: Sequence[Any] = ("none", ("beside", "nowhere"))) -> list[float]:
    """Return microseconds per call of a silent gate with each choice of alarms, in one run that has read results of 1 KB."""

    @grace.tool
    def read(n: int) -> dict[str, object]:
        return {"order": f"A-{n:05}", "customer": f"c{n}@shop.example", "notes": "The parcel is on its way. " * 38}

    def send(to: str, order: str) -> str:
        return to

    # the same call again would raise `repeat`
    subjects = [grace.gate(unmeasured="silent", alarms=alarms, name="send")(send) for alarms in chosen]

    @grace.agent(objective="Answer the customers")
    def agent() -> list[float]:
        for number in range(steps // 2):  # a call and its result
            read(number)
        spent = []
        for subject in subjects:
            times = []
            for number in range(CALLS):
                began = time.perf_counter()
                subject(f"c{number % (steps // 2)}@shop.example", f"A-{number % (steps // 2):05}")
                times.append(time.perf_counter() - began)
            spent.append(statistics.median(times))
        return spent

    return [seconds * 1e6 for seconds in agent()]


def inbox_gates(grace: gk.Grace, inbox: Any) -> dict[str, float]:
    """Return microseconds per call of gates in an inbox: asked, and carried through under a standing approval."""
    raising, waiting = inbox(wait="raise"), inbox()

    def ask(n: int) -> int:
        return n

    def stand(n: int) -> int:
        return n

    asks, stands = (
        grace.gate(floor="confirm", key="ask:{n}", reviewer=raising)(ask),
        grace.gate(floor="confirm", reviewer=waiting)(stand),
    )
    grace.approvals.grant("stand", {"n": {"any": True}}, until="1h", uses=10_000, by="ana")
    numbers = iter(range(100_000))

    def asked() -> None:
        with suppress(gk.ActionPending):
            asks(next(numbers))

    return {
        "inbox gate that asks and raises": median_seconds(asked, rounds=9) * 1e6,
        "inbox gate: ask, standing approval, claim, act, settle": median_seconds(lambda: stands(1), rounds=9) * 1e6,
    }


# The tables


def at_size(path: Path, past: int, rounds: int) -> dict[str, Any]:
    """Fill a store and measure everything on it."""
    started = perf_counter()
    fill(path, past)
    found: dict[str, Any] = {"fill": perf_counter() - started, **verbs(path, past)}
    for is_async in (False, True):
        found["wake, async" if is_async else "wake, sync"] = waking(path, is_async=is_async, rounds=rounds)
    grace = runtime(path)
    entries = grace.store.approvals.head()[0]
    found["verify"] = (0.0, entries)
    if past <= MOST_CHAINED:
        started = perf_counter()
        verification = grace.approvals.verify()
        found["verify"] = (perf_counter() - started, entries)
        if not verification.ok:
            raise RuntimeError(f"the chain does not verify: {verification.problems[:3]}")
    grace.close()
    found["size"] = sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*")) / (1 << 20)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--past", type=int, action="append", help="past requests; may be repeated")
    parser.add_argument("--rounds", type=int, default=20, help="times that a gate is woken (default 20)")
    parser.add_argument("--waiters", type=int, default=1_000, help="coroutines that wait on one loop (default 1,000)")
    parser.add_argument("--quick", action="store_true", help="100 and 10,000 past requests, 200 coroutines")
    parser.add_argument("--task", choices=("gates",), help="measure this alone")
    parser.add_argument("--folder", type=Path, help="where the stores are (default the temporary folder)")
    options = parser.parse_args(arguments)
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
    sizes = options.past or ([100, 10_000] if options.quick else [100, 10_000, 1_000_000])
    print(f"\n## Scale of approvals\n\n{machine()}", flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        rows = [(what, microseconds) for what, microseconds in gates(folder).items()]
        print_table("Gates, µs per call in a recorded run", ("call", "µs"), rows)
        if options.task == "gates":
            return
        found = {past: at_size(folder / f"{past}.db", past, options.rounds) for past in sizes}
        table(found)
        count = 200 if options.quick else options.waiters
        for past in sizes[-1:]:
            crowded = asyncio.run(crowd(folder / f"{past}.db", count))
            print(
                f"\n{count:,} coroutines wait on one loop beside {past:,} past requests. Decided alone, one goes on after {crowded['alone']:.0f} ms "
                f"(at most {crowded['worst alone']:.0f}). Decided all at once, {crowded['per second']:.0f} a second go on, the last after "
                f"{crowded['worst']:.0f} ms. The loop pauses at most {crowded['quiet']:.0f} ms while all wait, {crowded['busy']:.0f} ms while they go on."
            )


def table(found: dict[int, dict[str, Any]]) -> None:
    """Print what was measured at each size."""
    names = [name for name in next(iter(found.values())) if name not in {"fill", "verify", "size"}]
    rows: list[tuple[str, ...]] = [
        (name, *(f"{figure(each[name][0])} ({figure(each[name][1])})" for each in found.values())) for name in names
    ]
    rows.append(
        (
            "verify the chain, s",
            *(f"{figure(each['verify'][0])}" if each["verify"][0] else "" for each in found.values()),
        )
    )
    rows.append(("entries", *(f"{each['verify'][1]:,}" for each in found.values())))
    rows.append(("file, MB", *(figure(each["size"]) for each in found.values())))
    print_table(
        f"Milliseconds, median (95 %; of waking the worst), beside {PENDING:,} pending requests",
        ("past requests", *(f"{past:,}" for past in found)),
        rows,
    )


if __name__ == "__main__":
    sys.exit(main())
