"""Secrets go at every level, identifiers from `aggregated` on, ordinary text stays; golden vectors set the least."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.trace import Redaction, cut, redact, redact_text
from grace_kp.trace.redaction._patterns import IDENTIFIERS
from grace_kp.trace.redaction._scan import MAX_CHARACTERS, SECRETS, UNSCANNED_MARK, Scan
from tests.trace.redaction.corpus import FRAGMENTS, SECRET_FORMS

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "pii.jsonl.gz"


def test_golden_vectors():
    """Cleaned text and counts, to the letter."""
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        counts = {item["type"]: item["count"] for item in row["expected"]["redactions"]}
        assert Redaction(row["expected"]["cleaned"], counts) == redact(row["text"], row["level"]), row


@pytest.mark.parametrize(("text", "secret"), SECRET_FORMS)
@pytest.mark.parametrize("level", ["private", "aggregated", "federated"])
@pytest.mark.parametrize("around", ["{}", "before {} after", "({})", "前 {} 後", "x\n{}\ny"])
def test_secrets_go_at_every_level(text, secret, level, around):
    """Wherever a secret stands, nothing of it is left, and a second pass finds nothing."""
    cleaned = redact(around.format(text), level)
    assert secret not in cleaned.text
    assert cleaned.counts
    assert Redaction(cleaned.text, {}) == redact(cleaned.text, level)


ORDINARY = """token: 512|tokens: 1024|max_tokens=512|"max_tokens": 100|task-force and risk-based desk-top|password must be at least 8
characters|reset your password|12:30:45|1:2:3|std::vector<int> a::b|std::cout|order 12345-6789|2026-11-20T12:00:00Z|2026-11-20|version 1.2.3
is out|monkey: banana|secretary: Bob|tokenizer: fast|Author: Bob|key: value|the token is missing|Bearer token required|4111-1111-1111-1112
|uuid 123e4567-e89b-12d3-a456-426614174000|compass: north|passage: the second|a keyboard|turkey=bird|see https://example.com/a?b=c
|reservation JG7FMM|flight HAT045|sha256:abcdef|x = y:z|ratio 3:4|C:\\Windows\\system32|/usr/bin/env|/var/log/syslog|home/|users
|token: none|password: null|secret=true|api_key=<your_key>|password: ****|test-sk-short|東京の天気は晴れです。|100% sure|a@b|@decorator
|e-mail me|phone home|12.5 s|3.14159|$ 26.3B|10,000|step_id: 3|session: 12|connection: 3|cookie cutter|Basic English|disk-based""".replace(
    "\n", " "
)


@pytest.mark.parametrize("text", [item.strip() for item in ORDINARY.split("|")])
def test_ordinary_text_does_not_suffer(text):
    """Figures, words and names that only look a little like secrets stay."""
    assert Redaction(text, {}) == redact(text, "aggregated")
    assert redact_text(text, identifiers=True) is text


SCAN = Scan(identifiers=True)


@given(st.lists(FRAGMENTS | st.text(max_size=8), max_size=8).map("".join))
def test_redaction_is_idempotent_and_the_scan_is_complete(text):
    """Twice is as once; and a rule that the scan leaves out changes nothing."""
    for level in ("private", "aggregated"):
        once = redact(text, level).text
        assert Redaction(once, {}) == redact(once, level)
    kept = {id(rule) for rule in SCAN.rules(text)}
    for rule in SECRETS + IDENTIFIERS:
        assert id(rule) in kept or rule.sub(text, None) == text, rule.vendor


def test_bad_arguments_are_refused():
    """Only texts, only known levels."""
    with pytest.raises(ValueError, match="secret"):
        redact("x", "secret")
    with pytest.raises(TypeError, match="int"):
        redact(5)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("Cookie: a=1; session=abcdef123456", "abcdef123456"),
        ("**Password:** hunter2secret", "hunter2secret"),
        ("password: “hunter2 secret”", "hunter2"),
        ("パスワード：「hunter2 secret」", "secret"),
        ('password = """hunter2\nsecret"""', "secret"),
        ("password=P[ssw0rd12345", "ssw0rd12345"),
        ("password=abc,def-ghi-jkl", "def-ghi-jkl"),
        ('api_key=b"hunter2secret"', "hunter2secret"),
        ("password=SecretStr('hunter2secret')", "hunter2secret"),
        ('password=("hunter2secret")', "hunter2secret"),
        ("password: |\n  hunter2secret", "hunter2secret"),
        ("<db:password>hunter2secret</db:password>", "hunter2secret"),
        ("run --db-password hunter2secret now", "hunter2secret"),
        ('os.environ["API_KEY"] = "hunter2secret"', "hunter2secret"),
        ('if password == "hunter2secret"', "hunter2secret"),
        ('password: str = "hunter2secret"', "hunter2secret"),
        ("password: 12345678", "12345678"),
        ("password: 4711", "4711"),
        ('"passwords": ["hunter2secret", "another1"]', "another1"),
        ("-----BEGIN RSA PRIVATE KEY-----\n" + "QUJD" * 8_000, "QUJD"),
        ("postgresql://me:p)w]x@db.example.test/app", "x@db"),
    ],
)
def test_secrets_go_in_the_ways_people_and_programs_write_them(text, gone):
    """Quotes of all kinds, indexes, types, blocks, options of a command, lists."""
    assert gone in text
    assert gone not in redact(text, "private").text


@pytest.mark.parametrize(
    "text",
    [
        "the bearer certificate is here",
        "bearer authentication",
        "kp_domain_setting = 3",
        "sk-learn-compatible-estimators",
        "Token::Type",
        "x[::2] and a::b1",
        "ASIAPACIFICREGION2026X",
        "def f(token: str, password: str) -> None",
        "Chrome/120.0.0.0 Safari",
        "pad_token: [PAD]",
        "Token: 1,024",
        "cookie: chocolate",
        "https://example.com/home/page1 and app/home/page.tsx",
        "on 2026-11-20, order 123456-7890, sizes 128 256 1024",
    ],
)
def test_text_that_only_looks_alike_stays(text):
    """What is redacted for nothing is missing in the trace."""
    assert Redaction(text, {}) == redact(text, "federated")


def test_a_mark_is_no_name_of_a_secret():
    """The words "key" and "password" in a mark say nothing of what follows it."""
    text = "[REDACTED:api_key]: harmless1value, [REDACTED:password] = other1value"
    assert text == redact(text, "private").text


def test_a_text_beyond_the_budget_loses_its_rest(monkeypatch):
    """The rest is removed as a whole, counted, and not scanned again."""
    monkeypatch.setattr("grace_kp.trace.redaction._scan.MAX_CHARACTERS", 40)
    text = "first words and a password=hunter2secret " + "more words " * 20
    cleaned = redact(text, "private")
    assert f"first words and a {UNSCANNED_MARK}" == cleaned.text
    assert {"unscanned": 1} == cleaned.counts
    assert cleaned.text == redact(cleaned.text, "private").text
    assert MAX_CHARACTERS >= 1_000_000


def test_rules_that_never_settle_lose_the_rest(monkeypatch):
    """A text that still changes after the last pass keeps what comes before the change."""

    class Growing:
        def sub(self, text, counts):
            return text.replace("x!", "xx!", 1) if len(text) < 500 else text

    monkeypatch.setattr(
        "grace_kp.trace.redaction._scan.candidates",
        lambda text, *, identifiers, after=None: [] if after else [Growing()],
    )
    assert f"some words {UNSCANNED_MARK}" == redact_text("some words ax! and others", identifiers=False)


@pytest.mark.parametrize("before", ["鍵は", "a|", "say(", "word "])
def test_a_cut_leaves_no_half_of_a_key(before):
    """A long text is cut before it is redacted. A key at the cut goes as a whole, whatever script stands before it."""
    text = (before * 200)[:390] + before[-1] + "ghp_" + "abcdefghij0123456789ABCD" + "z" * 100
    assert "ghp_" not in redact(cut(text, 400), "private").text


def test_a_cut_behind_a_short_password_does_not_make_it_an_abbreviation():
    """`password=abc…` of somebody else is harmless; the mark of a cut is none of theirs."""
    text = "word " * 70 + "password=hunter2" + "secr " + "z" * 500
    assert "hunter2" not in redact(cut(text, 400), "private").text
