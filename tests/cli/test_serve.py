"""`grace-kp serve`: what it prints, what it refuses, how it ends, and the accounts of `serve users`."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import urllib.error
import urllib.request

import pytest

from tests.cli.program import ended

PATIENCE = 60


@pytest.fixture
def serve(url, program):
    """Starts the command; returns it and the address that it printed."""

    def start():
        child = program("serve", "--store", url, "--port", "0")
        lines = []
        while not lines or not lines[-1].startswith("stop"):
            lines.append(child.stdout.readline())
            assert lines[-1], child.stderr.read()
        return child, lines

    return start


def address(lines):
    return lines[lines.index("open\n") + 1].strip()


def test_it_prints_where_to_go(recorded, url, serve):
    """The store, the address with a code, what the code is, and how to stop; within 80 columns."""
    _, lines = serve()
    assert ["store", "open", "login", "stop"] == [line.split()[0] for line in lines if line[0] != " "]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login\?code=[\w-]{43}", address(lines))
    assert url.removeprefix("sqlite:///") in "".join(line[8:-1] for line in lines)
    assert all(len(line) <= 81 for line in lines)


def test_with_accounts_there_is_no_code(recorded, url, serve, command):
    """The address is all that is printed; people log in with their token."""
    command("serve", "users", "add", "ana", "--role", "admin", "--store", url)
    _, lines = serve()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address(lines))
    assert "a token of an account; `grace-kp serve users` manages them" in "".join(lines)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(recorded, serve, kind):
    """With success, also while a browser keeps a connection open; what was refused is stated."""
    child, lines = serve()
    base = address(lines).partition("/login")[0]
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(urllib.request.Request(base, headers={"Host": "evil.example"}), timeout=PATIENCE)
    host, _, port = base.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as idle:
        idle.sendall(f"GET /login HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        assert idle.recv(12) == b"HTTP/1.1 200"
        child.send_signal(kind)
        out, err = child.communicate(timeout=PATIENCE)
    assert (0, "stopped\n") == (child.returncode, out)
    assert "grace-kp: Refused requests since the start: 1 × foreign host.\n" == err


def test_nothing_secret_is_written(recorded, url, serve, command):
    child, lines = serve()
    base = address(lines).partition("/login")[0]
    body = b"credential=gkp_tried_and_wrong"
    for _ in range(3):
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(urllib.request.Request(f"{base}/login", body, {"Origin": base}), timeout=PATIENCE)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=PATIENCE)
    assert "a login from 127.0.0.1 was refused" in err
    assert "tried_and_wrong" not in out + err
    assert address(lines).partition("code=")[2] not in out + err


def test_at_a_terminal_a_browser_opens(recorded, url, tmp_path, terminal):
    """By way of a file that only this user can read, because other users see the arguments of a process; it is gone at the end."""
    note = tmp_path / "note"
    program = tmp_path / "browser"
    os.mkfifo(note)
    program.write_text(f'#!/bin/sh\nfile="${{1#file://}}"\n{{ stat -c "%a %n" "$file"; cat "$file"; }} > {note}\n')
    program.chmod(0o755)
    child = terminal("serve", "--store", url, "--port", "0", BROWSER=f"{program} %s", TMPDIR=str(tmp_path), CI="")
    child.expect(r"login\?code=([\w-]{43})")
    code = child.match[1]
    child.expect("Ctrl-C")
    seen = note.read_text()
    child.sendintr()
    child.expect("stopped")
    ended(child)
    mode, file = seen.splitlines()[0].split()
    assert ("600", True) == (mode, f"code={code}" in seen)
    assert not (tmp_path / file).exists()


def test_a_store_in_memory_is_refused(command):
    for arguments in (("serve",), ("serve", "users", "add", "ana", "--role", "admin")):
        ran = command(*arguments, "--store", "memory:")
        expected = "grace-kp: pages need a store that other processes can reach: --store sqlite:///path.db\n"
        assert (2, expected) == (ran.returncode, ran.stderr)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--host", "0.0.0.0"), "so it needs an account"),
        (("--port", "99999"), "less than or equal to 65535"),
    ],
)
def test_what_would_not_be_safe_is_refused(command, recorded, url, options, expected):
    ran = command("serve", "--store", url, *options)
    assert ran.returncode in {1, 2}
    assert expected in ran.stderr
    assert "Traceback" not in ran.stderr


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
    users("add", "ana", "--role", "admin")
    users("add", "ben", "--role", "viewer")
    assert "ben has the role approver\n" == users("role", "ben", "approver").stdout
    assert "the account ben was removed\n" == users("remove", "ben").stdout
    refused = users("remove", "ana")
    expected = "grace-kp: ana is the last admin; --force removes it or changes its role all the same\n"
    assert (1, expected) == (refused.returncode, refused.stderr)
    assert 1 == users("role", "ana", "viewer").returncode
    assert 0 == users("remove", "ana", "--force").returncode
    assert "[]\n" == users("list", "--json").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("add", "ana", "--role", "owner"), 2, "the role must be viewer, approver, admin or agent, not 'owner'"),
        (("add", "ana", "--role", "viewer", "--by", ""), 2, "by must be a name"),
        (("remove", "ana"), 1, "no account is named 'ana'; accounts: none"),
        (("rotate", "\x1b[31m"), 1, "no account is named"),
    ],
)
def test_what_cannot_be_done_is_one_line(users, arguments, code, expected):
    ran = users(*arguments)
    assert code == ran.returncode
    assert expected in ran.stderr
    assert "\x1b" not in ran.stderr


def test_a_store_before_the_command_is_refused(command, recorded, url):
    ran = command("serve", "--store", url, "users", "list")
    assert (2, True) == (ran.returncode, "--store belongs behind the command" in ran.stderr)
