"""The command line as a user meets it: what it prints, and that no mistake of theirs shows a traceback."""

from __future__ import annotations

import pytest

from tests.cli.program import run


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
    """2 for usage, 1 for failure; never a traceback."""
    ran = run(*arguments, stdin="")
    assert code == ran.returncode, ran.stderr
    assert "Traceback" not in ran.stderr + ran.stdout
    assert 1 == len(ran.stderr.strip().splitlines())


def test_a_broken_setting_is_named():
    """An unknown environment variable is refused with the nearest known name."""
    ran = run("traces", "list", GRACE_KP_STROE="memory:")
    assert (1, "") == (ran.returncode, ran.stdout)
    assert "did you mean 'store'" in ran.stderr


def test_help_and_version():
    """Every command explains itself."""
    assert run("--version").stdout.startswith("grace-kp ")
    for command in (
        ["--help"],
        ["score", "-h"],
        ["traces", "-h"],
        ["traces", "export", "-h"],
        ["doctor", "-h"],
        ["demo", "-h"],
    ):
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
    """The commands, the option of the store, the roles."""
    ran = command(*arguments)
    assert (2, f"grace-kp: {expected}\n") == (ran.returncode, ran.stderr)
