"""Judgements of one run of a variant over one document, and the score of the run (SPEC §9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BONUS = 0.5
PENALTY = 0.5
MAX_BONUSES = 5
MAX_COUNT = 1_000_000


class Detection(Enum):
    """How completely a problem was found. Values are the scores of SPEC §9."""

    DETECTED = 1.0
    """○: the findings contain everything that the key asks for."""
    PARTIAL = 0.5
    """△: a finding is related, but misses the core of the problem."""
    MISSED = 0.0
    """×: no finding is about the problem."""

    @property
    def symbol(self) -> str:
        """○, △ or ×."""
        return _SYMBOLS[self]

    @classmethod
    def of(cls, value: object) -> Detection:
        """Return the judgement that a member, a symbol (○ △ ×) or a word (detected, partial, missed) stands for.

        Raises:
            ValueError: the value is none of these.
        """
        if isinstance(value, cls):
            return value
        detection = _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
        if detection is None:
            raise ValueError(f"a judgement must be one of ○ △ × detected partial missed, not {brief(value)}")
        return detection


_SYMBOLS = {Detection.DETECTED: "○", Detection.PARTIAL: "△", Detection.MISSED: "×"}
# The symbols have several forms, and keyboards offer some of them more readily than others.
_WORDS = {
    **dict.fromkeys(("○", "◯", "〇", "o", "detected", "yes", "found", "検出"), Detection.DETECTED),
    **dict.fromkeys(("△", "▲", "partial", "partly", "部分検出"), Detection.PARTIAL),
    **dict.fromkeys(("×", "✕", "✗", "x", "missed", "no", "未検出"), Detection.MISSED),
}


def extra_points(bonuses: int, penalties: int) -> float:
    """Return the points that bonuses and penalties add to the score of a run."""
    return BONUS * min(bonuses, MAX_BONUSES) - PENALTY * penalties


def run_score(judgements: Iterable[object], bonuses: int = 0, penalties: int = 0) -> float:
    """Return the score of one run: `Σ judgements + 0.5·min(bonuses, 5) − 0.5·penalties` (SPEC §9).

    Args:
        judgements: one per problem, in any form that `Detection.of` accepts.
        bonuses: further findings that are true, useful and in scope; those after the fifth add nothing.
        penalties: findings that are out of scope or wrong, without a limit. In doubt, a finding is no penalty.

    Raises:
        ValueError: a judgement is unknown, or a count is no whole number from 0.
    """
    check_count("bonuses", bonuses)
    check_count("penalties", penalties)
    return sum(Detection.of(judgement).value for judgement in judgements) + extra_points(bonuses, penalties)


def detections_of(judgements: Mapping[str, object]) -> dict[str, Detection]:
    """Return judgements by problem id as members.

    Raises:
        ValueError: a judgement is unknown.
    """
    return {str(problem): Detection.of(judgement) for problem, judgement in judgements.items()}


def check_count(name: str, value: object) -> None:
    """Refuse a value that is no whole number from 0 to 1,000,000.

    Raises:
        ValueError: naming the value and what was found.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} must be a whole number from 0, not {brief(value)}")
    if value > MAX_COUNT:
        raise ValueError(f"{name} must be at most {MAX_COUNT:,}, not {brief(value)}")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a variant over one document.

    Raises:
        ValueError: a judgement or a count cannot be used.
    """

    document: str
    """The id of the document."""
    judgements: Mapping[str, Detection]
    """By problem id, in any form that `Detection.of` accepts."""
    bonuses: int = 0
    penalties: int = 0
    score: float = field(init=False)
    """The score of the run, from `run_score`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "judgements", detections_of(self.judgements))
        object.__setattr__(self, "score", run_score(self.judgements.values(), self.bonuses, self.penalties))
