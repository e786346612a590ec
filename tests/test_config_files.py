"""Where configuration files are searched, and which of them are errors: none that is there may count as none."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import grace_kp as gk
from grace_kp.config_files import content_of, search

POLICY = '[policies]\nwire = "deny"\n'
TABLE = '[tool.grace_kp.policies]\nwire = "deny"\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory inside a project."""
    inner = tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return inner


def refusal():
    with pytest.raises(gk.SettingsError) as raised:
        gk.Grace(store="memory:")
    assert str(raised.value).isprintable()
    return str(raised.value)


def assert_denied():
    """The policy is in force."""
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)
    ran = []
    with pytest.raises(gk.ActionDenied):
        grace.gate(name="wire")(ran.append)(1)
    assert [] == ran


def test_files_are_found_nearest_first(folder):
    """In a folder and its parents, the library's own before a pyproject.toml."""
    (folder.parent / "grace_kp.toml").write_text('domain = "b"')
    (folder.parent / "pyproject.toml").write_text('[tool.grace_kp]\ndomain = "c"')
    (folder / "pyproject.toml").write_text('[tool.grace_kp]\ndomain = "a"')
    assert ["a", "b", "c"] == [table["domain"] for _, table in search(folder)]
    assert content_of(folder / "none.toml") is None


@pytest.mark.parametrize("name", ["grace_kp.toml", "pyproject.toml"])
@pytest.mark.parametrize("where", ["inner", "project"])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("directory", "it is a directory"), ("dangling", "it is a link to nothing"), ("loop", "Too many levels of symbolic links"),
        ("pipe", "it is not a regular file"), ("device", "it is not a regular file"), ("large", "it is larger than 4 MB"),
        ("dangling far", "it is a link to nothing"),
    ],
)  # fmt: skip
def test_a_file_that_is_there_and_cannot_be_read_is_an_error(folder, name, where, kind, reason):
    """Also one in a parent folder, behind a nearer one that can be read."""
    (folder / "grace_kp.toml" if where == "project" else folder.parent / "grace_kp.toml").write_text(POLICY)
    path = (folder if where == "inner" else folder.parent) / name
    make = {
        "directory": path.mkdir,
        "dangling": lambda: path.symlink_to("/nonexistent/file"),
        "dangling far": lambda: path.symlink_to("x/y/z"),
        "loop": lambda: path.symlink_to(path),
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to(os.devnull),
        "large": lambda: path.write_bytes(b"#" * ((4 << 20) + 1)),
    }
    make[kind]()
    assert f"{path}: cannot be read: {reason}" == refusal()


UNREADABLE = """
    import os, tomllib
    import grace_kp as gk
    gk.Grace, gk.SettingsError
    if os.geteuid() == 0:  # who may read everything
        os.setgroups([]); os.setegid(65534); os.seteuid(65534)
    try:
        gk.Grace(store="memory:")
    except gk.SettingsError as error:
        print(error)
"""


@pytest.mark.parametrize("name", ["grace_kp.toml", "pyproject.toml"])
@pytest.mark.parametrize("locked", ["file", "folder"])
def test_a_file_without_permission_is_an_error(folder, name, locked):
    """Whether it is the file that must not be read, or a folder above that must not be searched."""
    path = folder / name
    path.write_text(POLICY if name == "grace_kp.toml" else TABLE)
    target, mode = (path, 0o000) if locked == "file" else (folder.parent, 0o000)
    for above in (folder, *folder.parents[:4]):
        above.chmod(0o755)
    target.chmod(mode)
    try:
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(UNREADABLE)],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    finally:
        target.chmod(0o755)
    assert "" == ran.stderr
    assert ran.stdout.rstrip().endswith("cannot be read: Permission denied")
    assert str(folder) in ran.stdout


def test_an_escaped_table_name_is_read(folder):
    (folder / "pyproject.toml").write_text('["tool"."\\u0067race\\U0000005Fkp".policies]\nwire = "deny"\n')
    assert_denied()


