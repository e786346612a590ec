"""The scores of a retriever: their kind, their declared place, and the similarity, 0 to 1, of a figure.

A figure of unknown kind is unusable, because a guess must not be recorded as a measurement. `_search_result` finds the figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

ScoreKind = Literal[
    "similarity", "cosine_similarity", "distance", "cosine_distance", "l2_distance", "squared_l2_distance", "none"
]
Scores: TypeAlias = (
    ScoreKind | str | tuple[str, ScoreKind | Callable[[float], float | None]] | Callable[[Any], float | None]
)
"""The declaration of a retriever's scores: a kind, a path to them, a path with a kind or function, or a function."""
SCORE_KINDS: tuple[str, ...] = get_args(ScoreKind)
NONE = "none"
"""The kind of figures that are not scores."""
UNKNOWN = "unknown"
"""The kind of figures that are neither declared nor known by their names: all are unusable."""
CUSTOM = "custom"
"""The kind that is recorded where the user passed a function."""

_SLIP = 1e-5
"""How far out of range a figure may be and still count as a rounding error of 32-bit arithmetic."""
_NUMBER_MODULES = frozenset({"decimal", "fractions", "numpy", "torch", "jax", "jaxlib", "tensorflow"})
_ARRAY_MODULES = _NUMBER_MODULES | {"array", "pandas", "polars", "pyarrow"}
_MAX_ARRAY = 10_000
_LONGEST = 40
_LONGEST_PATH = 200
_NO_NAME = frozenset("[]*\"'")
_DECLARE = "declare it with scores=... on the retriever or handler"


@dataclass(frozen=True, slots=True)
class Unusable:
    """A figure in the place of a score that cannot be used."""

    value: str
    """The figure, rendered and cut."""
    why: str
    """Why it cannot be used."""


@dataclass(frozen=True, slots=True)
class _Scale:
    highest: float
    similarity: Callable[[float], float]
    lowest: float = 0.0

    @property
    def range(self) -> str:
        """The range in words."""
        return f"{self.lowest:g} or more" if self.highest == math.inf else f"from {self.lowest:g} to {self.highest:g}"


# On vectors of length 1 a cosine similarity is 1 - d for the cosine distance, 1 - d²/2 for the Euclidean distance and 1 - d/2 for its
# square. 1 - d is at most each of these, so a distance of unknown metric is never taken for a better hit than it is.
_SCALES: Mapping[str, _Scale] = {
    "similarity": _Scale(1.0, lambda figure: figure),
    "cosine_similarity": _Scale(1.0, lambda figure: figure, lowest=-1.0),
    "distance": _Scale(math.inf, lambda figure: 1.0 - figure),
    "cosine_distance": _Scale(2.0, lambda figure: 1.0 - figure),
    "l2_distance": _Scale(2.0, lambda figure: 1.0 - figure * figure / 2),
    "squared_l2_distance": _Scale(4.0, lambda figure: 1.0 - figure / 2),
}


def checked_scores(scores: Scores | None) -> Scores | None:
    """Return a declaration of a retriever's scores if it is valid; None declares nothing."""
    if scores is None or callable(scores) or (isinstance(scores, str) and scores in SCORE_KINDS):
        return scores
    if isinstance(scores, tuple) and len(scores) == 2 and isinstance(scores[0], str):
        path, kind = scores
        _check_path(path)
        if callable(kind) or (isinstance(kind, str) and kind in SCORE_KINDS and kind != NONE):
            return scores
        kinds = ", ".join(name for name in SCORE_KINDS if name != NONE)
        raise ValueError(f"the scores at {path!r} must be one of {kinds}, or a function (got {_describe_type(kind)})")
    if isinstance(scores, str) and "." in scores:
        _check_path(scores)
        if "dist" in scores.rpartition(".")[2].lower():
            raise ValueError(
                f"scores={scores!r} names a distance; declare its kind, too: scores=({scores!r}, 'cosine_distance')"
            )
        return scores
    raise ValueError(
        f"scores must be one of {', '.join(SCORE_KINDS)}, a path such as 'metadata.score', a path with its kind such as "
        f"('score', 'distance'), or a function to 0..1 (got {_describe_type(scores)})"
    )


def _check_path(path: str) -> None:
    names = path.split(".")
    if "" in names:
        problem = "a name is empty"
    elif any(name != name.strip() or not name.isprintable() for name in names):
        problem = "it contains blanks around a name, or characters that cannot be printed"
    elif _NO_NAME.intersection(path):
        problem = f"it contains one of {' '.join(sorted(_NO_NAME))}"
    elif len(path) > _LONGEST_PATH:
        problem = f"it is longer than {_LONGEST_PATH} characters"
    else:
        return
    raise ValueError(
        f"scores: {path[:_LONGEST]!r} cannot be a path, because {problem}; a path consists of names of fields with dots between them, "
        "such as 'metadata.score'"
    )


