"""The processes that own journals of open runs: their identity, and whether they are still alive."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

STALE_SECONDS = 60.0
"""A process on another machine without a heartbeat for this long counts as dead."""


def host() -> str:
    """Return the name of this machine and its boot. A process number is valid only within one boot of one machine."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    with contextlib.suppress(OSError):
        return f"{socket.gethostname()} {boot.read_text().strip()}"
    return socket.gethostname()


def started(pid: int) -> str:
    """Return when a process started, in the unit of the system; an empty text if the system does not tell."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def is_dead(pid: int, its_host: str, its_start: str, seen: float) -> bool:
    """Return whether a process is dead, from its number, machine and start, and the time of its last heartbeat."""
    if its_host != host():
        return time.time() - seen > STALE_SECONDS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return bool(its_start) and started(pid) != its_start
