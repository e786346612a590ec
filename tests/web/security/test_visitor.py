"""The header that programs state their token in."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from grace_kp.web.security._visitor import bearer_of


@pytest.mark.parametrize(
    ("header", "expected"),
    [("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("Bearer", ""), ("Basic abc", None), ("", None), (None, None)],
)
def test_only_bearer_tokens_count(header, expected):
    """Browsers send other schemes by themselves, so that they prove nothing about a page."""
    headers = [] if header is None else [(b"authorization", header.encode())]
    assert expected == bearer_of(Request({"type": "http", "headers": headers}))
