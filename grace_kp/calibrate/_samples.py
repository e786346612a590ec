"""Confidences with labels as checked arrays, and records that have a JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from grace_kp.errors import check_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Places = NDArray[np.intp]


MAX_WEIGHT = 1e9


class JsonRecord:
    """A slotted record with a JSON form: its fields, or the attributes that `_json` names."""

    __slots__ = ()
    _json: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: json_form(getattr(self, name)) for name in self._json or self.__slots__}


def json_form(value: Any) -> Any:
    """Return a record, mapping or tuple as JSON values, and any other value as it is."""
    if isinstance(value, Mapping):
        return {str(name): json_form(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_form(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def check_inside(name: str, value: Any) -> None:
    """Refuse a value that is not a number above 0 and below 1."""
    check_unit(name, value)
    if not 0 < value < 1:
        raise ValueError(f"{name} must be above 0 and below 1 (got {value!r})")


def check_seed(seed: Any) -> None:
    """Refuse a seed that is not a whole number of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a whole number of at least 0 (got {seed!r:.60})")


def units(name: str, values: Iterable[Any]) -> Floats:
    """Return numbers from 0 to 1 as an array of shape (n,)."""
    if not isinstance(values, np.ndarray):
        values = list(values)
        for number, value in enumerate(values):
            if value is None or isinstance(value, str | bytes):
                raise ValueError(f"{name}[{number}] must be a number from 0 to 1 (got {value!r:.60})")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers from 0 to 1: {error}") from None
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension (got the shape {array.shape})")
    wrong = ~((array >= 0) & (array <= 1))
    if wrong.any():
        number = int(np.argmax(wrong))
        raise ValueError(f"{name}[{number}] must be a number from 0 to 1 (got {float(array[number])!r})")
    return array


def samples(confidence: Iterable[Any], correct: Iterable[Any]) -> tuple[Floats, Floats]:
    """Return confidences and labels, 0 to 1, as arrays of the same length."""
    scores, labels = units("confidence", confidence), units("correct", correct)
    if len(scores) != len(labels):
        raise ValueError(f"confidence and correct must have the same length (got {len(scores)} and {len(labels)})")
    if not len(scores):
        raise ValueError("confidence and correct must hold at least one label (got none)")
    return scores, labels


def check_lengths(noun: str, count: int, **entries: Sequence[Any] | Floats | None) -> None:
    """Refuse lists that do not have one entry for each run or action. None is skipped."""
    for name, values in entries.items():
        if values is not None and len(values) != count:
            raise ValueError(f"there are {count:,} {noun}s and {len(values):,} {name}; each {noun} needs an entry")


def group_numbers(name: str, groups: Iterable[Any], n: int) -> tuple[Places, list[Any]]:
    """Return the number of each sample's group, and the groups in the order of their first sample."""
    known: dict[Any, int] = {}
    try:
        numbers = [known.setdefault(group, len(known)) for group in groups]
    except TypeError as error:
        raise ValueError(f"{name} must be hashable values, such as strings: {error}") from None
    if len(numbers) != n:
        raise ValueError(f"{name} must hold one group for each sample (got {len(numbers)} for {n})")
    return np.asarray(numbers, dtype=np.intp), list(known)


def weights_of(values: Iterable[Any], n: int) -> Floats:
    """Return weights as an array of shape (n,)."""
    try:
        array = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be numbers above 0: {error}") from None
    if array.shape != (n,):
        raise ValueError(f"weights must hold one number for each sample (got the shape {array.shape} for {n})")
    wrong = ~((array > 0) & (array <= MAX_WEIGHT))
    if wrong.any():
        number = int(np.argmax(wrong))
        raise ValueError(
            f"weights[{number}] must be a number above 0, at most {MAX_WEIGHT:g} (got {float(array[number])!r})"
        )
    return array


FOLDS = 5


def group_folds(groups: Places, labels: Floats, folds: int, random: np.random.Generator) -> Places:
    """Return the fold of each row, 0 to `folds - 1`. Rows of a group share a fold; sizes and successes, labels from 0 to 1, are spread evenly."""
    sizes = np.bincount(groups)
    successes = np.bincount(groups, weights=labels)
    folds = min(folds, int((sizes > 0).sum()))
    share = float(labels.mean()) if len(labels) else 0.0
    order = random.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    chosen = np.zeros(len(sizes), dtype=np.intp)
    rows, surplus = np.zeros(folds), np.zeros(folds)
    for group in order:
        moved = surplus + successes[group] - share * sizes[group]
        fold = int(np.argmin(rows + np.abs(moved) - np.abs(surplus)))
        chosen[group] = fold
        rows[fold] += sizes[group]
        surplus[fold] = moved[fold]
    return np.asarray(chosen[groups])


def fold_masks(folds: Places) -> Iterator[Mask]:
    """Yield for each fold which rows are in it; none where all are in one."""
    masks = [folds == fold for fold in range(int(folds.max()) + 1)]
    return iter(masks if len(masks) > 1 else ())


def thinned(weights: Floats, random: np.random.Generator) -> Mask:
    """Draw samples with probabilities in proportion to their weights. The drawn samples need no weights."""
    kept: Mask = random.random(len(weights)) * weights.max(initial=0.0) < weights
    return kept


def independent(
    labels: Floats, groups: Iterable[Any] | None, weights: Iterable[Any] | None, seed: int
) -> tuple[Mask, list[str]]:
    """Return which of the samples a guarantee may count, and notes about what was left out.

    Labels, of shape (n,), between 0 and 1 are left out. The rest is thinned to equal probabilities, and one sample of each group is drawn.
    """
    notes: list[str] = []
    n = len(labels)
    random = np.random.default_rng(seed)
    kept = (labels == 0) | (labels == 1)
    if not kept.all():
        notes.append(f"{int((~kept).sum()):,} labels between 0 and 1 were left out: a guarantee uses only 0 and 1.")
    numbers = None if groups is None else group_numbers("groups", groups, n)[0]
    if weights is not None:
        kept &= thinned(weights_of(weights, n), random)
        notes.append(f"{int(kept.sum()):,} of {n:,} labels remain after thinning to equal probabilities.")
    if numbers is not None:
        order = random.permutation(n)
        order = order[kept[order]]
        first = order[np.unique(numbers[order], return_index=True)[1]]
        kept = np.zeros(n, dtype=bool)
        kept[first] = True
        notes.append(
            f"one label of each of {len(first):,} groups (such as tasks) is used, because labels of a group are not independent."
        )
    if not kept.any():
        raise ValueError("no label of 0 or 1 is left")
    return kept, notes
