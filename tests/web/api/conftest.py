"""A store with runs, labels and approvals in every state that people meet, and accounts of each role, as the API serves them."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from grace_kp.approvals import Actor
from grace_kp.web import Role
from grace_kp.web._app import application
from grace_kp.web.security import Addresses, Logins
from tests.approvals.shops import asked
from tests.web.inbox.conftest import Shop

HOST = "http://127.0.0.1:8765"
MISSING = "ap-0000000000000000"
CY = Actor(name="cy", channel="web", authenticated=True)


class House(Shop):
    """One application over one store, with a client for each account."""

    def __init__(self, url):
        super().__init__(url)
        addresses = Addresses()
        self.logins = Logins(self.tables, addresses)
        admin = Actor(name="root", channel="cli")
        self.tokens = {
            name: self.logins.accounts.add(name, role, actor=admin)
            for name, role in (("root", Role.ADMIN), ("ana", Role.APPROVER), ("vic", Role.VIEWER), ("bot", Role.AGENT))
        }
        self.app = application(self.grace, self.logins, addresses)

    def record(self, name, objective="answer a question", *, result="done", **fields):
        """Record a run of an agent and return its id."""
        with self.grace.run(objective, name=name, **{"domain": "support", **fields}) as run:
            run.outcome(result=result)
        self.grace.flush()
        return run.trace.id

    def request(self, **fields):
        """File a request for approval."""
        return self.desk.file(asked(**{"deadline_seconds": None, **fields}))

    def index(self):
        """Have the catalog read what is in the store."""
        self.app.state.site.catalog.refresh()

    def client(self, name="ana"):
        """Return a client with the token of an account; None for a stranger."""
        headers = {} if name is None else {"Authorization": f"Bearer {self.tokens[name]}"}
        return TestClient(self.app, base_url=HOST, headers=headers, raise_server_exceptions=False)


@pytest.fixture
def house(tmp_path):
    made = House(f"sqlite:///{tmp_path}/app.db")
    yield made
    made.app.state.site.catalog.close()
    made.grace.close()


@pytest.fixture
def ana(house):
    return house.client("ana")
