"""A runtime with requests of a shop, the browsers of the people who decide them, and forms of a page as a browser reads and submits them."""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass, field
from html.parser import HTMLParser

import pytest

from grace_kp import Grace, InboxReviewer
from grace_kp.approvals import Actor, ApprovalRequest, PolicyNow, digest, encode, entry_of, schema_of
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

    def start(self, approval):
        """Approve a request and claim its action, as a gate does; return the claim."""
        approval = self.desk.approve(approval.id, by=person("ana"), digest=approval.digest)
        return self.desk.claim(
            approval.id, digest=approval.digest, version=approval.version, policy=PolicyNow(), by=person("x")
        )

    def lose(self, approval):
        """Start the action of a request, and leave its outcome unknown."""
        return self.desk.settle(approval.id, self.start(approval).token, state="unknown")

    def kinds(self, approval):
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


@dataclass
class Form:
    """A form with its fields as they stand on the page."""

    action: str = ""
    method: str = "get"
    fields: list[list[str]] = field(default_factory=list)
    """Name, value and kind of each field that would be submitted."""
    buttons: list[dict] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    """The kinds of all fields, submitted or not."""

    def submitted(self, **changes):
        """What a browser sends: line breaks of every text as CRLF. A change of None leaves a field out."""
        sent: dict[str, list[str]] = {}
        for name, value, _ in self.fields:
            text = changes.get(name, value)
            if text is not None:
                sent.setdefault(name, []).append(text.replace("\r\n", "\n").replace("\n", "\r\n"))
        for name, text in changes.items():
            if name not in sent and text is not None:
                sent[name] = [text]
        return sent

    def value(self, name):
        """The value of a field."""
        return next(value for each, value, _ in self.fields if each == name)


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.forms: list[Form] = []
        self._form: Form | None = None
        self._field: list | None = None
        """The text area or select field that is open."""

    def handle_starttag(self, tag, attributes):
        found = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._form = Form(found.get("action", ""), found.get("method", "get"))
            self.forms.append(self._form)
        form = self._form
        if form is None:
            return
        if tag == "input":
            kind = found.get("type", "text")
            form.kinds.append(kind)
            is_sent = kind not in {"checkbox", "radio"} or "checked" in found
            if is_sent and "disabled" not in found and "name" in found:
                value = found.get("value", "on" if kind in {"checkbox", "radio"} else "")
                if kind in {"text", "date"}:
                    value = value.replace("\n", "").replace("\r", "")
                form.fields.append([found["name"], value, kind])
        elif tag in {"textarea", "select"}:
            form.kinds.append(tag)
            self._field = [found["name"], None, tag]
            form.fields.append(self._field)
        elif tag == "option" and self._field is not None and ("selected" in found or self._field[1] is None):
            self._field[1] = found.get("value", "")
        elif tag == "button":
            form.buttons.append(found)

    def handle_data(self, data):
        if self._field is not None and self._field[2] == "textarea":
            self._field[1] = (self._field[1] or "") + data

    def handle_endtag(self, tag):
        if tag in {"textarea", "select"} and self._field is not None:
            text = self._field[1] or ""
            self._field[1] = text.removeprefix("\n") if tag == "textarea" else text
            self._field = None
        elif tag == "form":
            self._form = None


def forms(page):
    """The forms of a page, by the end of their action."""
    reader = _Reader()
    reader.feed(page.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd"))
    reader.close()
    return {form.action.rsplit("/", 1)[-1]: form for form in reader.forms}
