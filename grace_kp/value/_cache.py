"""A bounded cache of embeddings that finds the largest cosine similarity of a vector to the vectors in it.

It knows nothing about texts or traces. Normalised rows are kept in one preallocated float32 matrix, used as a ring. Creating the first
cache loads numpy.
"""

from __future__ import annotations

import math
import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from grace_kp.errors import check_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

# Smaller components change no float32 similarity, but arithmetic on denormal numbers is slow.
_NEGLIGIBLE = 1e-12
# Finer than any clock. Without it, 0.08 - 0.05 > 0.03 would depend on binary rounding.
_SAME_INSTANT = 1e-9


class VectorCache:
    """Keeps the last vectors and compares new ones with them by cosine similarity. Safe to share between threads.

    Args:
        max_elements: number of vectors that are kept; another one replaces the oldest.
        dimensions: length of every vector.
        ttl_seconds: how long a vector is kept (`added_at > now - ttl_seconds`); None for no limit.
        clock: returns the time in seconds; must not go backwards.

    Memory is max_elements * dimensions * 4 bytes, allocated at once: about 1.5 MB by default.
    """

    __slots__ = (
        "_added_at", "_clock", "_count", "_lock", "_matrix", "_next", "dimensions", "max_elements", "ttl_seconds",
    )  # fmt: skip

    def __init__(
        self,
        max_elements: int = 1000,
        dimensions: int = 384,
        ttl_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        import numpy as np

        check_whole("max_elements", max_elements)
        check_whole("dimensions", dimensions)
        is_number = isinstance(ttl_seconds, int | float) and not isinstance(ttl_seconds, bool)
        if ttl_seconds is not None and not (is_number and 0 < ttl_seconds < math.inf):
            problem = f"a positive number of seconds, or None for no limit (got {ttl_seconds!r})"
            raise ValueError(f"ttl_seconds must be {problem}")
        self.max_elements = max_elements
        """Number of vectors that are kept at most."""
        self.dimensions = dimensions
        """Length of every vector."""
        self.ttl_seconds = None if ttl_seconds is None else float(ttl_seconds)
        """How long a vector is kept, in seconds; None for no limit."""
        self._clock = clock
        self._matrix = np.zeros((max_elements, dimensions), dtype=np.float32)
        self._added_at = np.zeros(max_elements, dtype=np.float64)
        self._count = 0
        self._next = 0
        self._lock = Lock()

    @property
    def size(self) -> int:
        """Number of vectors that have not expired."""
        with self._lock:
            live = self._live()
            return self._count if live is None else int(live.sum())

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        # `cache or VectorCache()` must not replace an empty cache.
        return True

    def add(self, vector: Sequence[float] | npt.NDArray[Any]) -> None:
        """Add a vector of shape (dimensions,); a full cache drops the oldest.

        Raises:
            ValueError: the vector has another length (the message names both), or a component is not a finite number.
        """
        row = self._normalise(vector)
        with self._lock:
            self._put(row)

    def max_cosine_similarity(self, query: Sequence[float] | npt.NDArray[Any]) -> float:
        """Return the largest cosine similarity of `query`, shape (dimensions,), to a vector, -1 to 1; 0 when the cache is empty.

        A zero vector has similarity 0 to everything.

        Raises:
            ValueError: the vector has another length (the message names both), or a component is not a finite number.
        """
        row = self._normalise(query)
        with self._lock:
            return self._nearest(row) or 0.0

    def compare_and_add(self, vector: Sequence[float] | npt.NDArray[Any]) -> float | None:
        """Compare as `max_cosine_similarity` does, then add, as one atomic step; return None when the cache was empty.

        Raises:
            ValueError: as `add`.
        """
        row = self._normalise(vector)
        with self._lock:
            similarity = self._nearest(row)
            self._put(row)
            return similarity

    def clear(self) -> None:
        """Drop all vectors."""
        with self._lock:
            self._count = self._next = 0

    def _put(self, row: npt.NDArray[np.float32]) -> None:
        self._added_at[self._next] = self._clock() if self.ttl_seconds is not None else 0.0
        self._matrix[self._next] = row
        self._next = (self._next + 1) % self.max_elements
        self._count = min(self._count + 1, self.max_elements)

    def _nearest(self, row: npt.NDArray[np.float32]) -> float | None:
        if not self._count:
            return None
        import numpy as np

        with np.errstate(invalid="ignore"):  # both sides are finite; some kernels compute on lanes that nobody filled
            similarities = self._matrix[: self._count] @ row
        live = self._live()
        if live is not None:
            similarities = similarities[live]
            if not similarities.size:
                return None
        return max(-1.0, min(1.0, float(similarities.max())))

    def _live(self) -> npt.NDArray[np.bool_] | None:
        """Return which rows have not expired, by position in the ring; None without a limit."""
        if self.ttl_seconds is None:
            return None
        now = self._clock()
        same = max(_SAME_INSTANT, 4 * math.ulp(now))
        live: npt.NDArray[np.bool_] = self._added_at[: self._count] > (now - self.ttl_seconds) + same
        return live

    def _normalise(self, vector: object) -> npt.NDArray[np.float32]:
        """Return the vector normalised to length 1 in float32, computed in float64; a zero vector stays zero."""
        import numpy as np

        values = np.asarray(vector)
        if values.ndim != 1:
            raise ValueError(f"expected one vector of {self.dimensions} numbers, got an array of shape {values.shape}")
        if len(values) != self.dimensions:
            raise ValueError(f"expected a vector of {self.dimensions} numbers, got {len(values)}")
        if values.dtype.kind not in "fiu":
            raise ValueError(f"a vector must consist of numbers (got {values.dtype})")
        # The caller may have set numpy to raise on underflow, which is harmless here.
        with np.errstate(all="ignore"):
            values = values.astype(np.float64, copy=False)
            largest = float(np.abs(values).max())
            if not math.isfinite(largest):
                raise ValueError("a vector must consist of finite numbers (got NaN or infinity)")
            if largest == 0.0:
                return np.zeros(self.dimensions, dtype=np.float32)
            # Scaled to a largest component of 1 first: the squares of 1e200 and 1e-200 do not fit a float.
            scaled = values / largest
            scaled /= math.sqrt(float(scaled @ scaled))
            scaled[np.abs(scaled) < _NEGLIGIBLE] = 0.0
            return scaled.astype(np.float32)
