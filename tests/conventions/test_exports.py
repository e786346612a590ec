"""What is public: one table, in which every name resolves, is listed, and says what it is."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import grace_kp
from grace_kp.errors import MissingExtra

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(
    module.name
    for module in pkgutil.walk_packages(grace_kp.__path__, "grace_kp.")
    if not any(part.startswith("_") for part in module.name.split("."))
)
SUBPACKAGES = ("calibrate", "integrations", "rubric", "scorers", "testing", "web")
PUBLIC = [name for name in grace_kp.__all__ if name != "__version__"]


def imported_for_types(path):
    """The names that the `if TYPE_CHECKING` block of a module imports, by the module they come from."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for inner in ast.walk(node):
                if isinstance(inner, ast.ImportFrom):
                    found.update({alias.asname or alias.name: inner.module for alias in inner.names})
    return found


def test_all_is_the_lazy_table():
    """`__all__`, `dir()`, the table of lazy names and the imports for type checkers name the same things."""
    assert [*sorted(grace_kp._LAZY), "__version__"] == grace_kp.__all__
    assert sorted([*grace_kp.__all__, *SUBPACKAGES]) == dir(grace_kp)
    typed = imported_for_types(ROOT / "grace_kp" / "__init__.py")
    assert {
        **{name: f"grace_kp.{place}" for name, place in grace_kp._LAZY.items()},
        **dict.fromkeys(SUBPACKAGES, "grace_kp"),
    } == {name: place for name, place in typed.items() if place.startswith("grace_kp")}


@pytest.mark.parametrize("name", SUBPACKAGES)
def test_a_public_sub_package_is_an_attribute(name):
    """`gk.scorers` works after `import grace_kp as gk`, in a fresh interpreter, and loads nothing before it is used."""
    code = (
        f"import sys, grace_kp as gk; assert 'grace_kp.{name}' not in sys.modules and {name!r} in dir(gk); "
        f"assert gk.{name} is sys.modules['grace_kp.{name}'] is gk.{name}"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert (0, "") == (ran.returncode, ran.stderr)


def test_the_reference_names_the_sub_packages():
    """With the path that an import statement uses."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert [] == [name for name in SUBPACKAGES if f"grace_kp.{name}" not in text]


def test_integrations_are_attributes():
    """`gk.integrations.knowledgepulse` needs no import of its own, and another name is an attribute error."""
    integrations = grace_kp.integrations
    assert dir(integrations) == sorted(
        module.name
        for module in pkgutil.iter_modules(integrations.__path__)
        if not module.name.startswith("_") and module.name != "evals"
    )
    assert integrations.knowledgepulse is importlib.import_module("grace_kp.integrations.knowledgepulse")
    with pytest.raises(AttributeError, match=r"'grace_kp\.integrations' has no attribute 'nonsense'"):
        integrations.nonsense  # noqa: B018


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_resolves(name):
    """It is what the room that the table names gives out, the same object each time."""
    value = getattr(grace_kp, name)
    assert value is getattr(importlib.import_module(f"grace_kp.{grace_kp._LAZY[name]}"), name)
    assert value is getattr(grace_kp, name)


def test_another_name_is_an_attribute_error():
    """As with any module; the message names both."""
    with pytest.raises(AttributeError, match="module 'grace_kp' has no attribute 'nonsense'"):
        grace_kp.nonsense  # noqa: B018
    with pytest.raises(ImportError, match="nonsense"):
        from grace_kp import nonsense  # noqa: F401


def test_the_version_is_the_project_s():
    """One version, in the package and in pyproject.toml."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == grace_kp.__version__


def importable(module):
    """Import a module; return None for the adapter of a framework that is not installed here."""
    try:
        return importlib.import_module(module)
    except MissingExtra:
        if not module.startswith("grace_kp.integrations."):
            raise
        return None


def in_order(name):
    """Constants, then classes, then functions, each by the alphabet."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)


@pytest.mark.parametrize("module", PACKAGES)
def test_a_room_says_what_it_gives_out(module):
    """Every package has an `__all__` in order, without doubles, in which every name resolves."""
    room = importable(module)
    if room is None:
        pytest.skip("its framework has an environment of its own")
    if not hasattr(room, "__path__") and not hasattr(room, "__all__"):
        return  # a plain module may leave it to its underscores
    names = room.__all__
    assert sorted(set(names), key=in_order) == names
    assert [] == [name for name in names if not hasattr(room, name)]
    assert [] == [name for name in names if name.startswith("_")]


def described(value):
    text = value.__dict__.get("__doc__") if inspect.isclass(value) else getattr(value, "__doc__", None)
    # A dataclass without a docstring is given its own signature as one.
    return bool(text) and not text.startswith(f"{getattr(value, '__name__', '')}(")


def public_methods(cls):
    for name, value in vars(cls).items():
        plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        plain = plain.fget if isinstance(plain, property) else plain
        if not name.startswith("_") and inspect.isfunction(plain):
            yield name, plain


def given_out():
    for room in filter(None, map(importable, ("grace_kp", *PACKAGES))):
        for name in getattr(room, "__all__", [name for name in vars(room) if not name.startswith("_")]):
            value = getattr(room, name)
            if (inspect.isclass(value) or inspect.isroutine(value)) and getattr(value, "__module__", "").startswith(
                "grace_kp"
            ):
                yield f"{room.__name__}.{name}", value


def test_everything_public_says_what_it_is():
    """Classes, functions, and the methods that a class defines have docstrings of their own."""
    silent = set()
    for name, value in given_out():
        if not described(value):
            silent.add(name)
        if inspect.isclass(value):
            silent |= {f"{name}.{method}" for method, plain in public_methods(value) if not plain.__doc__}
    assert [] == sorted(silent)
