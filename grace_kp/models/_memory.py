"""The memory of embedded texts that all embedders share, embedders that send texts away, and plain callables as embedders."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from grace_kp.errors import EmbedderError, JudgeError, check_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

REMEMBERED = 2_048
BATCH = 100


class RememberingEmbedder(ABC):
    """An embedder that keeps the vectors of the texts embedded last, by the hash of the text; about 1.5 KB each for 384 dimensions."""

    def __init__(self, remember: int) -> None:
        check_whole("remember", remember, 0)
        self._size = remember
        self._kept: OrderedDict[bytes, npt.NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    @abstractmethod
    def dimensions(self) -> int:
        """Length of every vector."""

    @abstractmethod
    def _rows(self, texts: list[str]) -> npt.NDArray[np.float32]: ...

    def embed(self, texts: Sequence[str], /) -> npt.NDArray[np.float32]:
        """Return one row per text, shape (n, dimensions), float32. Only unknown texts go through the model, each once.

        Raises:
            EmbedderError: the model cannot be loaded or used, or it returned something other than one vector per text.
            MissingExtra: the extra of the model is not installed.
        """
        import numpy as np

        if isinstance(texts, str):
            raise TypeError("embed takes a list of strings, not one string")
        hashes = [_hash(text) for text in texts]
        if not hashes:
            return np.empty((0, self._length_of_no_vector()), dtype=np.float32)
        with self._lock:
            known = {digest: row for digest in hashes if (row := self._kept.get(digest)) is not None}
            for digest in known:
                self._kept.move_to_end(digest)
        missing = {digest: text for digest, text in zip(hashes, texts, strict=True) if digest not in known}
        if missing:
            rows = np.asarray(self._rows(list(missing.values())), dtype=np.float32)
            if rows.ndim != 2 or len(rows) != len(missing):
                raise EmbedderError(f"the model gave an array of shape {rows.shape} for {len(missing)} texts")
            with self._lock:
                for digest, row in zip(missing, rows, strict=True):
                    known[digest] = row
                    if self._size:
                        self._kept[digest] = row.copy()
                while len(self._kept) > self._size:
                    self._kept.popitem(last=False)
        return np.stack([known[digest] for digest in hashes])

    def _length_of_no_vector(self) -> int:
        return self.dimensions


def _hash(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"embed takes strings, not {type(text).__name__}")
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class CallableEmbedder(RememberingEmbedder):
    """A callable from a string to a vector as an `Embedder`; the first vector sets its dimensions."""

    def __init__(
        self, function: Callable[[Any], Any], *, dimensions: int | None = None, remember: int = REMEMBERED
    ) -> None:
        if not callable(function):
            raise TypeError(f"an embedder has `embed` or is callable (got {type(function).__name__})")
        if dimensions is not None:
            check_whole("dimensions", dimensions)
        self._function = function
        super().__init__(remember)
        self._dimensions = dimensions

    @property
    def dimensions(self) -> int:
        """Length of every vector.

        Raises:
            EmbedderError: nothing has been embedded yet, and no length was passed.
        """
        if self._dimensions is None:
            raise EmbedderError("the length of the vectors is known after the first text")
        return self._dimensions

    def _length_of_no_vector(self) -> int:
        return self._dimensions or 0

    def _rows(self, texts: list[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        rows = np.asarray(self._vectors(texts), dtype=np.float32)
        if self._dimensions is None and rows.ndim == 2:
            self._dimensions = int(rows.shape[1])
        if rows.shape != (len(texts), self._dimensions) or not np.isfinite(rows).all():
            raise EmbedderError(f"the model gave an array of shape {rows.shape} for {len(texts)} texts")
        return rows

    def _vectors(self, texts: list[str]) -> list[Any]:
        return [self._function(text) for text in texts]


class RemoteEmbedder(CallableEmbedder):
    """An embedder that sends texts away, up to 100 in one call of `function`, cut and without secrets and identifiers."""

    _max_chars = 8_000

    def _vectors(self, texts: list[str]) -> list[Any]:
        # Not above: `auto` looks for the key when a Grace is created, and redaction takes time to load.
        from grace_kp.trace import redact_text

        sent = [redact_text(text[: self._max_chars], identifiers=True) or " " for text in texts]
        batches = [sent[start : start + BATCH] for start in range(0, len(sent), BATCH)]
        try:
            return [vector for batch in batches for vector in self._function(batch)]
        except JudgeError as error:
            raise EmbedderError(str(error)) from error
