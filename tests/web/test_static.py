"""The style sheet and the scripts."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from grace_kp.web._static import SCRIPTS, routes


@pytest.fixture
def client():
    return TestClient(Starlette(routes=routes()))


@pytest.mark.parametrize("name", ["site.css", *SCRIPTS])
def test_a_file_is_sent_until_the_browser_has_it(client, name):
    """With its type; a browser that has it asks whether it has changed, and gets nothing more."""
    first = client.get(f"/static/{name}")
    assert 200 == first.status_code
    assert {"css": "text/css", "js": "text/javascript"}[name.partition(".")[2]] in first.headers["content-type"]
    assert "no-cache" == first.headers["cache-control"]
    again = client.get(f"/static/{name}", headers={"If-None-Match": first.headers["etag"]})
    assert (304, b"") == (again.status_code, again.content)
    assert 200 == client.get(f"/static/{name}", headers={"If-None-Match": '"other"'}).status_code


def test_the_sheets_are_one(client):
    """The style that all pages share, and that of each part."""
    sheet = client.get("/static/site.css").text
    assert "--ink" in sheet
    assert sheet.count("{") == sheet.count("}")
