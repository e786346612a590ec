"""`grace-kp approvals list | show | watch | work`, and the chain behind approvals and standing approvals."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from grace_kp.approvals import Actor, RequestStore
from grace_kp.store import open_store
from tests import warm
from tests.cli.program import HOSTILE, ROOT, ended, filed, run, started, state_of


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
    assert [] == ids() == ids("--state", "rejected", "--decided-by", "bob") == ids("--state", "pending")
    pending = filed(url, "A-3")[0]
    assert [pending.id] == ids("--state", "pending", "--since", "1h")
    assert [pending.id, first.id] == ids("--state", "pending", "--state", "rejected")
    assert [] == ids("--state", "pending", "--decided-by", "ana")
    assert [first.id] == ids("--state", "pending", "--state", "rejected", "--decided-by", "ana")
    command("approvals", "withdraw", second.id, "--yes", "--store", url)
    assert [second.id] == ids("--state", "pending", "--state", "cancelled", "--limit", "1")
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


MODULE = """
from pathlib import Path

import grace_kp as gk

grace = gk.Grace(store={url!r}, evaluator=None, embedder=None, reviewer=gk.InboxReviewer(deadline="4h", wait="hand_over"))
log = Path({log!r})


@grace.gate(key="refund:{{invoice}}", floor="confirm")
def refund(invoice: str, euros: int) -> str:
    with log.open("a") as file:
        file.write(f"began {{invoice}} {{euros}}\\n")
    if invoice.startswith("held"):
        log.with_name("go").read_text()  # a pipe: waits for the test
    if euros > 900:
        raise ValueError("too much")
    with log.open("a") as file:
        file.write(f"ended {{invoice}} {{euros}}\\n")
    return "paid"
