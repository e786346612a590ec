"""Any model of sentence-transformers as an embedder (extra `embeddings`)."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.errors import EmbedderError, MissingExtra, check_whole
from grace_kp.models._hub import FETCH_HINT, REPOSITORY, LoadedOnce
from grace_kp.models._memory import REMEMBERED, RememberingEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

MAX_CHARS = 20_000
_DEFAULT_DIMENSIONS = 384


class SentenceTransformerEmbedder(RememberingEmbedder):
    """Embeds texts by a model of sentence-transformers, normalised to length 1.

    The model is loaded once, on first use. Importing the library takes seconds, so `Grace` does it in a background thread. Safe to
    share between threads: one batch at a time goes through the model.

    Args:
        model_or_path: a folder, or the name of a model on the hub.
        device: `cpu`, `cuda`, `mps` …; None leaves the choice to the library.
        fetch: whether a model that is not on disk may be fetched.
        batch_size: texts that go through the model at once.
        remember: number of texts whose vectors are kept in memory.
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
        check_whole("batch_size", batch_size)
        super().__init__(remember)
        self._model = name = str(model_or_path)
        self._batch = batch_size
        self._loaded = LoadedOnce(lambda: _TorchModel(name, device, fetch=fetch))

    @property
    def dimensions(self) -> int:
        """Length of every vector. Loads the model, unless it is the default model, whose vectors have 384 components."""
        if self._model == REPOSITORY and not self._loaded.is_loaded:
            return _DEFAULT_DIMENSIONS
        return self._loaded.get().dimensions

    def load(self) -> None:
        """Load the model now instead of with the first text; errors as for `embed`."""
        self._loaded.get()

    def _rows(self, texts: list[str]) -> npt.NDArray[np.float32]:
        return self._loaded.get().embed([text[:MAX_CHARS] for text in texts], self._batch)

    def __repr__(self) -> str:
        return f"SentenceTransformerEmbedder({self._model!r})"


class _TorchModel:
    """A model of the library, used by one thread at a time."""

    def __init__(self, name: str, device: str | None, *, fetch: bool) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingExtra("SentenceTransformerEmbedder", "embeddings") from None
        folder = Path(name).expanduser()
        is_local = folder.is_dir()
        name = str(folder) if is_local else name
        try:
            with _without_progress_bars(unless=fetch):
                model = SentenceTransformer(name, device=device, local_files_only=is_local or not fetch)
        except Exception as error:
            hint = "" if fetch or is_local else f"; if it is not on disk, pass fetch=True ({FETCH_HINT})"
            raise EmbedderError(f"{name} cannot be loaded: {type(error).__name__}: {str(error)[:200]}{hint}") from error
        self._model: Any = model
        self._lock = threading.Lock()
        length = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        self.dimensions = int(length() or _DEFAULT_DIMENSIONS)

    def embed(self, texts: list[str], batch_size: int) -> npt.NDArray[np.float32]:
        import numpy as np

        try:
            with self._lock:
                rows = self._model.encode(
                    texts,
                    batch_size=batch_size,
                    convert_to_numpy=True,
                    normalize_embeddings=True,
                    show_progress_bar=False,
                )
        except Exception as error:
            raise EmbedderError(f"the model failed: {type(error).__name__}: {error}"[:400]) from error
        return np.asarray(rows, dtype=np.float32)


@contextlib.contextmanager
def _without_progress_bars(*, unless: bool) -> Iterator[None]:
    """Load from disk without progress bars: this happens in the background of an agent."""
    from transformers.utils import logging

    if unless or not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()
