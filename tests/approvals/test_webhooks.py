"""Webhooks: settings, signed messages, one post, and delivery in order and at least once."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import queue
import threading
import time
from datetime import UTC, datetime

import pytest
import standardwebhooks

from grace_kp.approvals import (
    Checkpoint,
    Delivery,
    Webhook,
    _webhooks,
    append,
    entry_of,
    receiver_of,
    verify,
    webhooks_of,
)
from grace_kp.approvals._webhooks import MessageRefused, Unreached, post
from grace_kp.errors import SettingsError
from grace_kp.store import open_store
from tests.approvals.chains import DictTables, advance, chain_of, new_row
from tests.approvals.receivers import SECRET, receiver
from tests.approvals.shops import ANA, Shop, asked

URL = "https://hooks.example/services/T0/very-secret"


def message_of(webhook, tables, seq, arguments=None):
    link = tables.link(seq)
    row = tables.row(link.approval) if link.approval else None
    message_id, body = webhook.message(tables.identity, link, entry_of(link), row, arguments)
    return message_id, json.loads(body)


def test_a_message_says_what_happened_and_who_may_decide():
    tables = DictTables()
    data = json.dumps({"level": "confirm", "groups": ["finance"], "quorum": 2}).encode()
    row = new_row("ap/1", 60.0, data=data, run_id="run-1")
    tables.put(row)
    append(
        tables, "requested", at=60.0, approval="ap/1", revision=1, actor=ANA, contents={"arguments": {"euros": 4711}}
    )
    webhook = Webhook(url=URL, secret=SECRET, link="https://reviews.example/approvals/{id}")
    message_id, message = message_of(webhook, tables, 1)
    assert f"msg_{tables.head()[1][:40]}" == message_id
    checkpoint = {"store": "store-1", "seq": 1, "hash": tables.head()[1], "at": 60}
    assert {
        "type": "approval.requested",
        "timestamp": "1970-01-01T00:01:00.000Z",
        "data": {
            "approval": "ap/1",
            "revision": 1,
            "by": "ana",
            "authenticated": False,
            "state": "pending",
            "action": "refund",
            "domain": "shop",
            "run_id": "run-1",
            "digest": "sha256:00",
            "level": "confirm",
            "deadline": "1970-01-01T00:02:00.500Z",
            "groups": ["finance"],
            "quorum": 2,
            "link": "https://reviews.example/approvals/ap%2F1",
            "checkpoint": checkpoint,
        },
    } == message
    assert verify(tables, at=1.0, checkpoint=Checkpoint.from_dict(message["data"]["checkpoint"])).ok


def test_arguments_only_where_the_receiver_is_to_get_them():
    tables = chain_of((1, 1))
    arguments = {"euros": 20, "password": "hunter2-hunter2", "iban": {"$sealed": "AAAA", "key": "k"}}
    _, message = message_of(Webhook(url=URL, secret=SECRET), tables, 1, arguments)
    assert "arguments" not in message["data"]
    _, message = message_of(Webhook(url=URL, secret=SECRET, with_arguments=True), tables, 2, arguments)
    assert "hunter2" not in json.dumps(message)
    assert (20, arguments["iban"]) == (message["data"]["arguments"]["euros"], message["data"]["arguments"]["iban"])
    append(tables, "restored", at=1e30, facts={"marked": 3, "verb": "ghp_" + "a1B2" * 9})
    _, message = message_of(Webhook(url=URL, secret=SECRET), tables, 3)
    assert "ghp_a1B2" not in json.dumps(message)
    assert (None, 3, "9999-12-31T23:59:59.999Z") == (
        message["data"]["approval"],
        message["data"]["marked"],
        message["timestamp"],
    )


def test_signatures_are_those_of_standard_webhooks():
    now = int(datetime.now(UTC).timestamp())
    secrets = [SECRET, secret_of(24), secret_of(64)]
    headers = Webhook(url=URL, secret=secrets).headers_for("msg_1", now, b'{"a": 1}')
    for secret in secrets:
        assert {"a": 1} == standardwebhooks.Webhook(secret).verify(b'{"a": 1}', headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(SECRET).verify(b'{"a": 2}', headers)


def test_a_receiver_is_shown_without_its_secrets():
    webhook = Webhook(url=URL, secret=SECRET)
    assert ("https://hooks.example", "http://h:81") == (
        webhook.receiver,
        Webhook(url="http://h:81/x", secret=SECRET).receiver,
    )
    assert "very-secret" not in repr(webhook) + webhook.id
    assert SECRET not in repr(webhook)
    assert webhook.id == Webhook(url=URL, secret=SECRET).id != Webhook(url=URL + "2", secret=SECRET).id


def secret_of(size):
    return "whsec_" + base64.b64encode(bytes(range(size))).decode()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "ftp://h/very-secret"}, "must be an http or https address in ASCII"),
        ({"url": "https://h:very-secret/"}, "must be an http or https address"),
        ({"url": "https://h/\nvery-secret"}, "must be an http or https address"),
        ({"url": None}, "must be an http or https address"),
        ({"url": "https://ana:very-secret@h/"}, "webhook to h must hold no user and password"),
        ({"secret": "very-secret"}, "the secret of the webhook to https://hooks.example must be 'whsec_'"),
        ({"secret": "whsec_very-secret!"}, "base64 of 24 to 64 random bytes"),
        *(({"secret": secret_of(size)}, "base64 of 24 to 64 random bytes") for size in (23, 65)),
        ({"secret": []}, "base64 of 24 to 64 random bytes"),
        (
            {"events": ["asked"]},
            r"events of the webhook to https://hooks.example must be among account_changed, claimed, .*, not a list of 1",
        ),
        ({"events": "requested"}, "must be among"),
        ({"events": []}, "must be among"),
        ({"link": "https://h/approvals"}, "link must be an http or https address with one {id}, such as"),
        ({"link": "javascript:{id}"}, "link must be an http or https address"),
    ],
)
def test_what_cannot_be_used_is_refused(fields, message):
    with pytest.raises(SettingsError, match=message) as caught:
        Webhook(**{"url": URL, "secret": SECRET, **fields})
    assert "very-secret" not in str(caught.value)


def test_settings_name_one_receiver():
    """Its secret comes from the environment. Without an address nothing leaves the machine."""
    assert () == webhooks_of(None, None, {"GRACE_KP_WEBHOOK_SECRET": SECRET})
    link = "https://reviews.example/{id}"
    assert (Webhook(url=URL, secret=[SECRET], link=link),) == webhooks_of(
        URL, link, {"GRACE_KP_WEBHOOK_SECRET": SECRET}
    )
    with pytest.raises(
        SettingsError, match=r"webhook_url is set to https://hooks\.example, and GRACE_KP_WEBHOOK_SECRET holds no"
    ):
        webhooks_of(URL, None, {})


def test_a_redirect_is_not_followed():
    with receiver() as hook, receiver() as elsewhere:
        hook.answers = [(307, {"location": elsewhere.url})]
        with pytest.raises(Unreached, match="HTTP 307, a redirect"):
            post(hook.url, {}, b"{}", 60.0)
    assert [] == elsewhere.messages


@pytest.mark.parametrize(
    ("answer", "error", "seconds"),
    [
        (500, Unreached, None),
        ((503, {"retry-after": "7"}), Unreached, 7.0),
        ((429, {"retry-after": "soon"}), Unreached, None),
        (404, Unreached, None),
        (400, MessageRefused, None),
        (410, MessageRefused, None),
    ],
)
def test_not_accepted(answer, error, seconds):
    """What is wrong with the receiver can pass; what is wrong with the message cannot."""
    with receiver() as hook:
        hook.answers = [answer]
        with pytest.raises(error) as caught:
            post(hook.url, {}, b"{}", 60.0)
    assert seconds == getattr(caught.value, "wait_seconds", None)


def drip(handler):
    """Answer one byte at a time, so that no single read ever takes long."""
    try:
        for byte in b"HTTP/1.1 200 OK\r\nx-slow: " + b"y" * 10_000:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            if handler.server.stopped.wait(0.02):
                return
    except OSError:
        return


@pytest.mark.parametrize("kind", ["hangs", "drips"])
def test_an_answer_that_does_not_come(kind):
    with receiver() as hook:

        def slow(handler):
            handler.server.stopped = hook.released
            drip(handler)

        hook.answers = [hook.hang if kind == "hangs" else slow]
        with pytest.raises(Unreached, match=r"no answer within 0\.3 s"):
            post(hook.url, {}, b"{}", 0.3)


def test_a_receiver_that_listens_and_then_not(caplog):
    caplog.set_level(logging.DEBUG)
    with receiver() as hook:
        url = hook.url
        post(url, {"webhook-id": "m"}, b"{}", 60.0)
        headers, body, path = hook.messages[0]
        assert ("m", b"{}", "/hook/secret-path") == (headers["webhook-id"], body, path)
    with pytest.raises(Unreached, match="ConnectError") as caught:
        post(url, {}, b"{}", 60.0)
    assert "secret-path" not in str(caught.value) + caplog.text


@pytest.mark.parametrize("answer", [b"not http at all\r\n\r\n", b""])
def test_what_is_no_answer(answer):
    with receiver() as hook:
        hook.answers = [lambda handler: handler.wfile.write(answer)]
        with pytest.raises(Unreached, match="RemoteProtocolError"):
            post(hook.url, {}, b"{}", 60.0)


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    with receiver() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/hook/secret-path"))
        monkeypatch.setenv("no_proxy", "direct.example")
        post("http://hooks.example/a", {}, b"{}", 60.0)
        assert "http://hooks.example/a" == proxy.messages[0][2]


@pytest.fixture
def hook(monkeypatch):
    monkeypatch.setattr(_webhooks, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(_webhooks, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(_webhooks, "POST_SECONDS", 60.0)
    with receiver() as found:
        yield found


@pytest.fixture(params=["memory:", "sqlite"])
def tables(request, tmp_path):
    url = request.param if request.param == "memory:" else f"sqlite:///{tmp_path / 'a.db'}"
    with contextlib.closing(open_store(url)) as store:
        yield store.approvals


def delivery(tables, hook, **fields):
    clock = {"clock": fields.pop("clock")} if "clock" in fields else {"clock": lambda: 10.0}
    return Delivery(tables, Webhook(url=hook.url, secret=SECRET, **fields), **clock)


def cursor(tables):
    (data,) = tables.documents("webhook").values()
    return json.loads(data)


def types(hook):
    return [json.loads(body)["type"] for _, body, _ in hook.messages]


def test_messages_come_in_order_and_verify(tables, hook):
    advance(tables, "ap-0", 1.0)
    sender = delivery(tables, hook, clock=time.time)
    for at in (1.0, 2.0, 3.0, 4.0):
        advance(tables, "ap-1", time.time() + at)
    assert sender.flush(30)
    assert ["approval.requested", "approval.decided", "approval.settled"] == types(hook)
    for headers, body, _ in hook.messages:
        assert json.loads(body) == standardwebhooks.Webhook(SECRET).verify(body, headers)
    seqs = [json.loads(body)["data"]["checkpoint"]["seq"] for _, body, _ in hook.messages]
    assert [2, 3, 5] == seqs
    assert {"delivered": 3, "lost": 0, "problem": "", "receiver": receiver_of(hook.url)}.items() <= cursor(
        tables
    ).items()
    assert sender.close(5)


def test_another_process_goes_on_where_one_ended(tables, hook):
    """A message that failed is sent again with the same id; those that came are not."""
    hook.answers = [204, 500]
    hook.lasting_answer = (503, {"retry-after": "3600"})
    first = delivery(tables, hook)
    for at in (1.0, 2.0):
        advance(tables, "ap-1", at)
    first.wake()
    hook.wait_for(3)
    assert not first.close(0.01)
    hook.lasting_answer = 204
    second = delivery(tables, hook)
    assert second.flush(30)
    ids = [headers["webhook-id"] for headers, _, _ in hook.messages]
    assert (ids[1], 2, "approval.decided") == (ids[-1], len(set(ids)), types(hook)[-1])
    assert 2 == cursor(tables)["delivered"]
    second.close(5)


def closed_during_an_attempt(tables, hook, status):
    """Close a delivery before the receiver has answered the first of two messages; return what lets it answer."""
    hook.answers = [lambda handler: (hook.released.wait(60), hook.answer(handler, status))]
    sender = delivery(tables, hook)
    for at in (1.0, 2.0):
        advance(tables, "ap-1", at)
    sender.wake()
    hook.wait_for(1)
    (thread,) = sender._worker._threads
    assert not sender.close(0.01)

    def end_attempt():
        hook.released.set()
        thread.join(60)

    return end_attempt


@pytest.mark.parametrize(("status", "sent_by_first"), [(503, 0), (204, 1)])
def test_a_delivery_that_is_closed_during_an_attempt_keeps_no_lease(tables, hook, status, sent_by_first):
    end_attempt = closed_during_an_attempt(tables, hook, status)
    end_attempt()
    assert (1, sent_by_first) == (len(hook.messages), cursor(tables)["delivered"])
    second = delivery(tables, hook)
    assert second.flush(30)
    assert 2 == cursor(tables)["delivered"]
    second.close(5)


def test_a_late_attempt_does_not_undo_what_another_process_delivered(tables, hook):
    end_attempt = closed_during_an_attempt(tables, hook, 204)
    second = delivery(tables, hook)
    assert second.flush(30)
    assert second.close(5)
    end_attempt()
    third = delivery(tables, hook)
    assert third.flush(30)
    assert (2, 3) == (cursor(tables)["delivered"], len(hook.messages))
    third.close(5)


def test_what_is_left_at_the_end_is_reported(tables, hook, capsys):
    hook.lasting_answer = 500
    sender = delivery(tables, hook)
    for at in (1.0, 2.0, 3.0):
        advance(tables, "ap-1", at)
    sender.wake()
    hook.wait_for(1)
    assert not sender.close(0.01)
    later = "; the next process that uses the store sends them" if tables.lasting else ""
    assert (
        f"grace_kp: 2 notifications were not delivered to {receiver_of(hook.url)} before the end{later}\n"
        == capsys.readouterr().err
    )
    sender.wake()
    assert sender.close(0.01)


def test_two_deliveries_send_each_message_once(tables, hook):
    first, second = delivery(tables, hook), delivery(tables, hook)
    for number in range(5):
        advance(tables, f"ap-{number}", 1.0)
        first.wake()
        second.wake()
    assert first.flush(30)
    assert second.flush(30)
    first.close(5)
    second.close(5)
    assert 5 == len(hook.messages)


def test_a_lease_of_a_process_that_was_killed_ends(tables, hook):
    dead = delivery(tables, hook)
    advance(tables, "ap-1", 1.0)
    dead._save({})
    sender = delivery(tables, hook, clock=lambda: 20.0)
    assert sender.flush(30)
    assert [] == hook.messages
    sender.close(5)
    for now in (41.0, 5.0):
        dead._save({"seq": 0}) if now == 41.0 else None
        late = delivery(tables, hook, clock=lambda now=now: now)
        assert late.flush(30)
        late.close(5)
    assert 1 == len(hook.messages)


def test_the_lease_is_kept_between_two_attempts(tables, hook, monkeypatch):
    """For however long, so that no other process sends the message, too."""
    monkeypatch.setattr(_webhooks, "LEASE_SECONDS", 0.003)
    hook.lasting_answer = (503, {"retry-after": "3600"})
    looked, pauses = threading.Semaphore(0), threading.Event()

    def clock():
        if pauses.is_set():
            looked.release()
        return 20.0 if pauses.is_set() else 10.0

    sender = delivery(tables, hook, clock=clock)
    advance(tables, "ap-1", 1.0)
    sender.wake()
    hook.wait_for(1)
    pauses.set()
    assert all(looked.acquire(timeout=30) for _ in range(10))  # the attempt itself looks twice
    assert (20.003, 1) == (cursor(tables)["until"], len(hook.messages))
    sender.close(0.01)


@pytest.mark.parametrize(
    ("status", "sent", "delivered", "lost", "words"),
    [
        (400, 2, 1, 1, "the notification of entry 1 was not delivered to http://127.0.0.1"),
        (410, 1, 0, 0, "wants no more notifications (HTTP 410)"),
    ],
)
def test_a_message_that_is_not_accepted_is_lost_unless_none_is(
    tables, hook, capsys, status, sent, delivered, lost, words
):
    hook.answers = [status]
    sender = delivery(tables, hook)
    advance(tables, "ap-1", 1.0)
    advance(tables, "ap-2", 1.0)
    assert sender.flush(30)
    sender.wake()
    assert (sent, delivered, lost) == (len(hook.messages), cursor(tables)["delivered"], cursor(tables)["lost"])
    assert words in capsys.readouterr().err
    sender.close(5)


def test_a_message_is_given_up_after_a_day(tables, hook, capsys):
    hook.lasting_answer = 500
    sender = delivery(tables, hook, clock=lambda: 2.0 + 86_400)
    advance(tables, "ap-1", 1.0)
    assert sender.flush(30)
    assert (1, "HTTP 500") == (cursor(tables)["lost"], cursor(tables)["problem"])
    assert "HTTP 500; 1 lost so far" in capsys.readouterr().err
    sender.close(5)


def test_a_receiver_that_hangs_delays_nobody(tables, hook):
    hook.lasting_answer = hook.hang
    with receiver() as other:
        senders = [delivery(tables, each) for each in (hook, other)]
        for at in (1.0, 2.0):
            advance(tables, "ap-1", at)
            for sender in senders:
                sender.wake()
        assert senders[1].flush(30)
        assert 2 == len(other.messages)
        for sender in senders:
            sender.close(0.01)


def test_only_the_events_that_a_receiver_wants(tables, hook):
    sender = delivery(tables, hook, events=["expired", "claimed"])
    for at in (1.0, 2.0, 3.0):
        advance(tables, "ap-1", at)
    assert sender.flush(30)
    assert ["approval.claimed"] == types(hook)
    sender.close(5)


def test_a_receiver_may_get_the_arguments(hook):
    shop = Shop(groups={"ana": ["finance"]})
    webhook = Webhook(url=hook.url, secret=SECRET, with_arguments=True)
    sender = Delivery(shop.tables, webhook, clock=shop.clock)
    approval = shop.requests.file(asked(groups=("finance",)))
    shop.requests.reject(approval.id, by=ANA, reason="no receipt")
    shop.requests.restored(by=ANA)
    assert sender.flush(30)
    first, second, third = (json.loads(body)["data"] for _, body, _ in hook.messages)
    assert {"euros": 500, "invoice": "R-1"} == first["arguments"]
    assert ("reject", "ana", "rejected") == (second["verb"], second["by"], second["state"])
    assert "no receipt" not in json.dumps(second)
    assert "arguments" not in third
    sender.close(5)


def test_what_fails_is_logged_once_without_the_address(tables, hook, caplog):
    caplog.set_level(logging.DEBUG)
    hook.answers = [500, 500, 500, 502]
    sender = delivery(tables, hook)
    advance(tables, "ap-1", 1.0)
    assert sender.flush(30)
    lines = [record.getMessage() for record in caplog.records if record.name == "grace_kp.approvals"]
    assert [f"notifications to {receiver_of(hook.url)} wait: HTTP {status}" for status in (500, 502)] == lines
    assert "secret-path" not in caplog.text
    sender.close(5)


def test_an_entry_that_cannot_be_read_is_reported(tables, hook, monkeypatch):
    advance(tables, "ap-1", 1.0)
    sender = delivery(tables, hook)
    advance(tables, "ap-1", 2.0)

    problems = queue.SimpleQueue()

    def fails(_link):
        raise ValueError("entry 2 of the chain is not a JSON object")

    with monkeypatch.context() as patched:
        patched.setattr(_webhooks, "entry_of", fails)
        patched.setattr(_webhooks._log, "warning", lambda _message, _receiver, problem: problems.put(problem))
        sender.wake()
        assert "ValueError: entry 2 of the chain is not a JSON object" == problems.get(timeout=30)
    assert sender.flush(30)
    assert 2 == entry_of(tables.link(2))["seq"]
    sender.close(5)
