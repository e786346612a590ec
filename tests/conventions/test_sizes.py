"""The shape of files: small enough to see whole, named after what they hold, opened with what they are for."""

from __future__ import annotations

import ast

from tests.conventions.source import PACKAGE, modules

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
