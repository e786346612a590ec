"""A trace on its way to a registry: the request that would send it, and how sending it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """The request that would send one trace, or why the trace may not leave."""

    id: str
    eligible: bool
    reason: str = ""
    """Why it may not leave; empty where it may."""
    method: str = "POST"
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Without the key itself."""
    body: bytes = b""
    """The JSON document, to the byte."""
    idempotency_key: str = ""
    """SHA-256 of the body, hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributed:
    """How contributing one trace ended."""

    id: str
    status: str
    """`sent`, `already_there`, `not_eligible` or `failed`."""
    http_status: int | None = None
    attempts: int = 0
    reason: str = ""
