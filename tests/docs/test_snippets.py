"""Every Python block of the documentation runs, page by page, in the order in which it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_snippets_of_a_page_run(page, tmp_path):
    """A fresh interpreter, an empty folder, warnings as errors: what a reader would do."""
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(BLOCK.findall(page.read_text(encoding="utf-8"))), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GRACE_KP_STRICT_RECORDING": "1"}
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (0, "") == (ran.returncode, ran.stderr), ran.stdout + ran.stderr


def test_the_reference_names_everything_public():
    """No public name without a place in the reference."""
    import grace_kp

    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    missing = [name for name in grace_kp.__all__ if not re.search(rf"\b{name}\b", text) and name != "__version__"]
    assert missing == []
