"""A server with logins of its own over a real store, and browsers that visit it."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Actor, entry_of
from grace_kp.testing import FakeClock
from grace_kp.web import serving
from tests.web.visiting import Client

OPERATOR = Actor(name="operator", channel="cli")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def tables(grace):
    return grace.approvals.inbox.tables


@pytest.fixture
def server(grace):
    """Not started: browsers of these tests call the application directly."""
    bound = serving(grace, port=0)
    yield bound
    bound.listener.close()
    bound.app.state.site.catalog.close()


@pytest.fixture
def accounts(server):
    return server.logins.accounts


@pytest.fixture
def visit(server):
    """Returns a new browser, logged in with a token or a code if there is one."""

    def browser(credential=None, **headers):
        visitor = Visitor(server, **headers)
        if credential is not None:
            visitor.log_in(credential)
        return visitor

    return browser


@pytest.fixture
def add(accounts):
    """Adds an account and returns its token."""
    return lambda name, role: accounts.add(name, role, actor=OPERATOR)


class Visitor(Client):
    """The browser of a person at the server."""

    def __init__(self, server, **headers):
        super().__init__(server.app, server.url)
        self.headers.update(headers)
        self.server = server

    def log_in(self, credential, **fields):
        return self.post("/login", data={"credential": credential, **fields})

    def is_known(self):
        """Whether a page that needs a login is shown."""
        return self.get("/no-such-page").status_code == 404


def code_of(address):
    """The one-time code of a printed address."""
    return address.partition("?code=")[2]


def entries(tables, kind):
    """The entries of the audit trail of a kind."""
    return [entry for entry in map(entry_of, tables.links()) if entry["kind"] == kind]
