"""Names of secrets are recognised, and a value after one stays if it is code, a placeholder or a word of explanation."""

from __future__ import annotations

import pytest

from grace_kp.trace.redaction._names import (
    changes,
    is_count_name,
    is_harmless,
    is_secret_name,
    looks_random,
    names_number,
    plain_name,
)


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


STYLES = ("quoted", "tight", "spaced", "compare", "key")


@pytest.mark.parametrize(
    "value", ["", "${DB_PASSWORD}", "<your-token>", "********", "[REDACTED:password]", "{{ secret }}", "$12.50", "None"]
)
@pytest.mark.parametrize("style", STYLES)
def test_placeholders_are_harmless_in_every_style(value, style):
    """Empty values, variables, marks, prices."""
    assert is_harmless("password: ", value, style)


@pytest.mark.parametrize("value", ["hunter2xyz!", "Tr0ub4dor&3", "x1y2z3q4"])
@pytest.mark.parametrize("style", STYLES)
def test_passwords_are_secrets_in_every_style(value, style):
    """Letters, digits and marks in one word."""
    assert not is_harmless("password: ", value, style)


@pytest.mark.parametrize(
    ("name", "value", "style", "harmless"),
    [
        ("password = ", "config.password", "spaced", True),
        ("password = ", "get_password(user)", "spaced", True),
        ("password: ", "str", "spaced", True),
        ("password=", "enabled", "tight", False),
        ("password: ", "enabled", "spaced", True),
        ("token == ", "other", "compare", True),
        ("token == ", "a1b2", "compare", False),
        ("tokens: ", "1,024", "spaced", True),
        ("authorization: ", "bearer", "spaced", True),
        ("key_file=", "/etc/ssl/private.pem", "tight", True),
        ("PWD=", "/home/ana", "tight", True),
        ("password", "password must be at least 8 characters", "quoted", True),
        ("api_key", "sk-...", "quoted", True),
    ],
)
def test_the_style_decides_ambiguous_values(name, value, style, harmless):
    """An ordinary word may be a password right behind `=`, and is an explanation after `: `."""
    assert harmless is is_harmless(name, value, style)


@pytest.mark.parametrize(
    ("text", "count", "random"),
    [
        ("aB3dE6gH9jK2mN5p", 15, True),
        ("an_ordinary_identifier", 0, False),
        ("SentenceCaseWordsHere", 3, False),
        ("ab12", 1, False),
    ],
)
def test_generated_texts_change_their_kind_of_character_often(text, count, random):
    """Words and names change it rarely; a text of few characters says nothing."""
    assert (count, random) == (changes(text), looks_random(text))