def _describe_type(value: object) -> str:
    return repr(value)[:_LONGEST] if isinstance(value, str) else type(value).__name__


def place_and_kind(scores: Any) -> tuple[str | None, Any]:
    """Return the declared path, None where none is declared, and the kind or function for the figures."""
    if isinstance(scores, tuple):
        return scores
    return (scores, "similarity") if isinstance(scores, str) and "." in scores else (None, scores)


def kind_of(kind: object) -> str:
    """Return the declared kind as it is recorded; empty where none was declared."""
    return "" if kind is None or kind == UNKNOWN else kind if isinstance(kind, str) else CUSTOM


def figure_of(value: Any) -> float | Unusable:
    """Return a value as a finite number, or why it is not one."""
    if issubclass(type(value), Unusable):
        return value  # type: ignore[no-any-return]
    if value is None:
        return Unusable("None", "the score is None")
    if not is_number(value):
        return Unusable(_show(value), "it is not a number")
    kind: Any = type(value)
    try:
        # Not as a subclass converts itself.
        base: Any = next((base for base in (float, int) if issubclass(kind, base)), None)
        figure = float(value) if base is None else base.__float__(value)
    except (TypeError, ValueError, ArithmeticError, RuntimeError):  # an integer that is too large, a signalling NaN
        return Unusable(type(value).__name__, "it cannot be converted to a float")
    return figure if math.isfinite(figure) else Unusable(repr(figure), "it is not finite")


def similarity_of(figure: float, kind: str | None, *, where: str) -> float | Unusable:
    """Return the similarity, 0 to 1, of a figure, or why it is unusable."""
    if kind is None or kind == UNKNOWN:
        if where == "pair" or (kind == UNKNOWN and where == "named"):
            return Unusable(repr(figure), f"it may be a similarity or a distance; {_DECLARE}")
        if where == "distance":
            return Unusable(repr(figure), f"it is a distance of unknown metric; {_DECLARE}")
        kind = "similarity"
    scale = _SCALES[kind]
    if not scale.lowest - _SLIP <= figure <= scale.highest + _SLIP:
        return Unusable(repr(figure), f"a {kind.replace('_', ' ')} is {scale.range}")
    return _clamp(scale.similarity(max(scale.lowest, figure)))


def checked_similarity(value: object, shown: str) -> float | Unusable:
    """Return what the user's function returned for a figure, if it is a similarity from 0 to 1; else why it is unusable."""
    similarity = figure_of(value)
    if isinstance(similarity, Unusable) or not -_SLIP <= similarity <= 1 + _SLIP:
        return Unusable(shown, "the function passed as scores gave no number from 0 to 1")
    return _clamp(similarity)


def _clamp(similarity: float) -> float:
    return min(1.0, max(0.0, similarity))


def _show(value: object) -> str:
    # No repr of other types: it would run foreign code.
    if issubclass(type(value), str):
        text = str.__str__(value)
        return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
    return str(value) if type(value) is bool else type(value).__name__


def is_number(value: object) -> bool:
    """Return whether the value is a number of Python or of a known library whose conversion runs no foreign code. A bool is not."""
    kind = type(value)
    if issubclass(kind, (int, float)):
        return kind is not bool
    return module_of(kind) in _NUMBER_MODULES and hasattr(kind, "__float__") and not getattr(value, "ndim", 0)


def listed_array(value: Any) -> Any:
    """Return an array of a known library as nested lists; large arrays and all other values unchanged."""
    if is_array(value) and hasattr(type(value), "tolist"):
        try:
            return value.tolist() if len(value) <= _MAX_ARRAY else value
        except (TypeError, ValueError, RuntimeError):  # an array without dimensions, or on a device that is gone
            return value
    return value


def is_array(value: object) -> bool:
    """Return whether the value belongs to a library of arrays and tables and has a length."""
    kind = type(value)
    return module_of(kind) in _ARRAY_MODULES and hasattr(kind, "__len__")


def class_module(kind: type) -> str:
    """Return the module of a class; empty where there is none."""
    module = type.__dict__["__module__"].__get__(kind)
    return module if type(module) is str else ""


def module_of(kind: type) -> str:
    """Return the top-level module of a class; empty where there is none."""
    return class_module(kind).partition(".")[0]
