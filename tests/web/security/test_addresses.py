"""Names under which the pages are reached."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from grace_kp.errors import SettingsError
from grace_kp.web.security import Addresses
from grace_kp.web.security._logins import local_path
from grace_kp.web.security._refusals import network_of

LOOPBACK = Addresses(port=8765)
ANY_PORT = Addresses()
PUBLIC = Addresses(public_url="https://Grace.example.com")


@pytest.mark.parametrize(
    ("addresses", "accepted", "refused"),
    [
        (
            LOOPBACK,
            ["127.0.0.1:8765", "LOCALHOST:8765", "[::1]:8765"],
            ["127.0.0.1", "127.0.0.1:8766", "localhost.:8765", "localhost:8765 ", "localhost:8765.evil.example", "evil.example:8765",
             "127.0.0.1.nip.io:8765", "user@localhost:8765", ""],
        ),
        (Addresses(port=80), ["localhost"], ["localhost:81"]),
        (ANY_PORT, ["localhost", "127.0.0.1:9"], ["localhost:", "localhost:9x", "localhost.evil.example"]),
        (
            PUBLIC,
            ["grace.example.com", "grace.example.com:443"],
            ["grace.example.com:80", "localhost:8765", "127.0.0.1", "evil.example.com"],
        ),
        (Addresses(public_url="https://grace.example.com:8443"), ["grace.example.com:8443"], ["grace.example.com"]),
    ],
)  # fmt: skip
def test_only_own_names_are_accepted(addresses, accepted, refused):
    """The name must be ours, with the port."""
    assert [True] * len(accepted) == [addresses.accepts(host) for host in accepted]
    assert [False] * len(refused) == [addresses.accepts(host) for host in refused]


@pytest.mark.parametrize(
    ("addresses", "host", "scheme", "expected"),
    [
        (LOOPBACK, "127.0.0.1:8765", "http", "http://127.0.0.1:8765"),
        (ANY_PORT, "localhost:443", "https", "https://localhost"),
        (PUBLIC, "grace.example.com:443", "http", "https://grace.example.com"),
        (Addresses(public_url="https://[2001:db8::1]:8443"), "x", "http", "https://[2001:db8::1]:8443"),
    ],
)
def test_the_origin_is_that_of_the_browser(addresses, host, scheme, expected):
    """As browsers write it: without the default port, and behind a proxy that of the public URL."""
    assert expected == addresses.origin(host, scheme)


@pytest.mark.parametrize(
    "url",
    [
        "grace.example.com",
        "ftp://grace.example.com",
        "https://",
        "https://grace.example.com/path",
        "https://grace.example.com?query",
        "https://user@grace.example.com",
        "https://grace.example.com:port",
        "https://grace.example.com\r\nX: y",
        "https://gräce.example.com",
    ],
)
def test_a_public_url_that_is_none_is_refused(url):
    """The message shows it."""
    with pytest.raises(SettingsError, match="the public URL must be like"):
        Addresses(public_url=url)


def test_a_trusted_proxy_is_an_address():
    """A name could be made to lead elsewhere."""
    with pytest.raises(SettingsError, match="must be an IP address, not 'localhost'"):
        Addresses(trusted_proxies=frozenset({"localhost"}))


def test_headers_of_proxies_are_ignored_unless_configured():
    """Only a trusted proxy says who its client is, and only its own statement counts, not what came from outside."""
    stated = Headers({"x-forwarded-for": "203.0.113.9, 198.51.100.7, 10.0.0.2"})
    assert "192.0.2.1" == LOOPBACK.client("192.0.2.1", stated)
    trusting = Addresses(port=1, trusted_proxies=frozenset({"10.0.0.1", "10.0.0.2"}))
    assert "198.51.100.7" == trusting.client("10.0.0.1", stated)
    assert "192.0.2.1" == trusting.client("192.0.2.1", stated)
    assert "10.0.0.1" == trusting.client("10.0.0.1", Headers())
    assert "10.0.0.1" == trusting.client("10.0.0.1", Headers({"x-forwarded-for": "unknown\n"}))


@pytest.mark.parametrize(
    ("proxy", "peer"),
    [("10.0.0.1", "::ffff:10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("2001:DB8:0::1", "2001:db8::1")],
)
def test_a_proxy_is_known_in_each_form_of_its_address(proxy, peer):
    """And may add its own line below the one that the client has sent."""
    trusting = Addresses(port=1, trusted_proxies=frozenset({proxy}))
    lines = [(b"x-forwarded-for", b"203.0.113.9"), (b"x-forwarded-for", f"::ffff:198.51.100.7, {proxy}".encode())]
    assert "198.51.100.7" == trusting.client(peer, Headers(raw=lines))


def test_a_login_leads_to_paths_of_this_application_only():
    for path in ("/inbox", "/runs?text=a%20b&status=x", "/"):
        assert path == local_path(path)
    for foreign in ("", "//evil.example", "/\\evil.example", "\\\\evil.example", "/a\\b", "https://evil.example", "javascript:alert(1)",
                    "/\t/evil.example", "/a\r\nSet-Cookie: x=y", "inbox", "/" + "a" * 3_000):  # fmt: skip
        assert "/" == local_path(foreign)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("testclient", "unknown"),
    ],
)
def test_limits_are_by_network(address, expected):
    """Whoever has a /64 has all of its addresses."""
    assert expected == network_of(address)
