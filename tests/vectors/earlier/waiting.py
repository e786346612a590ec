"""A program whose actions wait for people. It leaves requests in every state, and LangGraph threads that wait for a decision.

`python -c "from tests.vectors.earlier import waiting; waiting.main('FOLDER')"` leaves `requests.sqlite3`, `checkpoints.sqlite3` and
`requests.json`, which states what the store held. The folder named for a commit beside this file holds what the version of that commit left
there, compressed. `tests/approvals/test_earlier_versions.py` continues from it.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import enum
import json
import os
import pathlib
import sqlite3
import uuid
import warnings

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

import grace_kp as gk
from grace_kp.integrations.langchain import GraceMiddleware

YEARS = 10 * 365 * 86_400.0  # the longest that is accepted: these decisions can be used until 2036
KEY = "Zm9yIHRlc3RzIG9ubHksIG5vdCBhIHNlY3JldC4uLi4="
WIRE = {"order": "o-1", "iban": "DE02120300000000202051"}


class Currency(enum.Enum):
    EUR = "eur"
    CHF = "chf"


FULL = {
    "order": "o-1",
    "euros": decimal.Decimal("12.50"),
    "due": datetime.date(2026, 11, 30),
    "currency": Currency.CHF,
    "tags": frozenset({"b", "a", "日本"}),
    "since": datetime.timedelta(hours=36),
    "reference": uuid.UUID(int=7),
    "raw": b"\x00\xff",
    "lines": (3, 1, 2),
    "extra": {"score": 0.1, "none": None, "list": [1, {"deep": True}], "text": "two\nlines \u202e"},
}


def runtime(folder):
    return gk.Grace(
        store=f"sqlite:///{folder}/requests.sqlite3",
        evaluator=None,
        embedder=None,
        reviewer=gk.InboxReviewer(wait="raise", use_within=YEARS),
    )


def gated(grace, ran):
    """The gated actions. Each appends its name and what it ran with."""
    handed = gk.InboxReviewer(wait="hand_over", use_within=YEARS)
    by_two = gk.InboxReviewer(wait="raise", use_within=YEARS, quorum=2, identity="stated")

    @grace.gate(floor="confirm", key="refund:{order}")
    def refund(
        order: str,
        euros: decimal.Decimal,
        due: datetime.date,
        currency: Currency = Currency.EUR,
        tags: frozenset[str] = frozenset(),
        since: datetime.timedelta | None = None,
        reference: uuid.UUID | None = None,
        raw: bytes = b"",
        lines: tuple[int, ...] = (),
        extra: dict[str, object] | None = None,
    ):
        ran.append(("refund", order, euros, due, currency, tags, since, reference, raw, lines, extra))
        return "refunded"

    @grace.gate(floor="confirm", key="ship:{order}", version="1")
    def ship(order: str, parcels: int = 1, weights: list[float] | None = None):
        ran.append(("ship", order, parcels, weights))
        if parcels == 13:
            os._exit(0)
        if parcels > 13:
            raise OSError("too many parcels")
        return f"shipped {parcels}"

    @grace.gate(floor="confirm", key="wire:{order}", version="1", sealed=["iban"])
    def wire(order: str, iban: str):
        ran.append(("wire", order, iban))
        return "wired"

    @grace.gate(floor="confirm", key="fire:{name}", version="1", reviewer=by_two)
    def fire(name: str):
        ran.append(("fire", name))
        return "fired"

    @grace.gate(floor="confirm", key="mail:{to}", version="1", reviewer=handed)
    def mail(to: str, text: str = "hello"):
        ran.append(("mail", to, text))
        return "mailed"

    return {"refund": refund, "ship": ship, "wire": wire, "fire": fire, "mail": mail}


def ask(action, **arguments):
    """File a request and return its id."""
    try:
        answer = action(**arguments)
    except gk.ActionPending as pending:
        return pending.approval.id
    return answer.approval.id


def agent(grace, saver, thread, ran, script=()):
    """An agent with a gated tool, and the configuration of one of its threads."""

    @tool
    def pay(to: str, euros: int = 3) -> str:
        """Pay."""
        ran.append(("pay", to, euros))
        return f"paid {euros} to {to}"

    model = FakeMessagesListChatModel(responses=list(script) or [AIMessage("done")])
    model.__class__.bind_tools = lambda self, tools, **options: self
    middleware = GraceMiddleware(grace, gates={"pay": "confirm"})
    graph = create_agent(model, [pay], middleware=[middleware], checkpointer=saver)
    return graph, {"configurable": {"thread_id": thread}}


def calls(*arguments):
    return AIMessage(
        "", tool_calls=[{"name": "pay", "args": each, "id": f"call-{place}"} for place, each in enumerate(arguments)]
    )


def die_in_claim(folder):
    """Carry an approved action out in a process that ends inside of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        with runtime(folder) as grace:
            gated(grace, [])["ship"]("claimed", 13)
        os._exit(1)
    assert (child, 0) == os.waitpid(child, 0)


