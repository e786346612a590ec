"""Processes that own journals of open runs: how one is recognised, and whether it is still alive."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

STALE_SECONDS = 60.0
"""A process on another machine that has not shown itself for this long counts as dead."""


def host() -> str:
    """This machine since it was started: process numbers mean something only there."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    with contextlib.suppress(OSError):
        return f"{socket.gethostname()} {boot.read_text().strip()}"
    return socket.gethostname()


def started(pid: int) -> str:
    """When a process began, in whatever unit the system has; empty where it does not say."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def is_dead(pid: int, its_host: str, its_start: str, seen: float) -> bool:
    if its_host != host():
        return time.time() - seen > STALE_SECONDS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return bool(its_start) and started(pid) != its_start
