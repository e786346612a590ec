"""Test sets and variants in files, YAML or JSON, with the line of whatever cannot be read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from grace_kp.errors import GraceError, MissingExtra, brief
from grace_kp.rubric._rating import Output, Rating
from grace_kp.rubric._test_set import RUNS, Document, Problem, TestSet
from grace_kp.trace._files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")


class RubricFileError(GraceError, ValueError):
    """A test set or variant cannot be read. The message names the file and the line or place in it."""


class _Place:
    """A value in a file, with the words for where it stands."""

    def __init__(self, value: Any, file: Path, name: str = "", line: int | None = None) -> None:
        self.value, self.file, self.name = value, file, name
        self.line = getattr(value, "line", line)

    def problem(self, what: object) -> RubricFileError:
        """The error for this place."""
        line = f":{self.line}" if self.line is not None else ""
        return RubricFileError(f"{self.file}{line}: {f'{self.name}: ' if self.name else ''}{what}")

    def fields(self, known: Sequence[str]) -> dict[str, _Place]:
        """The fields of an object, none but these.

        Raises:
            RubricFileError: it is no object, or has others.
        """
        if not isinstance(self.value, dict):
            raise self.problem(f"must be an object, not {brief(self.value)}")
        strange = [name for name in self.value if name not in known]
        if strange:
            raise self.problem(f"unknown field {strange[0]!r}; known are {', '.join(known)}")
        return {
            name: _Place(value, self.file, f"{self.name}.{name}".lstrip("."), self.line)
            for name, value in self.value.items()
        }

    def items(self) -> list[_Place]:
        """The items of a list.

        Raises:
            RubricFileError: it is none.
        """
        if not isinstance(self.value, list):
            raise self.problem(f"must be a list, not {brief(self.value)}")
        return [
            _Place(value, self.file, f"{self.name}[{number}]", self.line) for number, value in enumerate(self.value)
        ]

    def text(self) -> str:
        """A text.

        Raises:
            RubricFileError: it is none.
        """
        if not isinstance(self.value, str):
            raise self.problem(f"must be a text, not {brief(self.value)}")
        return self.value

    def made(self, make: Callable[[], T]) -> T:
        """What `make` gives.

        Raises:
            RubricFileError: it cannot be made.
        """
        try:
            return make()
        except RubricFileError:
            raise
        except (ValueError, TypeError) as error:
            raise self.problem(error) from None


def read_test_set(path: str | Path) -> TestSet:
    """A test set from a file: `documents` with `id`, `domain`, `problems`, `bonus_candidates` and `text` (or `file`), `scope`, `runs_per_document`.

    Raises:
        RubricFileError: it cannot be used; the message names the line or place.
        OSError: a file cannot be read.
        MissingExtra: PyYAML is not installed, and the file is no JSON.
    """
    root = _loaded(Path(path))
    fields = root.fields(("documents", "scope", "scope_file", "runs_per_document"))
    if "documents" not in fields:
        raise root.problem("a test set has documents")
    documents = [_document(place) for place in fields["documents"].items()]
    scope = _text_or_file(fields, "scope", "scope_file") or ""
    runs = fields["runs_per_document"].value if "runs_per_document" in fields else RUNS
    return root.made(lambda: TestSet(tuple(documents), runs, scope=scope))


def _document(place: _Place) -> Document:
    fields = place.fields(("id", "domain", "problems", "bonus_candidates", "text", "file"))
    problems = [_problem(one) for one in fields["problems"].items()] if "problems" in fields else []
    text = _text_or_file(fields, "text", "file") or ""
    plain = {name: fields[name].value for name in ("bonus_candidates",) if name in fields}
    return place.made(
        lambda: Document(
            _needed(place, fields, "id"), _needed(place, fields, "domain"), tuple(problems), **plain, text=text
        )
    )


def _problem(place: _Place) -> Problem:
    fields = place.fields(("id", "category", "severity", "kind", "key"))
    named = {name: _needed(place, fields, name) for name in ("id", "category", "severity")}
    more = {name: fields[name].text() for name in ("kind", "key") if name in fields and fields[name].value is not None}
    return place.made(lambda: Problem(**named, **more))


def _needed(place: _Place, fields: Mapping[str, _Place], name: str) -> Any:
    if name not in fields:
        raise place.problem(f"{name} is missing")
    return fields[name].value


def _text_or_file(fields: Mapping[str, _Place], text: str, file: str) -> str | None:
    if text in fields and file in fields:
        raise fields[file].problem(f"there is either {text} or {file}, not both")
    if file in fields:
        here = fields[file]
        try:
            return (here.file.parent / here.text()).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise here.problem(f"{here.value}: {getattr(error, 'strerror', None) or error}") from None
    return fields[text].text() if text in fields else None


def read_variant(path: str | Path, test_set: TestSet) -> tuple[str, list[Output]]:
    """A variant from a file: its `name` and its `runs`, each with `document`, `output` (or `file`) and the judgements that there are.

    Judgements stand in a run as `judgements` (signs in the order of the problems, as a text or list, or one by problem id), `bonuses` and
    `penalties`; those of a second rater as an object `second` with the same fields.

    Raises:
        RubricFileError: it cannot be used; the message names the line or place.
        OSError: a file cannot be read.
        MissingExtra: PyYAML is not installed, and the file is no JSON.
    """
    root = _loaded(Path(path))
    fields = root.fields(("name", "runs"))
    if "runs" not in fields:
        raise root.problem("a variant has runs")
    name = fields["name"].text() if "name" in fields else Path(path).stem
    return name, [_output(place, test_set) for place in fields["runs"].items()]


_RATING = ("judgements", "bonuses", "penalties", "reasons", "rater")


def _output(place: _Place, test_set: TestSet) -> Output:
    fields = place.fields(("document", "output", "file", "second", *_RATING))
    document = place.made(lambda: test_set.document(str(_needed(place, fields, "document"))))
    ratings = []
    if "judgements" in fields:
        ratings.append(_rating(place, fields, document))
    if "second" in fields:
        if not ratings:
            raise fields["second"].problem("there is a second rating and no first")
        ratings.append(_rating(fields["second"], fields["second"].fields(_RATING), document))
    for rating in ratings:
        strange = [problem for problem in rating.judgements if problem not in {one.id for one in document.problems}]
        if strange:
            raise place.problem(f"{document.id} has no problem {strange[0]!r}")
    return Output(document.id, _text_or_file(fields, "output", "file"), tuple(ratings))


def _rating(place: _Place, fields: Mapping[str, _Place], document: Document) -> Rating:
    given = _needed(place, fields, "judgements")
    if isinstance(given, str):
        given = list("".join(given.split()))
    if isinstance(given, list):
        if len(given) != len(document.problems):
            raise place.problem(f"{document.id} has {len(document.problems)} problems, and {len(given)} are judged")
        given = {problem.id: sign for problem, sign in zip(document.problems, given, strict=True)}
    if not isinstance(given, dict):
        raise place.problem(f"judgements are signs or an object by problem, not {brief(given)}")
    counts = {name: fields[name].value for name in ("bonuses", "penalties") if name in fields}
    reasons = fields["reasons"].value if "reasons" in fields else {}
    if not isinstance(reasons, dict):
        raise place.problem(f"reasons must be an object, not {brief(reasons)}")
    rater = fields["rater"].text() if "rater" in fields else ""
    return place.made(lambda: Rating(given, **counts, reasons=dict(reasons), rater=rater))


def write_variant(path: Path, name: str, outputs: Sequence[Output], test_set: TestSet) -> None:
    """Write a variant with its ratings as JSON that `read_variant` reads back; the file is replaced as a whole.

    Raises:
        OSError: the file cannot be written.
    """
    runs = []
    for output in outputs:
        run: dict[str, Any] = {"document": output.document}
        for number, rating in enumerate(output.ratings):
            told = _told(rating, [one.id for one in test_set.document(output.document).problems])
            run.update(told if number == 0 else {"second": told})
        if output.text is not None:
            run["output"] = output.text
        runs.append(run)
    write_whole(path, json.dumps({"name": name, "runs": runs}, ensure_ascii=False, indent=2) + "\n")


def _told(rating: Rating, order: Sequence[str]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "judgements": {problem: rating.judgements[problem].symbol for problem in order if problem in rating.judgements},
        "bonuses": rating.bonuses,
        "penalties": rating.penalties,
    }
    reasons = {problem: why for problem, why in rating.reasons.items() if why}
    if reasons:
        told["reasons"] = reasons
    if rating.rater:
        told["rater"] = rating.rater
    return told


class _Marked(dict[str, Any]):
    """An object that knows the line where it begins."""

    line: int | None = None


def _loaded(path: Path) -> _Place:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise RubricFileError(f"{path}: it is not UTF-8") from None
    try:
        if path.suffix == ".json":
            return _Place(_from_json(text), path)
        return _Place(_from_yaml(text), path, line=1)
    except RecursionError:
        raise RubricFileError(f"{path}: nested too deeply") from None
    except _Unreadable as error:
        raise RubricFileError(f"{path}{error}") from None


class _Unreadable(ValueError):
    """What is wrong with a text, beginning with its line."""


def _from_json(text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            raise _Unreadable(f": the field {max(names, key=names.count)!r} is there twice")
        return made

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise _Unreadable(f":{error.lineno}: it is no JSON: {error.msg}") from None


def _from_yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtra("test sets and variants in YAML", "eval") from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Objects know their line, and have no field twice."""

    def marked(loader: Any, node: Any) -> _Marked:
        made = _Marked()
        made.line = node.start_mark.line + 1
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise _Unreadable(f":{key.start_mark.line + 1}: the field {key.value!r} is there twice")
            seen.add(key.value if isinstance(key.value, str) else "")
        loader.flatten_mapping(node)  # what is merged may be said anew
        for key, value in node.value:
            # As it is written: an id such as 010 is no number.
            name = key.value if isinstance(key.value, str) else str(loader.construct_object(key, deep=True))
            made[name] = loader.construct_object(value, deep=True)
        return made

    def written(_loader: Any, node: Any) -> int | str:
        return int(node.value) if re.fullmatch(r"[-+]?(0|[1-9]\d{0,17})", node.value) else str(node.value)

    Loader.add_constructor("tag:yaml.org,2002:map", marked)
    Loader.add_constructor("tag:yaml.org,2002:int", written)
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a kind of SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise _Unreadable(f"{line}: it is no YAML: {getattr(error, 'problem', None) or error}") from None
    except _Unreadable:
        raise
    except ValueError as error:  # a date that is none
        raise _Unreadable(f": {error}") from None
