"""`grace-kp approvals list`, `show` and `watch`, as a person and a program meet them."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from rich.cells import cell_len

from grace_kp.approvals import Actor, RequestStore
from grace_kp.store import open_store
from tests.cli.program import HOSTILE, ended, filed


def test_the_list_names_what_is_pending_and_what_to_do_next(command, url):
    late = filed(url, "A-2", deadline_seconds=7_200.0)[0]
    soon = filed(url, "A-1", deadline_seconds=600.0)[0]
    out = command("approvals", "list", "--store", url, columns=100).stdout
    assert out.index(soon.id[3:11]) < out.index(late.id[3:11])
    assert 'refund(invoice="A-1", euros=40' in out
    assert "handed over" in out
    assert "approvals show ID" in out


def test_requests_with_the_same_digest_are_one_row(command, url):
    for _ in range(3):
        filed(url, "A-1", key=None)
    assert 1 == command("approvals", "list", "--store", url, columns=100).stdout.count("refund(")
    assert "×3 refund(" in command("approvals", "list", "--store", url, columns=100).stdout
    assert 3 == command("approvals", "list", "--all", "--store", url, columns=100).stdout.count("refund(")


def test_an_empty_store_says_what_to_do_next(command, url):
    """So does a condition that nothing meets, and a store that is not there."""
    assert "no store exists" in command("approvals", "list", "--store", url).stderr
    approval = filed(url, "A-1")[0]
    assert (
        "no pending requests match; the store has 1"
        in command("approvals", "list", "--action", "x*", "--store", url, columns=200).stdout
    )
    command("approvals", "reject", approval.id, "--yes", "--store", url)
    assert "`grace-kp approvals list --past`" in command("approvals", "list", "--store", url, columns=200).stdout


def test_past_requests_by_state_person_and_time(command, url):
    first, second = filed(url, "A-1", "A-2")
    command("approvals", "reject", first.id, "--yes", "--by", "ana", "--store", url)
    command("approvals", "approve", second.id, "--yes", "--by", "bob", "--store", url)

    def ids(*conditions):
        return [
            entry["id"]
            for entry in json.loads(command("approvals", "list", "--json", "--store", url, *conditions).stdout)
        ]

    assert [second.id, first.id] == ids("--past") == ids("--since", "1h")
    assert [first.id] == ids("--state", "rejected") == ids("--decided-by", "ana")
    assert [] == ids()
    assert 2 == command("approvals", "list", "--since", "soon", "--store", url).returncode


def test_show_records_the_view_once_per_person(command, url):
    approval = filed(url, "A-1")[0]
    for _ in range(2):
        shown = command("approvals", "show", approval.id[3:9], "--by", "ana", "--store", url)
    assert 1 == shown.stdout.count("viewed by ana")
    assert "may refund run?" in shown.stdout
    document = json.loads(command("approvals", "show", approval.id, "--json", "--store", url).stdout)
    assert {"invoice": "A-1", "euros": 40, "memo": "why"} == document["arguments"]
    assert ["requested", "viewed"] == [entry["kind"] for entry in document["chain"]][:2]


def test_ids_that_do_not_name_one_approval_are_errors(command, url):
    filed(url, "A-1", id="ap-aaaa1111")
    filed(url, "A-2", id="ap-aaaa2222")
    for wanted, message in (
        ("zzzz", "no approval 'zzzz'"),
        ("a", "at least the first 3"),
        ("aaaa", "several approval ids begin"),
    ):
        shown = command("approvals", "show", wanted, "--store", url)
        assert (1, "", True) == (shown.returncode, shown.stdout, message in shown.stderr)


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_hostile_texts_stay_within_the_lines_of_the_list(command, url, columns):
    filed(
        url,
        HOSTILE,
        action=HOSTILE,
        level="confirm",
        key=None,
        groups=(HOSTILE,),
        quorum=2,
        domain=HOSTILE,
        objective=HOSTILE,
        reason=HOSTILE,
    )
    for arguments in (("list",), ("list", "--json"), ("list", "--jsonl")):
        out = command("approvals", *arguments, "--store", url, columns=columns).stdout
        assert [] == [line for line in out.splitlines() if not line.isprintable()]
        assert "json" in arguments[-1] or all(cell_len(line) <= columns for line in out.splitlines())


@pytest.fixture
def file(url):
    return Path(url.removeprefix("sqlite:///"))


@pytest.fixture
def lines(url, program):
    """Watches as a program does."""
    return lambda *options: program("approvals", "watch", *options, "--store", url)


def reject(url, approval):
    store = open_store(url)
    RequestStore(store.approvals, groups={"ana": ["finance"]}).reject(approval.id, by=Actor.here("ana"))
    store.close()


def test_each_change_writes_the_list_anew(url, lines):
    """What is pending, with a new request and without a decided one; Ctrl-C ends it with 0."""
    approval = filed(url, "A-1")[0]
    child = lines()
    assert "1 pending  " == child.stdout.readline()[:11]
    assert approval.id[3:11] in "".join(child.stdout.readline() for _ in range(3))
    other = filed(url, "A-2")[0]
    assert "2 pending  " == child.stdout.readline()[:11]
    assert other.id[3:11] in "".join(child.stdout.readline() for _ in range(4))
    reject(url, approval)
    assert "1 pending  " == child.stdout.readline()[:11]
    assert approval.id[3:11] not in "".join(child.stdout.readline() for _ in range(3))
    child.send_signal(signal.SIGINT)
    assert ("", "", 0) == (*child.communicate(timeout=60), child.returncode)


def test_changes_as_json_lines(url, lines):
    """With the whole approval when it comes and when it ends; only those that are watched."""
    filed(url, "A-0", groups=("legal",))
    first = filed(url, "A-1", groups=("finance",))[0]
    child = lines("--json", "--group", "finance")
    assert first.id == json.loads(child.stdout.readline())["approval"]["id"]
    filed(url, "A-2", groups=("legal",))
    approval = filed(url, "A-3", groups=("finance",))[0]
    change = json.loads(child.stdout.readline())
    assert ("pending", approval.id, 1) == (change["event"], change["approval"]["id"], change["approval"]["revision"])
    reject(url, first)
    change = json.loads(child.stdout.readline())
    assert ("rejected", first.id) == (change["event"], change["approval"]["id"])


def test_a_replaced_store_ends_it(url, file, lines, tmp_path):
    """With one line that names the file, and exit code 1: what came to another file would not be shown."""
    filed(url, "A-1")
    child = lines()
    child.stdout.readline()
    file.replace(tmp_path / "away.db")
    _, err = child.communicate(timeout=60)
    assert (1, 1, True) == (child.returncode, err.count("\n"), str(file) in err)


def test_the_screen_shows_what_comes_and_goes(url, terminal):
    """Each list replaces the one before, as wide as the terminal is then; a new request rings."""
    approval = filed(url, "A-1")[0]
    child = terminal("approvals", "watch", "--bell", "--store", url)
    child.expect("1 pending")
    child.expect(approval.id[3:11])
    child.setwinsize(12, 60)
    other = filed(url, "A-2")[0]
    child.expect("\a")
    child.expect("2 pending")
    child.expect(other.id[3:11])
    reject(url, other)
    child.expect_exact("\x1b[2J")
    child.expect("1 pending")
    child.sendintr()
    assert 0 == ended(child)


def test_a_dumb_terminal_gets_lines(url, terminal):
    approval = filed(url, "A-1")[0]
    child = terminal("approvals", "watch", "--store", url, TERM="dumb")
    child.expect(approval.id[3:11])
    child.sendintr()
    ended(child)
    assert "\x1b" not in child.before
