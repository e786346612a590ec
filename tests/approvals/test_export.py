"""The export as a third party checks it, with the program that its description prints and without this library."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import textwrap

import pytest
import rfc8785

from grace_kp.approvals import _chain, export, forget
from tests.approvals.chains import chain_of, damage

STEPS = (1, 1, 2, 1, 2, 1, 3, 2)


@pytest.fixture
def check(tmp_path):
    """Run the program of the description over lines; return what it printed or why it exited."""
    text = _chain.__doc__
    program = textwrap.dedent(text[text.index("    import hashlib") :])

    def run(lines):
        path = tmp_path / "chain.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, "-c", program, path], capture_output=True, text=True, timeout=60, check=False
        )
        return (ran.stdout + ran.stderr).strip()

    return run


def test_the_program_finds_the_chain_sound(check):
    """It prints number and hash of the newest entry, also where contents are deleted or left out."""
    tables = chain_of(STEPS)
    sound = f"8 {tables.head()[1]}"
    assert [sound, sound] == [check(export(tables)), check(export(tables, with_contents=False))]
    forget(tables, before=7.5, at=20.0)
    assert f"9 {tables.head()[1]}" == check(export(tables))


def test_the_program_finds_what_was_changed(check):
    """Contents, an entry, and a line that is missing."""
    lines = list(export(chain_of(STEPS)))
    assert "entry 3 was changed, removed or inserted" == check(lines[:2] + lines[3:])
    changed = {**lines[1], "contents": lines[1]["contents"].replace("ap-1", "ap-9")}
    assert "the contents of entry 2 were changed" == check([lines[0], changed])
    changed = {**lines[1], "entry": {**lines[1]["entry"], "at": 2.5}}
    assert "entry 2 was changed, removed or inserted" == check([lines[0], changed])


def test_lines_are_checked_with_two_hashes():
    """One of the canonical entry, one of salt and contents."""
    for line in export(chain_of(STEPS)):
        entry = line["entry"]
        assert line["hash"] == hashlib.sha256(rfc8785.dumps(entry)).hexdigest()
        if entry["kind"] == "claimed":
            assert (None, None, None) == (entry["commitment"], line["salt"], line["contents"])
        else:
            committed = bytes.fromhex(line["salt"]) + line["contents"].encode()
            assert entry["commitment"] == hashlib.sha256(committed).hexdigest()


def test_a_part_of_the_chain():
    """What is new since the last export, or what concerns one approval."""
    tables = chain_of(STEPS)
    assert [7, 8] == [line["entry"]["seq"] for line in export(tables, after=6)]
    assert [3, 5, 8] == [line["entry"]["seq"] for line in export(tables, approval="ap-2")]


def test_a_damaged_entry_is_exported_as_text(check):
    """The rest of the evidence comes out, and the program names the entry."""
    tables = chain_of(STEPS)
    damage(tables, 2, data=b"\xff{")
    lines = list(export(tables))
    assert "\\xff{" == lines[1]["entry"]
    with pytest.raises(AssertionError):
        assert "8" == check(lines)
