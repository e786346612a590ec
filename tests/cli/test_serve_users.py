"""`grace-kp serve users`: accounts from the command line."""

from __future__ import annotations

import json
import re

import pytest


@pytest.fixture
def users(command, recorded, url):
    """Runs a command on the accounts of a store."""
    return lambda *arguments: command("serve", "users", *arguments, "--store", url)


def test_a_new_account_prints_its_token_once(users):
    """Alone on standard output, for programs; what it is for stands on standard error."""
    added = users("add", "ana", "--role", "approver")
    assert 0 == added.returncode
    assert re.fullmatch(r"gkp_[\w-]{43}\n", added.stdout)
    assert "it is shown once, and the store keeps only its hash" in added.stderr.replace("\n", " ")
    again = users("rotate", "ana")
    assert re.fullmatch(r"gkp_[\w-]{43}\n", again.stdout)
    assert added.stdout != again.stdout


def test_accounts_are_listed(users):
    """As a table and as JSON; neither holds a token or its hash."""
    assert "no accounts in" in users("list").stdout
    assert "[]\n" == users("list", "--json").stdout
    users("add", "ana", "--role", "approver")
    users("add", "Ben Bo", "--role", "viewer")
    table = users("list").stdout
    assert re.search(r"ana +approver +never", table)
    assert re.search(r"Ben Bo +viewer +never", table)
    found = json.loads(users("list", "--json").stdout)
    assert [("ana", "approver", None), ("Ben Bo", "viewer", None)] == [
        (each["name"], each["role"], each["last_use"]) for each in found
    ]
    assert {"name", "role", "created_at", "changed_at", "last_use"} == set(found[0])


def test_roles_change_and_accounts_go(users):
    """The last admin only by force."""
    users("add", "ana", "--role", "admin")
    users("add", "ben", "--role", "viewer")
    assert "ben has the role approver\n" == users("role", "ben", "approver").stdout
    assert "ben has no account any more\n" == users("remove", "ben").stdout
    refused = users("remove", "ana")
    assert (1, "grace-kp: ana is the last admin; --force removes it or changes its role all the same\n") == (
        refused.returncode,
        refused.stderr,
    )
    assert 1 == users("role", "ana", "viewer").returncode
    assert 0 == users("remove", "ana", "--force").returncode
    assert "[]\n" == users("list", "--json").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("add", "ana", "--role", "owner"), 2, "the role must be viewer, approver, admin or agent, not 'owner'"),
        (("add", "ana"), 2, "--role"),
        (("add", "", "--role", "viewer"), 2, "an account needs a name of 1 to 200 printable characters"),
        (("add", "ana", "--role", "viewer", "--by", ""), 2, "by must be a name"),
        (("remove", "ana"), 1, "there is no account 'ana'; accounts: none"),
        (("rotate", "\x1b[31m"), 1, "there is no account"),
    ],
)
def test_what_cannot_be_done_is_one_line(users, arguments, code, expected):
    """Without a traceback, and without characters that a terminal obeys."""
    ran = users(*arguments)
    assert code == ran.returncode
    assert expected in ran.stderr
    assert "\x1b" not in ran.stderr


def test_who_changes_accounts_is_recorded(users, command, url):
    """In the audit trail, which can be verified."""
    users("add", "ana", "--role", "viewer", "--by", "operator")
    exported = command("approvals", "export", "--store", url).stdout.splitlines()
    entry = next(each for each in (json.loads(line)["entry"] for line in exported) if each["kind"] == "account_changed")
    assert ("operator", "cli") == (entry["actor"]["name"], entry["actor"]["channel"])
    assert 0 == command("approvals", "verify", "--store", url).returncode


def test_a_store_before_the_command_is_refused(command, recorded, url):
    """It would otherwise be another store that gets the account."""
    ran = command("serve", "--store", url, "users", "list")
    assert 2 == ran.returncode
    assert "--store belongs behind the command" in ran.stderr
