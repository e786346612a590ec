"""Receivers and their messages: what they hold, what they never hold, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
import standardwebhooks

from grace_kp.approvals import Checkpoint, Webhook, append, entry_of, verify, webhooks_of
from grace_kp.errors import SettingsError
from tests.approvals.chains import ANA, chain_of, new_row
from tests.approvals.receivers import SECRET
from tests.approvals.tables import DictTables

URL = "https://hooks.example/services/T0/very-secret"


def message_of(webhook, tables, seq, arguments=None):
    """The message about an entry, as JSON, with its id."""
    link = tables.link(seq)
    row = tables.row(link.approval) if link.approval else None
    message_id, body = webhook.message(tables.identity, link, entry_of(link), row, arguments)
    return message_id, json.loads(body)


def test_a_message_says_what_happened_and_who_may_decide():
    """Without the arguments, notes or reasons; with a link, and a checkpoint of the chain."""
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
    """Redacted then. Secrets elsewhere in a message are removed, too."""
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
    """Its own package accepts them, with each of several secrets."""
    now = int(datetime.now(UTC).timestamp())
    other = "whsec_" + "QUJD" * 10
    headers = Webhook(url=URL, secret=[SECRET, other]).signed("msg_1", now, b'{"a": 1}')
    for secret in (SECRET, other):
        assert {"a": 1} == standardwebhooks.Webhook(secret).verify(b'{"a": 1}', headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(SECRET).verify(b'{"a": 2}', headers)


def test_a_receiver_is_shown_without_its_secrets():
    """Scheme, host and port are what is printed and logged."""
    webhook = Webhook(url=URL, secret=SECRET)
    assert ("https://hooks.example", "http://h:81") == (
        webhook.receiver,
        Webhook(url="http://h:81/x", secret=SECRET).receiver,
    )
    assert "very-secret" not in repr(webhook) + webhook.id
    assert SECRET not in repr(webhook)
    assert webhook.id == Webhook(url=URL, secret=SECRET).id != Webhook(url=URL + "2", secret=SECRET).id


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "ftp://h/very-secret"}, "must be an http or https address in ASCII"),
        ({"url": "very-secret"}, "must be an http or https address"),
        ({"url": "https://h:very-secret/"}, "must be an http or https address"),
        ({"url": "https://h/\nvery-secret"}, "must be an http or https address"),
        ({"url": None}, "must be an http or https address"),
        ({"url": "https://ana:very-secret@h/"}, "webhook to h must hold no user and password"),
        ({"secret": "very-secret"}, "the secret of the webhook to https://hooks.example must be 'whsec_'"),
        ({"secret": "whsec_QUJD"}, "base64 of 24 to 64 random bytes"),
        ({"secret": "whsec_very-secret!"}, "base64 of 24 to 64 random bytes"),
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
    """The message shows neither the path of the address nor the secret."""
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
