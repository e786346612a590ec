"""A rule replaces its matches; together the rules remove secrets by format, name, context, column and group, and nothing else."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from grace_kp.trace import redact
from grace_kp.trace.redaction._places import is_secret_cell, secret_cells, secret_parameters, unescape
from grace_kp.trace.redaction._rule import RedactionRule, lower, places_of
from grace_kp.trace.redaction._vendors import BUSINESS, CLOUDS, DEVELOPMENT, MODELS

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


@pytest.mark.parametrize(
    "text",
    [
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
        "the bearer certificate is here",
        "Basic English",
        "https://h/x?sig=plainwordshere",
        "cookie: chocolate",
        # Examples of equal characters, words that continue, and words of the same shape.
        "AKIAxxxxxxxxxxxx",
        "npm_aaaaaaaaaaaaaaaaaaaa",
        "xghp_abcdefghij0123456789",
        "sk-learn-compatible-estimators",
        # Ports, users without a password, hashes and explanations.
        "curl -u bob https://x",
        "docker run -p 8080:80 nginx",
        "find . -name mysql -print",
        "The password must be at least 8 characters",
        "0123456789abcdef0123456789abcdef01234567",
        "net use is a command",
    ],
)
def test_harmless_text_stays(text):
    """Text that only looks like the name, the format or the context of a secret."""
    assert text == redact(text, "private").text


def test_a_text_without_a_match_is_the_same_object():
    """Nothing is copied where nothing is removed."""
    text = "an ordinary text"
    assert text is RedactionRule("api_key", "X", r"x-\d+").sub(text, None)


def test_matches_are_replaced_and_counted_by_type():
    """From left to right."""
    counts = Counter()
    assert "[REDACTED:api_key] and [REDACTED:api_key]" == RedactionRule("api_key", "X", r"x-\d+").sub(
        "x-1 and x-22", counts
    )
    assert {"api_key": 2} == counts


def test_a_replacement_may_leave_a_match():
    """It sees the match and returns None, or its own text."""
    rule = RedactionRule("pin", "X", r"\d+", replacement=lambda match: None if len(match[0]) < 4 else "####")
    assert "12 ####" == rule.sub("12 1234", None)


def test_a_rule_that_begins_with_its_needs_visits_these_places_only():
    """A match that begins elsewhere does not count; capitals do not matter."""
    rule = RedactionRule("password", "X", r"(?:pin|no)=\d+", needs=("pin",), begins=True, flags=re.IGNORECASE)
    assert "no=1 [REDACTED:password]" == rule.sub("no=1 PIN=2", None)


def test_lower_case_keeps_every_place():
    """One capital letter of Turkish would become two characters."""
    assert "ix" == lower("İX")


def test_places_are_those_of_all_needles_in_order():
    """Overlapping ones included, each place once."""
    assert [0, 1, 2, 5] == places_of(("aa", "a", "ab"), "aaab_ab")


def test_every_format_is_found_by_its_own_needles():
    """The pure scan looks for these texts in lower case first, so a format without any would never be tried."""
    rows = [row for rows in (CLOUDS, DEVELOPMENT, MODELS, BUSINESS) for row in rows]
    assert [] == [row.pattern for row in rows if not row.needs or row.needs != row.needs.lower()]


@pytest.mark.parametrize(
    ("names", "row", "places"),
    [
        (["user", "password"], ["ana", "winter"], [1]),
        (["test", "pass", "fail"], ["unit", "hunter2x", "3"], []),
        (["Field", "Value"], ["password", "winter"], [1]),
        (["Field", "Type"], ["password", "varchar(255)"], []),
        (["user", "password"], ["ana"], []),
    ],
)
def test_columns_and_labels_name_cells(names, row, places):
    """Columns of counts and types, and short rows, hold no secrets."""
    assert places == list(secret_cells(names, row))


def test_an_ambiguous_name_needs_a_value_that_looks_like_a_secret():
    """`token` names words of a text, too."""
    values = ("winter", "zQ8xW2vL9pT4")
    assert [False, True] == [is_secret_cell("token", value, clear=True) for value in values]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INSERT INTO t (a, password) VALUES (?, ?)", {1: "password"}),
        ("UPDATE t SET password = $1 WHERE id = $2", {0: "password"}),
        ("UPDATE t SET password = %(new)s", {"new": "password"}),
        ("SELECT password FROM t WHERE name = ?", {}),
        ("no statement with password = ?", {}),
    ],
)
def test_parameters_belong_to_their_columns(sql, expected):
    """By place, number or name."""
    assert expected == secret_parameters(sql)


def test_escaped_text_keeps_every_place():
    """Escapes become the characters that they stand for, after blanks."""
    text = '{"a": "x,y\\n\\"1\\",2"}'
    plain = unescape(text)
    assert len(text) == len(plain)
    assert ["x,y ", ' "1 ",2'] == plain.splitlines()[3:5]
