"""Where finished traces go: memory or SQLite, and the writer thread that brings them there."""

from grace_kp.store._deletion import Deleted, Selection
from grace_kp.store._feedback import FeedbackEntry, to_bytes
from grace_kp.store._limits import WriterLimits, WriterStats
from grace_kp.store._open import Opener, file_of, open_store
from grace_kp.store._query import Query, moment
from grace_kp.store._record import JournalEntry, Record, scorer_name
from grace_kp.store._rescue import RescueFiles
from grace_kp.store._store import Store
from grace_kp.store._tally import Tallies
from grace_kp.store._writer import Writer

__all__ = [
    "Deleted",
    "FeedbackEntry",
    "JournalEntry",
    "Opener",
    "Query",
    "Record",
    "RescueFiles",
    "Selection",
    "Store",
    "Tallies",
    "Writer",
    "WriterLimits",
    "WriterStats",
    "file_of",
    "moment",
    "open_store",
    "scorer_name",
    "to_bytes",
]
