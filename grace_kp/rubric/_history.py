"""`history.md`: a page for people that the program reads back, with every round, its runs and its decision.

The tables of runs are authoritative: all other figures are computed from them, and a figure on the page that differs is an error with its
line. Everything else on the page belongs to its authors and stays unchanged: prose, headings, tables of their own.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from grace_kp.errors import GraceError, InvalidHistory
from grace_kp.rubric._compare import BEST, VARIANT, Recommendation, compare, converged
from grace_kp.rubric._rounds import (
    TABLES,
    Round,
    Section,
    lines_of,
    read_round,
    read_test_set,
    round_text,
    test_set_text,
    unescape_cell,
)
from grace_kp.trace import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.rubric._variants import TestSet, Variant

_ROUND = re.compile(r"round[ \t]+(\d+):[ \t]*(.+)", re.IGNORECASE)


class HistoryChanged(GraceError):
    """The page was changed by another author since it was read, and is not overwritten."""


@dataclass(slots=True)
class History:
    """All rounds so far, and the page that holds them."""

    path: Path
    test_set: TestSet | None = None
    rounds: list[Round] = field(default_factory=list)
    """Oldest first. Only `record` adds to it."""
    text: str = "# History\n"
    """The page."""
    _stored: bytes | None = field(default=None, repr=False, compare=False)
    """The content of the file when it was last read or written; None where there was no file."""

    def __post_init__(self) -> None:
        self.path = Path(self.path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a page. A page that does not exist is a history without rounds.

        Raises:
            InvalidHistory: a table cannot be read, or differs from its runs; the message names the line.
            OSError: the page exists and cannot be read.
        """
        history = cls(Path(path))
        try:
            data = history.path.read_bytes()
        except FileNotFoundError:
            return history
        history._stored = data
        try:
            history.text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise InvalidHistory("not UTF-8", file=str(path), line=line) from None
        history._read(history.text)
        return history

    @property
    def is_unrelated(self) -> bool:
        """Whether the file has text but no test set, so that it is not a history."""
        return self.test_set is None and bool(self.text.strip()) and self._stored is not None

    is_none = is_unrelated
    """The earlier name of `is_unrelated`."""

    @property
    def best(self) -> Variant | None:
        """The current best; None before the first round."""
        return self.best_before(len(self.rounds))

    def best_before(self, place: int) -> Variant | None:
        """Return the best variant before a round, which the round was compared with; None before the first.

        Args:
            place: the index of the round, from 0.
        """
        best = None
        for earlier in self.rounds[:place]:
            if best is None or (earlier.recommendation is not None and earlier.recommendation.choice == VARIANT):
                best = earlier.variant
        return best

    @property
    def improvements(self) -> list[float]:
        """By how much each variant was better than the best before it; the first round has no such value."""
        return [item.recommendation.raw_diff for item in self.rounds if item.recommendation is not None]

    @property
    def converged(self) -> bool:
        """Whether each of the last three rounds improved by less than 0.5."""
        return converged(self.improvements)

    def record(self, round: Round) -> Recommendation | None:  # noqa: A002 - the word of the field
        """Add a round, compared with the current best.

        Args:
            round: the round. Its own recommendation may choose otherwise than the rule, with a reason; the figures are those of the runs.

        Returns:
            The decision; None for the first round.

        Raises:
            ValueError: the variant was run on another test set or has the name of an earlier one, or the round would not read back.
        """
        variant, best = round.variant, self.best
        if self.test_set is not None and variant.test_set != self.test_set:
            raise ValueError(f"the variant {variant.name} was run on another test set than the rounds before")
        if self._has(variant.name):
            raise ValueError(f"there is already a variant {variant.name!r}; choose another name")
        if best is None and round.recommendation is not None:
            raise ValueError("the first round is compared with nothing, so it has no recommendation")
        notes = round.notes.replace("\r\n", "\n").strip("\n")
        recorded = Round(variant, None if best is None else _decide(best, variant, round.recommendation), notes)
        text = self.text if not self.text or self.text.endswith("\n") else self.text + "\n"
        added = [] if self.test_set is not None else [test_set_text(variant.test_set)]
        added.append(round_text(len(self.rounds) + 1, recorded, best))
        new = "".join(f"\n{part}" for part in added).replace("\n", "\r\n" if "\r\n" in text else "\n")
        self._check_reads_back(text, new, recorded)
        self.text, self.test_set = text + new, variant.test_set
        self.rounds.append(recorded)
        return recorded.recommendation

    def _has(self, name: str) -> bool:
        return any(item.variant.name == name for item in self.rounds)

    def _check_reads_back(self, text: str, new: str, recorded: Round) -> None:
        """Refuse an addition to the page that would not be read as the round it holds; the rest was read before."""
        if lines_of(text + "x")[-1].inert:
            raise ValueError("this round would not read back: the page ends within a code fence or a comment")
        again = History(self.path, self.test_set, list(self.rounds))
        try:
            again._read(new)
        except InvalidHistory as error:
            raise ValueError(f"this round would not read back: {error}") from None
        if again.rounds[len(self.rounds) :] != [recorded]:
            raise ValueError("this round would not read back; its notes may contain headings of rounds, or tables")

    def save(self) -> None:
        """Write the page; it is replaced as a whole or not at all.

        Raises:
            HistoryChanged: another author has changed it since it was read.
            OSError: it cannot be written.
        """
        path = self.path.resolve()  # a link stays a link
        data = self.text.encode("utf-8")
        with _locked(path.parent):
            try:
                current: bytes | None = path.read_bytes()
            except FileNotFoundError:
                current = None
            if current != self._stored:
                raise HistoryChanged(f"{self.path} has changed since it was read; nothing was written. Load it again")
            with whole_file(path) as file:
                file.write(data)
        self._stored = data

    def _read(self, text: str) -> None:
        """Add the test set and the rounds of a text."""
        sections = [Section(str(self.path))]
        titles: list[tuple[int, str]] = []
        for line in lines_of(text):
            heading = line.heading
            match = _ROUND.fullmatch(heading[1]) if heading is not None and heading[0] == 2 else None
            if match is not None:
                sections.append(Section(str(self.path)))
                titles.append((int(match[1]), unescape_cell(match[2])))
            sections[-1].lines.append(line)
        for section in sections:
            section.read_tables(TABLES)
        head, *rounds = sections
        self.test_set = read_test_set(head) if self.test_set is None else self.test_set
        for section, (number, name) in zip(rounds, titles, strict=True):
            if self.test_set is None:
                raise section.error("a round stands before the test set", section.line)
            if number != len(self.rounds) + 1:
                raise section.error(f"this should be round {len(self.rounds) + 1}", section.line)
            if self._has(name):
                raise section.error(f"there is already a variant {name!r}", section.line)
            self.rounds.append(read_round(section, name, self.test_set, self.best))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from saving a page of this folder, where the system has such locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _decide(best: Variant, variant: Variant, own: Recommendation | None) -> Recommendation:
    ruled = compare(best, variant)
    if own is None:
        return ruled
    if own.choice not in {BEST, VARIANT}:
        raise ValueError(f"a choice must be {BEST!r} or {VARIANT!r}, not {own.choice!r}")
    return replace(ruled, choice=own.choice, reason=own.reason.strip())