@pytest.mark.parametrize("name", ["grace_kp.toml", "pyproject.toml"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_another_encoding_is_an_error(folder, name, encoding):
    (folder / name).write_bytes((POLICY if name == "grace_kp.toml" else TABLE).encode(encoding))
    assert f"{folder / name}: cannot be read: " in refusal()


@pytest.mark.parametrize(
    "text",
    [
        "[tool.grace_kp]\na = [", "[tool]\ngrace_kp = {domain = \n", "tool.grace_kp.domain = x", '[tool."grace_kp"]\nbroken', "[ tool . grace_kp ]\nx",
        '["tool"."grace\\u005fkp".policies]\nx', '["tool"."\\U00000067race_kp"]\nx', "[tool.grace-kp]\nx", "x = \n[tool.grace_kp.policies]\n", f"{TABLE}x = {'[' * 5_000}", f"{TABLE}x = {'9' * 5_000}",
    ],
)  # fmt: skip
def test_a_project_file_with_our_table_must_be_whole(folder, text):
    (folder / "pyproject.toml").write_text(text)
    assert f"{folder / 'pyproject.toml'}: cannot be read: " in refusal()


@pytest.mark.parametrize(
    "text",
    [
        b"this is [not TOML", b"[project]\ndependencies = ['grace-kp>=1'\n# grace_kp.toml", b"\xff grace_kp", b"name = 'grace_kp'\n[",
        b"[tool.uv.sources]\ngrace-kp = {path = 'x'", b"x = " + b"[" * 5_000, b"",
    ],
)  # fmt: skip
def test_a_project_file_without_our_table_may_be_broken(folder, text):
    (folder.parent / "grace_kp.toml").write_text(POLICY)
    (folder / "pyproject.toml").write_bytes(text)
    assert_denied()


@pytest.mark.parametrize(
    "name",
    ["grace-kp.toml", "grace_kp.TOML", "Grace_KP.toml", "gracekp.toml", ".grace_kp.toml", "grace.kp.toml", "grace_kp.toml.txt", "grace kp.toml", "grace_kp.toml ", "grace_kp.toml.toml"],
)  # fmt: skip
def test_a_file_whose_name_is_nearly_right_is_an_error(folder, name):
    """It would not be read. Also beside the file with the right name."""
    expected = f"{folder / name} is not read: the file must be called grace_kp.toml; rename or remove it"
    (folder / name).write_text(POLICY)
    assert expected == refusal()
    (folder / "grace_kp.toml").write_text("")
    assert expected == refusal()


def test_other_names_are_not_ours(folder):
    (folder / "grace_kp.toml").write_text(POLICY)
    for name in ("grace_kp.toml.bak", "my_grace_kp.toml", "grace_kp.json", "grace.toml", "grace_kp_old.toml"):
        (folder / name).write_text("[")
    assert_denied()


@pytest.mark.parametrize(
    "table",
    [
        "tool.grace-kp", "tool.gracekp", "tool.Grace_KP", 'tool."grace kp"', "grace_kp", "grace-kp", "tools.grace_kp", "Tool.grace_kp", "tool.grace.kp",
        "tool.tool.grace_kp", "project.grace_kp", "tool_grace_kp",
    ],
)  # fmt: skip
def test_a_table_whose_name_is_nearly_right_is_an_error(folder, table):
    for beside in ("", "[tool.grace_kp]\n"):
        (folder / "pyproject.toml").write_text(f'{beside}[{table}.policies]\nwire = "deny"\n')
        found = table.replace('"', "")
        assert (
            f"{folder / 'pyproject.toml'}: [{found}] is not read: the table must be called [tool.grace_kp]; rename it"
            == refusal()
        )


def test_a_dependency_is_not_a_table(folder):
    text = '[project]\nname = "grace-kp"\ndependencies = ["grace-kp"]\n[tool.uv.sources]\ngrace-kp = {path = "x"}\n[tool.poetry.dependencies]\ngrace-kp = "1"\n[tool.grace-kp-plugin]\nx = 1\n[dependency-groups]\ngrace-kp = []\n'
    (folder / "pyproject.toml").write_text(text)
    (folder.parent / "grace_kp.toml").write_text(POLICY)
    assert_denied()


def test_a_path_with_a_line_break_stays_in_one_line(folder, monkeypatch):
    odd = folder / "a\nb"
    (odd / "grace_kp.toml").mkdir(parents=True)
    monkeypatch.chdir(odd)
    assert "a\\nb/grace_kp.toml': cannot be read: it is a directory" in refusal()
