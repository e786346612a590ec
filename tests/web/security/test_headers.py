"""Headers of every response."""

from __future__ import annotations

import pytest

from grace_kp.web.security._headers import protected


def headers(message):
    return {name.decode(): value.decode() for name, value in message["headers"]}


def start(*pairs):
    return {"type": "http.response.start", "status": 200, "headers": list(pairs)}


def test_a_handler_cannot_loosen_the_policy():
    """What it sets is replaced; other headers stay."""
    loose = start((b"Content-Security-Policy", b"default-src *"), (b"x-frame-options", b"ALLOW"), (b"x-other", b"1"))
    found = headers(protected(loose, may_keep=False))
    assert "default-src 'none'" == found["content-security-policy"].partition(";")[0]
    assert "DENY" == found["x-frame-options"]
    assert "1" == found["x-other"]
    assert len(found) == len(protected(loose, may_keep=False)["headers"])


def test_nothing_is_kept_by_caches():
    """Except for what needs no login, where the handler decides."""
    cached = start((b"cache-control", b"max-age=60"))
    assert "no-store" == headers(protected(cached, may_keep=False))["cache-control"]
    assert "max-age=60" == headers(protected(cached, may_keep=True))["cache-control"]
    assert "no-store" == headers(protected(start(), may_keep=True))["cache-control"]


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: x=y", b"a\nb", b"a\0b"])
def test_a_header_with_a_line_break_is_an_error(value):
    """A response is never split in two."""
    with pytest.raises(ValueError, match="line break"):
        protected(start((b"location", value)), may_keep=False)
