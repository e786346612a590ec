"""State that outlives a call lives in two files, so that runtimes do not meet by accident and tests need no cleaning up.

Read from the source: a name of a module or a class body holds state when its value is a thing whose only use is to change (a
context variable, a lock, a weak set), an instance of a class of ours that is not frozen, or a container that is changed
somewhere in the package. Constants, tables that are only read, type variables, compiled patterns and loggers hold none.
"""

from __future__ import annotations

import ast
import functools

from tests.conventions.source import modules

HOMES = {"grace_kp/record/_current.py", "grace_kp/runtime/_default.py"}
# What else there is, with the reason. It only gets shorter.
KNOWN = {
    "grace_kp/background/_process.py:PROCESS": "the two hooks of the process, fork and exit, and whom they tell",
    "grace_kp/scorers/_cases.py:_SCORE": "what a forked worker scores with; set once in each, never in the command itself",
    "grace_kp/gating/_request.py:_numbers": "numbers the requests of the process, so that no two share an id",
    "grace_kp/gating/reviewers/_console.py:_ONE_AT_A_TIME": "a process has one terminal, and one question at a time on it",
    "grace_kp/integrations/adk/_plugin.py:_TOOL": "the context variable that tells an agent which call runs it",
    "grace_kp/integrations/adk/_plugin.py:_AGENT": "the context variable that tells hooks which nested run they belong to",
    "grace_kp/integrations/strands/_hooks.py:_BEGUN": "the context variable that connects the two hooks around a call",
    "grace_kp/integrations/openai_agents/_runner.py:_SCOPE": "the context variable that tells hooks and tools which run of agents they are in",
    "grace_kp/integrations/langchain/_node.py:_NODES": "numbers the calls of each node that LangGraph runs, up to a bound",
    "grace_kp/integrations/langchain/_tool_guard.py:_GUARD": "the context variable that LangChain reads the guard from",
    "grace_kp/integrations/langchain/_handler.py:_EVERYWHERE": "the context variable that LangChain reads its handlers from",
    "grace_kp/scorers/_entry.py:REGISTERED": "a public registry: scorers are registered for the whole process",
    "grace_kp/trace/redaction/_scan.py:_SCANS": "keeps what is built once per process from a constant table",
    "grace_kp/trace/redaction/_names.py:_KNOWN_NAMES": "remembers the answers of a pure function, up to a bound",
    "grace_kp/value/_score.py:_PROFILES": "a public registry: profiles are registered for the whole process",
}
CHANGING = {
    "ContextVar", "Lock", "RLock", "Event", "Condition", "Semaphore", "local", "count", "cycle", "Queue", "SimpleQueue",
    "LifoQueue", "PriorityQueue", "WeakSet", "WeakKeyDictionary", "WeakValueDictionary", "deque", "Counter", "defaultdict",
}  # fmt: skip
CONTAINERS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
MUTATORS = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove", "reverse",
    "setdefault", "sort", "update",
}  # fmt: skip
VALUES = ("Enum", "NamedTuple", "TypedDict", "Exception", "Protocol", "Warning")


def called(value):
    """The plain name of what a call calls: `threading.Lock()` gives Lock."""
    target = value.func if isinstance(value, ast.Call) else None
    target = target.value if isinstance(target, ast.Subscript) else target
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", None)


def frozen(cls):
    """Whether instances of a class cannot change: a frozen dataclass, an enumeration, a named tuple."""
    if any(ast.unparse(base).endswith(VALUES) for base in cls.bases):
        return True
    return any("frozen=True" in ast.unparse(decorator) for decorator in cls.decorator_list)


def bindings(module):
    """Name and value of what modules and class bodies bind."""
    bodies = [module.tree.body, *(node.body for node in module.nodes if isinstance(node, ast.ClassDef))]
    for node in (node for body in bodies for node in body):
        if isinstance(node, ast.Assign):
            yield from ((ast.unparse(target), node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield ast.unparse(node.target), node.value


def changed_names(module):
    """Names that are changed in place anywhere in a file: item or attribute set or deleted, `+=`, a mutating method."""
    for node in module.nodes:
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            changed = node.value
        elif isinstance(node, ast.AugAssign):
            changed = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            changed = node.func.value
        else:
            continue
        if isinstance(changed, ast.Name):
            yield changed.id


def origins(module):
    """Where the names of a file come from: its own, and those it imports from the package."""
    found = {name: module.file for name, _ in bindings(module)}
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("grace_kp"):
            place = modules()[node.module].file
            found.update({alias.asname or alias.name: place for alias in node.names})
    return found


@functools.cache
def holders():
    """Every name that holds state, as `file:name`."""
    ours = {
        node.name: frozen(node)
        for module in modules().values()
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
    }
    changed = set()
    for module in modules().values():
        home = origins(module)
        changed |= {(home[name], name) for name in changed_names(module) if name in home}
    found = []
    for module in modules().values():
        for name, value in bindings(module):
            container = isinstance(value, CONTAINERS) or called(value) in {"dict", "list", "set"}
            if (
                called(value) in CHANGING
                or (called(value) in ours and not ours[called(value)])
                or (container and (module.file, name) in changed)
            ):
                found.append(f"{module.file}:{name}")
    return found


def test_state_lives_in_two_files():
    """What holds state elsewhere is known by name and reason; what no longer does is taken off the list."""
    assert set(KNOWN) == {place for place in holders() if place.partition(":")[0] not in HOMES}


def test_the_two_files_do_hold_state():
    """The check sees what it is there for."""
    found = {place for place in holders() if place.partition(":")[0] in HOMES}
    assert {
        "grace_kp/record/_current.py:CURRENT",
        "grace_kp/record/_current.py:TROUBLES",
        "grace_kp/runtime/_default.py:DEFAULT",
    } <= found


def test_no_name_is_rebound_from_inside():
    """No `global`, and no caches on functions; `globals()` only where a package hands out its names lazily."""
    found = set()
    for module in modules().values():
        file = module.file
        for node in module.nodes:
            if isinstance(node, ast.Global):
                found.add(f"{file}:{node.lineno} global")
            if isinstance(node, ast.Call) and called(node) == "globals" and not file.endswith("/__init__.py"):
                found.add(f"{file}:{node.lineno} globals()")
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                ast.unparse(decorator).partition("(")[0].endswith(("lru_cache", ".cache"))
                or ast.unparse(decorator) == "cache"
                for decorator in node.decorator_list
            ):
                found.add(f"{file}:{node.lineno} {node.name} is cached")
    assert set() == found
