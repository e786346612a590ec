"""The command line in this process, as if in a terminal of some width; files and stores for it."""

from __future__ import annotations

import gzip
import json
from collections import namedtuple

import pytest

import grace_kp as gk
from grace_kp.cli import main
from tests.cli.program import CHAT, LONG, at_terminal, started

Ran = namedtuple("Ran", "returncode stdout stderr")


@pytest.fixture
def command(capsys, monkeypatch):
    """Runs `grace-kp` with these arguments."""

    def run(*arguments, columns=None):
        if columns is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return Ran(ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def terminal():
    """Starts `grace-kp` with these arguments at a terminal, and ends it after the test."""
    children = []

    def start(*arguments, **options):
        children.append(at_terminal(*arguments, **options))
        return children[-1]

    yield start
    for child in children:
        child.close(force=True)


@pytest.fixture
def program():
    """Starts `grace-kp` with these arguments and pipes, and kills it after the test."""
    children = []

    def start(*arguments):
        children.append(started(*arguments))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(CHAT) + "\n{broken\n\n" + json.dumps({**CHAT, "reward": 0.0, "task_id": 8}) + "\n")
    return path


@pytest.fixture
def written(tmp_path):
    """Writes lines to a file, which its name may have compressed."""

    def write(lines, name="runs.jsonl"):
        path = tmp_path / name
        text = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return path

    return write


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'traces.db'}"


def reviewer(request):
    if request.action == "pay":
        return gk.InterventionResponse("cancel", user_input="too much", reviewer="ana")
    return gk.InterventionResponse("modify", modified={"path": "safe.txt"}, reviewer="ana")


@pytest.fixture
def recorded(url):
    """Three runs: one with gates and a nested run, the nested one, and one that failed."""
    with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=reviewer, domain="travel") as grace:

        @grace.gate(floor="confirm")
        @grace.tool
        def write(path: str, text: str) -> str:
            return f"wrote {path}"

        @grace.gate(floor="confirm")
        @grace.tool
        def pay(euros: int) -> str:
            return "paid"

        @grace.agent(name="helper")
        def helper(question: str) -> str:
            return "rain"

        @grace.agent
        def planner(question: str) -> str:
            grace.thought("word " * 400 + "END")
            helper("ask the helper")
            write("/etc/hosts", "two  blanks\nand \x1b[2J")
            try:
                return pay(2_000)
            except gk.ActionCancelled:
                return "first line\nsecond line"

        @grace.agent
        def broken(question: str) -> str:
            raise ValueError("no such \x1b[5mthing")

        planner(LONG)
        with pytest.raises(ValueError, match="no such"):
            broken("break")
    return url


@pytest.fixture
def stored(command, tmp_path, url):
    """Puts documents into a store."""

    def put(*documents):
        path = tmp_path / "in.jsonl"
        path.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
        assert command("traces", "import", path, "--store", url).returncode == 0
        return url

    return put
