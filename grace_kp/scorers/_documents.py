"""A suite's YAML document: read with the lines of its entries, and every fault of it told in one way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.errors import GraceError, MissingExtra, brief

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class SuiteError(GraceError, ValueError):
    """A suite cannot be built. The message says where in it, and what is wrong."""


@dataclass(frozen=True, slots=True)
class Document:
    """A suite's list of scorers, and where it stands."""

    place: str
    listed: list[Any]
    line: int
    """Of the key `scorers`."""
    nodes: list[Any]
    """The YAML nodes of the entries."""

    def error(self, number: int, problem: str, *path: Any) -> SuiteError:
        """An error about an entry, with the line of what the path leads to, as far as it does."""
        line = _node(self.nodes[number], path).start_mark.line + 1
        return SuiteError(f"{self.place}:{line}: scorers[{number}]: {' '.join(problem.split())}")


def yaml_package() -> Any:
    """PyYAML.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise MissingExtra("suites in YAML", "eval") from None
    return yaml


def read_document(path: Path) -> Document:
    """The document of a suite.

    Raises:
        SuiteError: it is no YAML, or no list of scorers.
        OSError: it cannot be read.
        MissingExtra: PyYAML is not installed.
    """
    data, place = path.read_bytes(), str(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SuiteError(f"{place}:{line}: it is not UTF-8: {error.reason}") from None
    root, document = _loaded(text, place)
    if not isinstance(document, dict):
        raise SuiteError(f"{place}:1: scorers must be a list of scorers, not {brief(document)}")
    keys = {key.value: key.start_mark.line + 1 for key, _ in root.value if isinstance(key.value, str)}
    listed = document.get("scorers")
    line = keys.get("scorers", 1)
    if not isinstance(listed, list):
        raise SuiteError(f"{place}:{line}: scorers must be a list of scorers, not {brief(listed)}")
    strange = [name for name in document if name != "scorers"]
    if strange:
        raise SuiteError(f"{place}:{keys.get(strange[0], 1)}: unknown key {brief(strange[0])}; known is scorers")
    (nodes,) = [value.value for key, value in root.value if key.value == "scorers"][-1:]
    return Document(place, listed, line, nodes)


def _loaded(text: str, place: str) -> tuple[Any, Any]:
    """The document's node, as it is after merge keys were put in, and the document."""
    yaml = yaml_package()

    class Loader(yaml.SafeLoader):  # type: ignore[misc,name-defined]
        def construct_object(self, node: Any, deep: bool = False) -> Any:
            """Faults of a single value, such as a month 13, get its place."""
            try:
                return super().construct_object(node, deep)
            except (ValueError, ArithmeticError, AttributeError, LookupError, TypeError) as error:
                raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from None

    loader = None
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, None
        for key in _doubled(node, set()):
            raise SuiteError(f"{place}:{key.start_mark.line + 1}: the key {brief(key.value)} is there twice")
        return node, loader.construct_document(node)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SuiteError(
            f"{place}:{line}: it is no YAML: the character #x{ord(text[error.position]):02x} is not allowed"
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = f":{mark.line + 1}" if mark is not None else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise SuiteError(f"{place}{where}: it is no YAML: {problem}") from None
    except RecursionError:
        raise SuiteError(f"{place}:{loader.line + 1 if loader else 1}: it is nested too deeply") from None


def _doubled(node: Any, seen: set[int]) -> Iterator[Any]:
    """Keys that are in one mapping a second time, anywhere below a node."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if node.id == "mapping":
        known = set()
        for key, value in node.value:
            if key.id == "scalar":
                if (key.tag, key.value) in known:
                    yield key
                known.add((key.tag, key.value))
            yield from _doubled(value, seen)
    elif node.id == "sequence":
        for item in node.value:
            yield from _doubled(item, seen)


def _node(node: Any, path: tuple[Any, ...]) -> Any:
    """The node that a path of keys and numbers leads to; where it leads nowhere, as far as it does."""
    for step in path:
        below = None
        if node.id == "mapping":
            below = next((value for key, value in node.value if key.value == step), None)
        elif node.id == "sequence" and isinstance(step, int) and step < len(node.value):
            below = node.value[step]
        if below is None:
            return node
        node = below
    return node
