"""An agent that works in a shop: its runs and its requests for approval are what the pages show.

As a program, it makes example runs in the store of its argument.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import sys
from typing import Literal

import grace_kp as gk

JAPANESE = "東京支店の返金依頼を処理してください（請求書番号：Ａ－１７）"
HOSTILE = (
    "\"'><script>window.__pwned=1</script><img src=x onerror=window.__pwned=1><svg onload=window.__pwned=1>"
    "</textarea></title></style><iframe srcdoc='<script>parent.__pwned=1</script>'></iframe>{{7+7}}<!--"
    " javascript:window.__pwned=1 \u202e\u200b\x1b\x00"
)
"""Markup that would run, in every position that a page may put it in, and characters that cannot be seen."""

INVOICES = itertools.count(100 if __name__ == "__main__" else 1_000)


class Shop:
    """The shop over one store. Each request is about another invoice, unless a test says which."""

    def __init__(self, store):
        reviewer = gk.InboxReviewer(deadline="4h", wait="raise")
        self.grace = grace = gk.Grace(store=store, domain="shop", reviewer=reviewer, evaluator=None, embedder=None)

        @grace.gate(key="refund:{invoice}", floor="confirm")
        @grace.tool
        def refund(
            invoice: str,
            euros: int,
            due: dt.date = dt.date(2026, 3, 1),
            channel: Literal["bank", "card"] = "bank",
            urgent: bool = False,
            message: str = "",
        ) -> str:
            return f"paid back {euros} euros for {invoice} by {channel}"

        self.refund = refund

    def action(self, name, group=None):
        """Return an action with one argument that only one test knows."""

        @self.grace.gate(key="{customer}", name=name, policy=gk.Policy(floor="confirm", group=group))
        def action(customer: str) -> str:
            return customer

        return action

    def ask(self, objective="Ana wants her money back", *, action=None, **arguments):
        """Have a run ask for approval, and return the pending request."""
        if action is None:
            arguments = {"invoice": f"A-{next(INVOICES)}", "euros": 40, **arguments}
        try:
            with self.grace.run(objective, user="eve", tags=["refunds"]):
                self.grace.thought("The invoice is paid, and the goods came back.")
                (action or self.refund)(**arguments)
        except gk.ActionPending as pending:
            return pending.approval
        raise AssertionError("the action did not ask")

    def read(self, approval):
        """The approval as it stands now."""
        return self.grace.approvals.get(approval.id)


def fill(shop):
    """Run agents of every kind: nested ones, with recoveries and errors, in Japanese, and with hostile texts in every field."""
    grace = shop.grace

    @grace.retriever
    def search(query: str) -> list[dict[str, object]]:
        return [{"text": f"Refunds for {query} take 5 days.", "score": 0.93, "source": "policy.md"}]

    @grace.tool
    def look_up(order: str) -> dict[str, object]:
        if order.startswith("?"):
            raise KeyError(order)
        return {"order": order, "lines": [{"item": "lamp", "euros": 20}] * 3}

    @grace.agent(name="clerk", domain="shop", tags=["nested"], session="s-1")
    def clerk(question: str) -> str:
        grace.thought("Which order is meant?")
        try:
            return str(look_up(f"?{question}"))
        except KeyError:
            return str(look_up(question))

    @grace.agent(name="desk", domain="shop", user="eve", session="s-1", metadata={"channel": "mail"})
    def desk(question: str) -> str:
        search(question)
        return clerk(question)

    @grace.agent(name="broken", domain="shop")
    def broken(question: str) -> str:
        raise RuntimeError("the shop does not answer")

    for number in range(6):
        desk(f"Where is order {number}?")
    desk(JAPANESE)
    with contextlib.suppress(RuntimeError):
        broken("Where is my parcel?")
    hostile(grace)
    for arguments in ({"message": "long " * 80}, {"message": JAPANESE}, {"message": HOSTILE, "invoice": HOSTILE}):
        shop.ask(arguments["message"], **arguments)
    ended = [shop.ask(f"Pay back invoice {number}") for number in range(3)]
    shop.ask(HOSTILE, action=shop.action(HOSTILE, HOSTILE), customer=HOSTILE)
    grace.approvals.edit(ended[0].id, {"euros": 20}, by=HOSTILE[:150], note=HOSTILE)
    grace.approvals.reject(ended[1].id, by="ana", reason=HOSTILE)
    grace.approvals.respond(ended[2].id, JAPANESE, by="bo")
    grace.approvals.grant(HOSTILE, {HOSTILE: {"in": [HOSTILE]}}, until="8h", uses=5, by="ana", note=HOSTILE)
    grace.flush()
    for trace in grace.store.query(limit=3):
        grace.feedback(trace.id, True, source="test")


def hostile(grace):
    """A run whose every text is hostile, as one that a model was talked into."""

    @grace.tool(name=HOSTILE)
    def tool(value: object) -> object:
        return {HOSTILE: [HOSTILE, 'https://example.test/"onmouseover="window.__pwned=1']}

    @grace.tool(name="failing")
    def failing(value: object) -> object:
        raise ValueError(HOSTILE)

    @grace.agent(
        name=HOSTILE, domain=HOSTILE, tags=[HOSTILE], user=HOSTILE, session=HOSTILE, metadata={HOSTILE: HOSTILE}
    )
    def agent(question: str) -> str:
        grace.thought(HOSTILE)
        tool({HOSTILE: HOSTILE})
        try:
            failing(HOSTILE)
        except ValueError:
            grace.thought("[x](javascript:window.__pwned=1) http://example.test/<script>window.__pwned=1</script>")
        return HOSTILE

    agent(HOSTILE)


if __name__ == "__main__":
    fill(Shop(sys.argv[1]))
