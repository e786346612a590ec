"""What commands read: files that are unreadable in whole or in part are reported in few lines with every count right; modules of the user."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

import pexpect
import pytest

from grace_kp.cli._inputs import load_module
from grace_kp.errors import GraceError
from tests.cli.program import ended

RUN = {
    "task_id": 1,
    "reward": 1.0,
    "traj": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"}],
}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def written(tmp_path):
    def write(lines, name="runs.jsonl"):
        path = tmp_path / name
        text = "".join(line + "\n" for line in lines).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return path

    return write


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.csv.gz"])
@pytest.mark.parametrize("count", [2, 150, 3_000])
def test_a_file_of_another_kind_is_one_line(command, written, name, count):
    """The first problem with its place, and what a file holds; not a line per line."""
    path = written((f"{number},a,b" for number in range(count)), name)
    ran = command("score", path)
    assert (1, "no runs") == (ran.returncode, ran.stdout[:7])
    assert 1 == len(ran.stderr.splitlines())
    assert f"{path}:1" in ran.stderr
    assert "traces or chat runs" in ran.stderr
    assert json.loads(command("traces", "import", path, "--store", "memory:", "--json").stdout)["imported"] == 0


def test_a_file_with_one_problem_says_just_that(command, written):
    """As before: file, line, problem."""
    path = written(["{broken"])
    ran = command("score", path)
    assert 1 == len(ran.stderr.splitlines())
    assert "none of" not in ran.stderr


def test_the_first_problems_of_a_file_are_named_and_the_rest_counted(command, written):
    """Five lines and a sum; what can be read is scored, wherever it stands."""
    good, bad = json.dumps(RUN), "{broken"
    path = written([bad, bad, bad, good, *[bad] * 40, good])
    ran = command("score", path)
    lines = ran.stderr.splitlines()
    assert [f"{path}:{number}" in line for number, line in zip((1, 2, 3, 5, 6), lines, strict=False)] == [True] * 5
    assert f"grace-kp: {path}: and 38 more that cannot be read" == lines[5]
    assert 6 == len(lines)
    assert "2 runs, 100% successful; 43 could not be read" in ran.stdout
    counts = json.loads(command("traces", "import", path, "--store", "memory:", "--json").stdout)
    assert {"imported": 1, "already_here": 1, "problems": 43} == counts


def test_each_file_is_reported_for_itself(command, written):
    """A file that is missing, one of another kind, and one that can be read."""
    good, bad = written([json.dumps(RUN)]), written(["1", "2", "3"], "bad.jsonl")
    ran = command("score", bad, "none.jsonl", good)
    assert [str(bad), "none.jsonl"] == [line.split(": ")[1].split(":")[0] for line in ran.stderr.splitlines()]
    assert "1 run, 100% successful; 4 could not be read" in ran.stdout


def test_a_file_keeps_its_name_and_time(command, written):
    """A run that does not say when it began took place when its file was written."""
    path = written([json.dumps(RUN)])
    os.utime(path, (86_400, 86_400))
    store = f"sqlite:///{path.parent / 't.db'}"
    assert command("traces", "import", path, "--store", store).returncode == 0
    [trace] = json.loads(command("traces", "list", "--store", store, "--json").stdout)
    assert "1970-01-02T00:00:00.000Z" == trace["metadata"]["created_at"]


def test_long_work_shows_its_share_and_what_remains_in_a_terminal(written):
    """A percentage, the number of runs and the time left; without a terminal nothing."""
    path = written([json.dumps(RUN)] * 300)
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    code = (
        "import sys, grace_kp.cli._output as o, rich.progress as p\n"
        "kept = p.Progress.update\n"
        "def update(self, *a, **k):\n    kept(self, *a, **k); self.refresh()\n"
        "p.Progress.update = update\n"
        f"from grace_kp.cli import main; main(['score', {str(path)!r}, '--no-summary'])"
    )
    child = pexpect.spawn(sys.executable, ["-c", code], env=environment, encoding="utf-8", timeout=300)
    child.expect("scoring")
    child.expect(r"100%.*300.*left")
    assert 0 == ended(child)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Imported modules and folders are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("mine_by_name", "mine_by_path", "grace_kp_import_json"):
        sys.modules.pop(name, None)


def test_by_name_and_by_path(tmp_path, monkeypatch):
    """A file with the name of a loaded module does not replace it."""
    monkeypatch.chdir(tmp_path)
    for name in ("mine_by_name", "mine_by_path", "json"):
        (tmp_path / f"{name}.py").write_text("answer = 42\n")
    assert 42 == load_module("mine_by_name", "work").answer
    assert 42 == load_module(str(tmp_path / "mine_by_path.py"), "work").answer
    loaded = sys.modules["json"]
    assert 42 == load_module(str(tmp_path / "json.py"), "work").answer
    assert loaded is sys.modules["json"]


@pytest.mark.parametrize(
    "text", ["raise ValueError('no')", "import sys; sys.exit(3)", "(", "import nothing_of_this_name"]
)
def test_whatever_a_module_raises_is_one_error(tmp_path, text):
    """It names the argument."""
    (tmp_path / "mine_by_path.py").write_text(text)
    with pytest.raises(GraceError, match=r"^work .*mine_by_path\.py: "):
        load_module(str(tmp_path / "mine_by_path.py"), "work")
