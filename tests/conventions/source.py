"""The package as parsed files: which modules there are, what they import, what they define. Shared by the conventions.

Everything is read from the source, once per process, so that a convention costs milliseconds and sees imports that no test runs.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "grace_kp"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, eq=False)
class Module:
    """A file of the package. `name` is dotted, without `__init__`; `nodes` are those of the whole tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @property
    def file(self):
        return self.path.relative_to(ROOT).as_posix()

    @property
    def is_package(self):
        return self.path.name == "__init__.py"

    @property
    def room(self):
        """`trace` for everything in grace_kp/trace/, `settings` for grace_kp/settings.py, `` for the package itself."""
        return self.name.split(".")[1] if "." in self.name else ""


@dataclass(frozen=True)
class Import:
    """An import statement's path from one module of the package to another, wherever the statement stands."""

    source: Module
    target: Module
    line: int

    def __str__(self):
        return f"{self.source.file}:{self.line} imports {self.target.name}"


def _read(path):
    dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return Module(dotted, path, text, tree, tuple(ast.walk(tree)))


@functools.cache
def modules():
    """Every module of the package by its dotted name; read when first asked for, because collecting tests need not."""
    return {module.name: module for module in map(_read, sorted(PACKAGE.rglob("*.py")))}


def module_of(dotted):
    """The module that a dotted path ends in or passes through: `grace_kp.trace.render` gives `grace_kp.trace`."""
    while dotted and dotted not in modules():
        dotted = dotted.rpartition(".")[0]
    return modules().get(dotted)


def imported_paths(module):
    """Dotted path and line of each import of this package, at the top, in functions and for type checkers alike."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.name.split(".")
            base = base[: len(base) - node.level + module.is_package] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{start}.{alias.name}", node.lineno) for alias in node.names)


@functools.cache
def imports():
    """Every import from one module of the package to another."""
    return tuple(
        Import(module, target, line)
        for module in modules().values()
        for path, line in imported_paths(module)
        if path.partition(".")[0] == "grace_kp" and (target := module_of(path)) not in (None, module)
    )


def circles(edges):
    """The sets of two names and more that reach each other along `edges`, a dict from a name to those it leads to."""
    reached = {}

    def reach(start):
        seen, left = set(), [start]
        while left:
            for name in edges.get(left.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    left.append(name)
        return seen

    for name in edges:
        reached[name] = reach(name)
    on_circle = {name for name, names in reached.items() if name in names}
    return sorted(
        {tuple(sorted(other for other in reached[name] & on_circle if name in reached[other])) for name in on_circle}
    )


@functools.cache
def functions(module):
    """Each function of a module with its qualified name: `Grace.run`, `agent.<locals>.wrapper` as `agent.wrapper`."""

    def below(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
                qualified = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    yield qualified, child
                yield from below(child, f"{qualified}.")
            else:
                yield from below(child, prefix)

    return tuple(below(module.tree, ""))


def parameters(function):
    """The parameters of a function without `self` and `cls`, those that collect the rest apart."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [argument for argument in named if argument.arg not in {"self", "cls"}], rest
