"""The choice of `auto`, from what is installed, configured and on disk, with the reason for `grace-kp doctor`. Nothing is loaded here."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.models._gemini import KEY_VARIABLES, GeminiJudge, find_api_key
from grace_kp.models._hub import FETCH_HINT, REPOSITORY, cached_onnx, cached_sentence_transformer

if TYPE_CHECKING:
    from grace_kp.settings import Settings


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A chosen model, or none, and the reason."""

    model: Any
    """The judge or embedder; None where there is none."""
    name: str
    """The name in reports."""
    why: str
    """Why this model was chosen, or why none was."""


def choose_judge(settings: Settings) -> ChosenModel:
    """Choose Gemini when its extra is installed and a key is set; else none."""
    if not is_installed("google.genai"):
        return _none("the extra gemini is not installed: pip install 'grace-kp[gemini]'")
    if find_api_key() is None:
        return _none(f"no API key is set: {' or '.join(KEY_VARIABLES)}")
    judge = GeminiJudge(
        settings.gemini_model,
        base_url=settings.gemini_base_url,
        timeout=settings.judge_timeout,
        attempts=settings.judge_attempts,
    )
    return ChosenModel(judge, f"GeminiJudge {settings.gemini_model}", "the extra gemini is installed and a key is set")


def choose_embedder(settings: Settings) -> ChosenModel:
    """Choose ONNX when its extra is installed and the model is on disk or may be fetched, else sentence-transformers, else none."""
    from grace_kp.models._onnx import OnnxEmbedder
    from grace_kp.models._sentence_transformers import SentenceTransformerEmbedder

    fetch, named, device = settings.fetch_models, settings.embedding_model, settings.embedding_device
    has_onnx = is_installed("onnxruntime") and is_installed("tokenizers")
    has_st = is_installed("sentence_transformers")
    if not has_onnx and not has_st:
        return _none("no extra for embeddings is installed: pip install 'grace-kp[onnx]'")
    if named is not None and named != REPOSITORY:
        folder = Path(named).expanduser()
        is_onnx = (folder / "model.onnx").is_file() or (folder / "onnx" / "model.onnx").is_file()
        if is_onnx and has_onnx:
            return _embedder(OnnxEmbedder(folder), f"embedding_model is the folder {folder}")
        if has_st and (folder.is_dir() or fetch or cached_sentence_transformer(named) is not None):
            return _embedder(SentenceTransformerEmbedder(named, device, fetch=fetch), f"embedding_model is {named}")
        if folder.is_dir() or "/" not in named:
            return _none(f"embedding_model {named}: no model that an installed extra can load")
        return _none(f"embedding_model {named} is not on disk; {FETCH_HINT}")
    if has_onnx and cached_onnx() is not None:
        return _embedder(OnnxEmbedder(), f"the extra onnx is installed and {REPOSITORY} is on disk")
    if has_st and cached_sentence_transformer() is not None:
        reason = f"the extra embeddings is installed and {REPOSITORY} is on disk"
        return _embedder(SentenceTransformerEmbedder(device=device), reason)
    if not fetch:
        return _none(f"{REPOSITORY} is not on disk; {FETCH_HINT}")
    if has_onnx and is_installed("huggingface_hub"):
        return _embedder(OnnxEmbedder(fetch=True), f"the extra onnx is installed; {REPOSITORY} will be fetched")
    if has_st:
        reason = f"the extra embeddings is installed; {REPOSITORY} will be fetched"
        return _embedder(SentenceTransformerEmbedder(device=device, fetch=True), reason)
    return _none("huggingface-hub is not installed: pip install 'grace-kp[onnx]'")


def _embedder(model: Any, why: str) -> ChosenModel:
    return ChosenModel(model, type(model).__name__, why)


def _none(why: str) -> ChosenModel:
    return ChosenModel(None, "none", why)


def is_installed(module: str) -> bool:
    """Return whether a module could be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
