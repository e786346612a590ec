"""The name of a group, of the lines above or of a label makes a value a secret."""

from __future__ import annotations

import pytest

from grace_kp.trace import redact

MARK = "[REDACTED:password]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
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
def test_values_of_a_group_go(text, expected):
    """All their lines go; what describes a group, and what follows it, stays."""
    assert expected == redact(text, "private").text
