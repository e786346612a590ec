"""Events for pages that are open: from any process, without contents, and only as long as the right lasts."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import threading

import pytest

from grace_kp.approvals import Actor, Change
from grace_kp.web import Role
from grace_kp.web.inbox import _events as events
from grace_kp.web.inbox import stop_events
from tests.web.inbox.conftest import person
from tests.web.visiting import listening

SECONDS = 30


class Served:
    """A shop behind a real server, with the accounts of two people."""

    def __init__(self, shop, server):
        self.shop, self.app, self.logins, self.place = shop, server.app, server.logins, server.place
        actor = Actor(name="operator", channel="cli")
        self.tokens = {name: self.logins.accounts.add(name, Role.APPROVER, actor=actor) for name in ("ana", "bo")}
        self.begun = self.seq()

    def seq(self):
        return self.shop.tables.head()[0]

    @contextlib.contextmanager
    def page(self, path="/events", name="ana", **headers):
        """A page of a person that listens: yields the response."""
        self.session = self.logins.enter(self.tokens[name])
        cookie = f"{self.logins.cookie}={self.session}"
        with contextlib.closing(http.client.HTTPConnection(*self.place[:2], timeout=SECONDS)) as connection:
            connection.request("GET", path, headers={"Cookie": cookie, **headers})
            yield connection.getresponse()


@pytest.fixture
def served(filed):
    with listening(filed.grace) as server:
        yield Served(filed, server)


def after_beginning(response):
    """Read the first lines, after which everything that happens is sent."""
    assert 200 == response.status
    assert b"retry: 3000\n" == response.readline()
    assert b"\n" == response.readline()
    return response


def next_event(response):
    """Return the next event; None at the end of the stream."""
    lines = []
    while line := response.readline():
        if line == b"\n" and any(each.startswith("data:") for each in lines):
            return {name: value for name, _, value in (each.partition(": ") for each in lines)}
        lines.append(line.decode().rstrip("\n"))
    return None


def test_what_happens_in_another_process_arrives(served, tmp_path):
    script = (
        "import sys; from tests.web.inbox.conftest import Shop; "
        "print(Shop(sys.argv[1]).ask({'invoice': 'A-secret', 'euros': 1}).id)"
    )
    with served.page() as response:
        after_beginning(response)
        ran = subprocess.run(
            [sys.executable, "-c", script, f"sqlite:///{tmp_path}/shop.db"], capture_output=True, text=True, timeout=SECONDS * 2, check=True
        )  # fmt: skip
        event = next_event(response)
    assert {"id": ran.stdout.strip(), "kind": "requested", "seq": served.begun + 1} == json.loads(event["data"])
    assert (str(served.begun + 1), "change") == (event["id"], event["event"])


def test_all_pages_share_one_watcher(served, monkeypatch):
    with contextlib.ExitStack() as stack:
        pages = [after_beginning(stack.enter_context(served.page())) for _ in range(5)]
        approval = served.shop.ask()
        served.shop.desk.get(approval.id, by=person("bo"))
        served.shop.desk.approve(approval.id, by=person("bo"))
        assert [["requested", "decided"]] * 5 == [
            [json.loads(next_event(page)["data"])["kind"] for _ in range(2)] for page in pages
        ]
        assert 1 == len(served.shop.inbox.watcher._all())
        monkeypatch.setattr(events, "MAX_PAGES", 5)  # beyond it, a page works without events
        with served.page() as more:
            assert (503, "30") == (more.status, more.headers["retry-after"])


def test_a_page_that_was_away_gets_what_it_missed(served):
    approval, asked = served.shop.ask(), served.seq()
    served.shop.desk.reject(approval.id, by=person("bo"))
    for path, headers in ((f"/events?after={asked}", {}), ("/events", {"Last-Event-ID": str(asked)})):
        with served.page(path, **headers) as response:
            event = next_event(after_beginning(response))
            assert "decided" == json.loads(event["data"])["kind"]
    with served.page("/events?after=0") as response:
        after_beginning(response)
        assert [str(asked), str(asked + 1)] == [next_event(response)["id"] for _ in range(2)]


ENDS = {
    "removal": lambda served: served.logins.accounts.remove("ana", actor=person("operator"), force=True),
    "another role": lambda served: served.logins.accounts.set_role("ana", Role.VIEWER, actor=person("operator")),
    "logout": lambda served: served.logins.sessions.end(served.session),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_right_that_is_taken_away_ends_the_stream(served, end):
    """And no other."""
    with served.page(name="bo") as other, served.page() as response:
        for page in (other, response):
            after_beginning(page)
        end(served)
        served.shop.ask()
        assert next_event(response) is None
        assert "requested" == json.loads(next_event(other)["data"])["kind"]


def test_open_streams_do_not_keep_the_server_from_ending(filed):
    with contextlib.ExitStack() as stack:
        with listening(filed.grace) as server:
            page = after_beginning(stack.enter_context(Served(filed, server).page()))
        assert next_event(page) is None


def test_the_end_of_the_application_ends_all_streams(served):
    with served.page() as response:
        after_beginning(response)
        stop_events(served.app)
        assert next_event(response) is None
        with served.page() as late:
            assert 503 == late.status


def test_nobody_takes_the_pages_of_others(served, monkeypatch):
    """A person has a share, which a page that is closed gives back. Who is refused is not asked to come again."""
    closed, leave = threading.Semaphore(0), events.Feed._leave
    monkeypatch.setattr(events.Feed, "_leave", lambda feed, page: (leave(feed, page), closed.release()))
    monkeypatch.setattr(events, "MAX_PAGES_EACH", 2)
    with served.page() as first:
        after_beginning(first)
        with served.page() as second:
            after_beginning(second)
            with served.page() as third:
                assert 429 == third.status
                assert b"2 other pages of yours listen" in third.read()
            with served.page(name="bo") as other:
                after_beginning(other)
        assert closed.acquire(timeout=SECONDS)
        assert closed.acquire(timeout=SECONDS)
        with served.page() as again:
            after_beginning(again)


class Broken:
    """Changes whose reading fails with an error that nobody expected, once."""

    def __init__(self, watch, failing):
        self.watch, self.failing = watch, failing

    def __call__(self):
        return self.fail() if self.failing.pop() else self.watch()

    async def fail(self):
        raise RuntimeError("damaged")
        yield


def test_a_watch_that_fails_ends_the_streams(served, monkeypatch, caplog):
    """Whatever the error. The browsers come again, and the next stream gets events."""
    approvals = served.shop.grace.approvals
    monkeypatch.setattr(type(approvals), "watch", Broken(approvals.watch, [False, True]))
    with served.page() as response:
        assert next_event(after_beginning(response)) is None
    assert "cannot be watched: RuntimeError: damaged" in caplog.text
    with served.page() as response:
        after_beginning(response)
        served.shop.ask()
        assert "requested" == json.loads(next_event(response)["data"])["kind"]


async def test_a_page_that_is_too_far_behind_ends():
    page = events.OpenPage("ana")
    change = Change(seq=1, at=0.0, kind="decided", facts={})
    for _ in range(events.MAX_BEHIND):
        page.put(change)
    page.put(change)
    assert [] == [found async for found in page.changes()]


@pytest.mark.parametrize("after", ["-1", "1" * 30, "%D9%A3"])
def test_a_page_with_an_unusable_number_begins_now(served, after):
    with served.page(f"/events?after={after}") as response:
        after_beginning(response)
