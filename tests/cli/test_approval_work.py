"""`grace-kp approvals work MODULE`: approved actions that no process waits for are executed once, one at a time, until it is stopped."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from grace_kp.approvals import Actor, RequestStore
from grace_kp.store import open_store
from tests import warm
from tests.cli.program import ROOT, run, started, state_of

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
