"""What pages find in a request."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from grace_kp.web._site import path_of, root_of
from tests.web.visiting import Browser


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/inbox", "", ("/inbox", "")),
        ("/grace/inbox", "/grace", ("/inbox", "/grace")),
        ("/grace", "/grace", ("", "/grace")),
        ("/gracefully", "/grace", ("/gracefully", "/grace")),
        ("/grace/grace/x", "/grace", ("/grace/x", "/grace")),
        ("/inbox", "/", ("/inbox", "")),
    ],
)
def test_the_path_is_split_at_the_mount(path, root, expected):
    """What is below, and what links begin with."""
    scope = {"type": "http", "path": path, "root_path": root, "headers": []}
    assert expected == (path_of(scope), root_of(Request(scope)))


def test_a_page_shows_who_looks(tmp_path):
    """And nothing of ours to log out of, where the host application knows who it is."""
    from grace_kp import Grace

    with Grace(store=f"sqlite:///{tmp_path}/app.db", evaluator=None, embedder=None) as grace:
        browser = Browser(grace, name="<i>ana</i>", role="viewer")
        page = browser.get("/no-such-page").text
        assert "<span>&lt;i&gt;ana&lt;/i&gt;</span>" in page
        assert "viewer" in page
        assert "Log out" not in page
        browser.app.state.site.catalog.close()
