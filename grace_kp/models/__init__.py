"""Models that judge and embed: Gemini, OpenAI-compatible endpoints, those of other frameworks, ONNX, sentence-transformers, callables.

The names are resolved on first use: `auto` often finds no model.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grace_kp.models._choice import adapt_model, choose_embedder, choose_judge
    from grace_kp.models._gemini import GeminiEmbedder, GeminiJudge
    from grace_kp.models._hub import fetch_onnx
    from grace_kp.models._memory import CallableEmbedder
    from grace_kp.models._onnx import OnnxEmbedder
    from grace_kp.models._openai import OpenAIEmbedder, OpenAIJudge
    from grace_kp.models._sentence_transformers import SentenceTransformerEmbedder

__all__ = [
    "CallableEmbedder",
    "GeminiEmbedder",
    "GeminiJudge",
    "OnnxEmbedder",
    "OpenAIEmbedder",
    "OpenAIJudge",
    "SentenceTransformerEmbedder",
    "adapt_model",
    "choose_embedder",
    "choose_judge",
    "fetch_onnx",
]

_NAMES = {
    "_choice": "adapt_model choose_embedder choose_judge",
    "_gemini": "GeminiEmbedder GeminiJudge",
    "_hub": "fetch_onnx",
    "_memory": "CallableEmbedder",
    "_onnx": "OnnxEmbedder",
    "_openai": "OpenAIEmbedder OpenAIJudge",
    "_sentence_transformers": "SentenceTransformerEmbedder",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
