"""Scorers of the outcome of an edit: the content of its pages, whether its operations could be applied, and its duration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.errors import brief
from grace_kp.scorers._edits import DetailedScorer, EditExpectation, Operation, as_result, check_positive
from grace_kp.scorers._patterns import TIMEOUT, compiled_by_page, is_found, patterns_by_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.scorers._edits import Actual


SHOWN = 100


@dataclass(frozen=True, slots=True)
class ContentDetails:
    """Explanation of a content-quality."""

    matched_patterns: int
    total_patterns: int
    content_issues: tuple[str, ...]
    unexpected_operations: tuple[Operation, ...] = ()
    """Operations that were done although nothing was expected, neither operations nor patterns."""


class ContentQuality(DetailedScorer[ContentDetails]):
    """The share of the expected patterns that are found on their pages. The answer of a trace is its page `result`.

    Where only operations are expected, the score is 1.0. Where nothing at all is expected, it is 1.0 if nothing was done, else 0.0.
    """

    type: str = "content-quality"
    threshold: float = 0.6

    def __init__(
        self, patterns: Mapping[str, Sequence[str]] | None = None, *, ignore_case: bool = True, timeout: float = TIMEOUT
    ) -> None:
        """Set patterns to look for in every case, besides the expected ones.

        Args:
            patterns: regular expressions by page title.
            ignore_case: whether these patterns match upper and lower case alike.
            timeout: seconds for one pattern on one page; a pattern that takes longer counts as not found.

        Raises:
            PatternError: a pattern is malformed, or the patterns are not lists by page title.
            ValueError: the timeout is not a number above 0, or ignore_case is neither True nor False.
        """
        if not isinstance(ignore_case, bool):
            raise ValueError(f"ignore_case must be True or False, not {brief(ignore_case)}")
        self.timeout = check_positive("timeout", timeout)
        own = patterns_by_page(patterns, "patterns")
        self.patterns = {title: list(texts) for title, texts in own.items()}
        self.ignore_case = ignore_case
        self._compiled = compiled_by_page(own, ignore_case=ignore_case, place="patterns")

    @property
    def options(self) -> dict[str, Any]:
        """The options that the scorer was built with, as far as they differ from the defaults."""
        return {
            **({"patterns": {title: list(texts) for title, texts in self.patterns.items()}} if self.patterns else {}),
            **({} if self.ignore_case else {"ignore_case": False}),
            **({} if self.timeout == TIMEOUT else {"timeout": self.timeout}),
        }

    @property
    def needs_expectation(self) -> bool:
        """Whether the scorer needs the expectation of a case, because it was built without patterns."""
        return not self.patterns

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, ContentDetails]:
        """Return score and details of one search."""
        result = as_result(actual)
        pages = result.pages or {}
        wanted = (*self._compiled, *expected.compiled)
        issues = []
        for title, text, pattern in wanted:
            content = pages.get(title, "")
            found = is_found(pattern, content, self.timeout)
            if not found:
                late = f" within {self.timeout:g} s" if found is None else ""
                issues.append(f"Page '{title}': Pattern '{text}' not found{late} in content: '{content[:SHOWN]}...'")
        unexpected = () if wanted or expected.operations else tuple(result.operations)
        details = ContentDetails(len(wanted) - len(issues), len(wanted), tuple(issues), unexpected)
        return details.matched_patterns / len(wanted) if wanted else float(not unexpected), details


@dataclass(frozen=True, slots=True)
class ResultDetails:
    """Explanation of an operation-result."""

    application_success_rate: float
    """0 where nothing was done though something was expected, and where something was done though nothing was."""
    content_score: float
    failed_operations: tuple[Operation, ...]
    application_known: bool
    """False where it is unknown which operations could be applied; then every operation counts as applied."""
    content_issues: tuple[str, ...] = ()
    """The patterns that were not found."""
    unexpected_operations: tuple[Operation, ...] = ()
    """Operations that were done although nothing was expected, neither operations nor patterns."""


class OperationResult(DetailedScorer[ResultDetails]):
    """How many operations could be applied, and what the pages contain afterwards: 0.6 · success rate + 0.4 · content score.

    Where nothing is expected, the score is 1.0 if nothing was done, else 0.0.
    """

    type: str = "operation-result"
    needs_expectation = True
    threshold: float = 0.8

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        """Set how long a pattern may take.

        Args:
            timeout: seconds for one pattern on one page; a pattern that takes longer counts as not found.

        Raises:
            ValueError: the timeout is not a number above 0.
        """
        self._content = ContentQuality(timeout=timeout)
        self.timeout = self._content.timeout

    @property
    def options(self) -> dict[str, Any]:
        """The options that the scorer was built with, as far as they differ from the defaults."""
        return self._content.options

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, ResultDetails]:
        """Return score and details of one search."""
        result = as_result(actual)
        content, found = self._content.score_with_details(result, expected)
        applied = [True] * len(result.operations) if result.applied is None else result.applied
        if found.unexpected_operations:
            rate = 0.0
        else:
            rate = sum(applied) / len(applied) if applied else float(not expected.operations)
        details = ResultDetails(
            rate,
            content,
            failed_operations=tuple(
                operation for operation, ok in zip(result.operations, applied, strict=True) if not ok
            ),
            application_known=result.applied is not None,
            content_issues=found.content_issues,
            unexpected_operations=found.unexpected_operations,
        )
        return 0.6 * rate + 0.4 * content, details


@dataclass(frozen=True, slots=True)
class TimeDetails:
    """Explanation of a response-time."""

    response_time_ms: float
    max_acceptable_ms: float
    passed: bool


class ResponseTime(DetailedScorer[TimeDetails]):
    """1 up to `max_acceptable_ms`, then max(0, 1 − (t − max)/max): 0 from twice that time on."""

    type: str = "response-time"
    threshold: float = 1.0

    def __init__(self, max_acceptable_ms: float) -> None:
        """Set the longest duration that is good enough.

        Args:
            max_acceptable_ms: milliseconds.

        Raises:
            ValueError: the duration is not a number above 0.
        """
        self.max_acceptable_ms = check_positive("max_acceptable_ms", max_acceptable_ms)

    @property
    def options(self) -> dict[str, float]:
        """The options that the scorer was built with."""
        return {"max_acceptable_ms": self.max_acceptable_ms}

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, TimeDetails]:  # noqa: ARG002
        """Return score and details of one result.

        Raises:
            ValueError: the duration is unknown.
        """
        duration, longest = as_result(actual).duration_ms, self.max_acceptable_ms
        if duration is None:
            raise ValueError("the duration of the result is unknown: duration_ms is None")
        score = min(1.0, max(0.0, 1 - (duration - longest) / longest))
        return score, TimeDetails(duration, longest, duration <= longest)
