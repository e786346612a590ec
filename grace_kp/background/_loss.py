"""Reports losses where somebody sees them: on stderr at once, also where logging is not configured or the interpreter exits."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

_log = logging.getLogger("grace_kp")


def report_loss(message: str) -> None:
    """Write `message` as one line to stderr, and to the handlers of logging where a program has any. This never raises.

    Without a stderr (`pythonw`, a daemon that closed it), only logging gets the message.
    """
    line = f"grace_kp: {' '.join(message.split())}"
    with suppress(Exception):
        if sys.stderr is not None:
            _write(sys.stderr, line + "\n")
    with suppress(Exception):
        if _log.hasHandlers():
            _log.error(line.removeprefix("grace_kp: "))


def _write(stream: TextIO, line: str) -> None:
    if stream is sys.__stderr__:
        # Past the buffer: a daemon thread that holds the buffer's lock aborts an interpreter that exits.
        os.write(stream.fileno(), line.encode(stream.encoding, "backslashreplace"))
    else:
        stream.write(line)
        stream.flush()
