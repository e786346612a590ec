"""Where finished traces go: memory or SQLite. A catalog makes them quick to find.

The names of the catalog are resolved on first use: recording needs none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from grace_kp.store._deletion import Selection
from grace_kp.store._query import Query, moment
from grace_kp.store._record import (
    ACTION_FIELD,
    CHECK,
    FIELD,
    IMPORT,
    PROGRAM,
    RESERVED,
    REVERSAL,
    FeedbackEntry,
    JournalEntry,
    Record,
    action_name,
    by_precedence,
    is_imported,
    named_decisions,
    precedence,
    scorer_name,
    to_bytes,
)
from grace_kp.store._rescue import RescueFiles
from grace_kp.store._runs import mark_of
from grace_kp.store._store import Store, file_of, open_store

if TYPE_CHECKING:
    from grace_kp.store._catalog import (
        Catalog,
        CatalogQuery,
        Group,
        Progress,
        RunFigures,
        RunPage,
        RunRow,
        open_catalog,
    )

__all__ = [
    "ACTION_FIELD",
    "CHECK",
    "FIELD",
    "IMPORT",
    "PROGRAM",
    "RESERVED",
    "REVERSAL",
    "Catalog",
    "CatalogQuery",
    "FeedbackEntry",
    "Group",
    "JournalEntry",
    "Progress",
    "Query",
    "Record",
    "RescueFiles",
    "RunFigures",
    "RunPage",
    "RunRow",
    "Selection",
    "Store",
    "action_name",
    "by_precedence",
    "file_of",
    "is_imported",
    "mark_of",
    "moment",
    "named_decisions",
    "open_catalog",
    "open_store",
    "precedence",
    "scorer_name",
    "to_bytes",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}._catalog"), name)
    globals()[name] = value
    return value
