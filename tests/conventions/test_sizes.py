"""The size of the library, room by room, and the shape of its files: named after the concept they hold, opened with its purpose."""

from __future__ import annotations

import ast

import pytest

from tests.conventions.source import PACKAGE, ROOT, modules

# Budgets of files and lines per row of rooms. A change that lowers a figure lowers its budget; only an issue raises one.
BUDGETS = {
    ("cli",): (20, 5_303),
    ("web",): (31, 6_281),
    ("integrations", "testing"): (28, 7_133),
    ("runtime",): (19, 6_811),
    ("calibrate",): (24, 7_024),
    ("pages",): (7, 1_329),
    ("gating",): (20, 7_551),
    ("approvals",): (16, 6_518),
    ("record",): (16, 4_604),
    ("rubric", "judge", "scorers", "confidence", "value", "models"): (49, 11_946),
    ("store",): (18, 5_054),
    ("trace",): (24, 7_770),
    ("background", "settings", "config_files", "errors", "levels", "protocols", ""): (10, 2_121),
}
TESTS = (329, 79_384)
LIMIT = 700
# Files that are over the limit all the same, with the reason. It only gets shorter.
LONG: dict[str, str] = {}
# Modules that users import by their own name.
PUBLIC = {
    "grace_kp/integrations/autoevals.py",
    "grace_kp/integrations/inspect_ai.py",
    "grace_kp/integrations/pydantic_evals.py",
}
DRAWERS = {"utils", "util", "helpers", "helper", "types", "common", "misc", "base", "core", "manager"}


def lines_of(path):
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("rooms", BUDGETS, ids="+".join)
def test_rooms_keep_their_budgets(rooms):
    """Files and lines of Python; merge, replace or leave out before adding."""
    inside = [module for module in modules().values() if module.room in rooms]
    files, lines = BUDGETS[rooms]
    assert len(inside) <= files
    assert sum(len(module.text.splitlines()) for module in inside) <= lines


def test_every_room_has_a_budget():
    """A new room gets its row first."""
    assert {module.room for module in modules().values()} == {room for rooms in BUDGETS for room in rooms}


def test_tests_keep_their_budget():
    """The same for the tests as a whole."""
    paths = [*(ROOT / "tests").rglob("*.py")]
    files, lines = TESTS
    assert len(paths) <= files
    assert sum(map(lines_of, paths)) <= lines


def test_no_file_is_over_the_limit():
    """700 lines; the list of exceptions names exactly those that are over."""
    long = {module.file for module in modules().values() if len(module.text.splitlines()) > LIMIT}
    assert set(LONG) == long


def well_named(module):
    stem = module.path.stem
    if stem.strip("_") in DRAWERS or stem != stem.lower():
        return False
    if module.path.parent == PACKAGE or stem in {"__init__", "__main__"} or module.file in PUBLIC:
        return True
    return stem.startswith("_") and not stem.startswith("__")


def test_a_file_is_named_after_what_it_holds():
    """Inside a package `_noun.py`; no drawers for what has no place."""
    assert [] == [module.file for module in modules().values() if not well_named(module)]


def test_a_file_opens_with_what_it_is_for():
    """A sentence at least: what the module is for, and what not."""
    opened = {module.file: ast.get_docstring(module.tree) or "" for module in modules().values()}
    assert {} == {
        file: text for file, text in opened.items() if len(text.split()) < 5 or not text.splitlines()[0].strip()
    }


def postpones(module):
    """Whether a module evaluates its annotations late, or has none."""
    defines = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.AnnAssign) for node in module.nodes)
    postponed = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in module.tree.body)
    return postponed or not defines


def test_annotations_cost_nothing():
    """Every file with code postpones the evaluation of annotations, so that names for type checkers need no import."""
    assert [] == [module.file for module in modules().values() if not postpones(module)]
