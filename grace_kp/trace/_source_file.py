"""YAML and JSON files that people write, such as suites and test sets: their content, and the line of each value.

`SourceFile` reads a file and names the place of a fault; `SourceFields` is the pydantic model that such a file is checked against. What
the values mean is up to the room that reads them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from grace_kp.errors import GraceError, MissingExtra, brief
from grace_kp.trace._json_text import object_without_duplicates
from grace_kp.trace._model import location_text, problem_text

if TYPE_CHECKING:
    from collections.abc import Callable

Fields = TypeVar("Fields", bound=BaseModel)
Location = tuple[int | str, ...]
"""The keys and indices that lead to a value."""
_DECIMAL = re.compile(r"[-+]?(0|[1-9]\d{0,17})")


def yaml_package(feature: str) -> Any:
    """Return PyYAML."""
    try:
        import yaml
    except ImportError:
        raise MissingExtra(feature, "eval") from None
    return yaml


class SourceFields(BaseModel):
    """The fields of an object in a source file. Unknown fields are refused with the names of the known ones."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, data: object) -> object:
        known = ", ".join(cls.model_fields)
        if not isinstance(data, dict):
            raise problem_at(f"must be an object with the fields {known}, not {brief(data)}")
        unknown = next((name for name in data if name not in cls.model_fields), None)
        if unknown is not None and cls.model_config["extra"] == "forbid":
            raise problem_at(f"unknown field {brief(unknown)}; known are {known}", unknown)
        return data


def problem_at(problem: str, *detail: int | str) -> PydanticCustomError:
    """Return the error for a validator to raise when a value below the validated object is wrong."""
    return PydanticCustomError("problem_at", "{problem}", {"problem": problem, "detail": detail})


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The content of a YAML or JSON file, and the line of each value."""

    path: Path
    content: Any
    error_type: type[GraceError]
    """The class of the errors about this file."""
    root: Any = None
    """The YAML node of the content; None for JSON, whose values have no known lines."""

    @classmethod
    def read(
        cls, path: str | Path, feature: str, error_type: type[GraceError], *, names_as_written: bool = False
    ) -> Self:
        """Read a file: JSON if its name ends in `.json`, otherwise YAML."""
        path = Path(path)
        data = path.read_bytes()

        def fault(problem: str, line: int = 0) -> GraceError:
            return error_type(f"{path}{f':{line}' if line else ''}: {' '.join(problem.split())}")

        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise fault(f"not UTF-8: {error.reason}", data.count(b"\n", 0, error.start) + 1) from None
        if path.suffix != ".json":
            root, content = _load_yaml(text, yaml_package(feature), names_as_written, fault)
            return cls(path, content, error_type, root)
        try:
            return cls(path, json.loads(text, object_pairs_hook=object_without_duplicates), error_type)
        except json.JSONDecodeError as error:
            raise fault(f"not valid JSON: {error.msg}", error.lineno) from None
        except (ValueError, RecursionError) as error:
            raise fault("nested too deeply" if isinstance(error, RecursionError) else str(error)) from None

    def error(self, problem: str, location: Location = (), detail: Location = ()) -> GraceError:
        """Return an error of `error_type` about the value at a location."""
        line = "" if self.root is None else f":{_line_at(self.root, (*location, *detail))}"
        place = location_text(location)
        return self.error_type(f"{self.path}{line}: {f'{place}: ' if place else ''}{' '.join(problem.split())}")

    def parse(self, fields: type[Fields], **context: object) -> Fields:
        """Return the content as a model."""
        try:
            return fields.model_validate(self.content, context={"folder": self.path.parent, **context})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            detail = first["ctx"]["detail"] if first["type"] == "problem_at" else ()
            raise self.error(problem_text(first), first["loc"], detail) from None


def _load_yaml(
    text: str, yaml: Any, names_as_written: bool, fault: Callable[[str, int], GraceError]
) -> tuple[Any, Any]:
    """Return the root node, with merge keys resolved, and the content."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def construct_object(self, node: Any, deep: bool = False) -> Any:
            """Give faults of a single value, such as a month 13, the place of the value."""
            try:
                return super().construct_object(node, deep)
            except (ValueError, ArithmeticError, AttributeError, LookupError, TypeError) as error:
                raise invalid(str(error), node.start_mark) from None

    def invalid(problem: str, mark: Any) -> Exception:
        error: Exception = yaml.constructor.ConstructorError(None, None, problem, mark)
        return error

    loader = None
    try:
        loader = Loader(text)
        node = loader.get_single_node() or yaml.compose("null")
        _prepare(node, names_as_written, invalid, set())
        return node, loader.construct_document(node)
    except yaml.reader.ReaderError as error:
        character = f"#x{ord(text[error.position]):02x}"
        line = text.count("\n", 0, error.position) + 1
        raise fault(f"not valid YAML: the character {character} is not allowed", line) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or error
        raise fault(f"not valid YAML: {problem}", mark.line + 1 if mark is not None else 0) from None
    except RecursionError:
        raise fault("nested too deeply", loader.line + 1 if loader else 1) from None


def _prepare(node: Any, names_as_written: bool, invalid: Callable[[str, Any], Exception], visited: set[int]) -> None:
    """Refuse duplicate keys, and turn names into strings where they are kept as written."""
    if id(node) in visited:
        return
    visited.add(id(node))
    if node.id == "scalar":
        if names_as_written and node.tag == "tag:yaml.org,2002:int" and not _DECIMAL.fullmatch(node.value):
            node.tag = "tag:yaml.org,2002:str"
    elif node.id == "sequence":
        for item in node.value:
            _prepare(item, names_as_written, invalid, visited)
    else:
        known = set()
        for key, value in node.value:
            if key.id == "scalar":
                if names_as_written and key.tag != "tag:yaml.org,2002:merge":
                    key.tag = "tag:yaml.org,2002:str"
                if (key.tag, key.value) in known:
                    raise invalid(f"duplicate key {brief(key.value)}", key.start_mark)
                known.add((key.tag, key.value))
            _prepare(value, names_as_written, invalid, visited)


def _line_at(node: Any, location: Location) -> int:
    """Return the line of the key or item at a location, or of the closest one around it."""
    line: int = node.start_mark.line + 1
    for part in location:
        child = None
        if node.id == "mapping":  # a merged value precedes the one that replaces it
            child = next((pair for pair in reversed(node.value) if pair[0].value == part), None)
        elif node.id == "sequence" and isinstance(part, int) and part < len(node.value):
            child = (node.value[part], node.value[part])
        if child is None:
            break
        line, node = child[0].start_mark.line + 1, child[1]
    return line
