"""Secrets in commands, configuration files and sentences go; the command stays readable."""

from __future__ import annotations

import pytest

from grace_kp.trace import redact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("curl -u bob:hunter2x https://x", "curl -u [REDACTED:password] https://x"),
        ("mysql -u root -phunter2x db", "mysql -u root -p[REDACTED:password] db"),
        ("sshpass -p hunter2x ssh h", "sshpass -p [REDACTED:password] ssh h"),
        ("docker login -p hunter2x", "docker login -p [REDACTED:password]"),
        ("run --db-password hunter2x now", "run --db-password [REDACTED:password] now"),
        ("echo hunter2x | sudo -S ls", "echo [REDACTED:password] | sudo -S ls"),
        ("machine h login b password hunter2x", "machine h login b password [REDACTED:password]"),
        ("<password>hunter2x</password>", "<password>[REDACTED:password]</password>"),
        ("my password is hunter2x, thanks", "my password is [REDACTED:password], thanks"),
        ("use hunter2x as the password", "use [REDACTED:password] as the password"),
    ],
)
def test_secrets_go(text, expected):
    """The text around them stays."""
    assert expected == redact(text, "private").text


@pytest.mark.parametrize(
    "text",
    [
        "curl -u bob https://x",
        "docker run -p 8080:80 nginx",
        "find . -name mysql -print",
        "The password must be at least 8 characters",
        "0123456789abcdef0123456789abcdef01234567",
        "net use is a command",
    ],
)
def test_harmless_text_stays(text):
    """A path, a port, a user without a password, a hash and an explanation stay."""
    assert text == redact(text, "private").text
