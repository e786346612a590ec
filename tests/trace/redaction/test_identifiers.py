"""Identifiers of people and machines go from `aggregated` on; numbers with check digits only where these are right."""

from __future__ import annotations

import pytest

from grace_kp.trace import Redaction, redact
from grace_kp.trace.redaction._patterns import iban, luhn
from tests.trace.redaction.corpus import IDENTIFIER_FORMS, IDENTIFIERS


@pytest.mark.parametrize(("text", "kind"), IDENTIFIER_FORMS)
def test_identifiers_go_from_aggregated_on(text, kind):
    """Kept at `private`, gone at the other two."""
    assert Redaction(f"see {text} now", {}) == redact(f"see {text} now", "private")
    for level in ("aggregated", "federated"):
        assert Redaction(f"see [REDACTED:{kind}] now", {kind: 1}) == redact(f"see {text} now", level)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("電話は090-1234-5678です", "5678"),
        ("電話は09012345678です", "5678"),
        ("アドレスは192.0.2.10です", "192.0"),
        ("アドレスは2001:db8::1です", "2001"),
        ("パスは/home/山田/メモです", "山田"),
        ("/mnt/c/Users/bob/x", "bob"),
        ("C:\\Users\\John Smith\\doc.txt", "Smith"),
        ("a" * 200 + "@example.com", "example"),
        ("+15550101234 555-010-4567", "0101234"),
        ("+15550101234 2026-11-20", "0101234"),
    ],
)
def test_identifiers_go_beside_anything(text, gone):
    """Japanese has no blanks between words; a number may follow a number."""
    assert gone in text
    assert gone not in redact(text, "aggregated").text


@pytest.mark.parametrize(("text", "kind"), IDENTIFIERS)
def test_numbers_with_check_digits_are_identifiers(text, kind):
    """Card numbers, IBANs and social security numbers stay at `private` and go at the other levels."""
    assert Redaction(f"pay {text} now", {}) == redact(f"pay {text} now", "private")
    assert Redaction(f"pay [REDACTED:{kind}] now", {kind: 1}) == redact(f"pay {text} now", "aggregated")


@pytest.mark.parametrize(("text", "kind"), [item for item in IDENTIFIERS if item[1] != "ssn"])
def test_a_wrong_check_digit_is_no_identifier(text, kind):
    """One digit more or less, and it is an ordinary number."""
    wrong = text[:-1] + str((int(text[-1]) + 1) % 10)
    assert kind not in redact(f"pay {wrong} now", "aggregated").counts


@pytest.mark.parametrize(("digits", "right"), [("4111111111111111", True), ("4111111111111112", False), ("0", True)])
def test_luhn(digits, right):
    """The check digit of card numbers."""
    assert right is luhn(digits)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("GB82WEST12345698765432", True),
        ("gb82west12345698765432", True),
        ("GB83WEST12345698765432", False),
        ("GB82WEST1234569876543", False),
        ("XX82WEST12345698765432", False),
    ],
)
def test_iban(text, right):
    """The length of the country, and the check digits modulo 97."""
    assert right is iban(text)
