"""Secrets go at every level, identifiers from `aggregated` on, ordinary text stays; golden vectors set the least."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.trace import Redaction, redact
from grace_kp.trace._identifiers import IDENTIFIERS
from grace_kp.trace._redact import redact_text, redact_value
from grace_kp.trace._scan import SECRETS, compiled_scan, pure_scan

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "pii.jsonl.gz"


def test_golden_vectors():
    """Cleaned text and counts, to the letter."""
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        counts = {item["type"]: item["count"] for item in row["expected"]["redactions"]}
        assert Redaction(row["expected"]["cleaned"], counts) == redact(row["text"], row["level"]), row


SECRET_FORMS = [
    ('{"password": "x1y2z3q"}', "x1y2z3q"),
    ('{\\"password\\": \\"x1y2z3q\\"}', "x1y2z3q"),
    ("db_password=hunter2secret", "hunter2secret"),
    ("client_secret=abc123def", "abc123def"),
    ("refresh_token=zzz111yyy", "zzz111yyy"),
    ("api-key: qwe123rty", "qwe123rty"),
    ("X-API-Key: qwe123rty", "qwe123rty"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "wJalrXUtnFEMI"),
    ("password=don't-tell-anyone", "tell-anyone"),
    ('password: "it\'s me inside"', "me inside"),
    ("password: 'it's me inside'", "me inside"),
    ("sk-proj-abcDEF123456_789-xyz", "abcDEF123456"),
    ("sk-ant-api03-abcDEF123456_789-xyz", "abcDEF123456"),
    ("github_pat_11ABCDEFG0123456789_abcdef", "11ABCDEFG"),
    ("ghu_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c"),
    ("ghr_1B4a2e77838347a7E420ce178F2E7c6912E169246c34", "1B4a2e77838347"),
    ("gho_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c"),
    ("authorization: bearer abcdef1234567890", "abcdef1234567890"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNz"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdef\n-----END RSA PRIVATE KEY-----", "MIIEabcdef"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA", "b3BlbnNzaA"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_X", "dozjgNryP4J3"),
    ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    ("AIzaSyD-1234567890abcdefghijklmnopqrstu", "1234567890abc"),
    ("xoxb-1234567890-abcdefghij", "abcdefghij"),
    ("glpat-abcdefghij1234567890", "abcdefghij"),
    ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijkl"),
    ("hf_abcdefghijklmnopqrstuvwxyz01234567", "abcdefghijkl"),
    ("sk_live_abcdefghijklmnop", "abcdefghijkl"),
    ("https://user:pa55word9@example.com/x", "pa55word9"),
    ("postgres://u:p4ssw0rd@db/app", "p4ssw0rd"),
    ("Server=db;User Id=sa;Password=abc123xyz;", "abc123xyz"),
    ("https://x.example/?token=abc123def&x=1", "abc123def"),
    ("パスワード：ひみつ123です", "ひみつ123"),
]


@pytest.mark.parametrize(("text", "secret"), SECRET_FORMS)
@pytest.mark.parametrize("level", ["private", "aggregated", "federated"])
@pytest.mark.parametrize("around", ["{}", "before {} after", "({})", "前 {} 後", "x\n{}\ny"])
def test_secrets_go_at_every_level(text, secret, level, around):
    """Wherever a secret stands, nothing of it is left, and a second pass finds nothing."""
    cleaned = redact(around.format(text), level)
    assert secret not in cleaned.text
    assert cleaned.counts
    assert Redaction(cleaned.text, {}) == redact(cleaned.text, level)


IDENTIFIER_FORMS = [
    ("090-1234-5678", "phone"), ("+81-90-1234-5678", "phone"), ("03-1234-5678", "phone"), ("+1 (555) 010-1234", "phone"),
    ("2001:db8::1", "ip"), ("::1", "ip"), ("fe80::1%eth0", "ip"), ("2001:0db8:85a3:0000:0000:8a2e:0370:7334", "ip"),
    ("192.0.2.10", "ip"), ("/home/山田/秘密.txt", "filepath"), ("/Users/José/x.py", "filepath"), ("C:\\Users\\山田\\doc.txt", "filepath"),
    ("first.last+tag@mail.example.co.jp", "email"), ("4111-1111-1111-1111", "card"), ("GB82 WEST 1234 5698 7654 32", "iban"),
    ("536-90-4399", "ssn"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), IDENTIFIER_FORMS)
def test_identifiers_go_from_aggregated_on(text, kind):
    """Kept at `private`, gone at the other two."""
    assert Redaction(f"see {text} now", {}) == redact(f"see {text} now", "private")
    for level in ("aggregated", "federated"):
        assert Redaction(f"see [REDACTED:{kind}] now", {kind: 1}) == redact(f"see {text} now", level)


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


FRAGMENTS = st.sampled_from(
    [text for text, _ in SECRET_FORMS] + [text for text, _ in IDENTIFIER_FORMS]
    + ["password=", "token: ", '"', "'", "\\", "、", " ", "\n", ",", "[REDACTED:password]", "Bearer ", "://", "@", ":", "sk-", "eyJ", "日本"]
)  # fmt: skip


@given(st.lists(FRAGMENTS | st.text(max_size=8), max_size=8).map("".join))
def test_redaction_is_idempotent_and_both_scans_are_complete(text):
    """Twice is as once; and a rule that a scan leaves out changes nothing."""
    for level in ("private", "aggregated"):
        once = redact(text, level).text
        assert Redaction(once, {}) == redact(once, level)
    for scan in (pure_scan(True), compiled_scan(True)):
        kept = {id(rule) for rule in scan(text)}
        for rule in SECRETS + IDENTIFIERS:
            assert id(rule) in kept or rule.sub(text, None) == text, rule.vendor


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12) | FRAGMENTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["password", "apiKey", "q", "max_tokens"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON)
def test_values_keep_their_shape(value):
    """A JSON value stays one; numbers stay, and secrets under a telling key go."""
    cleaned = redact_value(value, identifiers=True)
    assert type(value) is type(cleaned)
    json.dumps(cleaned)
    assert cleaned == redact_value(cleaned, identifiers=True)
    wrapped = redact_value({"client_secret": {"inner": ["hunter2", 5]}, "token": 512, "ok": "fine"}, identifiers=False)
    assert {"client_secret": {"inner": ["[REDACTED:password]", 5]}, "token": 512, "ok": "fine"} == wrapped


def test_a_deep_value_needs_no_deep_stack():
    """Five thousand levels."""
    deep: object = "password=hunter2secret"
    for _ in range(5_000):
        deep = [deep]
    cleaned = redact_value(deep, identifiers=True)
    while isinstance(cleaned, list):
        cleaned = cleaned[0]
    assert "password=[REDACTED:password]" == cleaned


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


def test_keys_that_become_the_same_lose_no_value():
    """Two addresses as keys are two entries afterwards."""
    value = {"a@example.com": 1, "b@example.com": 2, "c@example.com": 3}
    assert [1, 2, 3] == sorted(redact_value(value, identifiers=True).values())
