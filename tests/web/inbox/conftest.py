"""A runtime with requests of a shop, the browsers of the people who decide them, and their fixtures."""

from __future__ import annotations

import inspect
import typing

import pytest

from grace_kp import Grace, InboxReviewer
from grace_kp.approvals import Actor, ApprovalRequest, digest, encode, schema_of
from tests.web.visiting import Browser

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}\u202eevil\u200b\x1b[31m\x00\r\nend  "
HTML = "text/html; charset=utf-8"


class Shop:
    """A store, its desk, and browsers of its people."""

    def __init__(self, url="memory:"):
        self.grace = Grace(
            store=url, reviewer=InboxReviewer(wait="hand_over"), reviewers={"ana": ("finance",), "bo": ("finance",)}, evaluator=None, embedder=None
        )  # fmt: skip
        self.inbox = self.grace.approvals.inbox
        self.desk, self.tables = self.inbox.requests, self.inbox.tables

    def ask(self, values=None, action=None, **fields):
        """File a request for a call of `action`, whose signature gives the schema."""
        action = refund if action is None else action
        encoded, problems = encode({"invoice": "A-17", "euros": 40} if values is None else values)
        assert {} == problems
        name = fields.pop("name", action.__name__)
        types = {key: kind for key, kind in typing.get_type_hints(action).items() if key != "return"}
        usual = {
            "action": name,
            "version": "sig:1",
            "domain": "shop",
            "encoded": encoded,
            "digest": digest(name, "sig:1", encoded, leave_out=fields.get("not_covered", ())),
            "schema": schema_of(inspect.signature(action), types),
            "deadline_seconds": 3_600.0,
            "use_within_seconds": 600.0,
            "reason": "The policy asks for at least CONFIRM.",
            "score": 0.61,
            "waits": "hand_over",
        }
        return self.desk.file(ApprovalRequest(**{**usual, **fields}))

    def browser(self, name="ana", **options):
        return Browser(self.grace, name=name, **options)

    def get(self, approval):
        return self.desk.get(approval.id)

    def kinds(self, approval):
        from grace_kp.approvals import entry_of

        return [entry_of(link)["kind"] for link in self.tables.links(approval=approval.id)]


def refund(invoice: str, euros: int, memo: str = ""): ...


def anything(value): ...


def person(name):
    return Actor(name=name, channel="web", authenticated=True)


@pytest.fixture
def shop():
    made = Shop()
    yield made
    made.grace.close()


@pytest.fixture
def filed(tmp_path):
    """A shop whose store is a file that other processes can open."""
    made = Shop(f"sqlite:///{tmp_path}/shop.db")
    yield made
    made.grace.close()


@pytest.fixture
def ana(shop):
    return shop.browser("ana", role="approver")
