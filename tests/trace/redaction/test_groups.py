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
        ("What is the password? It's x1y2z3q.", f"What is the password? It's {MARK}."),
        ("PASSWORD=$(cat <<EOF\nx1y2\nz3q4\nEOF\n)", f"PASSWORD=$(cat <<EOF\n{MARK}\nEOF\n)"),
        ("passwords:\n- x1y2z3q\n- z9y8x7w\nuser: ana", f"passwords:\n- {MARK}\n- {MARK}\nuser: ana"),
    ],
    ids=str,
)
def test_values_of_a_group_go(text, expected):
    """All their lines go; what describes a group, and what follows it, stays."""
    assert expected == redact(text, "private").text
