"""How the house hangs together: no circles, rooms meet at their faces, threads and frameworks have one home each.

The lists of exceptions only get shorter. An entry that is no longer needed fails the suite too.
"""

from __future__ import annotations

import ast
import itertools
import re

from tests.conventions.source import circles, functions, imports, modules, parameters

AT_MOST_PARAMETERS = 8
AT_MOST_ANY = 0.08  # of all parameters
FRAMEWORKS = re.compile(
    r"langchain|langgraph|inspect[_ -]ai|autoevals|pydantic[_ -]evals|knowledgepulse", re.IGNORECASE
)
# Identifiers of the published schema and score, which carry the name of their authors and not that of an integration.
PUBLISHED = re.compile(r"https://openknowledgepulse\.org/\S*")
WORDS = {"given", "made", "met", "one", "said", "sign", "thing", "told", "way"}
THREAD_STARTS = {"Thread", "ThreadPoolExecutor", "Timer", "start_new_thread"}
COMMAND = "a command: each of its options is a parameter"
SOURCE = "names the published standard that its formula or contract is from"
# What remains, with the reason.
ALLOWED: dict[str, dict[str, str]] = {
    "hidden imports": {
        "grace_kp/cli/_inputs.py: importlib.import_module(name)": "a module of the user's, named on the command line",
        "grace_kp/store/_store.py: importlib.import_module(f'{__package__}.{SCHEMES[scheme]}')": "a module of the same room",
    },
    "long signatures": {
        "Front.agent": "public: `gk.agent`",
        "Front.gate": "public: `gk.gate`",
        "Grace.__init__": "public: the settings of a runtime",
        "Grace.action": "public: as `Front.gate`",
        "Grace.open_run": "public: the attributes of a run",
        "InboxReviewer.__init__": "public: how requests wait, and who decides them",
        "from_openai_messages": "public: what a conversation does not hold itself",
        "calibrate": COMMAND,
        "compare": COMMAND,
        "contribute": COMMAND,
        "feedback": COMMAND,
        "grant": COMMAND,
        "list_approvals": COMMAND,
        "replay": COMMAND,
    },
    "frameworks": {
        "grace_kp/runtime/_grace.py": "`Grace.langchain()`, a public name, and its entry in the registry that integrations fill",
        "grace_kp/trace/_model.py": SOURCE,
        "grace_kp/trace/formats/_messages.py": "lists the dialects of messages that are read",
        "grace_kp/trace/redaction/_vendors.py": "a table of vendors and the forms of their keys",
        "grace_kp/value/__init__.py": SOURCE,
        "grace_kp/value/_score.py": SOURCE,
    },
}


def hold(kind, found):
    """Compare what was found, as pairs of an entry and its place, with what is allowed."""
    places = {}
    for entry, place in found:
        places.setdefault(str(entry), []).append(str(place))
    allowed = ALLOWED.get(kind, {})
    assert {} == {entry: ", ".join(where) for entry, where in places.items() if entry not in allowed}
    needless = [entry for entry in allowed if entry not in places]
    assert [] == needless, "no longer needed: take it off the list"


def test_no_circle_of_files():
    """Each file can be read after those that it imports; imports in functions and for type checkers count."""
    edges = {}
    for edge in imports():
        edges.setdefault(edge.source.name, set()).add(edge.target.name)
    hold("files on circles", ((name, " and ".join(circle)) for circle in circles(edges) for name in circle))


def test_circles_are_found():
    """The search sees circles that touch, overlap or stand apart, and no path that merely leads to one."""
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}, "g": set()}
    assert [("a", "b", "c"), ("d", "e")] == circles(edges)


def test_rooms_meet_at_their_faces():
    """A module imports from another room what its `__init__` gives out, and none of its private modules."""
    hold(
        "private imports",
        (
            (f"{edge.source.file} imports {edge.target.name}", edge.line)
            for edge in imports()
            if edge.source.room != edge.target.room and private(edge.target)
        ),
    )


def private(module):
    return any(part.startswith("_") for part in module.name.split(".")[1:])


def called(node):
    """The plain name of what a call calls: `threading.Thread(…)` gives Thread."""
    return getattr(node.func, "attr", getattr(node.func, "id", None)) if isinstance(node, ast.Call) else None


def hidden_imports():
    """Calls that import a module of the package, or one that is only known at run time, behind import-linter's back."""
    for module in modules().values():
        lazy = {
            id(node) for name, function in functions(module) if name == "__getattr__" for node in ast.walk(function)
        }
        for node in module.nodes:
            if called(node) not in {"import_module", "__import__"}:
                continue
            target = node.args[0] if node.args else None
            if isinstance(target, ast.Constant) and not str(target.value).startswith("grace_kp"):
                continue  # an optional package
            own = ("f'{__name__}.", 'f"{__name__}.', f"'grace_kp.{module.room}.")
            if id(node) in lazy and ast.unparse(target).startswith(own):
                continue  # PEP 562: a face gives out modules of its own room
            yield f"{module.file}: {ast.unparse(node)}", node.lineno


def test_no_import_hides_from_the_layers():
    """`import_module` names no module of the package, except in a package's `__getattr__` for its own modules."""
    hold("hidden imports", hidden_imports())


def thread_starts():
    for module in modules().values():
        if module.room == "background":
            continue
        for node in module.nodes:
            inherits = isinstance(node, ast.ClassDef) and any(
                ast.unparse(base).rpartition(".")[2] in THREAD_STARTS for base in node.bases
            )
            if called(node) in THREAD_STARTS or inherits:
                yield module.file, node.lineno


def test_threads_start_in_one_room():
    """`background/` starts every thread, so that deadlines, forks and exits are handled once."""
    hold("thread starts", thread_starts())


def test_signatures_are_short():
    """At most eight parameters; only a public function may take more, because its users want them side by side."""
    hold(
        "long signatures",
        (
            (name, module.file)
            for module in modules().values()
            for name, function in functions(module)
            if len(parameters(function)[0]) > AT_MOST_PARAMETERS
        ),
    )


def test_parameters_have_types():
    """`Any` says nothing about a parameter: `object` is for what is only passed on, a protocol for what is called."""
    annotations = [
        ast.unparse(parameter.annotation) if parameter.annotation else ""
        for module in modules().values()
        for _, function in functions(module)
        for parameter in itertools.chain(*parameters(function))
    ]
    share = sum(text in {"Any", "Any | None", "None | Any"} for text in annotations) / len(annotations)
    assert share <= AT_MOST_ANY


def identifiers(module):
    """Name and line of each function, class, parameter, variable, attribute and keyword of a module, and of the module."""
    yield module.path.stem, 1
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value.lineno
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, node.lineno


def test_identifiers_say_what_they_mean():
    """Words that fit everything are no names: `told` was nine different values."""
    hold(
        "words",
        (
            (f"{module.file}: {name}", line)
            for module in modules().values()
            for name, line in identifiers(module)
            if name.strip("_") in WORDS
        ),
    )


def framework_places():
    """Where code outside of `integrations/` and `cli/` names a framework, and prose other than by its published schema."""
    for module in modules().values():
        if module.room in {"integrations", "cli"}:
            continue
        for number, line in enumerate(module.text.splitlines(), 1):
            if FRAMEWORKS.search(PUBLISHED.sub("", line)):
                yield module.file, f"{number}: {line.strip()}"


def test_frameworks_are_named_in_their_adapters_only():
    """What is below `integrations/` works with any framework, and reads as if there were none."""
    hold("frameworks", framework_places())
