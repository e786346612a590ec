"""What the examples and the pages of the documentation print, kept in `tests/vectors/printed.json`, and compared without what differs each time.

When a change is meant: `python tests/docs/printed.py` runs them all and keeps what they print now; the difference is for whoever reviews.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "tests" / "vectors" / "printed.json"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Ids, and folders of this run.
EACH_TIME = re.compile(
    r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{64}\b|/\S*/(?=two_prompts_)|two_prompts_\w+"
)
# Measured milliseconds, and the beginnings of ids, where a page prints them.
OF_PAGE = {
    "docs/how-to/judge.md": re.compile(r"(?<=latency_ms=)[\d.]+|(?<= 3 )\d+\.\d+$", re.MULTILINE),
    "examples/langgraph_agents.py": re.compile(r"\b[0-9a-f]{6}\b"),
    "examples/langgraph_resume.py": re.compile(r"\b[0-9a-f]{6}\b"),
    "examples/streaming.py": re.compile(r" +\d+\.\d{1,3}(?= )"),
}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def program_of(path):
    """The Python of a page or an example; empty if it has none."""
    text = path.read_text(encoding="utf-8")
    return text if path.suffix == ".py" else "\n\n".join(BLOCK.findall(text))


def ran(path, folder):
    """Run the Python of a page or an example in an empty folder, with warnings as errors, as a reader would."""
    script = folder / "page.py"
    script.write_text(program_of(path), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GRACE_KP_STRICT_RECORDING": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def comparable(name, text):
    """What is printed each time, as lines."""
    text = EACH_TIME.sub("…", text)
    return (OF_PAGE[name].sub("…", text) if name in OF_PAGE else text).splitlines()


def kept(name):
    """The lines that a page or an example is known to print."""
    return json.loads(KEPT.read_text(encoding="utf-8"))[name]


def main():
    found = {}
    for path in [*EXAMPLES, *PAGES]:
        if program_of(path):
            with tempfile.TemporaryDirectory() as folder:
                os.environ |= {"HOME": folder, "XDG_DATA_HOME": f"{folder}/data"}
                found[name_of(path)] = comparable(name_of(path), ran(path, Path(folder)).stdout)
    KEPT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
