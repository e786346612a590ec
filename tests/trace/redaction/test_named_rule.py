"""A name such as `password` or `apiKey` makes the value after it a secret."""

from __future__ import annotations

import pytest

from grace_kp.trace import redact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter2x", "password=[REDACTED:password]"),
        ("password: hunter2x, user: bob", "password: [REDACTED:password], user: bob"),
        ('{"apiKey": "x1y2z3q"}', '{"apiKey": [REDACTED:password]}'),
        ("encryption.key=Ab1Cd2Ef3Gh4Ij5K", "encryption.key=[REDACTED:password]"),
        ("密码：x1y2z3q", "密码：[REDACTED:password]"),
    ],
)
def test_secrets_go(text, expected):
    """The text around them stays."""
    assert expected == redact(text, "private").text


@pytest.mark.parametrize(
    "text",
    [
        "nextPageToken: abc123def456",
        "max_tokens=512",
        "primary_key=Ab1Cd2Ef3Gh4Ij5K",
        "password: str",
        "password=None",
        "token=abc…",
        "[REDACTED:api_key]: x1y2z3q",
    ],
)
def test_harmless_text_stays(text):
    """Counts, keys of tables, types, abbreviations, and the words of a mark stay."""
    assert text == redact(text, "private").text
