"""The JSON case in the documentation of scorers is one that `grace-kp eval` takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from grace_kp import scorers as sc
from grace_kp.scorers import read_cases

ROOT = Path(__file__).resolve().parents[2]


def test_the_case_on_the_page_is_read_and_passes(tmp_path):
    """In one line, as the page says."""
    page = (ROOT / "docs" / "how-to" / "score-outputs.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```json\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "cases.jsonl").write_text(json.dumps(json.loads(block)) + "\n", encoding="utf-8")
    [case] = read_cases(tmp_path / "cases.jsonl")
    assert "correct the total" == case.id
    for preset in ("standard", "strict", "operation-focused"):
        assert sc.Suite.preset(preset).evaluate(case.actual, case.expected).passed
