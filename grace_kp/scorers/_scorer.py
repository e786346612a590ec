"""The protocol of a scorer, and the base of the scorers of this library, which compute score and details together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from grace_kp.scorers._edits import Actual, EditExpectation

Details = TypeVar("Details")


class Scorer(Protocol):
    """One aspect of what an agent did. A scorer is independent of others and stateless, so that many can run side by side.

    Two further members are used where a scorer has them: `score_with_details(actual, expected)`, which returns both from one evaluation,
    and `options`, a mapping from which `Suite.to_yaml` writes how the scorer was built.
    """

    type: str
    threshold: float
    """The lowest score that is good enough, 0 to 1."""

    def score(self, actual: Any, expected: Any) -> float:
        """Return the score, 0 to 1."""
        ...

    def details(self, actual: Any, expected: Any) -> Any:
        """Return a record that explains the score."""
        ...


class DetailedScorer(Generic[Details]):
    """A scorer of this library."""

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """Return the score, 0 to 1.

        Raises:
            ValueError: the result lacks what the scorer looks at.
        """
        return self.score_with_details(actual, expected)[0]

    def details(self, actual: Actual, expected: EditExpectation) -> Details:
        """Return the record that explains the score.

        Raises:
            ValueError: the result lacks what the scorer looks at.
        """
        return self.score_with_details(actual, expected)[1]

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, Details]:
        """Return score and details of one evaluation."""
        raise NotImplementedError
