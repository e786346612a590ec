"""Key files, addresses with a password, headers and signed addresses go as a whole or lose their secret."""

from __future__ import annotations

import pytest

from grace_kp.trace import redact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://u:p4ssw0rd@db/app", "[REDACTED:connection_string]"),
        ("Server=db;User Id=sa;Password=abc123xyz;", "[REDACTED:connection_string]"),
        ("Authorization: Bearer abcdef1234567890", "Authorization: Bearer [REDACTED:bearer_token]"),
        ("Basic dXNlcjpwYXNzd29yZA==", "Basic [REDACTED:bearer_token]"),
        ("Cookie: a=1; session=abcdef123456", "Cookie: [REDACTED:password]"),
        ("https://h/x?sig=Ab1Cd2Ef3Gh4Ij5", "https://h/x?sig=[REDACTED:api_key]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "[REDACTED:api_key]"),
    ],
)
def test_secrets_go(text, expected):
    """The text around them stays."""
    assert expected == redact(text, "private").text


@pytest.mark.parametrize(
    "text",
    [
        "https://user:${PASS}@h/x",
        "the bearer certificate is here",
        "Basic English",
        "https://h/x?sig=plainwordshere",
        "cookie: chocolate",
    ],
)
def test_harmless_text_stays(text):
    """Placeholders and ordinary words in these places stay."""
    assert text == redact(text, "private").text
