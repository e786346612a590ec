"""What a new user does after the demo: the commands that it names work as they stand, and `last` is the whole run."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.program import ROOT, ended, run

PROGRAM = Path(sys.executable).parent / "grace-kp"


def start(command, folder, **environment):
    ran = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (0, "") == (ran.returncode, ran.stderr)
    return ran.stdout


def named_in(output):
    """The commands under "What next", as a shell would split them."""
    lines = [line.strip().partition("     ")[0] for line in output.partition("What next:")[2].splitlines()]
    return [shlex.split(line) for line in lines if "--store" in line]


def test_the_commands_that_the_demo_names_work_from_there(tmp_path):
    """The program is named as it was started, also where it is not on the PATH."""
    output = start([sys.executable, "-m", "grace_kp.cli", "demo"], tmp_path)
    demo, show = named_in(output)
    start(demo, tmp_path, PATH="")
    page = start(show, tmp_path, PATH="")
    for piece in ("Write a report on 3 questions", "researcher", "write_report: cancelled", "nested"):
        assert piece in page


def test_a_program_on_the_path_is_named_briefly(tmp_path):
    assert ["grace-kp", "demo"] == named_in(start([str(PROGRAM), "demo"], tmp_path, PATH=str(PROGRAM.parent)))[0][:2]


def test_demo_without_a_terminal_says_what_it_decided():
    """It does its work, is less sure of its wrong answer than of its right ones, and does not run the gated action."""
    ran = run("demo", stdin="y\n")
    assert (0, "") == (ran.returncode, ran.stderr)
    for piece in ("✗ check", "error_recovery", "search_quality", "no reviewer is available", "not evaluated"):
        assert piece in ran.stdout
    assert "characters written" not in ran.stdout
    documents = json.loads(run("demo", "--json", stdin="").stdout)
    assert len(documents) == 4
    *nested, root = documents
    right, right_too, wrong = (document["outcome"]["confidence"] for document in nested)
    assert wrong < 0.6 < 0.8 < min(right, right_too)
    answers = [document["outcome"]["result_summary"] for document in nested]
    assert ["trace/redaction/", "approvals/_webhooks.py", "perhaps "] == [
        answer[: len(start)]
        for answer, start in zip(answers, ("trace/redaction/", "approvals/_webhooks.py", "perhaps "), strict=True)
    ]
    assert [document["id"] for document in nested] == root["grace"]["children"]
    assert "cancelled" == root["grace"]["decisions"][0]["outcome"]


def test_demo_in_a_terminal_asks(terminal):
    child = terminal("demo")
    for typed in ("", "y"):
        child.expect(r"\[i\]nput > ")
        child.sendline(typed)
    child.expect("characters written")
    assert 0 == ended(child)
