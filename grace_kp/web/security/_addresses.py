"""Under which names the pages are reached: the accepted Host headers, the origin that writes must come from, and the address of a client.

A browser that was led to this server by a foreign name (DNS rebinding) sends that name as Host. Headers of proxies are read only
from proxies that were configured, and only for the address of the client; the public URL states the rest.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from grace_kp.errors import SettingsError, brief

if TYPE_CHECKING:
    from starlette.datastructures import Headers

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
DEFAULT_PORTS = {"http": 80, "https": 443}
_ASCII = re.compile(r"[!-~]+")
_LOCAL_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The addresses of one application."""

    public_url: str = ""
    """`https://host[:port]` under which browsers reach the application; empty for loopback."""
    port: int | None = None
    """The port of loopback addresses; None for any, where the application is mounted into another one."""
    trusted_proxies: frozenset[str] = frozenset()
    """Addresses of proxies whose `X-Forwarded-For` names the client."""

    def __post_init__(self) -> None:
        if self.public_url:
            parts = _split(self.public_url)
            usable = (
                parts.scheme in DEFAULT_PORTS
                and parts.hostname
                and not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
                and _ASCII.fullmatch(self.public_url)
            )
            if not usable:
                raise SettingsError(
                    f"the public URL must be like https://grace.example.com, without a path; got {brief(self.public_url)}"
                )
        for proxy in self.trusted_proxies:
            try:
                ipaddress.ip_address(proxy)
            except ValueError:
                raise SettingsError(f"a trusted proxy must be an IP address, not {brief(proxy)}") from None

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the application over TLS."""
        return self.public_url.lower().startswith("https:")

    @property
    def is_loopback(self) -> bool:
        """Whether only browsers of this machine reach the application."""
        return not self.public_url or _split(self.public_url).hostname in {"127.0.0.1", "localhost", "::1"}

    def accepts(self, host: str) -> bool:
        """Return whether a Host header names this application."""
        host = host.lower()
        if self.public_url:
            parts = _split(self.public_url.lower())
            return host in _hosts(
                parts.netloc.removesuffix(f":{_port(parts.scheme, parts.port)}"), parts.scheme, parts.port
            )
        if self.port is not None:
            return any(host in _hosts(name, "http", self.port) for name in LOOPBACK)
        return any(
            host == name or (host.startswith(f"{name}:") and host[len(name) + 1 :].isdecimal()) for name in LOOPBACK
        )

    def origin(self, host: str, scheme: str) -> str:
        """Return the origin that pages of this application have when they are reached under an accepted Host header."""
        if self.public_url:
            parts = _split(self.public_url.lower())
            return _origin(parts.scheme, parts.netloc)
        return _origin(scheme, host.lower())

    def client(self, peer: str, headers: Headers) -> str:
        """Return the address of the client: the last one that a trusted proxy states, else that of the connection."""
        trusted = set(map(_plain, self.trusted_proxies))
        if _plain(peer) not in trusted:
            return peer
        # A proxy may add a line of its own below the one that the client has sent.
        for stated in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
            address = _plain(stated.strip())
            if not address:
                return peer
            if address not in trusted:
                return address
        return peer


def local_path(text: str, otherwise: str = "/") -> str:
    """Return a text if it is a path of this application with an optional query, else another one. No other host can be reached by it."""
    return text if len(text) <= 2_000 and _LOCAL_PATH.fullmatch(text) else otherwise


def network_of(address: str) -> str:
    """Return what limits are counted by: an IPv4 address, or the /64 network of an IPv6 address."""
    plain = _plain(address)
    return str(ipaddress.ip_network((plain, 64), strict=False)) if ":" in plain else plain or "unknown"


def _plain(address: str) -> str:
    """Return an address in its usual form, an IPv4 address that IPv6 has mapped (`::ffff:192.0.2.7`) as such; empty for what is no address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def _split(url: str):  # type: ignore[no-untyped-def]
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 — a port that is no number raises
    except ValueError:
        return urlsplit("")
    return parts


def _port(scheme: str, port: int | None) -> int:
    return port or DEFAULT_PORTS.get(scheme, 0)


def _hosts(name: str, scheme: str, port: int | None) -> set[str]:
    """Return the Host headers that browsers send for a name and a port."""
    number = _port(scheme, port)
    with_port = f"{name}:{number}"
    return {name, with_port} if number == DEFAULT_PORTS.get(scheme) else {with_port}


def _origin(scheme: str, host: str) -> str:
    return f"{scheme}://{host.removesuffix(f':{DEFAULT_PORTS.get(scheme)}')}"
