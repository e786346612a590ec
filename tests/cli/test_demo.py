"""What a new user does after the demo: the commands that it names work as they stand, and `last` is the whole run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp.cli._lookup import find
from grace_kp.errors import GraceError

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).parent / "grace-kp"


def run(command, folder, **environment):
    ran = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (0, "") == (ran.returncode, ran.stderr)
    return ran.stdout


def named_in(output):
    """The commands under "What next", as a shell would split them."""
    lines = [line.strip().partition("     ")[0] for line in output.partition("What next:")[2].splitlines()]
    return [shlex.split(line) for line in lines if "--store" in line]


def test_the_commands_that_the_demo_names_work_from_there(tmp_path):
    """The program is named as it was started, also where it is not on the PATH."""
    output = run([sys.executable, "-m", "grace_kp.cli", "demo"], tmp_path)
    demo, show = named_in(output)
    run(demo, tmp_path, PATH="")
    page = run(show, tmp_path, PATH="")
    for piece in ("Write a report on 3 questions", "researcher", "write_report: cancelled", "nested"):
        assert piece in page


@pytest.mark.parametrize(
    ("path", "expected"),
    [("", f"{PROGRAM} demo"), (str(PROGRAM.parent), "grace-kp demo")],
    ids=["elsewhere", "on the PATH"],
)
def test_the_program_is_named_as_it_can_be_started(path, expected, tmp_path):
    """By its name where that finds it, else by its path."""
    commands = named_in(run([str(PROGRAM), "demo"], tmp_path, PATH=path))
    assert expected == shlex.join(commands[0][:2])


def test_last_is_the_newest_run_that_is_not_nested():
    """A nested run begins later than the run around it; it is not what somebody who asks for the last run means."""
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)

    @grace.agent
    def inner(question):
        return question

    @grace.agent
    def outer(question):
        return [inner(f"part {number}") for number in range(50)]

    with pytest.raises(GraceError, match="the store is empty"):
        find(grace.store, "last")
    outer("first")
    outer("second")
    assert "second" == find(grace.store, "last").task.objective


def test_last_of_nested_runs_alone_is_the_newest():
    """The runs around them may have been deleted."""
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)
    with grace.run("around"):
        for name in ("a", "b"):
            with grace.run(name):
                pass
    nested = [trace for trace in grace.store.query() if trace.parent_id is not None]
    other = gk.Grace(store="memory:", evaluator=None, embedder=None)
    from grace_kp.runtime._records import record_of

    other.store.put([record_of(trace.to_dict()) for trace in reversed(nested)])
    assert "b" == find(other.store, "last").task.objective


def test_a_store_that_cannot_be_used_ends_the_demo_before_it_begins(command):
    """In one line, which names the stores that there are."""
    ran = command("demo", "--store", "foo://")
    assert (1, "") == (ran.returncode, ran.stdout)
    assert "grace-kp: unknown store 'foo://'; known are memory: or sqlite:///path.db\n" == ran.stderr
