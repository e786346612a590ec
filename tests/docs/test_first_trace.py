"""The README's first trace: the output that it shows is what the program and the command line print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.printed import PAGES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run(command, folder):
    ran = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert (0, "") == (ran.returncode, ran.stderr)
    return ran.stdout.splitlines()


def in_order(shown, printed):
    """The shown lines that are not printed, in this order; a line of `…` stands for any lines."""
    rest, missing = iter(printed), []
    for line in shown:
        if line != "…" and line not in rest:
            missing.append(line)
    return missing


def test_what_the_first_trace_prints(tmp_path):
    """A new user gets these lines: the program, then the newest trace in the default store, on a terminal of 80 columns and 24 lines."""
    first = README.partition("\n## ")[0]
    program, _ = blocks(first, "python")
    (session,) = blocks(first, "console")
    _, of_program, of_command = re.split(r"^\$ .*\n", session, flags=re.MULTILINE)
    (tmp_path / "agent.py").write_text(program, encoding="utf-8")
    assert of_program.splitlines() == run([sys.executable, "-W", "error", "agent.py"], tmp_path)
    printed = run([sys.executable, "-m", "grace_kp.cli", "traces", "show", "last"], tmp_path)
    assert [] == in_order(of_command.splitlines(), printed)
    assert len(printed) <= 22  # with the command and the next prompt
    assert [] == [line for line in printed if len(line) > 80]


def test_commands_of_the_pages_exist():
    """Each `grace-kp …` in a console block of a page names a command and options that it has."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    lines = [
        line
        for text in texts
        for block in blocks(text, "console")
        for line in block.splitlines()
        if line.startswith("$ grace-kp ")
    ]
    assert lines
    from typer.main import get_command

    from grace_kp.cli._app import app

    for line in lines:
        words = line.partition("#")[0].split()[2:]
        command = get_command(app)
        while words and hasattr(command, "commands") and not words[0].startswith("-"):
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known, line
