"""The single changes that `make mutants` makes to a module: which there are, what each is called, and the changed code.

A change has a name that survives edits elsewhere: the function it is in and the text before and after, without a line number.
Changes that no test could or should notice are left out: annotations, docstrings, messages, decorators of the type system.
"""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import dataclass

INVERSE = {
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,), ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
# Strings that look like a value of the program, not like a sentence for people.
VALUE = re.compile(r"[a-z][a-z0-9_.-]*|[A-Z]+")
# What serves type checkers, or fails at import without it.
SILENT_DECORATORS = re.compile(
    r"(\w+\.)*(property|staticmethod|classmethod|overload|dataclass|abstractmethod|final|override|runtime_checkable|wraps|"
    r"contextmanager|asynccontextmanager|\w+\.setter|unique)\b"
)
TYPE_MAKERS = {"TypeVar", "ParamSpec", "NewType", "getLogger", "namedtuple"}
SHOWN = 110


@dataclass(frozen=True)
class Change:
    """One change to one module. `index` is its place among all changes of the module."""

    module: str
    function: str
    line: int
    text: str
    index: int

    @property
    def name(self):
        return f"{self.module} {self.function or '(module)'}: {self.text}"


@dataclass
class Site:
    """A place in a syntax tree, with what stands there instead after the change."""

    function: str
    line: int
    before: str
    after: str
    apply: object


def changes_of(module, source):
    """Return every change of a module, in the order of its lines."""
    found, seen = [], {}
    for index, site in enumerate(sites(ast.parse(source))):
        text = f"{site.before} → {site.after}"
        count = seen[site.function, text] = seen.get((site.function, text), 0) + 1
        text = text if count == 1 else f"{text} #{count}"
        found.append(Change(module, site.function, site.line, text, index))
    return found


def changed(source, index):
    """Return the syntax tree of a module with one change made."""
    tree = ast.parse(source)
    for number, site in enumerate(sites(tree)):
        if number == index:
            site.apply()
            return ast.fix_missing_locations(tree)
    raise IndexError(index)


def shown(node):
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def sites(tree):
    """Return the places of a tree that can be changed; each change is made when its `apply` is called."""
    return list(_Finder().of(tree))


