"""all-MiniLM-L6-v2 through onnxruntime: mean pooled and normalised, without torch (extra `onnx`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.background import for_each
from grace_kp.errors import EmbedderError, MissingExtra, check_whole
from grace_kp.models._hub import FETCH_HINT, ONNX_FILES, REPOSITORY, LoadedOnce, cached_onnx, check, fetch_onnx
from grace_kp.models._memory import REMEMBERED, RememberingEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

DIMENSIONS = 384
MAX_TOKENS = 256
MAX_CHARS = 20_000
BATCH = 16


class OnnxEmbedder(RememberingEmbedder):
    """Embeds texts by all-MiniLM-L6-v2 (384 dimensions, 256 tokens) or another model in the same form.

    The model is loaded once, on first use, in about 0.3 s. Batches are spread over the processor's cores. Safe to share between
    threads; a forked child loads its own.

    Args:
        model_or_path: a folder with `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`; or the name of the default model, which
            is taken from the hub's cache, pinned by revision and checked by hash.
        fetch: whether the default model may be fetched when it is not on disk, about 91 MB.
        threads: number of batches that are embedded side by side; None for the number of cores, at most 4.
        remember: number of texts whose vectors are kept in memory.
    """

    def __init__(
        self,
        model_or_path: str | Path = REPOSITORY,
        *,
        fetch: bool = False,
        threads: int | None = None,
        remember: int = REMEMBERED,
    ) -> None:
        if threads is not None:
            check_whole("threads", threads, 1, "or None")
        super().__init__(remember)
        self._model = model_or_path
        self._threads = threads if threads is not None else min(4, os.cpu_count() or 1)
        self._loaded = LoadedOnce(lambda: _OnnxModel(lambda: _find_folder(model_or_path, fetch=fetch)))

    @property
    def dimensions(self) -> int:
        """Length of every vector; 384 until another model is loaded."""
        return self._loaded.get().dimensions if self._loaded.is_loaded else DIMENSIONS

    def load(self) -> None:
        """Load the model now instead of with the first text; errors as for `embed`."""
        self._loaded.get()

    def _rows(self, texts: list[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        loaded = self._loaded.get()
        # Sorted by length, because a batch is padded to its longest text.
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        rows = np.empty((len(texts), loaded.dimensions), dtype=np.float32)

        def work(numbers: list[int]) -> None:
            rows[numbers] = loaded.embed([texts[number][:MAX_CHARS] for number in numbers])

        for_each(work, batches[::-1], threads=self._threads, name="embedder")
        return rows

    def __repr__(self) -> str:
        return f"OnnxEmbedder({str(self._model)!r})"


def _find_folder(model: str | Path, *, fetch: bool) -> Path:
    if str(model) != REPOSITORY:
        folder = Path(model).expanduser()
        if not folder.is_dir():
            raise EmbedderError(f"no folder {folder}: OnnxEmbedder takes a folder, or {REPOSITORY!r}")
        return folder
    cached = cached_onnx()
    if cached is None:
        if not fetch:
            raise EmbedderError(f"{REPOSITORY} is not on disk; {FETCH_HINT}")
        return fetch_onnx()
    for item in ONNX_FILES:
        check(cached / item.name, item)
    return cached


class _OnnxModel:
    def __init__(self, find_folder: Callable[[], Path]) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError:
            raise MissingExtra("OnnxEmbedder", "onnx") from None
        folder = find_folder()
        model = next((path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()), None)
        words = next(
            (path for path in (folder / "tokenizer.json", folder.parent / "tokenizer.json") if path.is_file()), None
        )
        if model is None or words is None:
            raise EmbedderError(f"{folder} lacks {'model.onnx' if model is None else 'tokenizer.json'}")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # more of them spin, and cost the agent's threads their cores
        options.log_severity_level = 3
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(words))
            self._session: Any = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise EmbedderError(f"{folder} cannot be loaded: {type(error).__name__}: {error}"[:400]) from error
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()
        self._inputs = {item.name for item in self._session.get_inputs()}
        self.dimensions = int(self.embed(["."]).shape[1])

    def embed(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Return the normalised rows of one batch."""
        import numpy as np

        encoded = self._tokenizer.encode_batch(texts)
        mask = np.array([item.attention_mask for item in encoded], dtype=np.int64)
        inputs = {
            "input_ids": np.array([item.ids for item in encoded], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        try:
            out = self._session.run(None, {name: value for name, value in inputs.items() if name in self._inputs})[0]
        except Exception as error:
            raise EmbedderError(f"the model failed: {type(error).__name__}: {error}"[:400]) from error
        if out.ndim not in {2, 3} or len(out) != len(texts):
            raise EmbedderError(f"the model gave an array of shape {out.shape} for {len(texts)} texts")
        if out.ndim == 3:
            weights = mask[:, :, None].astype(np.float32)
            out = (out * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        rows: npt.NDArray[np.float32] = (out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)).astype(
            np.float32
        )
        return rows
