"""Secrets go at every level, identifiers from `aggregated` on, ordinary text stays; golden vectors set the least."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.trace import Redaction, cut, redact, redact_text
from grace_kp.trace.redaction._scan import MAX_CHARACTERS, UNSCANNED_MARK, Scan
from grace_kp.trace.redaction._vendors import FORMATS
from tests.trace.redaction.corpus import FRAGMENTS, IDENTIFIER_FORMS, SECRET_FORMS
from tests.trace.redaction.corpus import IDENTIFIERS as NUMBERS

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
|e-mail me|phone home|12.5 s|3.14159|code XX12 ABCD EFGH IJKL MNOP|$ 26.3B|10,000|step_id: 3|session: 12|connection: 3|cookie cutter|Basic English|disk-based""".replace(
    "\n", " "
)


@pytest.mark.parametrize(
    "text",
    [
        *(item.strip() for item in ORDINARY.split("|")),
        "the bearer certificate is here",
        "kp_domain_setting = 3",
        "Token::Type",
        "x[::2] and a::b1",
        "ASIAPACIFICREGION2026X",
        "def f(token: str, password: str) -> None",
        "Chrome/120.0.0.0 Safari",
        "cookie: chocolate",
        "https://example.com/home/page1 and app/home/page.tsx",
        "on 2026-11-20, order 123456-7890, sizes 128 256 1024",
        # Counts, keys of tables, types, abbreviations, and the words of a mark.
        "nextPageToken: abc123def456",
        "max_tokens=512",
        "primary_key=Ab1Cd2Ef3Gh4Ij5K",
        "password: str",
        "password=None",
        "token=abc…",
        "[REDACTED:api_key]: x1y2z3q",
        # Placeholders and ordinary words.
        "https://user:${PASS}@h/x",
        "Basic English",
        "https://h/x?sig=plainwordshere",
        # Examples of equal characters, words that continue, and words of the same shape.
        "AKIAxxxxxxxxxxxx",
        "npm_aaaaaaaaaaaaaaaaaaaa",
        "xghp_abcdefghij0123456789",
        # Ports, users without a password, hashes and explanations.
        "curl -u bob https://x",
        "docker run -p 8080:80 nginx",
        "find . -name mysql -print",
        "The password must be at least 8 characters",
        "0123456789abcdef0123456789abcdef01234567",
        "net use is a command",
    ],
)
def test_ordinary_text_does_not_suffer(text):
    """Text that only looks like a secret, or like the name or the context of one, stays the same object."""
    assert Redaction(text, {}) == redact(text, "aggregated")
    assert redact_text(text, identifiers=True) is text


@given(st.lists(FRAGMENTS | st.text(max_size=8), max_size=8).map("".join))
def test_redaction_is_idempotent(text):
    for level in ("private", "aggregated"):
        once = redact(text, level).text
        assert Redaction(once, {}) == redact(once, level)


def test_bad_arguments_are_refused():
    """Only texts, only known levels."""
    with pytest.raises(ValueError, match="secret"):
        redact("x", "secret")
    with pytest.raises(TypeError, match="int"):
        redact(5)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
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

    growing = Growing()
    monkeypatch.setattr("grace_kp.trace.redaction._scan._ORDER", {growing: 0})
    monkeypatch.setattr(Scan, "rules", lambda self, text: [growing])
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
        ("アドレスは2001:db8::1です", "2001"),
        ("パスは/home/山田/メモです", "山田"),
        ("/mnt/c/Users/bob/x", "bob"),
        ("C:\\Users\\John Smith\\doc.txt", "Smith"),
        ("a" * 200 + "@example.com", "example"),
        ("+15550101234 555-010-4567", "0101234"),
    ],
)
def test_identifiers_go_beside_anything(text, gone):
    """Japanese has no blanks between words; a number may follow a number."""
    assert gone in text
    assert gone not in redact(text, "aggregated").text


@pytest.mark.parametrize(("text", "kind"), NUMBERS)
def test_numbers_with_check_digits_are_identifiers(text, kind):
    """Card numbers, IBANs and social security numbers stay at `private` and go at the other levels."""
    assert Redaction(f"pay {text} now", {}) == redact(f"pay {text} now", "private")
    assert Redaction(f"pay [REDACTED:{kind}] now", {kind: 1}) == redact(f"pay {text} now", "aggregated")


@pytest.mark.parametrize(("text", "kind"), [item for item in NUMBERS if item[1] != "ssn"])
def test_a_wrong_check_digit_is_no_identifier(text, kind):
    """One digit more or less, and it is an ordinary number."""
    wrong = text[:-1] + str((int(text[-1]) + 1) % 10)
    assert kind not in redact(f"pay {wrong} now", "aggregated").counts


