"""A browser of one person at pages that are mounted into an application, for tests of the parts."""

from __future__ import annotations

import re

from starlette.testclient import TestClient

from grace_kp.web import Person, Role, app

BASE = "http://localhost:8765"
TOKEN = re.compile(r'<meta name="csrf" content="([0-9a-f]+)">')


class Browser(TestClient):
    """Sends what a browser sends from these pages: the Host, and for writes the Origin. `post_form` adds the token of the page."""

    def __init__(self, grace, *, name="ana", role=Role.ADMIN, authenticated=True, **options):
        person = Person(name=name, role=Role(role), authenticated=authenticated)
        application = app(grace, auth=lambda request: person)
        super().__init__(application, base_url=BASE, follow_redirects=False, headers={"Origin": BASE}, **options)

    def csrf(self):
        """The token that pages of this person carry. The page of an error carries it, too."""
        return TOKEN.search(self.get("/no-such-page").text)[1]

    def post_form(self, path, fields=None, **more):
        """Send a form of the pages; values may be lists."""
        return self.post(path, data={"csrf": self.csrf(), **(fields or {}), **more})

    def post_json(self, path, body):
        """Send JSON to the API, as the script of a page does."""
        return self.post(path, json=body, headers={"X-CSRF-Token": self.csrf()})
