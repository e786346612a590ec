"""The files of the default embedding model: where they are on disk, their pinned hashes, and how to fetch and load them.

Nothing is fetched unless the user allows it. Files are pinned by revision and hash; a file that differs is not loaded.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from grace_kp.errors import EmbedderError, GraceError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable


REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
FETCH_HINT = "fetch it with `grace-kp doctor --fetch-model`, or set GRACE_KP_FETCH_MODELS=1"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model on the hub."""

    name: str
    sha256: str
    size: int


ONNX_FILES = (
    ModelFile("onnx/model.onnx", "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452", 90_405_214),
    ModelFile("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247),
)


def snapshots(repository: str = REPOSITORY) -> Path:
    """Return where the client of the hub keeps the revisions of a model, from the same variables."""
    variables = os.environ
    home = variables.get("HF_HOME") or Path(variables.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    folder = Path(variables.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    return folder / f"models--{repository.replace('/', '--')}" / "snapshots"


def cached_onnx() -> Path | None:
    """Return the folder of the ONNX model, if all its files have been fetched."""
    folder = snapshots() / REVISION
    return folder if all((folder / item.name).is_file() for item in ONNX_FILES) else None


def cached_sentence_transformer(repository: str = REPOSITORY) -> Path | None:
    """Return a folder with the model for sentence-transformers, if one has been fetched."""
    try:
        folders = sorted(snapshots(repository).iterdir())
    except OSError:
        return None
    for folder in folders:
        weights = (folder / "model.safetensors", folder / "pytorch_model.bin")
        if (folder / "modules.json").is_file() and any(path.is_file() for path in weights):
            return folder
    return None


def check(path: Path, wanted: ModelFile) -> None:
    """Check that a file is the pinned one."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EmbedderError(f"{path.name} cannot be read: {error.strerror}") from None
    if found != wanted.sha256:
        raise EmbedderError(
            f"{path.name} of {REPOSITORY} is not the pinned file (its SHA-256 is {found[:12]}…, not {wanted.sha256[:12]}…); it was not loaded"
        )


def fetch_onnx(progress: Callable[[str], None] = lambda _: None) -> Path:
    """Fetch the ONNX model from the hub, about 91 MB, with the progress bar of the hub's client. Files on disk are not fetched again.

    Raises:
        MissingExtra: the extra `onnx` is not installed.
        EmbedderError: the model could not be fetched, or a file is not the pinned one.
    """
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise MissingExtra("Fetching the embedding model", "onnx") from None
    for item in ONNX_FILES:
        progress(f"{item.name}, {item.size / 1e6:.1f} MB")
        try:
            path = Path(hf_hub_download(REPOSITORY, item.name, revision=REVISION))
        except Exception as error:
            raise EmbedderError(
                f"{item.name} of {REPOSITORY} could not be fetched: {type(error).__name__}: {error}"[:400]
            ) from error
        check(path, item)
    return snapshots() / REVISION


T = TypeVar("T")
RETRY_SECONDS = 60.0


class LoadedOnce(Generic[T]):
    """Keeps what `load` returns. A failed load is repeated after a minute at the earliest; until then its error is raised again.

    A forked child loads its own: the threads of a model do not survive a fork.
    """

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._model: T | None = None
        self._failure: tuple[float, GraceError] | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether this process has loaded the model."""
        return self._model is not None and self._pid == os.getpid()

    def get(self) -> T:
        """Return the model; the first call loads it."""
        if self._pid != os.getpid():
            self._lock, self._pid, self._model = threading.Lock(), os.getpid(), None
        model = self._model
        if model is not None:
            return model
        with self._lock:
            if self._model is None:
                if self._failure is not None and time.monotonic() - self._failure[0] < RETRY_SECONDS:
                    raise self._failure[1]
                try:
                    self._model = self._load()
                except GraceError as error:
                    self._failure = (time.monotonic(), error)
                    raise
            return self._model