MARK = "[REDACTED:password]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Names.
        ("password=hunter2x", "password=[REDACTED:password]"),
        ("password: hunter2x, user: bob", "password: [REDACTED:password], user: bob"),
        ('{"apiKey": "x1y2z3q"}', '{"apiKey": [REDACTED:password]}'),
        ("encryption.key=Ab1Cd2Ef3Gh4Ij5K", "encryption.key=[REDACTED:password]"),
        ("密码：x1y2z3q", "密码：[REDACTED:password]"),
        # Patterns.
        ("postgres://u:p4ssw0rd@db/app", "[REDACTED:connection_string]"),
        ("Server=db;User Id=sa;Password=abc123xyz;", "[REDACTED:connection_string]"),
        ("Authorization: Bearer abcdef1234567890", "Authorization: Bearer [REDACTED:bearer_token]"),
        ("Basic dXNlcjpwYXNzd29yZA==", "Basic [REDACTED:bearer_token]"),
        ("Cookie: a=1; session=abcdef123456", "Cookie: [REDACTED:password]"),
        ("https://h/x?sig=Ab1Cd2Ef3Gh4Ij5", "https://h/x?sig=[REDACTED:api_key]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "[REDACTED:api_key]"),
        # Formats of vendors.
        ("AKIAIOSFODNN7EXAMPLE", "[REDACTED:api_key]"),
        ("\\nghp_abcdefghij0123456789", "\\n[REDACTED:api_key]"),
        ("鍵はghp_abcdefghij0123456789です", "鍵は[REDACTED:api_key]です"),
        ("glpat-abcdefghij1234567890 and more", "[REDACTED:api_key] and more"),
        ("token=gkp_yZ3k-9aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789_A.", "token=[REDACTED:api_key]."),
        # Commands, files and sentences.
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
        # Tables.
        ("user,password,city\nana,x1y2z3q,Rome\n", f"user,password,city\nana,{MARK},Rome\n"),
        ('"user";"password"\r\n"ana";"x1;y2z3q"\r\n', f'"user";"password"\r\n"ana";{MARK}\r\n'),
        ("| user | password |\n|--|--|\n| ana | `x1y2z3q` |\n", f"| user | password |\n|--|--|\n| ana | {MARK} |\n"),
        ("| Field | Value |\n|--|--|\n| password | winter |", f"| Field | Value |\n|--|--|\n| password | {MARK} |"),
        (
            " user | password\n------+----\n ana  | x1y2z3q\n(1 row)",
            f" user | password\n------+----\n ana  | {MARK}\n(1 row)",
        ),
        ("<th>password</th></tr><tr><td>x1y2z3q</td>", f"<th>password</th></tr><tr><td>{MARK}</td>"),
        (
            "INSERT INTO t (a, password) VALUES (1, 'x1'), (2, NULL)",
            f"INSERT INTO t (a, password) VALUES (1, {MARK}), (2, NULL)",
        ),
        ("|===\n|User |Password\n|ana |x1y2z3q\n|===", f"|===\n|User |Password\n|ana |{MARK}\n|==="),
        ("|| User || Password ||\n| ana | x1y2z3q |", f"|| User || Password ||\n| ana | {MARK} |"),
        ("│ user ┆ password │\n│ ana  ┆ x1y2z3q  │", f"│ user ┆ password │\n│ ana  ┆ {MARK}  │"),
        ("id,token\n1,Qk9/FQaAMPDHAf+qG47KDQ==\n", f"id,token\n1,{MARK}\n"),
        ('{"out": "user,password\\nana,x1y2z3q\\n", "n": 1}', f'{{"out": "user,password\\nana,{MARK}\\n", "n": 1}}'),
        # Groups and labels.
        ("password: |\n  x1y2\n  z3q4\nuser: ana\n", f"password: |\n  {MARK}\nuser: ana\n"),
        ('password = (\n  "x1y2"\n  "z3q4"\n)', f"password = (\n  {MARK}\n  {MARK}\n)"),
        ("secrets:\n  db: x1y2z3q\n  type: kv\nversion: 3", f"secrets:\n  db: {MARK}\n  type: kv\nversion: 3"),
        (
            "[secrets]\ndb = 'x1y2z3q'\n\n[other]\ndb = 'x1y2z3q'\n",
            f"[secrets]\ndb = {MARK}\n\n[other]\ndb = 'x1y2z3q'\n",
        ),
        ("Passwords:\n    ana    x1y2z3q\n    bob    q3z2y1x", f"Passwords:\n    ana    {MARK}\n    bob    {MARK}"),
        ("### Api keys\n\n- ana: x1y2z3q\n", f"### Api keys\n\n- ana: {MARK}\n"),
        ("<passwords>\n<a>x1y2z3q</a>\n</passwords>", f"<passwords>\n<a>{MARK}</a>\n</passwords>"),
        (
            "<h3>Passwords</h3>\n<ul>\n<li>ana: x1y2z3q</li></ul>",
            f"<h3>Passwords</h3>\n<ul>\n<li>ana: {MARK}</li></ul>",
        ),
        ("<key>password</key>\n<string>red winter sky</string>", f"<key>password</key>\n<string>{MARK}</string>"),
        ("$ echo $DB_PASSWORD\nx1y2z3q\n$ ls", f"$ echo $DB_PASSWORD\n{MARK}\n$ ls"),
        ("ana: the password?\n[10:03] bob: x1y2z3q\n", f"ana: the password?\n[10:03] bob: {MARK}\n"),
        ("What is the password? It's x1y2z3q.", f"What is the password? It's {MARK}."),
        ("PASSWORD=$(cat <<EOF\nx1y2\nz3q4\nEOF\n)", f"PASSWORD=$(cat <<EOF\n{MARK}\nEOF\n)"),
        ("passwords:\n- x1y2z3q\n- z9y8x7w\nuser: ana", f"passwords:\n- {MARK}\n- {MARK}\nuser: ana"),
    ],
    ids=str,
)
def test_secrets_go(text, expected):
    """The text around them stays: other cells and borders, names, and whatever describes or follows a group."""
    assert expected == redact(text, "private").text


def test_every_format_is_found_by_its_own_needles():
    """The pure scan looks for these texts in lower case first, so a format without any would never be tried."""
    assert [] == [row.pattern for row in FORMATS if not row.needs or row.needs != row.needs.lower()]
