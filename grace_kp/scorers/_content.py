"""Scorers of what came of an edit: whether the pages say what was expected, and whether the operations could be applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.errors import brief
from grace_kp.scorers._edits import EditExpectation, EditResult, Operation, is_number
from grace_kp.scorers._patterns import TIMEOUT, compiled_by_page, found, patterns_by_page
from grace_kp.scorers._traces import as_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.scorers._scorers import Actual

SHOWN = 100


@dataclass(frozen=True, slots=True)
class ContentDetails:
    """Why a content-quality is what it is."""

    matched_patterns: int
    total_patterns: int
    content_issues: tuple[str, ...]
    unexpected_operations: tuple[Operation, ...] = ()
    """What was done although nothing was expected, neither operations nor patterns."""


class ContentQuality:
    """The share of the expected patterns that are found on their pages."""

    type: str = "content-quality"
    threshold: float = 0.6

    def __init__(
        self, patterns: Mapping[str, Sequence[str]] | None = None, *, ignore_case: bool = True, timeout: float = TIMEOUT
    ) -> None:
        """Look for the patterns of what is expected, and for these besides.

        Args:
            patterns: regular expressions by page title, for every case.
            ignore_case: whether these are found in capitals and small letters alike.
            timeout: seconds for one pattern on one page; one that takes longer counts as not found.

        Raises:
            PatternError: a pattern is malformed, or they are no lists by page title.
            ValueError: the timeout is no number above 0, or ignore_case neither True nor False.
        """
        if not isinstance(ignore_case, bool):
            raise ValueError(f"ignore_case is True or False, not {brief(ignore_case)}")
        self.timeout = _seconds(timeout)
        own = patterns_by_page(patterns, "patterns")
        self.patterns = {title: list(texts) for title, texts in own.items()}
        self.ignore_case = ignore_case
        self._own = compiled_by_page(own, ignore_case=ignore_case, place="patterns")

    @property
    def options(self) -> dict[str, Any]:
        """What it was built with, as far as that is not the default."""
        return {
            **({"patterns": {title: list(texts) for title, texts in self.patterns.items()}} if self.patterns else {}),
            **({} if self.ignore_case else {"ignore_case": False}),
            **({} if self.timeout == TIMEOUT else {"timeout": self.timeout}),
        }

    @property
    def needs_expectation(self) -> bool:
        """Whether there is nothing to look for unless something is expected."""
        return not self.patterns

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """Found by expected patterns; 1.0 where only operations are expected; nothing expected at all is 1.0 if nothing was done, else 0.0."""
        return self.score_with_details(actual, expected)[0]

    def details(self, actual: Actual, expected: EditExpectation) -> ContentDetails:
        """Which patterns were not found, and where. The answer of a trace is its page `result`."""
        return self.score_with_details(actual, expected)[1]

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, ContentDetails]:
        """Both of one search."""
        issues, done = [], as_result(actual)
        pages, memory = done.pages or {}, getattr(done, "_searches", None)
        wanted = (*self._own, *expected.compiled)
        for title, text, pattern in wanted:
            content = pages.get(title, "")
            seen = found(pattern, content, self.timeout, memory)
            if not seen:
                late = f" within {self.timeout:g} s" if seen is None else ""
                issues.append(f"Page '{title}': Pattern '{text}' not found{late} in content: '{content[:SHOWN]}...'")
        unexpected = () if wanted or expected.operations else tuple(done.operations)
        details = ContentDetails(len(wanted) - len(issues), len(wanted), tuple(issues), unexpected)
        return details.matched_patterns / len(wanted) if wanted else float(not unexpected), details


@dataclass(frozen=True, slots=True)
class ResultDetails:
    """Why an operation-result is what it is."""

    application_success_rate: float
    """0 where nothing was done though something was expected, and where something was done though nothing was."""
    content_score: float
    failed_operations: tuple[Operation, ...]
    application_known: bool
    """False where the result does not say what could be applied; then every operation counts as applied."""
    content_issues: tuple[str, ...] = ()
    """The patterns that were not found."""
    unexpected_operations: tuple[Operation, ...] = ()
    """What was done although nothing was expected, neither operations nor patterns."""


class OperationResult:
    """How much of what was done could be applied, and what came of it: 0.6 · success rate + 0.4 · content score."""

    type: str = "operation-result"
    needs_expectation = True
    threshold: float = 0.8

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        """Say how long a pattern may take.

        Args:
            timeout: seconds for one pattern on one page; one that takes longer counts as not found.

        Raises:
            ValueError: it is no number above 0.
        """
        self.timeout = _seconds(timeout)
        self._content = ContentQuality(timeout=timeout)

    @property
    def options(self) -> dict[str, Any]:
        """What it was built with, as far as that is not the default."""
        return {} if self.timeout == TIMEOUT else {"timeout": self.timeout}

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """0 to 1; nothing expected is 1.0 if nothing was done, else 0.0."""
        return self.score_with_details(actual, expected)[0]

    def details(self, actual: Actual, expected: EditExpectation) -> ResultDetails:
        """The two parts, and what could not be applied."""
        return self.score_with_details(actual, expected)[1]

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, ResultDetails]:
        """Both of one search."""
        done = as_result(actual)
        content, told = self._content.score_with_details(done, expected)
        rate = 0.0 if told.unexpected_operations else _rate(done, expected)
        flags = done.applied if done.applied is not None else [True] * len(done.operations)
        failed = tuple(one for one, flag in zip(done.operations, flags, strict=True) if not flag)
        details = ResultDetails(
            rate, content, failed, done.applied is not None, told.content_issues, told.unexpected_operations
        )
        return 0.6 * rate + 0.4 * content, details


def _rate(done: EditResult, expected: EditExpectation) -> float:
    if not done.operations:
        return 0.0 if expected.operations else 1.0
    return 1.0 if done.applied is None else sum(done.applied) / len(done.operations)


def _seconds(value: Any) -> float:
    if not is_number(value) or value <= 0:
        raise ValueError(f"a timeout is a number of seconds above 0, not {brief(value)}")
    seconds: float = value
    return seconds
