"""A value after the name of a secret stays if it is code, a placeholder or a word of explanation."""

from __future__ import annotations

import pytest

from grace_kp.trace.redaction._names import changes, is_harmless, looks_random

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
