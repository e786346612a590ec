"""Secrets of logins."""

from __future__ import annotations

import base64

from grace_kp.web.security._token import csrf_of, hash_of, is_same, new_secret, new_token


def test_a_token_has_256_random_bits_after_its_prefix():
    """People and scanners recognise the prefix, and no two tokens are equal."""
    tokens = {new_token() for _ in range(100)}
    assert 100 == len(tokens)
    for token in tokens:
        prefix, _, rest = token.partition("_")
        assert "gkp" == prefix
        assert 32 == len(base64.urlsafe_b64decode(rest + "="))


def test_a_hash_is_that_of_the_text():
    """SHA-256 in hexadecimal digits; texts that UTF-8 cannot hold have one, too."""
    assert "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" == hash_of("hello")
    assert 64 == len(hash_of("\ud800"))


def test_the_token_of_forms_depends_on_the_session_and_the_name():
    """Another session, or another person of the same key, has another one."""
    secret = new_secret()
    assert csrf_of(secret) == csrf_of(secret)
    assert 4 == len({csrf_of(secret), csrf_of(new_secret()), csrf_of(secret, "ana"), csrf_of(secret, "ben")})


def test_texts_are_compared_whatever_they_hold():
    """Letters beyond ASCII are compared, not refused."""
    assert is_same("é", "é")
    assert not is_same("é", "e")
    assert not is_same("", "e")
