"""Keys are known by the format of their vendor, wherever they stand."""

from __future__ import annotations

import pytest

from grace_kp.trace import redact
from grace_kp.trace.redaction._vendors import BUSINESS, CLOUDS, DEVELOPMENT, MODELS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AKIAIOSFODNN7EXAMPLE", "[REDACTED:api_key]"),
        ("\\nghp_abcdefghij0123456789", "\\n[REDACTED:api_key]"),
        ("鍵はghp_abcdefghij0123456789です", "鍵は[REDACTED:api_key]です"),
        ("glpat-abcdefghij1234567890 and more", "[REDACTED:api_key] and more"),
        ("token=gkp_yZ3k-9aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789_A.", "token=[REDACTED:api_key]."),
    ],
)
def test_secrets_go(text, expected):
    """The text around them stays."""
    assert expected == redact(text, "private").text


@pytest.mark.parametrize(
    "text",
    [
        "AKIAxxxxxxxxxxxx",
        "npm_aaaaaaaaaaaaaaaaaaaa",
        "xghp_abcdefghij0123456789",
        "sk-learn-compatible-estimators",
    ],
)
def test_harmless_text_stays(text):
    """An example of equal characters, a word that continues, and words of the same shape stay."""
    assert text == redact(text, "private").text


def test_every_format_is_found_by_its_own_needles():
    """The pure scan looks for these texts in lower case first, so a format without any would never be tried."""
    rows = [row for rows in (CLOUDS, DEVELOPMENT, MODELS, BUSINESS) for row in rows]
    assert [] == [row.pattern for row in rows if not row.needs or row.needs != row.needs.lower()]
