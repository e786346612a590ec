"""A program that uses most of what a trace can hold, with ids, times and answers that are the same each time.

`python program.py FOLDER` leaves a store and what was read from it in the folder. The folders beside this file are named for the commit
of the version that ran it there, with `store.sqlite3` compressed. `tests/store/test_earlier_versions.py` reads what they left, and runs the
program with the version under test.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
import sys
import time
import warnings
from pathlib import Path

import grace_kp as gk
from grace_kp.testing import FakeClock, ScriptedJudge, ScriptedReviewer, make_grace

SHELF = {
    "refunds.md": "Refunds are paid within 5 working days.",
    "returns.md": "Goods can be returned within 30 days, unused.",
}
QUERIES = {
    "all": {"limit": 50},
    "domain": {"domain": "code", "limit": 50},
    "score": {"min_score": 0.5, "limit": 50},
    "text": {"text": "refund", "limit": 50},
    "failed": {"success": False, "limit": 50},
}


def record(grace, clock):
    """One run of each kind."""

    @grace.retriever
    def search(query):
        clock.advance(0.125)
        words = set(query.lower().split())
        found = [
            {"text": text, "source": name, "score": round(len(words & set(text.lower().split())) / len(words), 2)}
            for name, text in SHELF.items()
        ]
        return sorted((hit for hit in found if hit["score"]), key=lambda hit: -hit["score"])

    @grace.tool
    def read(name):
        clock.advance(0.25)
        return SHELF[name]

    @grace.tool(name="convert")
    def to_cents(amount, *, currency="EUR"):
        return {"cents": round(amount * 100), "currency": currency}

    @grace.gate(floor="confirm")
    @grace.tool
    def pay(to, euros):
        clock.advance(1.0)
        return f"paid {to} {euros}"

    @grace.agent(domain="customer_service", objective="Answer: {question}")
    def support(question):
        hits = search(question)
        grace.thought(f"{len(hits)} documents look useful")
        try:
            return read("faq.md")
        except KeyError:
            return read(hits[0]["source"])

    @grace.agent(domain="finance")
    def cashier(to, euros):
        search(f"refund for {to}")
        to_cents(euros)
        return pay(to, euros)

    @grace.agent(domain="code")
    def writer(lines):
        for number in range(lines):
            clock.advance(0.5)
            yield f"line {number}"

    @grace.tool
    async def fetch(page):
        clock.advance(0.0625)
        return {"page": page, "text": "日本語 and Ünïcode \u202e " + "x" * 300}

    @grace.agent
    async def reader(pages):
        for page in pages:
            await fetch(page)
        return "read"

    @grace.agent
    def fails(question):
        clock.advance(0.5)
        raise ValueError(f"cannot answer {question}")

    support("refunds paid within days")
    clock.advance(10)
    for euros in (5, 50, 500):
        with contextlib.suppress(gk.GraceError):
            cashier("bob", euros)
        clock.advance(10)
    list(writer(3))
    clock.advance(10)
    asyncio.run(reader(["a", "b"]))
    clock.advance(10)
    with contextlib.suppress(ValueError):
        fails("why?")
    clock.advance(10)
    with grace.run("a block with an outcome of its own", domain="research") as run:
        grace.thought("the mail of alice@example.com says password=hunter2secret and sk-proj-abcDEF1234567890abcDEF")
        with grace.run("a run inside", domain="code"):
            read("returns.md")
        run.outcome(confidence=0.75, success=True)


def leave(folder):
    """Die in the middle of a run, in a process of its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        child = os.fork()
    if child == 0:
        ids = lambda: "kp:trace:00000000-0000-4000-8000-000000000099"  # noqa: E731
        grace = make_grace(store=f"sqlite:///{folder}/store.sqlite3", clock=FakeClock(), new_id=ids)

        @grace.tool
        def look(what):
            return f"found {what}"

        with grace.run("a run that is never ended", domain="research"):
            look("the first")
            grace.thought("half way")
            while b"half way" not in journal(folder):
                time.sleep(0.01)
            os._exit(0)
    assert (child, 0) == os.waitpid(child, 0)
    journal(folder)


def journal(folder):
    """Return what is written down of open runs; afterwards all of the store is in its one file."""
    with contextlib.closing(sqlite3.connect(folder / "store.sqlite3")) as file:
        found = b"".join(data for (data,) in file.execute("SELECT data FROM journal"))
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return found


def write(path, traces):
    lines = [json.dumps(trace.to_dict(), ensure_ascii=False, sort_keys=True) + "\n" for trace in traces]
    path.write_text("".join(lines), encoding="utf-8")


def main(folder):
    clock = FakeClock()
    judge = ScriptedJudge('{"score": 0.8, "reason": "borne out", "coverage": 0.6, "coverage_reason": "half"}')
    reviewer = ScriptedReviewer(
        "proceed",
        gk.InterventionResponse(action="modify", modified={"to": "bob", "euros": 40}, reviewer="ana"),
        "cancel",
    )
    with make_grace(
        store=f"sqlite:///{folder}/store.sqlite3", clock=clock, evaluator=judge, reviewer=reviewer
    ) as grace:
        record(grace, clock)
        grace.flush()
        found = {name: [trace.id for trace in grace.store.query(**query)] for name, query in QUERIES.items()}
        write(folder / "traces.jsonl", grace.store.query(limit=50))
    (folder / "found.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    leave(folder)
    shutil.copy(folder / "store.sqlite3", folder / "recovered.sqlite3")
    with make_grace(store=f"sqlite:///{folder}/recovered.sqlite3") as grace:
        write(folder / "interrupted.jsonl", grace.store.query(status="interrupted", limit=50))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
