"""The changes that `make mutants` makes: which it finds in a piece of code, and that each gives the code it says."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.changes import changed, changes_of
from tests.mutants.run import Coverage, spans_of


def texts(source):
    return [change.text for change in changes_of("m", source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("if a: f()", ["a → not a", "f() → nothing"]),
        ("while not a: f()", ["not a → a", "f() → nothing"]),
        ("x = a == b", ["a == b → a != b"]),
        ("x = a < b", ["a < b → a <= b", "a < b → a >= b"]),
        ("x = a is None", ["a is None → a is not None"]),
        ("x = a not in b", ["a not in b → a in b"]),
        ("x = a and b", ["a and b → a or b"]),
        ("x = -a", ["-a → a"]),
        ("x = a + 1", ["a + 1 → a - 1", "1 → 2"]),
        ("x = a | b", []),
        ("def f():\n    return a | b", ["return a | b → return None", "a | b → a & b"]),
        ("x = True", ["True → False"]),
        ("x = 0.5", ["0.5 → 1.5"]),
        ("x = 'approved'", ["'approved' → 'approved_'"]),
        ("x = 'a sentence for people'", []),
        ("x = f'{a} approved'", []),
        ("raise ValueError('approved', 1)", ["raise ValueError('approved', 1) → nothing"]),
        ("def f():\n    return True", ["True → False"]),
        ("x.y = z", ["x.y = z → nothing"]),
        ("x[0] = z", ["x[0] = z → nothing", "0 → 1"]),
        ("x += z", ["x += z → nothing"]),
        ("x = z", []),
        ("del x[k]", ["del x[k] → nothing"]),
        ("for x in y:\n    continue", ["continue → break"]),
        ("for x in y:\n    break", ["break → continue"]),
        ("x = [y for y in z if y]", ["y → not y"]),
        ("x = a if b else c", ["b → not b"]),
        ("try: f()\nexcept E: g()", ["f() → nothing", "except E: g() → raise", "g() → nothing"]),
        ("try: f()\nexcept E: raise", ["f() → nothing", "raise → nothing"]),
        ("@wrap(retries=k)\ndef f(): g()", ["wrap(retries=k) → nothing", "retries=k → nothing", "g() → nothing"]),
        ("@property\ndef f(self): return self.x", ["return self.x → return None"]),
        ("def f(a=1, *, b=True): g(a)", ["1 → 2", "True → False", "g(a) → nothing"]),
    ],
)  # fmt: skip
def test_the_changes_of_a_piece_of_code(source, expected):
    """Each construct has its changes, in the order of the code."""
    assert expected == texts(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "from x import y",
        "if TYPE_CHECKING:\n    x = 1",
        "__all__ = ['a', 'b']",
        "class A:\n    __slots__ = ('a', 'b')",
        "T = TypeVar('T', bound=int)",
        "def f(a: Literal['x'] = None) -> Literal['y']: ...",
        "class P(Protocol):\n    def f(self, a: int = 1) -> int: ...",
        "@overload\ndef f(a: int = 1): return a",
        "@dataclass(frozen=True)\nclass A: ...",
        "x: Literal['y']",
    ],
)
def test_what_is_not_changed(source):
    """Documentation, types and imports."""
    assert [] == texts(source)


def test_every_change_gives_the_code_that_it_says():
    """And the rest of the module stays as it is."""
    source = "def f(a, b):\n    if a > 1 and not b:\n        raise ValueError\n    return a"
    results = [ast.unparse(changed(source, change.index)) for change in changes_of("m", source)]
    assert len(results) == len(set(results)) == 8
    before = ast.unparse(ast.parse(source)).splitlines()
    for result in results:
        assert 1 == sum(old != new for old, new in zip(before, result.splitlines(), strict=True))


def test_a_change_keeps_its_name():
    """Lines that are put in elsewhere do not matter; the same change for the second time in a function has a number."""
    source = "def f(a):\n    g(a)\n    h(a)\n    g(a)"
    assert ["m f: g(a) → nothing", "m f: h(a) → nothing", "m f: g(a) → nothing #2"] == [
        change.name for change in changes_of("m", source)
    ]
    moved = changes_of("m", f"import x\n\ny = z\n\n\n{source}")
    assert [change.name for change in changes_of("m", source)] == [change.name for change in moved]
    assert [7, 8, 9] == [change.line for change in moved]


def test_changes_in_classes_and_inner_functions_carry_their_path():
    source = "class A:\n    def f(self):\n        def g(): h()\n        g()"
    assert ["A.f.g", "A.f"] == [change.function for change in changes_of("m", source)]


def test_who_executes_a_function_that_names_a_class_may_notice_its_defaults():
    source = "class A:\n    x: int = 1\ndef f():\n    return A()\ndef g():\n    return 2\n"
    coverage = Coverage({"m.py": {2: [""], 4: ["of f"], 6: ["of g"]}})
    (change,) = (change for change in changes_of("m", source) if change.line == 2)
    assert ["of f"] == coverage.tests_of("m.py", change, {"m.py": spans_of(source)})
