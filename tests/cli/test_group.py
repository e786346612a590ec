"""Groups of commands that suggest what is right."""

from __future__ import annotations

import pytest


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
