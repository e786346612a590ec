"""Names of secrets are recognised; names of counts, settings and ordinary words are not among them."""

from __future__ import annotations

import pytest

from grace_kp.trace.redaction._names import is_count_name, is_secret_name, names_number, plain_name


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_password",
        "dbPassword",
        "apiKey",
        "x-api-key",
        "AWS_SECRET_ACCESS_KEY",
        "パスワード",
        "密码",
        "--token",
        "userPin",
        "b'authorization'",
    ],
)
def test_names_of_secrets(name):
    """In the spellings of programs, headers, environments, options and languages."""
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens",
        "token_type",
        "tokenizer",
        "compass",
        "password_policy",
        "has_password",
        "nextPageToken",
        "primary_key",
        "pinned",
        "",
        "x",
        "p" * 81,
        None,
        5,
    ],
)
def test_names_of_other_values(name):
    """Counts, settings about secrets, words that contain one, and keys that are no text."""
    assert not is_secret_name(name)


@pytest.mark.parametrize(("name", "counts"), [("max_tokens", True), ("nextPageToken", True), ("token", False)])
def test_names_of_counts_and_pages(name, counts):
    """They hold the word "token" and no secret."""
    assert counts is is_count_name(name)


@pytest.mark.parametrize(
    ("name", "secret"), [("pin", True), ("cardNumber", True), ("password", True), ("token", False)]
)
def test_names_under_which_a_number_is_a_secret(name, secret):
    """A PIN, a card, a password of digits; the number of a token is a count."""
    assert secret is names_number(name)


def test_quotes_and_the_prefix_of_bytes_are_no_part_of_a_name():
    """Keys that were bytes, or were quoted twice."""
    names = ("b'authorization'", ' "token" ', "plain")
    assert ["authorization", "token", "plain"] == [plain_name(name) for name in names]
