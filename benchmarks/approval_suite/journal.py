"""The truth beside the store: what really happened, one JSON object per line, appended and synced before the program goes on."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Journal:
    """Appends facts to a file; any number of threads and processes may share it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, **fact: Any) -> None:
        """Append one fact with the wall time and the monotonic time, which all processes of a machine share."""
        line = json.dumps({**fact, "pid": os.getpid(), "t": time.monotonic_ns(), "at": time.time()}, default=str) + "\n"
        os.write(self._file, line.encode())
        os.fsync(self._file)


def facts(path: Path) -> list[dict[str, Any]]:
    """Return the facts of a file; a last line that was cut off is left out."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]
