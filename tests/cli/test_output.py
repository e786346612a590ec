"""Terminals that can do little: narrow ones, dumb ones, and ones that lack characters."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from grace_kp.cli._output import clean, put_json, visible, visible_json
from tests import warm
from tests.cli.program import at_terminal, ended

ROOT = Path(__file__).resolve().parents[2]
UNSEEN = "\x07\x7f\x85\x9b\xad\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
RUN = {
    "task_id": "京都",
    "reward": 0.0,
    "traj": [
        {"role": "user", "content": "京都の天気を教えてください。傘は必要でしょうか。\x1b[31m"},
        {"role": "assistant", "content": "雨です。"},
    ],
}


@pytest.fixture
def store(tmp_path):
    """A store with one Japanese run."""
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(RUN) + "\n", encoding="utf-8")
    url = f"sqlite:///{tmp_path / 't.db'}"
    warm.run([sys.executable, "-m", "grace_kp.cli", "traces", "import", str(path), "--store", url], check=True)
    return url


def in_terminal(columns, *arguments, **environment):
    """What a terminal of this many columns gets."""
    child = at_terminal(*arguments, columns=columns, **environment)
    assert 0 == ended(child), child.before
    return child.before.replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [40, 60, 200])
@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_lists_fit_the_terminal(store, columns, term):
    """Also a dumb one, which gets no control sequences."""
    shown = in_terminal(columns, "traces", "list", "--store", store, TERM=term)
    if term == "dumb":
        assert "\x1b" not in shown
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert [] == [line for line in lines if cell_len(line) > columns]
    assert ["id", "objective", "ok", "score"] == [
        word for word in lines[0].split() if word in {"id", "objective", "ok", "score"}
    ]
    assert "\x1b" not in "".join(lines)


def test_a_page_fits_a_narrow_dumb_terminal(store):
    """Every line of a trace."""
    shown = in_terminal(40, "traces", "show", "last", "--store", store, TERM="dumb")
    assert [] == [line for line in shown.splitlines() if cell_len(line) > 40]
    assert r"\u001b[31m" in shown


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_stream_that_lacks_characters_gets_others_in_their_place(store, encoding):
    """Tables stay in line, contents show escapes, and JSON loses nothing."""

    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding, "COLUMNS": "60"}
        ran = warm.run(
            [sys.executable, "-m", "grace_kp.cli", *arguments, "--store", store], env=environment, capture_output=True, timeout=300, check=False
        )  # fmt: skip
        assert (0, b"") == (ran.returncode, ran.stderr)
        return ran.stdout.decode(encoding)

    rows = run("traces", "list").splitlines()
    assert rows[2].index(" no ") + 1 == rows[0].index("ok")
    assert r"\u4eac\u90fd" in run("traces", "show", "last")
    [trace] = json.loads(run("traces", "list", "--json"))
    assert RUN["traj"][0]["content"] == trace["task"]["objective"]
    assert trace == json.loads(run("traces", "list", "--jsonl"))


def test_the_demo_fits_a_narrow_terminal():
    """One line for each step."""
    shown = warm.run(
        [sys.executable, "-m", "grace_kp.cli", "demo"], env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "44"}, capture_output=True,
        text=True, encoding="utf-8", stdin=subprocess.DEVNULL, timeout=300, check=True,
    ).stdout  # fmt: skip
    steps = [line for line in shown.splitlines() if line.startswith(("  ✓", "  ✗"))]
    assert 15 == len(steps)
    assert [] == [line for line in steps if cell_len(line) > 44]
    assert 14 == sum(line.endswith(" ms") for line in steps)  # one tool fails


@pytest.mark.parametrize(
    ("text", "width", "line"),
    [
        ("a\x1b[31m\n b", 0, r"a\u001b[31m b"),
        ("京都です", 5, "京都…"),
        ("short", 10, "short"),
        *((f"a{character}b", 0, f"a\\u{ord(character):04x}b") for character in UNSEEN),
    ],
)
def test_clean_text_is_one_line(text, width, line):
    """Control, bidirectional and zero-width characters become visible; wide characters count as two columns."""
    assert line == clean(text, width)


def test_visible_text_shows_what_a_terminal_would_obey():
    """Line breaks stay, blanks of other widths become blanks, the rest is escaped as in JSON."""
    assert "a\nb  \\u001b[31m \\u007f\\u202e" == visible("a\r\nb  \x1b[31m\u3000\x7f\u202e")
    assert '{"a": "\\u001b\\u007f"}' == visible_json({"a": "\x1b\x7f"})


def test_json_for_machines_hides_nothing_either(capsys):
    """The characters stand in it as escapes, and come back."""
    put_json({"text": UNSEEN})
    out = capsys.readouterr().out
    assert out.replace("\n", "").isprintable()
    assert {"text": UNSEEN} == json.loads(out)
