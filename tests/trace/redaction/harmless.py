"""Texts and JSON values without a secret, of the kinds that agents read and write.

The texts stand in a file beside this one, one a line: code, configuration, logs, prose, names and hashes.
"""

from __future__ import annotations

from pathlib import Path

HARMLESS = [
    text.replace("TMP/", "/" + "tmp/")
    for text in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
]

# Structures: keys that look like those of secrets, and values under such keys that are none.
HARMLESS_VALUES = [
    {"max_tokens": 512, "total_tokens": 1024, "token_count": 7, "tokens": 12},
    {"token": 512, "tokens_per_second": 88.5},
    {"usage": {"prompt_tokens": 120, "completion_tokens": 80, "cached_tokens": 0}},
    {"token_type": "bearer", "tokenizer": "cl100k_base", "tokenization": "wordpiece"},
    {"password": None, "secret": "", "token": False},
    {"password": "string", "token": "str", "api_key": "required"},
    {"password": "${DB_PASSWORD}", "token": "<your-token>", "secret": "********"},
    {"password_policy": "strict", "password_min_length": 8, "password_changed": "2026-11-20"},
    {"has_password": True, "requires_token": "yes", "forgot_password_url": "https://example.com/reset"},
    {"author": "Bob", "authority": "root", "authenticated": True, "auth_method": "oauth"},
    {"passenger": "Ana Lopez", "passengers": 2, "passport_required": True, "compass": "north"},
    {"keyboard": "us", "key": "value", "primary_key": "id", "keywords": ["a", "b"]},
    {"pinned": True, "spin": 3, "mapping": {"a": "b"}, "shipping": "express"},
    {"secretary": "Ms Smith", "secret_santa": "Bob", "secretName": "tls-cert"},
    {"next_page_token": "CAUQAA", "page_token": "abc", "pad_token": "[PAD]"},
    {"session": "morning", "sessions": 3, "cookie_consent": "accepted"},
    {"name": "username", "value": "ana"},
    {"name": "password", "type": "string", "required": True},
    {"fields": ["username", "password"]},
    ["password", "email"],
    ["mysql", "-u", "root", "-p"],
    ["docker", "run", "-p", "8080:80", "nginx"],
    ["git", "log", "-p", "HEAD"],
    ["curl", "-u", "ana", "https://example.com"],
    ["--token-file", "/run/secrets/token"],
    {"type": "object", "properties": {"password": {"type": "string"}, "token": {"type": "string"}}},
    {"description": "The password of the user", "token": "The token of the session"},
    {"card": "ace of spades", "cards": 52, "card_type": "visa"},
    {"pin_count": 8, "pin": "5"},
    {"status": "token expired", "error": "invalid password"},
]
