"""Models that judge and embed: Gemini, ONNX, sentence-transformers, plain callables; and what `auto` makes of them."""

from grace_kp.models._choose import Choice, choose_embedder, choose_judge
from grace_kp.models._gemini import GeminiJudge
from grace_kp.models._gemini_embedder import GeminiEmbedder
from grace_kp.models._hub import fetch_onnx
from grace_kp.models._onnx import OnnxEmbedder
from grace_kp.models._sentence_transformers import SentenceTransformerEmbedder
from grace_kp.models._texts import CallableEmbedder

__all__ = [
    "CallableEmbedder",
    "Choice",
    "GeminiEmbedder",
    "GeminiJudge",
    "OnnxEmbedder",
    "SentenceTransformerEmbedder",
    "choose_embedder",
    "choose_judge",
    "fetch_onnx",
]