def leave(folder):
    ran, ids = [], {}
    with runtime(folder) as grace:
        action = gated(grace, ran)
        verbs = grace.approvals
        ids["pending"] = ask(action["refund"], **FULL)
        ids["approved"] = ask(action["refund"], **FULL | {"order": "o-2"})
        verbs.approve(ids["approved"], by="ana", note="seen")
        ids["edited"] = ask(action["ship"], order="edited", parcels=2, weights=[0.5, 1e21])
        verbs.edit(ids["edited"], {"parcels": 3}, by="ana")
        ids["rejected"] = ask(action["ship"], order="rejected")
        verbs.reject(ids["rejected"], by="ana", reason="not this one")
        ids["sealed"] = ask(action["wire"], **WIRE)
        ids["sealed and approved"] = ask(action["wire"], **WIRE | {"order": "o-2"})
        verbs.approve(ids["sealed and approved"], by="ana")
        ids["one of two"] = ask(action["fire"], name="bob")
        verbs.approve(ids["one of two"], by="ana")
        ids["handed over"] = ask(action["mail"], to="ann")
        verbs.approve(ids["handed over"], by="ana")
        ids["done"] = ask(action["ship"], order="done", parcels=4)
        verbs.approve(ids["done"], by="ana")
        assert action["ship"]("done", 4) == "shipped 4"
        ids["failed"] = ask(action["ship"], order="failed", parcels=14)
        verbs.approve(ids["failed"], by="ana")
        with contextlib.suppress(OSError):
            action["ship"]("failed", 14)
        ids["withdrawn"] = ask(action["ship"], order="withdrawn")
        verbs.withdraw(ids["withdrawn"], by="ana")
        verbs.grant("mail", {"to": {"is": "bea"}, "text": {"any": True}}, until="1h", uses=2, by="ana", version="1")
        assert action["mail"]("bea") == "mailed"
        (ids["standing"],) = [approval.id for approval in verbs.history() if approval.standing]
        ids["claimed"] = ask(action["ship"], order="claimed", parcels=13)
        verbs.approve(ids["claimed"], by="ana")
        with SqliteSaver.from_conn_string(f"{folder}/checkpoints.sqlite3") as saver:
            for thread in ("waits", "was decided"):
                graph, config = agent(grace, saver, thread, ran, [calls({"to": "ann", "euros": 5}, {"to": "bob"})])
                graph.invoke({"messages": [("user", "pay them")]}, config)
            threads = [approval for approval in verbs.pending(limit=50) if approval.action == "pay"]
            for approval in threads:
                name = f"{approval.note['thread_id']}: {approval.arguments['to']}"
                ids[name] = approval.id
                if name == "was decided: ann":
                    verbs.approve(approval.id, by="ana")
                elif name == "was decided: bob":
                    verbs.reject(approval.id, by="ana", reason="not him")
        grace.flush()
    die_in_claim(folder)
    return ids


def describe(approval):
    """What people and programs rely on, as JSON."""
    document = approval.to_dict()
    return {
        name: document[name]
        for name in [
            "id",
            "state",
            "action",
            "version",
            "digest",
            "asked_digest",
            "arguments",
            "key",
            "operation",
            "groups",
            "quorum",
            "sealed",
            "not_covered",
            "votes",
            "decision",
            "claim",
            "outcome",
            "standing",
            "origin",
            "waits",
            "note",
        ]
    } | {"asked": document.get("asked")}


def main(folder):
    folder = pathlib.Path(folder)
    os.environ["GRACE_KP_KEY"] = KEY
    ids = leave(folder)
    with runtime(folder) as grace:
        kept = {name: describe(grace.approvals.get(request)) for name, request in ids.items() if name != "claimed"} | {
            "claimed": {"id": ids["claimed"]}
        }
        verified = grace.approvals.verify()
        assert verified.ok, verified
    for name in ("requests.sqlite3", "checkpoints.sqlite3"):
        with contextlib.closing(sqlite3.connect(folder / name)) as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (folder / "requests.json").write_text(
        json.dumps(kept, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8"
    )
