"""What pages cost over HTTP: `grace-kp serve` beside many runs and 10,000 pending requests, one reader and 200 at once, and its memory.

The store is that of `web_scale.py`, with the requests of `approvals_scale.py`. Times are those of a client on the same machine, from the first byte of
the request to the last of the answer. The floor is `/healthz`, which reads nothing but the store's head.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from time import perf_counter
from urllib.parse import quote, urlencode, urlsplit

import approvals_scale
import httpx
import web_scale
from _measure import machine, print_table

import grace_kp as gk
from grace_kp.store import open_catalog, open_store

PAUSE = 5.0
"""Seconds that a reader who reads waits between two pages."""
SERVED_AT_LEAST = 5.0


def prepare(path: Path, runs: int) -> None:
    """Write runs, pending requests and the index, as far as they are missing."""
    if not path.exists():
        web_scale.build_store(path, runs)
    grace = gk.Grace(store=f"sqlite:///{path}", evaluator=None, embedder=None)
    has_requests = bool(grace.approvals.pending(limit=1))
    grace.close()
    if not has_requests:
        approvals_scale.fill(path, 0)
    store = open_store(f"sqlite:///{path}")
    catalog = open_catalog(store)
    catalog.refresh()
    catalog.close()
    store.close()


class Served:
    """`grace-kp serve` in a process of its own, with somebody who is logged in."""

    def __init__(self, path: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "grace_kp.cli",
            "serve",
            "--store",
            f"sqlite:///{path}",
            "--port",
            "0",
            "--no-browser",
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = ""
        while (found := re.search(r"(http://[^/\s]+)/login\?code=(\S+)", lines)) is None:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("grace-kp serve has ended")
            lines += line
        self.base, code = found[1], found[2]
        self.client = httpx.Client(base_url=self.base, timeout=60)
        self.client.post("/login", data={"credential": code}, headers={"Origin": self.base})
        self.cookie = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())

    def peak_mb(self) -> float:
        """Largest resident memory so far."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) / 1024

    def close(self) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait(30)


def pages(path: Path) -> dict[str, str]:
    """Address of each page that is measured, by what it shows."""
    store = open_store(f"sqlite:///{path}", create=False)
    catalog = open_catalog(store)
    newest = catalog.find(web_scale.CatalogQuery(), limit=2).rows
    catalog.close()
    store.close()
    request = gk.Grace(store=f"sqlite:///{path}", evaluator=None, embedder=None).approvals.pending(limit=1)[0].id
    return {
        "/healthz (floor)": "/healthz",
        **{f"runs: {name}": f"/runs?{urlencode(fields(query))}" for name, query in web_scale.QUERIES.items()},
        "one run": f"/runs/{quote(newest[0].id, safe=':')}",
        "two runs side by side": f"/runs/compare?{urlencode({'a': newest[0].id, 'b': newest[1].id})}",
        "figures of 30 days": "/figures?days=30",
        "figures of everything": "/figures?days=all",
        "inbox, 10,000 pending": "/inbox",
        "inbox, page 100": "/inbox?offset=4950",
        "one request": f"/approvals/{quote(request)}",
        "API, runs": "/api/v1/runs",
    }


def fields(query: dict[str, object]) -> list[tuple[str, object]]:
    """The fields of an address for conditions; a list is a field for each of its values."""
    words = {True: "true", False: "false"}
    return [
        (name, words[each] if isinstance(each, bool) else each)
        for name, value in query.items()
        for each in (value if isinstance(value, list) else [value])
    ]


def page_rows(served: Served, found: dict[str, str], rounds: int) -> list[tuple[object, ...]]:
    """Median and 95th percentile of each page, in turns, and the ratio to the floor."""
    spent: dict[str, list[float]] = {name: [] for name in found}
    sizes: dict[str, int] = {}
    for turn in range(rounds + 1):
        for name, address in found.items():
            start = perf_counter()
            response = served.client.get(address)
            if turn:  # the first one warms up
                spent[name].append((perf_counter() - start) * 1e3)
            if response.status_code != 200:
                raise SystemExit(f"{name}: {address} answered {response.status_code}")
            sizes[name] = len(response.content)
    floor = statistics.median(next(iter(spent.values())))
    return [
        (name, statistics.median(times), sorted(times)[int(0.95 * (len(times) - 1))], statistics.median(times) / floor, sizes[name] // 1_000)
        for name, times in spent.items()
    ]  # fmt: skip


async def read_pages(served: Served, addresses: list[str], readers: int, seconds: float, pause: float) -> list[float]:
    """Have readers open pages in turns, each over a connection of its own, and return the milliseconds of each answer."""
    parts = urlsplit(served.base)
    spent: list[float] = []
    end = perf_counter() + seconds

    async def read(number: int) -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        turn = number
        await asyncio.sleep(pause * number / readers)
        while perf_counter() < end:
            address, turn = addresses[turn % len(addresses)], turn + 1
            start = perf_counter()
            writer.write(f"GET {address} HTTP/1.1\r\nHost: {parts.netloc}\r\nCookie: {served.cookie}\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            await reader.readexactly(int(re.search(r"content-length: (\d+)", head)[1]))
            if " 200 " not in head.split("\r\n", 1)[0]:
                raise SystemExit(f"{address} answered {head.splitlines()[0]}")
            spent.append((perf_counter() - start) * 1e3)
            await asyncio.sleep(pause)
        writer.close()

    await asyncio.gather(*map(read, range(readers)))
    return spent


def reader_row(
    served: Served, name: str, addresses: list[str], readers: int, seconds: float, pause: float
) -> tuple[object, ...]:
    """What so many readers at once wait for."""
    start = perf_counter()
    spent = sorted(asyncio.run(read_pages(served, addresses, readers, seconds, pause)))
    rate = len(spent) / (perf_counter() - start)
    return name, len(spent), rate, statistics.median(spent), spent[int(0.95 * (len(spent) - 1))], served.peak_mb()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--store", type=Path, help="keep the store at this path, and use it if it is there")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the readers read")
    options = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        path = options.store or Path(folder) / "runs.db"
        prepare(path, options.runs)
        found = pages(path)
        served = Served(path)
        try:
            time.sleep(SERVED_AT_LEAST)  # the index catches up with what prepared it
            rows = page_rows(served, found, options.rounds)
            print_table("pages, ms", ("page", "median", "p95", "of the floor", "kB"), rows)
            addresses = [address for name, address in found.items() if "floor" not in name]
            read = (served, addresses, options.readers, options.seconds)
            rows = [
                reader_row(read[0], f"{options.readers} readers, a page every {PAUSE:g} s each", *read[1:], PAUSE),
                reader_row(read[0], f"{options.readers} readers without a pause", *read[1:], 0.0),
            ]
            print_table("readers at once", ("", "answers", "a second", "median ms", "p95 ms", "peak MB"), rows)
        finally:
            served.close()


if __name__ == "__main__":
    main()
