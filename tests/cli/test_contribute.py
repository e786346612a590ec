"""`grace-kp traces contribute`: what would leave is shown to the byte, nothing leaves unasked, and the exit code says how it went."""

from __future__ import annotations

import io
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import grace_kp as gk
from tests.cli.program import ended, run


@pytest.fixture
def server():
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append((self.rfile.read(int(self.headers["content-length"])), dict(self.headers)))
            self.send_response(made.status)
            self.end_headers()

        def log_message(self, *args):
            """Nothing."""

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.status, made.seen = 201, seen
    made.url = f"http://127.0.0.1:{made.server_address[1]}"
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def store(tmp_path):
    """Two traces that may leave, and one that is private."""
    url = f"sqlite:///{tmp_path}/t.db"
    for visibility, count in (("network", 2), ("private", 1)):
        with gk.Grace(store=url, evaluator=None, embedder=None, visibility=visibility) as grace:
            for number in range(count):
                with grace.run(f"mail bob@example.com {number}") as live:
                    live.thought("x")
                    live.outcome(confidence=1.0)
    return url


def contribute(*arguments, store, url, key="k-123"):
    environment = {"GRACE_KP_REGISTRY_KEY": key} if key else {}
    return run("traces", "contribute", "--store", store, "--url", url, *arguments, stdin="", **environment)


def test_a_dry_run_shows_what_would_leave_and_sends_nothing(store, server):
    ran = contribute("--dry-run", "--min-score", "0", "--json", store=store, url=server.url)
    assert (0, "") == (ran.returncode, ran.stderr)
    shown = json.loads(ran.stdout)
    assert [True, True, False] == sorted((one["eligible"] for one in shown), reverse=True)
    assert [] == server.seen
    text = contribute("--dry-run", "--min-score", "0", store=store, url=server.url).stdout
    assert "[REDACTED:email]" in text
    assert "bob@example.com" not in text
    assert "2 of 3 would be sent; nothing was sent" in text
    assert "k-123" not in text + ran.stdout

    contribute("--yes", "--min-score", "0", store=store, url=server.url)
    assert {one["body"] for one in shown if one["eligible"]} == {body.decode() for body, _ in server.seen}


def test_a_registry_that_refuses_fails(store, server):
    server.status = 403
    ran = contribute("--yes", "--min-score", "0", store=store, url=server.url)
    assert 1 == ran.returncode
    assert "failed: HTTP 403" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "given", "code", "problem"),
    [
        ([], {}, 2, "contribute asks for a confirmation, which needs a terminal"),
        (["--yes"], {"key": ""}, 1, "GRACE_KP_REGISTRY_KEY"),
        (["--yes"], {"url": "http://registry.example"}, 1, "in the clear"),
        (["--since", "yesterday-ish", "--yes"], {}, 2, "since"),
    ],
)
def test_mistakes_are_one_line(store, server, arguments, given, code, problem):
    ran = contribute(*arguments, "--min-score", "0", store=store, **{"url": server.url, **given})
    assert code == ran.returncode
    assert problem in ran.stderr
    assert "Traceback" not in ran.stderr
    assert [] == server.seen


def test_what_is_there_already_is_no_failure(store, server):
    server.status = 409
    ran = contribute("--yes", "--min-score", "0", store=store, url=server.url)
    assert (0, 2) == (ran.returncode, ran.stdout.count("already there"))
    assert "1 is not sent: its visibility is private" in ran.stdout


def test_a_trace_that_is_named_twice_is_sent_once(store, server):
    one = next(it.id for it in gk.Grace(store=store).store.query() if it.metadata.visibility == "network")
    ran = contribute(one, one.removeprefix("kp:trace:"), "--yes", "--min-score", "0", store=store, url=server.url)
    assert (0, 1) == (ran.returncode, len(server.seen))


def test_a_dry_run_says_signs_that_a_terminal_would_obey(store, server):
    """The JSON is the same; what would colour, hide or turn round text stands there as an escape."""
    grace = gk.Grace(store=store, evaluator=None, embedder=None, visibility="network", domain="odd")
    with grace, grace.run("a\x9b31m\x1b[2J\u202e\U000e0041b") as live:
        live.outcome(confidence=1.0)
    ran = contribute("--dry-run", "--min-score", "0", "--domain", "odd", store=store, url=server.url)
    assert all(sign == "\n" or sign.isprintable() for sign in ran.stdout)
    shown = json.loads(ran.stdout[ran.stdout.index("{") : ran.stdout.rindex("}") + 1])
    sent = json.loads(
        contribute("--dry-run", "--min-score", "0", "--domain", "odd", "--json", store=store, url=server.url).stdout
    )
    assert shown == json.loads(sent[0]["body"])


@pytest.fixture
def asked(terminal, store, server):
    """The command at a terminal."""
    return terminal(
        "traces", "contribute", "--store", store, "--url", server.url, "--min-score", "0", columns=120, GRACE_KP_REGISTRY_KEY="k"
    )  # fmt: skip


@pytest.mark.parametrize(("typed", "sent"), [("", 0), ("y", 0), ("no", 0), (None, 0), ("yes", 2)])
def test_at_a_terminal_it_asks_and_enter_alone_is_no(asked, server, typed, sent):
    """It shows what would leave first; the end of the input is no as well."""
    asked.expect("Send 2 traces to .*Type yes: ")
    assert "[REDACTED:email]" in asked.before
    assert "bob@example.com" not in asked.before
    asked.sendeof() if typed is None else asked.sendline(typed)
    assert (0 if sent else 1, sent) == (ended(asked), len(server.seen))


def test_the_question_stays_out_of_standard_output(command, monkeypatch, store, server):
    typed = io.StringIO("yes\n")
    typed.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", typed)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("GRACE_KP_REGISTRY_KEY", "k")
    ran = command("traces", "contribute", "--store", store, "--url", server.url, "--min-score", "0", "--json")
    assert (0, True, 3) == (ran.returncode, "Type yes" in ran.stderr, len(json.loads(ran.stdout)))


def test_nobody_is_asked_when_it_cannot_be_sent_anyway(terminal, store, server):
    child = terminal("traces", "contribute", "--store", store, "--url", server.url, "--min-score", "0")
    assert (1, []) == (ended(child), server.seen)
    assert "GRACE_KP_REGISTRY_KEY" in child.before
    assert "Type yes" not in child.before
