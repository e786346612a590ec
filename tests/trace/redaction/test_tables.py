"""The header of a column or the label of a row makes a cell a secret."""

from __future__ import annotations

import pytest

from grace_kp.trace import redact
from grace_kp.trace.redaction._places import is_secret_cell, secret_cells, secret_parameters, unescaped

MARK = "[REDACTED:password]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
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
    ],
    ids=str,
)
def test_a_cell_below_the_name_of_a_secret_goes(text, expected):
    """With its quotes; the other cells and the borders stay."""
    assert expected == redact(text, "private").text


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
    plain = unescaped(text)
    assert len(text) == len(plain)
    assert ["x,y ", ' "1 ",2'] == plain.splitlines()[3:5]
