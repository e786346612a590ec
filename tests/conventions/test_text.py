"""What must not stand in any text of this project, and that the links of its pages lead somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Written in pieces, so that this file passes its own test.
FOLDERS = "|".join(["work", "farm", "tmp", "root"])
MACHINE = re.compile(rf"(?<![\w.~*/-])/(?:{FOLDERS})/")
REGISTRY = re.compile(
    "|".join(["pythonhosted" + r"\.org", "pypi" + r"\.org/simple", "index" + "-url", "registry" + r"\.npmjs"])
)
# Data and tests in which such paths are what is tested. The list only gets shorter.
ABOUT_PATHS: dict[str, str] = {}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def tracked():
    """The files under version control and those about to be; without git, everything that is no cache."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [
            path for path in ROOT.rglob("*") if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
        ]
    return sorted(path for path in paths if path.is_file())


def texts():
    for path in tracked():
        data = path.read_bytes()
        if b"\0" not in data[:8_192] and path.suffix not in {".gz", ".png", ".db"}:
            yield path.relative_to(ROOT).as_posix(), data.decode("utf-8")


def places(pattern):
    return [
        f"{file}:{number}: {line.strip()[:120]}"
        for file, text in texts()
        if file not in ABOUT_PATHS
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_path_of_a_machine():
    """What was true on one machine only helps nobody on another."""
    assert [] == places(MACHINE)


def test_no_registry_is_named():
    """Where packages come from is for whoever installs them to say."""
    assert [] == places(REGISTRY)


def test_text_files_are_clean():
    """UTF-8, ended by one newline, without carriage returns and blanks at the ends of lines."""
    wrong = [
        file
        for file, text in texts()
        if text and not file.startswith("tests/vectors/") and file != "LICENSE"
        and (not text.endswith("\n") or text.endswith("\n\n") or "\r" in text or re.search(r"[ \t]$", text, re.MULTILINE))
    ]  # fmt: skip
    assert [] == wrong


def anchors(text):
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+\s+(.+?)\s*$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


PAGES = [ROOT / file for file, _ in texts() if file.endswith(".md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    """Every link to a file of the project, and to a heading in it, resolves."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lost = []
    for link in LINK.findall(text):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (anchor and anchor not in anchors(there.read_text(encoding="utf-8"))):
            lost.append(link)
    assert [] == lost


def test_files_that_the_guide_for_contributors_names_exist():
    """`record/_run` and `settings.py` are paths below grace_kp; a bare `_names` is beside the path before it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = {path.name for path in (ROOT / "grace_kp").iterdir() if path.is_dir()}
    named = [name for name in re.findall(r"`([a-z_]+(?:/\w+)+)(?:\.py)?`", text) if name.split("/")[0] in rooms]
    assert len(named) > 50
    below = ROOT / "grace_kp"
    assert [] == [name for name in named if not (below / name).is_dir() and not (below / f"{name}.py").exists()]
