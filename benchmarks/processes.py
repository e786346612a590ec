"""Starts and ends processes in every manner that programs and servers use, and counts the runs that got into the store.

Each row is a program that records runs and notes each run that has returned. The table shows how many were recorded, how many are in the
store, and how many are missing. Rows of servers and tools that are not installed are listed as such. Programs of the standard library are
those of `tests/record/endings.py`.

    python benchmarks/processes.py                 all rows: about two minutes
    python benchmarks/processes.py gunicorn pool   rows whose name contains one of these
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _measure import machine, print_table

ROOT = Path(__file__).resolve().parents[1]
ENDINGS = ROOT / "tests" / "record" / "endings.py"
RUNS = 20
SECONDS = 60
METHODS = ("fork", "forkserver", "spawn")
USES = ("module", "before", "child")
ENDS = (
    *("return_", "sys_exit", "exception", "sigterm_handler", "sigint", "thread", "daemon_thread", "executor"),
    *("sys_exit_in_thread", "atexit", "atexit_first", "weakref_finalize", "mp_finalize", "asyncio_cancelled", "del_"),
    *("flush_os_exit", "os_exit", "sigterm", "sigkill", "abort", "execv"),
)
APP = """
import os
import grace_kp as gk

FILE = os.open(os.environ["COUNTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
RUNTIME = []

def load():
    if not RUNTIME:
        grace = gk.Grace(store=os.environ["STORE"], reviewer=None, embedder=None, evaluator=None)
        RUNTIME.extend([grace.agent(lambda objective: len(objective)), grace])
    return RUNTIME[0]

def flush():
    load()
    assert RUNTIME[1].flush()

if os.environ["USE"] == "module":
    load()

def record():
    agent = load()
    for n in range(int(os.environ["RUNS"])):
        agent(f"{os.getpid()} {n}")
        os.write(FILE, b".")

def wsgi(environ, start_response):
    record()
    if environ["PATH_INFO"] == "/hang":
        import time
        time.sleep(60)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]

async def asgi(scope, receive, send):
    if scope["type"] == "lifespan" and os.environ.get("FLUSHES"):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        flush()
        await send({"type": "lifespan.shutdown.complete"})
    if scope["type"] == "http":
        record()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
"""
CELERY = """
import os
from pathlib import Path
from celery import Celery, signals
import app as recorder

folder = Path(__file__).parent
for name in ("queue", "control"):
    (folder / name).mkdir(exist_ok=True)
celery = Celery("tasks", broker="filesystem://")
celery.conf.broker_transport_options = {
    "data_folder_in": str(folder / "queue"), "data_folder_out": str(folder / "queue"), "control_folder": str(folder / "control")}

if os.environ.get("FLUSHES"):
    @signals.worker_process_shutdown.connect
    def flush(**_):
        recorder.flush()

@celery.task(name="work")
def work():
    recorder.record()
"""
PYTEST = """
import pytest, app

@pytest.mark.parametrize("number", range(6))
def test_record(number):
    app.record()
"""


def standard_rows():
    """(start, use, end) of the programs of the standard library."""
    for start in ("plain", "fork", *(f"process:{method}" for method in METHODS)):
        for use in USES:
            for end in ENDS:
                yield start, use, end
    for start in ("thread", "double_fork", "subprocess", "posix_spawn"):
        for end in ("return_", "sys_exit", "exception"):
            yield start, "module", end
    pools = ("pool", "pool_maxtasks", "executor", "pool_block", "terminated", "killed")
    for start in (*(f"{pool}:{method}" for pool in pools for method in METHODS), "preloaded:forkserver"):
        for use in USES:
            yield start, use, "return_"


def counted(folder: Path) -> tuple[int, int]:
    """Runs that have returned, and runs in the store, without those that were found again as interrupted."""
    counts, store = folder / "counts", folder / "t.db"
    recorded = counts.stat().st_size if counts.exists() else 0
    try:
        with contextlib.closing(sqlite3.connect(store)) as connection:
            return recorded, connection.execute("SELECT COUNT(*) FROM traces WHERE status <> 'interrupted'").fetchone()[
                0
            ]
    except sqlite3.Error:
        return recorded, 0


def flushing(play):
    """A row whose program flushes when its framework says that the process ends."""

    def flushed(folder: Path, use: str) -> str:
        (folder / "flushes").touch()
        return play(folder, use)

    return flushed


def environment(folder: Path, use: str) -> dict[str, str]:
    """The environment of a program in a folder."""
    paths = f"{folder}{os.pathsep}{ROOT}"
    settings = {
        "STORE": f"sqlite:///{folder / 't.db'}",
        "COUNTS": str(folder / "counts"),
        "USE": use,
        "RUNS": str(RUNS),
    }
    if (folder / "flushes").exists():
        settings["FLUSHES"] = "1"
    return {**os.environ, **settings, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}


def standard(folder: Path, start: str, use: str, end: str) -> str:
    """Run a program of the standard library; return how it ended."""
    command = [
        sys.executable,
        str(ENDINGS),
        f"sqlite:///{folder / 't.db'}",
        str(folder / "counts"),
        start,
        use,
        end,
        str(RUNS),
    ]
    done = subprocess.run(
        command, env=environment(folder, use), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    (folder / "stderr").write_text(done.stderr)
    return str(done.returncode)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def served(folder: Path, use: str, command: list[str], sent: int | None, path: str = "/", requests: int = 12) -> str:
    """Start a server, ask it some times, send its first process a signal at once; return how it ended."""
    port = free_port()
    (folder / "app.py").write_text(APP)
    with (folder / "stderr").open("w") as stderr:
        server = subprocess.Popen(
            [part.replace("PORT", str(port)) for part in command],
            cwd=folder, env=environment(folder, use), stdout=stderr, stderr=stderr,
        )  # fmt: skip
        try:
            until(lambda: is_open(port))

            def ask(_: int) -> None:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10).read()

            with ThreadPoolExecutor(4) as pool:
                list(pool.map(ask, range(requests)))
            if sent is not None:
                server.send_signal(sent)
            return str(server.wait(SECONDS))
        finally:
            server.kill()
            server.wait()


def is_open(port: int) -> bool:
    """Whether somebody listens."""
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) == 0


def until(condition, seconds: float = 30.0) -> None:
    """Wait for a condition."""
    ends = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError("the program does not come up")
        time.sleep(0.02)


def gunicorn(*options: str, sent: int | None = signal.SIGTERM, path: str = "/", requests: int = 12):
    """A row of gunicorn."""
    command = [sys.executable, "-m", "gunicorn", "-b", "127.0.0.1:PORT", "--workers", "2", *options, "app:wsgi"]
    return lambda folder, use: served(folder, use, command, sent, path, requests)


def uvicorn(*options: str, sent: int = signal.SIGTERM):
    """A row of uvicorn."""
    return lambda folder, use: served(
        folder, use, [sys.executable, "-m", "uvicorn", "--port", "PORT", *options, "app:asgi"], sent
    )


def aborted(folder: Path, use: str) -> str:
    """A worker of gunicorn hangs, and its master ends it; then the master is ended."""
    command = ["-b", "127.0.0.1:PORT", "--workers", "1", "--timeout", "4", "app:wsgi"]
    return served(folder, use, [sys.executable, "-m", "gunicorn", *command], signal.SIGTERM, "/hang", 1)


def celery(*options: str, sent: int = signal.SIGTERM):
    """A row of celery: eight tasks, and a signal as soon as they have recorded."""

    def play(folder: Path, use: str) -> str:
        (folder / "app.py").write_text(APP)
        (folder / "tasks.py").write_text(CELERY)
        send = "import tasks; [tasks.work.delay() for _ in range(8)]"
        subprocess.run(
            [sys.executable, "-c", send], cwd=folder, env=environment(folder, use), check=True, timeout=SECONDS
        )
        with (folder / "stderr").open("w") as stderr:
            command = [
                sys.executable,
                "-m",
                "celery",
                "-A",
                "tasks:celery",
                "worker",
                "-l",
                "ERROR",
                "-c",
                "2",
                *options,
            ]
            worker = subprocess.Popen(command, cwd=folder, env=environment(folder, use), stdout=stderr, stderr=stderr)
            try:
                until(lambda: counted(folder)[0] >= 8 * RUNS)
                worker.send_signal(sent)
                return str(worker.wait(SECONDS))
            finally:
                worker.kill()
                worker.wait()

    return play


def xdist(*options: str):
    """A row of pytest-xdist."""

    def play(folder: Path, use: str) -> str:
        (folder / "app.py").write_text(APP)
        (folder / "test_app.py").write_text(PYTEST)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder)]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(folder, use),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        (folder / "stderr").write_text(done.stdout + done.stderr)
        return str(done.returncode)

    return play


SERVERS = {
    "gunicorn sync, TERM": ("gunicorn", gunicorn()),
    "gunicorn sync, QUIT": ("gunicorn", gunicorn(sent=signal.SIGQUIT)),
    "gunicorn gthread, TERM": ("gunicorn", gunicorn("-k", "gthread", "--threads", "4")),
    "gunicorn preload, TERM": ("gunicorn", gunicorn("--preload")),
    "gunicorn max-requests": ("gunicorn", gunicorn("--max-requests", "2")),
    "gunicorn worker timeout": ("gunicorn", aborted),
    "uvicorn, TERM": ("uvicorn", uvicorn()),
    "uvicorn, TERM, flush in lifespan": ("uvicorn", flushing(uvicorn())),
    "uvicorn workers, TERM, flush in lifespan": ("uvicorn", flushing(uvicorn("--workers", "2"))),
    "uvicorn workers, INT, flush in lifespan": ("uvicorn", flushing(uvicorn("--workers", "2", sent=signal.SIGINT))),
    "uvicorn, INT": ("uvicorn", uvicorn(sent=signal.SIGINT)),
    "uvicorn workers, TERM": ("uvicorn", uvicorn("--workers", "2")),
    "uvicorn workers, INT": ("uvicorn", uvicorn("--workers", "2", sent=signal.SIGINT)),
    "uvicorn max-requests": ("uvicorn", uvicorn("--workers", "2", "--limit-max-requests", "3")),
    "uvicorn reload, TERM": ("uvicorn", uvicorn("--reload")),
    "celery prefork, TERM": ("celery", celery("--pool", "prefork")),
    "celery prefork, max-tasks": ("celery", celery("--pool", "prefork", "--max-tasks-per-child", "2")),
    "celery prefork, max-tasks, flush at worker_process_shutdown": (
        "celery",
        flushing(celery("--pool", "prefork", "--max-tasks-per-child", "2")),
    ),
    "celery prefork, QUIT": ("celery", celery("--pool", "prefork", sent=signal.SIGQUIT)),
    "celery threads, TERM": ("celery", celery("--pool", "threads")),
    "celery solo, TERM": ("celery", celery("--pool", "solo")),
    "pytest-xdist": ("xdist", xdist("-n", "2")),
}


def measure(name: str, use: str, play) -> tuple[str, ...]:
    """Play one row; return its cells."""
    folder = Path(tempfile.mkdtemp())
    try:
        try:
            ended = play(folder)
        except (subprocess.TimeoutExpired, TimeoutError) as error:
            ended = type(error).__name__
        recorded, stored = counted(folder)
        lines = (folder / "stderr").read_text().splitlines() if (folder / "stderr").exists() else []
        reported = next((line for line in lines if line.startswith("grace_kp: ")), "")
        return name, use, ended, str(recorded), str(stored), str(recorded - stored), reported
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str] | None = None) -> None:
    """Play the rows and print them."""
    parser = argparse.ArgumentParser(
        description=textwrap.dedent(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="parts of the names of rows")
    parser.add_argument("--missing", action="store_true", help="only rows in which runs are missing")
    parser.add_argument("--parallel", type=int, default=2, help="rows at a time (default 2)")
    options = parser.parse_args(arguments)
    plays = [
        (f"{start} {end}".strip("_"), use, lambda folder, row=(start, use, end): standard(folder, *row))
        for start, use, end in standard_rows()
    ]
    for name, (package, play) in SERVERS.items():
        if importlib.util.find_spec(package) is None:
            print(f"not installed: {package} ({name})")
            continue
        plays += [(name, use, lambda folder, play=play, use=use: play(folder, use)) for use in ("module", "child")]
    wanted = [
        play for play in plays if not options.names or any(part in f"{play[0]} {play[1]}" for part in options.names)
    ]
    with ThreadPoolExecutor(options.parallel) as pool:
        rows = []
        for row in pool.map(lambda play: measure(*play), wanted):
            rows.append(row)
            print(f"{len(rows)} of {len(wanted)}: {', '.join(row)}", file=sys.stderr)
    print(machine())
    shown = [row for row in rows if row[5] != "0" or not options.missing]
    print_table(
        "starts and ends",
        ("program", "runtime", "exit", "recorded", "stored", "missing", "reported on stderr"),
        shown,
    )


if __name__ == "__main__":
    main()
