"""The choice of `auto`, with the reason for `grace-kp doctor`; named models, and models of LangChain and Pydantic AI. Nothing is loaded here."""

from __future__ import annotations

import contextvars
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.background import start_loop
from grace_kp.errors import JudgeError, SettingsError, brief
from grace_kp.models._gemini import KEY_VARIABLES, GeminiJudge, find_api_key
from grace_kp.models._hub import FETCH_HINT, REPOSITORY, LoadedOnce, cached_onnx, cached_sentence_transformer
from grace_kp.models._memory import RemoteEmbedder
from grace_kp.protocols import JudgeReply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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


def adapt_model(kind: str, model: Any, settings: Settings) -> Any:
    """Return an `evaluator` or `embedder`, by its name or from another framework, as one of ours; raise a SettingsError if it cannot be used."""
    is_judge, timeout = kind == "evaluator", settings.judge_timeout
    if isinstance(model, str) and model.startswith("openai:") and model != "openai:":
        from grace_kp.models._openai import OpenAIEmbedder, OpenAIJudge

        make: Any = OpenAIJudge if is_judge else OpenAIEmbedder
        name, address = model.removeprefix("openai:"), settings.openai_base_url
        return make(name, base_url=address, timeout=timeout, attempts=settings.judge_attempts)
    bases = {(base.__module__.partition(".")[0], base.__name__) for base in type(model).__mro__}
    if is_judge and bases & {("langchain_core", "Runnable"), ("pydantic_ai", "Model")}:
        return _framework_judge(model, timeout)
    if not is_judge and ("langchain_core", "Embeddings") in bases:
        return RemoteEmbedder(model.embed_documents)
    if not is_judge and bases & {("pydantic_ai", "Embedder"), ("pydantic_ai", "EmbeddingModel")}:
        embed = _in_one_loop(lambda texts: model.embed(texts, input_type="document"), timeout)
        return RemoteEmbedder(lambda texts: embed(texts).embeddings)
    if not callable(model) and not callable(getattr(model, "ask" if is_judge else "embed", None)):
        found = brief(model) if isinstance(model, str) else type(model).__name__
        raise SettingsError(f"{kind}: must be 'auto', 'openai:MODEL', None or a model (got {found})")
    return model


def _framework_judge(model: Any, timeout: float) -> Callable[[str], Any]:
    """Return a judge that asks a model of LangChain or Pydantic AI, with the model's own settings and retries."""

    def request(prompt: str) -> Awaitable[Any]:
        from pydantic_ai import direct, messages

        asked: Awaitable[Any] = direct.model_request(model, [messages.ModelRequest.user_text_prompt(prompt)])
        return asked

    async def ainvoke(prompt: str) -> JudgeReply:
        return _reply(await model.ainvoke(prompt, {"callbacks": []}))

    def invoke(prompt: str) -> Any:
        try:
            # In no context, where LangChain finds the handlers and streams of the agent: they must not see the judge.
            return _reply(contextvars.Context().run(model.invoke, prompt))
        except NotImplementedError:  # it is only async
            return ainvoke(prompt)

    run = _in_one_loop(request, timeout)
    judge = invoke if hasattr(model, "invoke") else lambda prompt: _reply(run(prompt))
    core = getattr(model, "bound", model)  # of a model with retries or bound arguments
    judge.__name__ = f"{type(core).__name__} {getattr(core, 'model_name', None) or getattr(core, 'model', '')}".rstrip()
    return judge


def _reply(message: Any) -> JudgeReply:
    usage = getattr(message, "usage_metadata", None) or getattr(message, "usage", None)
    read: Any = usage.get if isinstance(usage, dict) else lambda name: getattr(usage, name, None)
    cost: dict[str, Any] = {"tokens_in": read("input_tokens") or None, "tokens_out": read("output_tokens") or None}
    text = message if isinstance(message, str) else str(message.text or "")
    named = getattr(message, "response_metadata", {}).get("model_name")
    return JudgeReply(text, model=getattr(message, "model_name", named), **cost)


def _in_one_loop(call: Callable[[Any], Awaitable[Any]], timeout: float) -> Callable[[Any], Any]:
    """Return an async function as a plain one. All calls run in one event loop, to which the connections of a client belong."""

    async def work(argument: Any) -> Any:
        return await call(argument)

    loop = LoadedOnce(lambda: start_loop(work))

    def run(argument: Any) -> Any:
        from asyncio import run_coroutine_threadsafe

        future = contextvars.Context().run(run_coroutine_threadsafe, work(argument), loop.get())
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise JudgeError(f"the model did not answer within {timeout:g} s") from None

    return run


def is_installed(module: str) -> bool:
    """Return whether a module could be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
