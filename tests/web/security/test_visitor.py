"""Who sends a request: identities of a host application."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.authentication import SimpleUser
from starlette.routing import Mount
from starlette.testclient import TestClient

from grace_kp.web import Person, Right, Role, app
from grace_kp.web._site import route
from tests.web.security.conftest import TOKEN

BASE = "http://localhost:9000"
ANA = Person(name="ana", role=Role.ADMIN)


@pytest.fixture
def mounted(grace):
    """Returns a browser at the pages, mounted below a path with these identities."""
    opened = []

    def browser(auth, **options):
        pages = app(grace, auth=auth, **options)
        opened.append(pages.state.site.catalog)
        host = Starlette(routes=[Mount("/grace", app=pages)])
        base = options.get("public_url") or BASE
        return TestClient(host, base_url=base, follow_redirects=False, headers={"Origin": base})

    yield browser
    for catalog in opened:
        catalog.close()


async def coroutine(request):
    return ANA


class Callable:
    async def __call__(self, request):
        return ANA


@pytest.mark.parametrize("auth", [lambda request: ANA, coroutine, Callable(), lambda request: coroutine(request)])
def test_the_host_says_who_it_is(mounted, auth):
    """By a function or a coroutine function. The host has the logins, and links begin with the path of the mount."""
    browser = mounted(auth)
    page = browser.get("/grace/no-such-page")
    assert 404 == page.status_code
    assert "<span>ana</span>" in page.text
    assert "/logout" not in page.text
    assert 'href="/grace/static/site.css"' in page.text
    assert [404, 404] == [browser.get(path).status_code for path in ("/grace/login", "/grace/accounts")]
    assert "/grace/inbox" == browser.get("/grace/").headers["location"]


def fails(request):
    raise RuntimeError("the session\nis broken")


@pytest.mark.parametrize(
    "auth",
    [
        lambda request: None,
        fails,
        lambda request: "ana",
        lambda request: SimpleUser("ana"),
        lambda request: Person(name="", role=Role.ADMIN),
        lambda request: Person(name="x" * 201, role=Role.ADMIN),
        lambda request: Person(name="ana", role="owner"),
    ],
)
def test_anything_else_refuses(mounted, auth, caplog):
    """Nobody, an exception, and what is no person. There is no login page to be sent to, and the log has the error in one line."""
    browser = mounted(auth)
    assert 401 == browser.get("/grace/inbox").status_code
    failed = "auth failed, and the request was refused: RuntimeError: the session is broken"
    assert (auth is fails) is (failed in caplog.messages)
    assert [401, 401] == [browser.get(path).status_code for path in ("/grace/api/v1/runs", "/grace/no-such-page")]
    assert 401 == browser.post("/grace/logout", data={"a": "b"}).status_code
    assert 200 == browser.get("/grace/static/site.css").status_code


def test_writes_need_origin_and_token(mounted):
    """The same in every process of the host, and another one for every person."""
    current = [ANA]
    browser, second = mounted(lambda request: current[0]), mounted(lambda request: current[0])
    csrf = TOKEN.search(browser.get("/grace/no-such-page").text)[1]
    assert csrf == TOKEN.search(second.get("/grace/no-such-page").text)[1]
    path, headers = "/grace/api/v1/runs/none/feedback", {"X-CSRF-Token": csrf}
    assert 422 == second.post(path, json={}, headers=headers).status_code
    assert 403 == second.post(path, json={}).status_code
    assert 403 == second.post(path, json={}, headers={**headers, "Origin": "http://localhost:9001"}).status_code
    current[0] = Person(name="ben", role=Role.ADMIN)
    assert 403 == second.post(path, json={}, headers=headers).status_code


def test_a_program_with_a_token_in_a_header_needs_neither(mounted):
    def auth(request):
        return ANA if request.headers.get("authorization") == "Bearer host-token" else None

    browser = mounted(auth)
    del browser.headers["origin"]
    browser.headers["authorization"] = "Bearer host-token"
    assert 422 == browser.post("/grace/api/v1/runs/none/feedback", json={}).status_code
    browser.app.routes[0].app.router.routes.insert(
        0, route("/write", lambda request: None, Right.SEE, methods=["POST"])
    )
    assert 403 == browser.post("/grace/write", data={"a": "b"}).status_code


def test_only_names_of_this_machine_unless_the_public_url_is_stated(mounted):
    browser = mounted(lambda request: ANA)
    assert 404 == browser.get("/grace/none", headers={"Host": "127.0.0.1:1"}).status_code
    refused = browser.get("/grace/none", headers={"Host": "shop.example"})
    assert 421 == refused.status_code
    assert (
        "does not answer to shop.example. Open it at the address of the application, or pass another one to app() as public_url=."
        in refused.text
    )
    public = mounted(lambda request: ANA, public_url="https://shop.example")
    assert 404 == public.get("/grace/none").status_code
    assert 421 == public.get("/grace/none", headers={"Host": "localhost:9000"}).status_code