"""


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def module(tmp_path, url, log):
    """A module with a gate."""
    path = tmp_path / "shop_of_the_worker.py"
    path.write_text(MODULE.format(url=url, log=str(log)))
    return path


def asked(module, *calls):
    """Ask for these calls from another process, which ends."""
    code = f"import sys; sys.path.insert(0, {str(module.parent)!r}); import shop_of_the_worker as shop\n"
    code += "\n".join(f"shop.refund{call!r}" for call in calls)
    warm.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT)


def approved(url):
    """Approve everything that is pending; return the approvals."""
    store = open_store(url)
    desk = RequestStore(store.approvals)
    found = [desk.approve(approval.id, by=Actor.here("ana"), digest=approval.digest) for approval in desk.pending()]
    store.close()
    return found


def working(module, *options):
    return started("approvals", "work", module, *options)


def test_what_is_approved_runs_once(module, url, log):
    """By one of two workers; what is pending does not run, and an action that raises does not keep the next from running."""
    asked(module, ("A-1", 1000), ("A-2", 2))
    failing, paid = sorted(approved(url), key=lambda approval: approval.arguments["invoice"])
    asked(module, ("A-3", 3))
    workers = [working(module, "--once", "--json") for _ in range(2)]
    outcomes = [json.loads(line) for child in workers for line in child.communicate(timeout=300)[0].splitlines()]
    assert {(failing.id, "failed"), (paid.id, "done")} <= {(entry["id"], entry["outcome"]) for entry in outcomes}
    assert 1 == sum(child.returncode for child in workers)
    assert ["began A-1 1000", "began A-2 2", "ended A-2 2"] == sorted(log.read_text().splitlines())
    assert ("failed", "done") == (state_of(url, failing).state, state_of(url, paid).state)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_is_stopped_after_the_current_action(module, url, log, number):
    asked(module, ("held 1", 1), ("held 2", 1))
    found = approved(url)
    os.mkfifo(log.with_name("go"))
    child = working(module)
    assert "taken up" in child.stdout.readline()
    child.send_signal(number)
    log.with_name("go").write_text("go")
    out, err = child.communicate(timeout=300)
    assert (0, "", 1) == (child.returncode, err, out.count("  done "))
    assert ["approved", "done"] == sorted(state_of(url, approval).state for approval in found)


def test_it_goes_on_with_what_is_approved_later(module, url):
    asked(module, ("A-1", 1))
    child = working(module, "--json")
    approval = approved(url)[0]
    lines = [json.loads(child.stdout.readline()) for _ in range(2)]
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=300)
    assert [(approval.id, "taken up"), (approval.id, "done")] == [(line["id"], line["outcome"]) for line in lines]


def test_actions_of_other_programs_are_left_alone(module, url, tmp_path):
    asked(module, ("A-1", 1))
    approval = approved(url)[0]
    other = tmp_path / "other_of_the_worker.py"
    other.write_text(
        f"import grace_kp as gk\ngrace = gk.Grace(store={url!r}, evaluator=None, embedder=None, reviewer=None)\n"
    )
    ran = run("approvals", "work", other, "--once")
    assert (0, True) == (ran.returncode, "left to others" in ran.stdout)
    assert "approved" == state_of(url, approval).state


def test_a_module_that_cannot_be_imported_is_an_error(command, tmp_path):
    ran = command("approvals", "work", tmp_path / "nothing.py")
    assert (1, 1) == (ran.returncode, ran.stderr.count("\n"))


def test_a_changed_byte_is_found_against_a_checkpoint(command, url, tmp_path):
    filed(url, "A-1", "A-2")
    assert (
        "verified without a checkpoint: no accident found"
        in command("approvals", "verify", "--store", url, columns=500).stdout
    )
    points = tmp_path / "points.jsonl"
    assert 0 == command("approvals", "verify", "--write-checkpoint", points, "--store", url).returncode
    good = command("approvals", "verify", "--checkpoint", points, "--store", url, columns=200)
    assert (0, True) == (good.returncode, "2 entries verified against the checkpoint: no problem found" in good.stdout)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE approval_chain SET data = replace(data, 'requested', 'requesteD') WHERE seq = 1")
    bad = command(
        "approvals", "verify", "--checkpoint", points, "--write-checkpoint", points, "--store", url, columns=200
    )
    assert (1, True) == (bad.returncode, "entry 1 was changed" in bad.stdout)
    assert 1 == len(points.read_text().splitlines())
    assert not json.loads(command("approvals", "verify", "--json", "--store", url).stdout)["ok"]


def test_the_chain_is_exported_as_json_lines(command, url, tmp_path):
    filed(url, "A-1", "A-2")
    lines = [json.loads(line) for line in command("approvals", "export", "--store", url).stdout.splitlines()]
    assert [1, 2] == [line["entry"]["seq"] for line in lines]
    assert "A-1" in lines[0]["contents"]
    assert (
        "exported 1 entry"
        in command("approvals", "export", tmp_path / "x.jsonl", "--after", 1, "--no-contents", "--store", url).stdout
    )
    assert [None] == [json.loads(line)["contents"] for line in (tmp_path / "x.jsonl").read_text().splitlines()]


def test_after_a_restore_everything_approved_is_unknown(command, url):
    approval = filed(url, "A-1")[0]
    command("approvals", "approve", approval.id, "--yes", "--store", url)
    assert (2, "approved") == (
        command("approvals", "restored", "--store", url).returncode,
        state_of(url, approval).state,
    )
    assert {"unknown": 1} == json.loads(command("approvals", "restored", "--yes", "--json", "--store", url).stdout)
    assert "1 with an unknown outcome" in command("approvals", "list", "--store", url, columns=200).stdout


def test_contents_can_be_deleted_and_the_chain_holds(command, url):
    ended, waiting = filed(url, "A-1", "A-2")
    command("approvals", "reject", ended.id, "--yes", "--store", url)
    assert 2 == command("approvals", "forget", "--older-than", "0s", "--store", url).returncode
    assert (
        "deleted the contents of"
        in command("approvals", "forget", "--older-than", "0s", "--yes", "--store", url).stdout
    )
    assert (True, False) == (state_of(url, ended).deleted, state_of(url, waiting).deleted)
    assert "retention has deleted the contents" in command("approvals", "show", ended.id, "--store", url).stdout
    assert 0 == command("approvals", "verify", "--store", url).returncode


GRANT = ("approvals", "standing", "grant", "refund", "--until", "7d", "--uses", "2", "--any", "invoice")


def test_a_grant_approves_what_it_covers(command, url):
    filed(url, "A-0")
    granted = command(
        *GRANT, "--range", "euros=0..50", "--in", 'memo=["why", "x"]', "--by", "ana", "--yes", "--json", "--store", url
    )
    assert {"invoice": {"any": True}, "euros": {"from": 0, "to": 50}, "memo": {"in": ["why", "x"]}} == json.loads(
        granted.stdout
    )["parameters"]
    approval = filed(url, "A-1")[0]
    assert "approved" == state_of(url, approval).state
    shown = command("approvals", "standing", "list", "--store", url, columns=200).stdout
    assert "euros: from 0 to 50" in shown
    assert "0 of 2" in shown


def test_an_ended_grant_cancels_what_nobody_has_started(command, url):
    filed(url, "A-0")
    name = json.loads(command(*GRANT, "--any", "euros", "--is", "memo=why", "--yes", "--json", "--store", url).stdout)[
        "id"
    ]
    approval = filed(url, "A-1")[0]
    assert "ended" in command("approvals", "standing", "end", name, "--reason", "over", "--store", url).stdout
    assert "cancelled" == state_of(url, approval).state
    assert "no standing approvals" in command("approvals", "standing", "list", "--store", url).stdout
    assert name in command("approvals", "standing", "list", "--ended", "--store", url).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--range", "euros=1-5"), "LOW..HIGH"),
        (("--range", "euros=.."), "LOW..HIGH"),
        (("--in", "euros=5"), "NAME=JSON-LIST"),
        (("--is", "euros"), "NAME=…"),
        (("--any", "euros", "--is", "euros=5"), "one constraint"),
        (("--any", "euros", "--until", "soon"), "--until must be"),
        (("--any", "euros", "--any", "memo"), "grant asks for a confirmation"),
    ],
)
def test_options_that_cannot_be_read_are_wrong_usage(command, url, options, message):
    filed(url, "A-0")
    ran = command(*GRANT, *options, "--store", url)
    assert (2, 1, True) == (ran.returncode, ran.stderr.count("\n"), message in ran.stderr)
    assert [] == json.loads(command("approvals", "standing", "list", "--json", "--store", url).stdout)
    assert 1 == command("approvals", "standing", "end", "st-none", "--store", url).returncode
