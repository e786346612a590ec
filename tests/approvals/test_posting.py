"""One post: what counts as accepted, what is tried again, and what never is."""

from __future__ import annotations

import logging

import pytest

from grace_kp.approvals._webhooks import Gone, Refused, Unreached, post
from tests.approvals.receivers import receiver


@pytest.mark.parametrize("status", [200, 202, 204])
def test_accepted(status):
    """Any status from 200 to 299, whatever the answer says."""
    with receiver() as hook:
        hook.answers = [status]
        post(hook.url, {"webhook-id": "m"}, b"{}", 60.0)
        headers, body, path = hook.messages[0]
    assert ("m", b"{}", "/hook/secret-path") == (headers["webhook-id"], body, path)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status):
    """Messages go to the address that was configured."""
    with receiver() as hook, receiver() as elsewhere:
        hook.answers = [(status, {"location": elsewhere.url})]
        with pytest.raises(Unreached, match=f"HTTP {status}, a redirect"):
            post(hook.url, {}, b"{}", 60.0)
    assert [] == elsewhere.messages


@pytest.mark.parametrize(
    ("answer", "error", "seconds"),
    [
        (500, Unreached, None),
        ((503, {"retry-after": "7"}), Unreached, 7.0),
        ((429, {"retry-after": "soon"}), Unreached, None),
        (401, Unreached, None),
        (404, Unreached, None),
        (400, Refused, None),
        (413, Refused, None),
        (410, Gone, None),
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
    """The time for the whole attempt is bounded."""
    with receiver() as hook:

        def slow(handler):
            handler.server.stopped = hook.released
            drip(handler)

        hook.answers = [hook.hang if kind == "hangs" else slow]
        with pytest.raises(Unreached, match=r"no answer within 0\.3 s"):
            post(hook.url, {}, b"{}", 0.3)


def test_nobody_listens(caplog):
    """The address is neither in the error nor in a log, at any level."""
    caplog.set_level(logging.DEBUG)
    with receiver() as hook:
        url = hook.url
        post(url, {}, b"{}", 60.0)
    with pytest.raises(Unreached, match="ConnectError") as caught:
        post(url, {}, b"{}", 60.0)
    assert "secret-path" not in str(caught.value) + caplog.text


@pytest.mark.parametrize("answer", [b"not http at all\r\n\r\n", b""])
def test_what_is_no_answer(answer):
    """Another attempt may get one."""
    with receiver() as hook:
        hook.answers = [lambda handler: handler.wfile.write(answer)]
        with pytest.raises(Unreached, match="RemoteProtocolError"):
            post(hook.url, {}, b"{}", 60.0)


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    """Except for hosts that need none."""
    with receiver() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/hook/secret-path"))
        monkeypatch.setenv("no_proxy", "direct.example")
        post("http://hooks.example/a", {}, b"{}", 60.0)
        assert "http://hooks.example/a" == proxy.messages[0][2]
