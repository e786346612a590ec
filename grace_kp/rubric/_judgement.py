"""One run of a variant over a document: a judgement per problem, bonuses, penalties, and the score that they come to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BONUS = 0.5
PENALTY = 0.5
MAX_BONUSES = 5
MOST = 1_000_000


class Detection(Enum):
    """How far a problem was found. Values are the scores of SPEC §9."""

    DETECTED = 1.0
    """○: everything that the key asks for is there."""
    PARTIAL = 0.5
    """△: related, but the heart of the matter is missed."""
    MISSED = 0.0
    """×: nothing about it."""

    @property
    def symbol(self) -> str:
        """○, △ or ×."""
        return _SYMBOLS[self]

    @classmethod
    def of(cls, value: Any) -> Detection:
        """A judgement from a member, a symbol (○ △ ×), or a word (detected, partial, missed).

        Raises:
            ValueError: none of these.
        """
        if isinstance(value, cls):
            return value
        found = _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
        if found is None:
            raise ValueError(f"a judgement is one of ○ △ × detected partial missed, not {brief(value)}")
        return found


_SYMBOLS = {Detection.DETECTED: "○", Detection.PARTIAL: "△", Detection.MISSED: "×"}
# The signs are drawn in several ways, and keyboards give some of them more readily than others.
_WORDS = {
    **dict.fromkeys(("○", "◯", "〇", "o", "detected", "yes", "found", "検出"), Detection.DETECTED),
    **dict.fromkeys(("△", "▲", "partial", "partly", "部分検出"), Detection.PARTIAL),
    **dict.fromkeys(("×", "✕", "✗", "x", "missed", "no", "未検出"), Detection.MISSED),
}


def run_score(judgements: Iterable[Any], bonuses: int = 0, penalties: int = 0) -> float:
    """The score of one run: `Σ judgements + 0.5·min(bonuses, 5) − 0.5·penalties` (SPEC §9).

    Args:
        judgements: one per problem, in any form that `Detection.of` takes.
        bonuses: further findings that are true, useful and in scope; the sixth and more count nothing.
        penalties: findings that are out of scope or wrong; without a limit. In doubt, none.

    Raises:
        ValueError: a judgement is none, or a count is no whole number from 0.
    """
    counted("bonuses", bonuses)
    counted("penalties", penalties)
    return sum(Detection.of(one).value for one in judgements) + BONUS * min(bonuses, MAX_BONUSES) - PENALTY * penalties


def counted(name: str, value: Any) -> None:
    """Refuse what is no count.

    Raises:
        ValueError: it is no whole number from 0 to 1,000,000.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} must be a whole number from 0, not {brief(value)}")
    if value > MOST:
        raise ValueError(f"{name} must be at most {MOST:,}, not {brief(value)}")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a variant over one document.

    Raises:
        ValueError: a judgement or a count cannot be used.
    """

    document: str
    """The document's id."""
    judgements: Mapping[str, Detection]
    """By problem id; given in any form that `Detection.of` takes."""
    bonuses: int = 0
    penalties: int = 0
    score: float = field(init=False)
    """What the run comes to."""

    def __post_init__(self) -> None:
        made = {str(problem): Detection.of(value) for problem, value in self.judgements.items()}
        object.__setattr__(self, "judgements", made)
        object.__setattr__(self, "score", run_score(made.values(), self.bonuses, self.penalties))
