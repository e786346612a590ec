"""Forks of a process that has imported the library and started no thread: cheap new processes for thousands of faults."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROOMS = (
    "background",
    "confidence",
    "gating",
    "judge",
    "models",
    "record",
    "runtime",
    "scorers",
    "store",
    "trace",
    "value",
)


def warm() -> None:
    """Import what recording, judging, scoring and storing need, so that forks begin at once."""
    for room in ROOMS:
        package = importlib.import_module(f"grace_kp.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "onnx" not in module.name and "sentence" not in module.name and "gemini" not in module.name:
                importlib.import_module(module.name)
    import asyncio  # noqa: F401
    import concurrent.futures.thread  # noqa: F401
    import sqlite3  # noqa: F401

    gc.collect()
    gc.freeze()  # collecting touches every object, and a page that is touched is copied


def start(work: Callable[[], Any], errors: Path) -> int:
    """Do `work` in a fork that ends without the exit of an interpreter; return its process id. Its stderr goes to a file."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), 2)
        sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def answers(works: list[Callable[[], Any]], errors: Path) -> list[Any]:
    """Do all works in forks at the same time; return what they returned, which must be JSON.

    Raises:
        RuntimeError: one failed; the message has what it wrote to stderr.
    """
    started = []
    for work in works:
        reader, writer = os.pipe()

        def answer(work: Callable[[], Any] = work, writer: int = writer) -> None:
            with os.fdopen(writer, "w") as stream:
                json.dump(work(), stream)

        started.append((start(answer, errors), reader))
        os.close(writer)
    found = []
    for pid, reader in started:
        with os.fdopen(reader) as stream:
            text = stream.read()
        if os.waitpid(pid, 0)[1]:
            raise RuntimeError(errors.read_text(encoding="utf-8", errors="replace"))
        found.append(json.loads(text))
    return found
