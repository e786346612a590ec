"""What commands print: help and mistakes, lines and tables within the width, on terminals that can do little."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from grace_kp.cli._output import clean, put_json, visible, visible_json
from grace_kp.cli._page import TableColumn, TextTable, meter, put, put_field, put_text
from tests import warm
from tests.cli.program import run

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


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_stream_that_lacks_characters_gets_others_in_their_place(store, encoding):
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
    put_json({"text": UNSEEN})
    out = capsys.readouterr().out
    assert out.replace("\n", "").isprintable()
    assert {"text": UNSEEN} == json.loads(out)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["score"], 2), (["score", "no-such-file.jsonl"], 1), (["score", "."], 1), (["scoer", "x"], 2), (["traces", "show", "nope", "--store", "memory:"], 1),
        (["traces", "list", "--store", "mysql://x"], 1), (["traces", "list", "--store", "memory:", "--since", "yesterday"], 2),
        (["traces", "list", "--limit", "no"], 2), (["score", "x", "--profile", "lenient"], 2), (["demo", "--colour"], 2),
        (["traces", "export", "/no/such/folder/x.jsonl", "--store", "memory:"], 1),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_and_an_exit_code(arguments, code):
    ran = run(*arguments, stdin="")
    assert code == ran.returncode, ran.stderr
    assert "Traceback" not in ran.stderr + ran.stdout
    assert 1 == len(ran.stderr.strip().splitlines())


def test_help_and_version():
    assert run("--version").stdout.startswith("grace-kp ")
    for command in (["--help"], ["traces", "export", "-h"]):
        ran = run(*command)
        assert (0, "") == (ran.returncode, ran.stderr)
        assert "Usage" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("serve", "app.db"), "no command 'app.db'; commands: users; the store is an option: grace-kp serve --store sqlite:///app.db"),
        (("serve", "users", "delete", "ana"), "no command 'delete'; commands: add, list, remove, role, rotate"),
        (("serve", "users", "add", "ana"), "state the role with --role: viewer, approver, admin or agent; begin with --role admin"),
    ],
)  # fmt: skip
def test_wrong_input_names_what_is_right(command, arguments, expected):
    ran = command(*arguments)
    assert (2, f"grace-kp: {expected}\n") == (ran.returncode, ran.stderr)


def written(width, write):
    file = io.StringIO()
    write(Console(file=file, width=width, highlight=False, emoji=False))
    return file.getvalue()


def test_a_line_is_written_literally():
    line = "[red]" + "x" * 60
    assert f"{line}\n" == written(40, lambda out: put(out, line))


@pytest.mark.parametrize(
    ("width", "value", "expected"),
    [
        (40, "done", "result      done\n"),
        (40, "first\nsecond", "result      first\n            second\n"),
        (30, "word " * 8 + "end", "result\n  word word word word word\n  word word word end\n"),
    ],
)
def test_values_stand_beside_their_name_or_below_it(width, value, expected):
    """Below in a narrow terminal; each further line continues under the first."""
    assert expected == written(width, lambda out: put_field(out, "result", value))


def test_texts_keep_their_lines_and_indentation():
    assert "  a\n      b\n" == written(40, lambda out: put_text(out, "a\n    b", indent=2))


@pytest.mark.parametrize(("value", "filled"), [(0, 0), (0.5, 5), (1, 10), (7, 10), (-1, 0)])
def test_a_meter_has_a_constant_length(value, filled):
    """A value outside of 0 to 1 counts as the nearest of the two; a narrow console has no meter."""
    bar = meter(value, Console(file=io.StringIO(), width=40))
    assert (10, filled) == (len(bar), 10 - bar.count(bar[-1]) if filled < 10 else 10)
    assert "" == meter(value, Console(file=io.StringIO(), width=30))


TEXTS = st.text(alphabet="ab 京都\x1b[]\\。é", max_size=60)
ROWS = st.lists(st.tuples(st.integers(0, 10**6), TEXTS, TEXTS, st.integers(0, 10**9)), min_size=1, max_size=5)
COLUMNS = (
    TableColumn("id", "word"), TableColumn("objective", least=10), TableColumn("why", "prose", priority=2), TableColumn("score", "figure", priority=1),
)  # fmt: skip


def printed(rows, width, columns=COLUMNS):
    table, file = TextTable(*columns), io.StringIO()
    for row in rows:
        table.add(*row)
    table.print(Console(file=file, width=width, color_system=None))
    return file.getvalue()


@given(ROWS, st.integers(20, 220))
def test_no_line_is_wider_than_the_terminal_and_what_must_be_whole_is_whole(rows, width):
    """Ids stand whole at every width; scores stand whole or their column is dropped."""
    text = printed(rows, width)
    assert [] == [line for line in text.splitlines() if cell_len(line) > width]
    words = text.split()
    assert [] == [name for name, *_ in rows if str(name) not in words]
    if "score" in words:
        assert [] == [score for *_, score in rows if str(score) not in words]


def test_columns_go_by_priority():
    rows = [(1234, "an objective of some length", "because of this", 0.123)]
    headings = [printed(rows, width).split()[: 5 - number] for number, width in enumerate((60, 34, 20), 1)]
    assert [["id", "objective", "why", "score"], ["id", "objective", "score"], ["id", "objective"]] == [
        [word for word in heading if not word.startswith("─")] for heading in headings
    ]


def test_where_the_essential_columns_do_not_fit_each_row_is_a_block():
    columns = (TableColumn("variant"), *(TableColumn(f"figure {number}", "figure") for number in range(4)))
    text = printed([("long", *range(1_000_000, 1_000_004))], 30, columns)
    assert [f"figure {number}  {1_000_000 + number}" for number in range(4)] == text.splitlines()[1:5]


def test_wide_characters_take_two_columns():
    """A Japanese text is shortened by its width, and the columns after it stay in line."""
    lines = printed([(1, "京都の天気を教えてください", "", 5), (2, "ok", "", 77)], 30).splitlines()
    assert "…" in lines[2]
    assert 1 == len({cell_len(line) for line in lines[2:]})
