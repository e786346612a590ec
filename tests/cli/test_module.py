"""Modules of the user's are imported by name from the working folder, or by path."""

from __future__ import annotations

import sys

import pytest

from grace_kp.cli._module import imported
from grace_kp.errors import GraceError


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Imported modules and folders are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("mine_by_name", "mine_by_path", "grace_kp_import_json"):
        sys.modules.pop(name, None)


def test_by_name_and_by_path(tmp_path, monkeypatch):
    """A file with the name of a loaded module does not replace it."""
    monkeypatch.chdir(tmp_path)
    for name in ("mine_by_name", "mine_by_path", "json"):
        (tmp_path / f"{name}.py").write_text("answer = 42\n")
    assert 42 == imported("mine_by_name", "work").answer
    assert 42 == imported(str(tmp_path / "mine_by_path.py"), "work").answer
    loaded = sys.modules["json"]
    assert 42 == imported(str(tmp_path / "json.py"), "work").answer
    assert loaded is sys.modules["json"]


@pytest.mark.parametrize(
    "text", ["raise ValueError('no')", "import sys; sys.exit(3)", "(", "import nothing_of_this_name"]
)
def test_whatever_a_module_raises_is_one_error(tmp_path, text):
    """It names the argument."""
    (tmp_path / "mine_by_path.py").write_text(text)
    with pytest.raises(GraceError, match=r"^work .*mine_by_path\.py: "):
        imported(str(tmp_path / "mine_by_path.py"), "work")