class _Finder:
    """Walks a tree with the function that it is in."""

    def of(self, tree):
        yield from self._body(tree, "body", "")

    def _site(self, function, node, before, after, parent, field, index, new):
        def apply():
            if index is None:
                setattr(parent, field, new)
            else:
                getattr(parent, field)[index] = new

        return Site(function, node.lineno, before, after, apply)

    def _body(self, parent, field, function):
        for index, statement in enumerate(getattr(parent, field)):
            if _is_docstring(statement) or _is_for_types(statement):
                continue
            yield from self._statement(statement, parent, field, index, function)

    def _statement(self, node, parent, field, index, function):
        dropped = _dropped(node)
        if dropped is not None:
            after, new = dropped
            yield self._site(function, node, shown(node), after, parent, field, index, ast.copy_location(new, node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from self._definition(node, function)
            return
        if isinstance(node, ast.ExceptHandler):
            last = node.body[-1]
            if not (isinstance(last, ast.Raise) and last.exc is None):
                kind = ast.unparse(node.type) if node.type else "everything"
                yield self._site(
                    function, node, f"except {kind}: {shown(node.body[0])}", "raise", node, "body", slice(None),
                    [ast.copy_location(ast.Raise(), node.body[0])],
                )  # fmt: skip
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "type_comment"} or (isinstance(node, ast.Raise) and name == "exc"):
                continue
            if (
                isinstance(value, list)
                and value
                and isinstance(value[0], ast.stmt | ast.ExceptHandler | ast.match_case)
            ):
                yield from self._body(node, name, function)
            elif isinstance(value, list):
                for position, item in enumerate(value):
                    yield from self._expression(item, node, name, position, function)
            elif isinstance(value, ast.AST):
                yield from self._expression(value, node, name, None, function)

    def _definition(self, node, function):
        qualified = f"{function}.{node.name}" if function else node.name
        for position, decorator in enumerate(node.decorator_list):
            if SILENT_DECORATORS.match(ast.unparse(decorator)):
                continue
            yield self._removed(qualified, decorator, node, "decorator_list", position)
            if isinstance(decorator, ast.Call):
                for number in range(len(decorator.keywords)):
                    yield self._removed(qualified, decorator.keywords[number].value, decorator, "keywords", number)
        if not isinstance(node, ast.ClassDef):
            if all(_is_docstring(statement) for statement in node.body):
                return
            for field in ("defaults", "kw_defaults"):
                for position, default in enumerate(getattr(node.args, field)):
                    if default is not None:
                        yield from self._expression(default, node.args, field, position, qualified)
        yield from self._body(node, "body", qualified)

    def _removed(self, function, node, parent, field, index):
        return Site(
            function,
            node.lineno,
            shown(getattr(parent, field)[index]),
            "nothing",
            lambda: getattr(parent, field).pop(index),
        )

    def _expression(self, node, parent, field, index, function):
        if not isinstance(node, ast.AST) or isinstance(
            node, ast.JoinedStr | ast.expr_context | ast.operator | ast.cmpop
        ):
            return
        if isinstance(node, ast.Call) and _called(node) in TYPE_MAKERS | {"cast"}:
            return
        for new in _replacements(node, parent, field, function):
            yield self._site(
                function,
                _placed(node, parent),
                shown(node),
                shown(new),
                parent,
                field,
                index,
                ast.copy_location(new, node),
            )
        if field in {"test", "ifs"} and not isinstance(node, ast.Compare | ast.UnaryOp):
            new = ast.copy_location(ast.UnaryOp(ast.Not(), copy.deepcopy(node)), node)
            yield self._site(function, node, shown(node), shown(new), parent, field, index, new)
        for name, value in ast.iter_fields(node):
            if name == "annotation":
                continue
            if isinstance(value, list):
                for position, item in enumerate(value):
                    yield from self._expression(item, node, name, position, function)
            else:
                yield from self._expression(value, node, name, None, function)


def _placed(node, parent):
    return node if hasattr(node, "lineno") else parent


def _called(node):
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def _is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_types(node):
    """Imports, `if TYPE_CHECKING`, `__all__`, `__slots__`, and definitions of types."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal):
        return True
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(ast.unparse(target) in {"__all__", "__slots__"} for target in targets)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)
    return False


def _dropped(node):
    """What is left of a statement that is dropped, and the name of that; None for statements that others depend on."""
    nothing = ("nothing", ast.Pass())
    if isinstance(node, ast.Raise | ast.Delete | ast.AugAssign):
        return nothing
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
        return nothing
    if isinstance(node, ast.Assign) and all(
        isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets
    ):
        return nothing
    if isinstance(node, ast.Continue):
        return "break", ast.Break()
    if isinstance(node, ast.Break):
        return "continue", ast.Continue()
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        return "return None", ast.Return(ast.Constant(None))
    return None


def _replacements(node, parent, field, function):
    """What may stand in the place of an expression."""
    if isinstance(node, ast.Compare):
        for position, operator in enumerate(node.ops):
            for other in INVERSE[type(operator)]:
                new = copy.deepcopy(node)
                new.ops[position] = other()
                yield new
    elif isinstance(node, ast.BoolOp):
        new = copy.deepcopy(node)
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        types = not function and isinstance(node.op, ast.BitOr)  # an alias of types
        if not types and not any(_is_text(side) for side in (node.left, node.right)):
            new = copy.deepcopy(node)
            new.op = ARITHMETIC[type(node.op)]()
            yield new
    elif isinstance(node, ast.Constant):
        yield from _constants(node, parent, field)


def _is_text(node):
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _constants(node, parent, field):
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str) and VALUE.fullmatch(value) and not isinstance(parent, ast.FormattedValue):
        yield ast.Constant(f"{value}_")
