"""The ways through the house: how many files and functions a run passes. `python -m tests.conventions.ways [--files]` prints them.

Each way is walked once to load and open what it needs, and counted the second time. A file counts if a function of it is called,
on whatever thread. Of the way of a tool argument only those count that are called with the argument, or with something that holds it.
"""

from __future__ import annotations

import contextlib
import contextvars
import io
import os
import re
import sys
import tempfile
import threading
from pathlib import Path

import grace_kp as gk

PACKAGE = str(Path(gk.__file__).parent) + os.sep
# The threads that finish runs: their work is the way of a tool argument.
FINISHING = {"grace_kp writer", "grace_kp completer"}
MARKER = "argument that is followed"
# The most files of each way.
LIMITS = {"a tool argument": 12, "an approval": 40, "the page of a request": 30, "a decision on it": 30}


def holds(value, depth=5):
    """Whether a value is the marker or holds it."""
    if isinstance(value, str):
        return MARKER in value
    if isinstance(value, bytes):
        return MARKER.encode() in value
    if depth == 0 or value is None or isinstance(value, int | float | type):
        return False
    if isinstance(value, dict):
        return any(holds(part, depth - 1) for part in [*value, *value.values()])
    if isinstance(value, list | tuple | set | frozenset):
        return any(holds(part, depth - 1) for part in list(value)[:100])
    if not type(value).__module__.startswith("grace_kp"):
        return False
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    with contextlib.suppress(Exception):
        parts = [getattr(value, name) for name in names if hasattr(value, name)] + list(
            vars(value).values() if hasattr(value, "__dict__") else ()
        )
        return any(holds(part, depth - 1) for part in parts)
    return False


class Way:
    """The functions of the library that are called inside of the block, on this thread and on all that start while `main` runs."""

    active: Way | None = None
    looks = threading.local()

    def __init__(self, follow=None):
        self.called = set()
        self._follow = follow

    def __enter__(self):
        Way.active = self
        sys.setprofile(note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        Way.active = None

    def note(self, frame):
        code = frame.f_code
        counts = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        arguments = code.co_varnames[:counts]
        if self._follow is None and threading.current_thread().name in FINISHING:
            return
        if self._follow is None or any(holds(frame.f_locals.get(name), self._follow) for name in arguments):
            self.called.add((code.co_filename.removeprefix(PACKAGE), code.co_qualname))

    @property
    def files(self):
        return sorted({file for file, _ in self.called})


def note(frame, event, _):
    """Count a call, unless it comes from looking at one."""
    way = Way.active
    file = frame.f_code.co_filename
    if event != "call" or way is None or not (file.startswith(PACKAGE) and file.endswith(".py")):
        return
    if getattr(Way.looks, "now", False):
        return
    Way.looks.now = True
    try:
        way.note(frame)
    finally:
        Way.looks.now = False


def tool_argument(folder):
    way = Way(follow=2)
    with gk.Grace(store=f"sqlite:///{folder}/runs.db", evaluator=None, embedder=None, reviewer=None) as grace:
        tool = grace.tool(lambda text: len(text))

        def walk():
            with grace.run("look"):
                tool(MARKER)
            grace.flush()

        walk()
        with way:
            walk()
    return way


def approval(folder):
    way = Way()
    with gk.Grace(
        store=f"sqlite:///{folder}/approvals.db", evaluator=None, embedder=None, reviewer=gk.InboxReviewer()
    ) as grace:
        act = grace.gate(floor="confirm", name="act")(lambda to, euros: euros)

        def walk():
            changes = grace.approvals.watch()
            caller = threading.Thread(target=contextvars.copy_context().run, args=(act, "ann", 5))
            caller.start()
            grace.approvals.approve(next(iter(changes)).approval, by="ana")
            caller.join()

        walk()
        with grace.run("ask"), way:
            walk()
    return way


def pages(folder):
    from tests.web.visiting import Browser

    shown, decided = Way(), Way()
    reviewer = gk.InboxReviewer(wait="hand_over")
    with gk.Grace(store=f"sqlite:///{folder}/pages.db", evaluator=None, embedder=None, reviewer=reviewer) as grace:
        act = grace.gate(floor="confirm", name="act")(lambda to, euros: euros)
        with Browser(grace, role="approver") as client:

            def walk(shown, decided):
                with grace.run("ask"):
                    act("ann", 5)
                grace.flush()
                (waiting,) = grace.approvals.pending()
                with shown:
                    page = client.get(f"/approvals/{waiting.id}").text
                (path, form), *_ = re.findall(r'<form[^>]*action="([^"]*/approve)".*?>(.*?)</form>', page, re.DOTALL)
                fields = dict(re.findall(r'name="([^"]+)"[^>]*value="([^"]*)"', form))
                with decided:
                    answer = client.post(path, data=fields)
                assert answer.status_code < 400, answer.text

            walk(contextlib.nullcontext(), contextlib.nullcontext())
            walk(shown, decided)
    return shown, decided


def main(arguments):
    threading.setprofile(note)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        shown, decided = pages(folder)
        ways = dict(zip(LIMITS, [tool_argument(folder), approval(folder), shown, decided], strict=True))
    threading.setprofile(None)
    for name, way in ways.items():
        print(f"{name:<24} {len(way.files):>4} files {len(way.called):>5} functions   at most {LIMITS[name]} files")
        if "--files" in arguments:
            print(*(f"    {file}" for file in way.files), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
