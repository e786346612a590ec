"""The queue in five minutes: its program and its commands show what the page shows, beside ids, times and machines."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.docs.printed import ROOT
from tests.docs.test_first_trace import blocks, in_order

HOW_TO = ROOT / "docs" / "how-to"
QUEUE = (HOW_TO / "approvals.md").read_text(encoding="utf-8")
QUEUE = QUEUE.split("## The queue in five minutes\n")[1].split("\n## ")[0]
HAND_OVER = (HOW_TO / "approvals-hand-over.md").read_text(encoding="utf-8")
EACH_TIME = (
    (re.compile(r"\b[0-9a-f]{8}(?=  )"), "ID"),
    (re.compile(r"\bap-[0-9a-f]{16}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "TIME"),
    (re.compile(r"\b\d+(\.\d)? [smhd]( \d+ [smh])?\b"), "AGE"),
    (re.compile(r"─+|  +"), " "),
)


def comparable(text):
    for pattern, name in EACH_TIME:
        text = pattern.sub(name, text)
    return [line.strip() for line in text.splitlines()]


@pytest.fixture
def run(tmp_path):
    """Run `grace-kp` with arguments as in the second terminal of the page."""
    where = {"GRACE_KP_STORE": "sqlite:///app.db", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}

    def command(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "grace_kp.cli", *arguments], cwd=tmp_path, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": str(ROOT), **where},
        )  # fmt: skip
        return done.stdout

    return command


@pytest.fixture
def shop(tmp_path, run):
    """The program of the page, which waits, and the beginning of the id of its request."""
    (program,) = blocks(QUEUE, "py")
    (tmp_path / "shop.py").write_text(program, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "shop.py"], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        while not (short := first_pending(run)):
            assert process.poll() is None
        yield process, short
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def first_pending(run):
    found = re.search(r'"id": "ap-(\w{4})', run("approvals", "list", "--json"))
    return "" if found is None else found[1]


def commands_of(page, named, short):
    """The commands of the one console block, with the id that a request has here, and what the page shows of their output."""
    (session,) = [block for block in blocks(page, "console") if named in block]
    for block in re.split(r"^\$ ", session, flags=re.MULTILINE):
        command, _, shown = block.partition("\n")
        if command.startswith("grace-kp "):
            words = re.findall(r'"([^"]*)"|(\S+)', command.replace(named, short))[1:]
            yield [quoted or plain for quoted, plain in words], shown


def test_the_queue_in_five_minutes(shop, run):
    """Lists, shows and approves the request; the program goes on and pays."""
    process, short = shop
    for words, shown in commands_of(QUEUE, "45a2", short):
        if "--past" in words:  # the last one, once the program has ended
            assert "paid back 40 euros for A-17\n" == process.communicate(timeout=120)[0]
        printed = run(*words)
        assert [] == in_order(comparable(shown), comparable(printed)), printed


def test_handing_over(tmp_path, run):
    """The program ends with its request in the queue; somebody approves it, and a worker carries it out."""
    (tmp_path / "desk.py").write_text(blocks(HAND_OVER, "python")[0], encoding="utf-8")
    subprocess.run(
        [sys.executable, "-W", "error", "desk.py"], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
        check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    for words, shown in commands_of(HAND_OVER, "ad23", first_pending(run)):
        printed = run(*words)
        assert [] == in_order(comparable(shown), comparable(printed)), printed
