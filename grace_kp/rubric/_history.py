"""`history.md`: a page that people read and the program reads back, with every round, its runs and what was decided.

The tables of runs are what counts: all other figures are worked out from them, and where the page says something else it is an error
with its line. What else stands on the page belongs to people and stays as it is, where it is: prose, headings, tables of their own.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from grace_kp.errors import GraceError, InvalidHistory
from grace_kp.rubric._compare import BEST, VARIANT, Recommendation, compare, converged
from grace_kp.rubric._rounds import TABLES, Round, read_round, read_test_set, round_text, test_set_text
from grace_kp.rubric._tables import Part, cell, lines_of
from grace_kp.trace import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.rubric._summary import Variant
    from grace_kp.rubric._test_set import TestSet

_ROUND = re.compile(r"round[ \t]+(\d+):[ \t]*(.+)", re.IGNORECASE)


class HistoryChanged(GraceError):
    """The page was changed by somebody else since it was read, and is not written over."""


@dataclass(slots=True)
class History:
    """All rounds so far, and the page they stand on."""

    path: Path
    test_set: TestSet | None = None
    rounds: list[Round] = field(default_factory=list)
    """Oldest first. To be added to by `record` alone."""
    text: str = "# History\n"
    """The page."""
    _stored: bytes | None = field(default=None, repr=False, compare=False)
    """What was in the file when it was read or written last; None where it was not there."""

    def __post_init__(self) -> None:
        self.path = Path(self.path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a page; a page that is not there is a history without rounds.

        Raises:
            InvalidHistory: a table cannot be read, or says something else than its runs; the message names the line.
            OSError: the page is there and cannot be read.
        """
        made = cls(Path(path))
        try:
            data = made.path.read_bytes()
        except FileNotFoundError:
            return made
        made._stored = data
        try:
            made.text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise InvalidHistory("it is not UTF-8", file=str(path), line=line) from None
        made._read(made.text)
        return made

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
        """The best before a round, counted from 0: what its variant was compared with; None before the first."""
        found = None
        for one in self.rounds[:place]:
            if found is None or (one.recommendation is not None and one.recommendation.choice == VARIANT):
                found = one.variant
        return found

    @property
    def improvements(self) -> list[float]:
        """By how much each round's variant was better than the best before it; the first round is none."""
        return [one.recommendation.raw_diff for one in self.rounds if one.recommendation is not None]

    @property
    def converged(self) -> bool:
        """Whether the last three rounds brought less than 0.5 each."""
        return converged(self.improvements)

    def record(self, round: Round) -> Recommendation | None:  # noqa: A002 - the word of the field
        """Add a round; it is compared with the current best.

        Args:
            round: what was run. A recommendation of its own may choose otherwise than the rule, with a reason; its figures are those of the runs.

        Returns:
            What was decided; None for the first round.

        Raises:
            ValueError: its variant was run on another test set, has the name of an earlier one, or the round would not read back.
        """
        variant, best = round.variant, self.best
        if self.test_set is not None and variant.test_set != self.test_set:
            raise ValueError(f"the variant {variant.name} was run on another test set than the rounds before")
        if any(one.variant.name == variant.name for one in self.rounds):
            raise ValueError(f"there is a variant {variant.name!r} already; give it a name of its own")
        if best is None and round.recommendation is not None:
            raise ValueError("the first round is compared with nothing, so it has no recommendation")
        notes = round.notes.replace("\r\n", "\n").strip("\n")
        made = Round(variant, None if best is None else _decided(best, variant, round.recommendation), notes)
        text = self.text if not self.text or self.text.endswith("\n") else self.text + "\n"
        end = "\r\n" if "\r\n" in text else "\n"
        added = [] if self.test_set is not None else [test_set_text(variant.test_set)]
        added.append(round_text(len(self.rounds) + 1, made, best))
        new = "".join(f"\n{one}" for one in added).replace("\n", end)
        self._reads_back(text, new, made)
        self.text, self.test_set = text + new, variant.test_set
        self.rounds.append(made)
        return made.recommendation

    def _reads_back(self, text: str, new: str, made: Round) -> None:
        """Make sure that what is added to the page is read as it is meant; what stands there already was read before."""
        if lines_of(text + "x")[-1].inert:
            raise ValueError("this round would not read back: the page ends within a code fence or a comment")
        again = History(self.path, self.test_set, list(self.rounds))
        try:
            again._read(new)
        except InvalidHistory as error:
            raise ValueError(f"this round would not read back: {error}") from None
        if again.rounds[len(self.rounds) :] != [made]:
            raise ValueError(
                "this round would not read back as it is; look for headings of rounds or tables in its notes"
            )

    def save(self) -> None:
        """Write the page; it is there whole or not at all.

        Raises:
            HistoryChanged: somebody else has written it since it was read.
            OSError: it cannot be written.
        """
        path = self.path.resolve()  # a link stays a link
        data = self.text.encode("utf-8")
        with _alone(path.parent):
            try:
                now: bytes | None = path.read_bytes()
            except FileNotFoundError:
                now = None
            if now != self._stored:
                raise HistoryChanged(f"{self.path} has changed since it was read; nothing was written. Load it again")
            with whole_file(path) as file:
                file.write(data)
        self._stored = data

    def _read(self, text: str) -> None:
        """Add what stands in a text to what was read before it."""
        file = str(self.path)
        parts = [Part(file)]
        titles: list[tuple[int, str]] = []
        for line in lines_of(text):
            heading = line.heading
            found = _ROUND.fullmatch(heading[1]) if heading is not None and heading[0] == 2 else None
            if found is not None:
                parts.append(Part(file))
                titles.append((int(found[1]), cell(found[2])))
            parts[-1].lines.append(line)
        for part in parts:
            part.read_tables(TABLES)
        head, *rounds = parts
        self.test_set = read_test_set(head) if self.test_set is None else self.test_set
        for part, (number, name) in zip(rounds, titles, strict=True):
            if self.test_set is None:
                raise part.problem("a round stands before the test set", part.line)
            if number != len(self.rounds) + 1:
                raise part.problem(f"this should be round {len(self.rounds) + 1}", part.line)
            if any(one.variant.name == name for one in self.rounds):
                raise part.problem(f"there is a variant {name!r} already", part.line)
            variant, recommendation, notes = read_round(part, name, self.test_set, self.best)
            self.rounds.append(Round(variant, recommendation, notes))


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else saves a page of this folder meanwhile, where the system has such locks."""
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


def _decided(best: Variant, variant: Variant, given: Recommendation | None) -> Recommendation:
    ruled = compare(best, variant)
    if given is None:
        return ruled
    if given.choice not in {BEST, VARIANT}:
        raise ValueError(f"a choice is {BEST!r} or {VARIANT!r}, not {given.choice!r}")
    return Recommendation(
        given.choice,
        given.reason.strip(),
        ruled.raw_diff,
        ruled.adjusted_diff,
        ruled.regressions,
        ruled.evidence,
        ruled.warnings,
    )
