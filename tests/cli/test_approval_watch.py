"""`grace-kp approvals watch`: the list of pending requests, anew when it changes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from grace_kp.approvals import Actor, RequestStore
from grace_kp.store import open_store
from tests.cli.approvals import HOSTILE, filed
from tests.cli.program import ROOT

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "NO_COLOR": "1", "TERM": "xterm"}


@pytest.fixture
def file(url):
    return Path(url.removeprefix("sqlite:///"))


@pytest.fixture
def lines(url):
    """Watches as a program does; returns a function that reads the next line."""
    children = []

    def start(*options):
        child = subprocess.Popen(
            [sys.executable, "-m", "grace_kp.cli", "approvals", "watch", *options, "--store", url], env=ENVIRONMENT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def screen(url):
    """Watches at a terminal of 80 columns."""
    children = []

    def start(*options, **environment):
        child = pexpect.spawn(
            sys.executable, ["-m", "grace_kp.cli", "approvals", "watch", *options, "--store", url], encoding="utf-8", timeout=60, dimensions=(24, 80),
            env={**ENVIRONMENT, **environment}, cwd=str(ROOT),
        )  # fmt: skip
        children.append(child)
        return child

    yield start
    for child in children:
        child.close(force=True)


def reject(url, approval):
    store = open_store(url)
    RequestStore(store.approvals, groups={"ana": ["finance"]}).reject(approval.id, actor=Actor.here("ana"))
    store.close()


def test_each_change_writes_the_list_anew(url, lines):
    """What is pending, with a new request and without a decided one; Ctrl-C ends it with 0."""
    approval = filed(url, "A-1")[0]
    child = lines()
    assert "1 pending  " == child.stdout.readline()[:11]
    assert approval.id[3:11] in "".join(child.stdout.readline() for _ in range(3))
    other = filed(url, "A-2")[0]
    assert "2 pending  " == child.stdout.readline()[:11]
    assert other.id[3:11] in "".join(child.stdout.readline() for _ in range(4))
    reject(url, approval)
    assert "1 pending  " == child.stdout.readline()[:11]
    assert approval.id[3:11] not in "".join(child.stdout.readline() for _ in range(3))
    child.send_signal(signal.SIGINT)
    assert ("", "", 0) == (*child.communicate(timeout=60), child.returncode)


def test_changes_as_json_lines(url, lines):
    """With the whole approval when it comes and when it ends; only those that are watched."""
    filed(url, "A-0", groups=("legal",))
    first = filed(url, "A-1", groups=("finance",))[0]
    child = lines("--json", "--group", "finance")
    assert first.id == json.loads(child.stdout.readline())["approval"]["id"]
    filed(url, "A-2", groups=("legal",))
    approval = filed(url, "A-3", groups=("finance",))[0]
    change = json.loads(child.stdout.readline())
    assert ("pending", approval.id, 1) == (change["event"], change["approval"]["id"], change["approval"]["revision"])
    reject(url, first)
    change = json.loads(child.stdout.readline())
    assert ("rejected", first.id) == (change["event"], change["approval"]["id"])


def test_hostile_texts_stay_on_their_line(url, lines):
    """In plain lines and in JSON."""
    filed(url, HOSTILE, action=HOSTILE, key=None)
    shown = lines().stdout
    assert all(shown.readline().rstrip("\n").isprintable() for _ in range(4))
    assert lines("--json").stdout.readline().rstrip("\n").isprintable()


def test_without_a_store_it_ends_at_once(lines):
    """One line, exit code 1."""
    child = lines()
    out, err = child.communicate(timeout=60)
    assert ("", 1, 1, True) == (out, child.returncode, err.count("\n"), "there is no store" in err)


def test_a_replaced_store_ends_it(url, file, lines, tmp_path):
    """With one line that names the file, and exit code 1: what came to another file would not be shown."""
    filed(url, "A-1")
    child = lines()
    child.stdout.readline()
    file.replace(tmp_path / "away.db")
    _, err = child.communicate(timeout=60)
    assert (1, 1, True) == (child.returncode, err.count("\n"), str(file) in err)


def test_the_screen_shows_what_comes_and_goes(url, screen):
    """It follows the size of the terminal, rings for a new request, and leaves the terminal as it was."""
    approval = filed(url, "A-1")[0]
    child = screen("--bell")
    child.expect("1 pending")
    child.expect(approval.id[3:11])
    child.setwinsize(12, 60)
    other = filed(url, "A-2")[0]
    child.expect("\a")
    child.expect("2 pending")
    child.expect(other.id[3:11])
    reject(url, other)
    child.expect("1 pending")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert (0, True) == (child.exitstatus, "\x1b[?1049l" in child.before)


def test_a_dumb_terminal_gets_lines(url, screen):
    """Without control sequences."""
    approval = filed(url, "A-1")[0]
    child = screen(TERM="dumb")
    child.expect(approval.id[3:11])
    child.sendintr()
    child.expect(pexpect.EOF)
    assert "\x1b" not in child.before
