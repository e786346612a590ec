"""Suites as YAML: entries read from a file, and written so that they read back. Imported on first use, because pydantic takes its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict

from grace_kp.errors import GraceError, MissingExtra, brief
from grace_kp.scorers._edits import is_number
from grace_kp.scorers._entry import BUILT_IN, REGISTERED, Entry, SuiteError
from grace_kp.scorers._patterns import PatternError
from grace_kp.trace import SourceFields, SourceFile, describe_error, yaml_package

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FEATURE = "suites in YAML"


class _EntryFields(SourceFields):
    """A scorer in a file; further fields are its options."""

    model_config = ConfigDict(extra="allow")
    type: str
    weight: Any = 1.0
    threshold: Any = None


class _SuiteFields(SourceFields):
    scorers: list[_EntryFields]


def read_suite_file(path: str | Path) -> tuple[SourceFile, list[Entry]]:
    """Return a suite file and its entries."""
    source = SourceFile.read(path, _FEATURE, SuiteError)
    return source, [_entry(source, number, fields) for number, fields in enumerate(source.parse(_SuiteFields).scorers)]


def _entry(source: SourceFile, number: int, fields: _EntryFields) -> Entry:
    factory = BUILT_IN.get(fields.type) or REGISTERED.get(fields.type)
    options = fields.model_extra or {}
    problem_field: tuple[str | int, ...] = ("type",)
    try:
        if factory is None:
            known = ", ".join(sorted({*BUILT_IN, *REGISTERED}))
            raise ValueError(f"the scorer {brief(fields.type)} is unknown; known are {known}")
        problem_field = ()
        scorer = factory(**options)
        problem_field = ("threshold",) if is_number(fields.weight) else ("weight",)
        return Entry(scorer, fields.weight, fields.threshold, options)
    except MissingExtra:
        raise
    except PatternError as error:
        place = tuple(part for part in ("patterns", error.page, error.number) if isinstance(part, str | int))
        raise source.error(str(error), ("scorers", number), place) from None
    except (GraceError, ValueError, TypeError) as error:
        raise source.error(str(error), ("scorers", number), problem_field) from None
    except Exception as error:  # noqa: BLE001 — a factory of the user's may raise anything
        raise source.error(": ".join(describe_error(error, 300)), ("scorers", number)) from None


def suite_text(entries: Sequence[Entry]) -> str:
    """Return entries as YAML that reads back as the same entries."""
    yaml = yaml_package(_FEATURE)
    scorers = [_fields(number, entry) for number, entry in enumerate(entries)]
    for number, fields in enumerate(scorers):
        try:
            yaml.safe_dump(fields)
        except yaml.YAMLError as error:
            place = f"scorers[{number}] ({fields['type']})"
            raise SuiteError(f"{place}: an option is not plain data: {brief(str(error))}") from None
    text: str = yaml.safe_dump({"scorers": scorers}, sort_keys=False, allow_unicode=True)
    return text


def _fields(number: int, entry: Entry) -> dict[str, Any]:
    kind = entry.scorer.type
    if kind not in REGISTERED and type(entry.scorer) is not BUILT_IN.get(kind):
        raise SuiteError(
            f"scorers[{number}]: {kind!r} is not known by its name ({type(entry.scorer).__qualname__}); register it first, "
            "so that the suite can be read back"
        )
    options = dict(entry.options or getattr(entry.scorer, "options", None) or {})
    reserved = sorted(_EntryFields.model_fields.keys() & options)
    if reserved:
        raise SuiteError(f"scorers[{number}] ({kind}): an option cannot be called {reserved[0]!r} in YAML")
    return {"type": kind, "weight": entry.weight, "threshold": entry.threshold, **options}
