"""The shape of files: small enough to see whole, named after what they hold, opened with what they are for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "grace_kp").rglob("*.py"))
LIMIT = 400
# Files that are over the limit all the same, with the reason. It only gets shorter.
LONG: dict[str, str] = {}
# Modules that users import by their own name.
PUBLIC = {
    "grace_kp/integrations/langchain.py",
    "grace_kp/integrations/knowledgepulse.py",
    "grace_kp/integrations/autoevals.py",
    "grace_kp/integrations/inspect_ai.py",
    "grace_kp/integrations/pydantic_evals.py",
}
DRAWERS = {"utils", "util", "helpers", "helper", "types", "common", "misc", "base", "core", "manager"}


def named(path):
    return str(path.relative_to(ROOT).as_posix())


each_file = pytest.mark.parametrize("path", FILES, ids=named)


def test_no_file_is_over_the_limit():
    """400 lines; the list of exceptions names exactly those that are over."""
    long = {named(path) for path in FILES if len(path.read_text(encoding="utf-8").splitlines()) > LIMIT}
    assert set(LONG) == long


@each_file
def test_a_file_is_named_after_what_it_holds(path):
    """Inside a package `_noun.py`; no drawers for what has no place."""
    assert path.stem.strip("_") not in DRAWERS
    inside = path.parent != ROOT / "grace_kp"
    assert path.stem == path.stem.lower()
    if inside and path.stem not in {"__init__", "__main__"} and named(path) not in PUBLIC:
        assert path.stem.startswith("_")
        assert not path.stem.startswith("__")


@each_file
def test_a_file_opens_with_what_it_is_for(path):
    """A sentence at least, ended as one."""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert said, "a module opens with a paragraph that says what it is for and what not"
    assert len(said.split()) >= 5, said
    assert said.splitlines()[0].strip()


@each_file
def test_annotations_cost_nothing(path):
    """Every file with code postpones the evaluation of annotations, so that names for type checkers need no import."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defines = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.AnnAssign) for node in ast.walk(tree))
    postponed = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    assert postponed or not defines
