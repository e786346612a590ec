"""Any model of sentence-transformers as an embedder (extra `embeddings`)."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.errors import EmbedderError, GraceError, MissingExtra
from grace_kp.models._hub import FETCH_HINT, REPOSITORY
from grace_kp.models._memory import REMEMBERED, Memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

MAX_CHARS = 20_000
_TRY_AGAIN_SECONDS = 60.0
_DEFAULT_DIMENSIONS = 384


class SentenceTransformerEmbedder:
    """Embeds texts by a model of sentence-transformers, normalised to length 1.

    The model is loaded once, on first use; importing the library takes seconds, so this is left to a background thread where `Grace` is
    used. Safe to share between threads: one batch at a time goes through the model.

    Args:
        model_or_path: a folder, or the name of a model on the hub.
        device: `cpu`, `cuda`, `mps` …; None leaves the choice to the library.
        fetch: whether a model that is not on disk may be fetched.
        batch_size: texts that go through the model at once.
        remember: how many texts' vectors are kept in memory.
    """

    def __init__(
        self,
        model_or_path: str | Path = REPOSITORY,
        device: str | None = None,
        *,
        fetch: bool = False,
        batch_size: int = 32,
        remember: int = REMEMBERED,
    ) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size must be a whole number >= 1 (got {batch_size!r})")
        self._model = str(model_or_path)
        self._device = device
        self._fetch = fetch
        self._batch = batch_size
        self._memory = Memory(remember)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._loaded: Any = None
        self._dimensions = _DEFAULT_DIMENSIONS
        self._failed: tuple[float, GraceError] | None = None

    @property
    def dimensions(self) -> int:
        """Length of every vector; loads the model when it is not the default one, whose vectors have 384."""
        if self._loaded is None and self._model != REPOSITORY:
            self.load()
        return self._dimensions

    def embed(self, texts: Sequence[str], /) -> npt.NDArray[np.float32]:
        """One row per text, shape (n, dimensions), float32, of length 1.

        Raises:
            EmbedderError: the model is not on disk and may not be fetched, or cannot be used.
            MissingExtra: the extra `embeddings` is not installed.
        """
        return self._memory.embed(texts, lambda: self.dimensions, self._rows)

    def load(self) -> None:
        """Load the model now instead of with the first text; the errors of `embed`."""
        self._after_fork()
        with self._lock:
            self._ready()

    def _rows(self, texts: list[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        self._after_fork()
        with self._lock:
            model = self._ready()
            try:
                rows = model.encode(
                    [text[:MAX_CHARS] for text in texts],
                    batch_size=self._batch,
                    convert_to_numpy=True,
                    normalize_embeddings=True,
                    show_progress_bar=False,
                )
            except Exception as error:
                raise EmbedderError(f"the model failed: {type(error).__name__}: {error}"[:400]) from error
        return np.asarray(rows, dtype=np.float32)

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            self._lock, self._pid, self._loaded = threading.Lock(), os.getpid(), None

    def _ready(self) -> Any:
        if self._loaded is None:
            if self._failed is not None and time.monotonic() - self._failed[0] < _TRY_AGAIN_SECONDS:
                raise self._failed[1]
            try:
                self._loaded = self._load()
                self._failed = None
            except GraceError as error:
                self._failed = (time.monotonic(), error)
                raise
        return self._loaded

    def _load(self) -> Any:
        local = Path(self._model).expanduser()
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingExtra("SentenceTransformerEmbedder", "embeddings") from None
        name = str(local) if local.is_dir() else self._model
        try:
            with _quiet(unless=self._fetch):
                model = SentenceTransformer(
                    name, device=self._device, local_files_only=not self._fetch or local.is_dir()
                )
        except Exception as error:
            hint = "" if self._fetch or local.is_dir() else f"; if it is not on disk, pass fetch=True ({FETCH_HINT})"
            raise EmbedderError(f"{name} cannot be loaded: {type(error).__name__}: {str(error)[:200]}{hint}") from error
        length = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        self._dimensions = int(length() or _DEFAULT_DIMENSIONS)
        return model

    def __repr__(self) -> str:
        return f"SentenceTransformerEmbedder({self._model!r})"


@contextlib.contextmanager
def _quiet(*, unless: bool) -> Iterator[None]:
    """No progress bars for loading from disk: this happens in the background of somebody's agent."""
    from transformers.utils import logging

    if unless or not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()
