"""Requests that an earlier version left can be read, decided and carried out, and what was claimed then never runs again.

The files and how they came about: `tests/vectors/earlier/waiting.py`.
"""

from __future__ import annotations

import decimal
import gzip
import json
from pathlib import Path

import pytest

pytest.importorskip("langchain.agents", reason="needs the extra langchain")
pytest.importorskip("cryptography", reason="needs the extra approvals")

from langgraph.checkpoint.sqlite import SqliteSaver

import grace_kp as gk
from tests.vectors.earlier import waiting

FOLDER = Path(waiting.__file__).parent / "2753eab"
KEPT = json.loads((FOLDER / "requests.json").read_text(encoding="utf-8"))
READ = sorted(name for name in KEPT if name != "claimed")


@pytest.fixture
def ran():
    return []


@pytest.fixture
def grace(tmp_path, monkeypatch):
    monkeypatch.setenv("GRACE_KP_KEY", waiting.KEY)
    for name in ("requests.sqlite3", "checkpoints.sqlite3"):
        (tmp_path / name).write_bytes(gzip.decompress((FOLDER / f"{name}.gz").read_bytes()))
    with waiting.runtime(tmp_path) as grace:
        yield grace


@pytest.fixture
def action(grace, ran):
    return waiting.gated(grace, ran)


def test_every_request_reads_the_same(grace):
    read = {name: waiting.describe(grace.approvals.get(KEPT[name]["id"])) for name in READ}
    assert {name: KEPT[name] for name in READ} == json.loads(json.dumps(read, default=str))


def test_the_chain_still_verifies(grace):
    assert grace.approvals.verify().ok


def test_a_pending_request_is_decided_and_runs_once(grace, action, ran):
    grace.approvals.approve(KEPT["pending"]["id"], by="bo", digest=KEPT["pending"]["digest"])
    assert ["refunded", "refunded"] == [action["refund"](**waiting.FULL) for _ in range(2)]
    assert [("refund", *waiting.FULL.values())] == ran


def test_an_approved_request_entitles_to_exactly_its_arguments(grace, action, ran):
    arguments = waiting.FULL | {"order": "o-2"}
    with pytest.raises(gk.KeyReused):
        action["refund"](**arguments | {"euros": decimal.Decimal("12.51")})
    assert "refunded" == action["refund"](**arguments)
    assert [("refund", *arguments.values())] == ran


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("edited", ("ship", "edited", 2, [0.5, 1e21]), ("ship", "edited", 3, [0.5, 1e21])),
        ("sealed and approved", ("wire", "o-2", waiting.WIRE["iban"]), ("wire", "o-2", waiting.WIRE["iban"])),
    ],
)
def test_what_was_decided_runs(action, ran, name, arguments, expected):
    action[arguments[0]](*arguments[1:])
    assert [expected] == ran, name


def test_a_vote_still_counts(grace, action, ran):
    grace.approvals.approve(KEPT["one of two"]["id"], by="bo")
    assert ("fired", [("fire", "bob")]) == (action["fire"]("bob"), ran)


def test_what_was_handed_over_is_carried_out_without_the_caller(grace, action, ran):
    assert "mailed" == grace.approvals.execute(KEPT["handed over"]["id"])
    assert [("mail", "ann", "hello")] == ran
    assert set(action) == set(waiting.gated(grace, ran))


def test_what_was_claimed_never_runs_again(grace, action, ran):
    """Neither for the same call nor by `execute`; it waits for a person to find out."""
    with pytest.raises(gk.ActionOutcomeUnknown):
        action["ship"]("claimed", 13)
    with pytest.raises(gk.GraceError):
        grace.approvals.execute(KEPT["claimed"]["id"])
    assert [] == ran
    assert grace.approvals.get(KEPT["claimed"]["id"]).state in {"claimed", "unknown"}


def test_what_was_done_gives_its_result(action, ran):
    assert ("shipped 4", []) == (action["ship"]("done", 4), ran)


@pytest.mark.parametrize("name", ["failed", "withdrawn"])
def test_what_did_not_succeed_asks_again(action, ran, name):
    with pytest.raises(gk.ActionPending) as caught:
        action["ship"](name, KEPT[name]["arguments"]["parcels"])
    assert caught.value.approval.id != KEPT[name]["id"]
    assert [] == ran


def test_what_was_rejected_does_not_run(action, ran):
    with pytest.raises(gk.ActionCancelled, match="not this one"):
        action["ship"]("rejected")
    assert [] == ran


@pytest.mark.parametrize(
    ("thread", "approved", "paid"),
    [("was decided", [], [("pay", "ann", 5)]), ("waits", ["ann", "bob"], [("pay", "ann", 5), ("pay", "bob", 3)])],
)
def test_a_thread_that_waited_goes_on(grace, tmp_path, ran, thread, approved, paid):
    for to in approved:
        grace.approvals.approve(KEPT[f"{thread}: {to}"]["id"], by="bo")
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.sqlite3")) as saver:
        graph, _ = waiting.agent(grace, saver, thread, ran)
        (resumed,) = grace.approvals.resume(graph, thread=thread)
        assert [] == grace.approvals.resume(graph, thread=thread)
    assert ("finished", paid) == (resumed.state, sorted(ran))
