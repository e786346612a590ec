"""Gemini as a judge (structured output at temperature 0) and as an embedder (batched), both retried within one deadline (extra `gemini`).

Texts leave the machine redacted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.errors import EmbedderError, JudgeError, check_whole
from grace_kp.models._google import GoogleCaller
from grace_kp.models._memory import REMEMBERED, RememberingEmbedder
from grace_kp.protocols import JudgeReply
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt


MODEL = "gemini-3.8-flash"
TIMEOUT = 20.0
ATTEMPTS = 5
_VARIED = 0.7


class GeminiJudge:
    """Asks Gemini for judgements. Pass it to `LLMSelfEvaluator`, or to `Grace(evaluator=…)`. Safe to share between threads.

    The statuses 408, 429, 500, 502, 503 and 504, lost connections and timeouts are retried, after exponentially growing waits with
    jitter, or after the wait that the service asks for. Other failures, such as 400, 401, 403 and 404, are final.

    Args:
        model: the model's name.
        api_key: the key; None takes GEMINI_API_KEY, or else GOOGLE_API_KEY, from the environment at the first call.
        base_url: another address of the service, such as that of a gateway.
        timeout: seconds for a judgement with all its attempts.
        attempts: number of attempts at most.
    """

    def __init__(
        self,
        model: str = MODEL,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise ValueError(f"model must be a non-empty string (got {model!r})")
        self.model = model
        self._caller = GoogleCaller(api_key=api_key, base_url=base_url, timeout=timeout, attempts=attempts)

    @property
    def timeout(self) -> float:
        """Seconds for a judgement with all its attempts."""
        return self._caller.timeout

    def __call__(self, prompt: str) -> JudgeReply:
        """Return the model's reply to a prompt.

        Raises:
            JudgeError: there was no reply; it holds the number of attempts and the last HTTP status.
            MissingExtra: the extra `gemini` is not installed.
        """
        return self.ask(prompt)

    def ask(self, prompt: str, *, vary: bool = False, fields: Sequence[str] = ("score",)) -> JudgeReply:
        """Reply as a call does.

        Args:
            prompt: the prompt.
            vary: True: ask at a higher temperature, for independent judgements.
            fields: names of the scores in the JSON reply; without any, the prompt alone describes the reply.
        """
        reply, attempts = self._caller.call(self._request(prompt, vary, fields))
        return _reply(reply, attempts, self.model)

    async def aask(self, prompt: str, *, vary: bool = False, fields: Sequence[str] = ("score",)) -> JudgeReply:
        """Reply as `ask` does, without blocking the event loop."""
        reply, attempts = await self._caller.acall(self._request(prompt, vary, fields))
        return _reply(reply, attempts, self.model)

    def _request(self, prompt: str, vary: bool, fields: Sequence[str]) -> Callable[[Any, Any], Any]:
        return lambda client, options: client.models.generate_content(
            model=self.model, contents=prompt, config=_config(vary, fields, options)
        )

    def __repr__(self) -> str:
        return f"GeminiJudge(model={self.model!r}, base_url={self._caller.base_url!r}, timeout={self.timeout:g})"


def _config(vary: bool, fields: Sequence[str], options: Any) -> Any:
    from google.genai import types

    properties: dict[str, Any] = {}
    for name in fields:
        properties[name] = {"type": "number", "minimum": 0, "maximum": 1}
        properties["reason" if name == "score" else f"{name}_reason"] = {"type": "string"}
    return types.GenerateContentConfig(
        temperature=_VARIED if vary else 0.0,
        response_mime_type="application/json",
        response_json_schema={"type": "object", "properties": properties, "required": list(properties)}
        if fields
        else None,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        http_options=options,
    )


def _reply(response: Any, attempts: int, model: str) -> JudgeReply:
    candidates = response.candidates or []
    content = candidates[0].content if candidates else None
    parts = (content.parts or []) if content is not None else []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    usage = response.usage_metadata
    counts = [getattr(usage, name, None) for name in ("candidates_token_count", "thoughts_token_count")]
    known = [count for count in counts if count is not None]
    tokens_in, tokens_out = getattr(usage, "prompt_token_count", None), sum(known) if known else None
    if not text:
        reason = candidates[0].finish_reason if candidates else getattr(response.prompt_feedback, "block_reason", None)
        words = f"the model returned no text ({getattr(reason, 'value', reason) or 'no reason stated'})"
        error = JudgeError(words, attempts=attempts)
        error.tokens_in, error.tokens_out = tokens_in, tokens_out
        raise error
    model = response.model_version or model
    return JudgeReply(text, model=model, tokens_in=tokens_in, tokens_out=tokens_out, attempts=attempts)


EMBEDDING_MODEL = "gemini-embedding-001"
BATCH = 100
MAX_CHARS = 8_000


class GeminiEmbedder(RememberingEmbedder):
    """Embeds texts by Gemini, up to 100 in one request. Secrets and identifiers are redacted before they are sent.

    Args:
        model: the model's name.
        dimensions: length of the vectors to request.
        api_key: the key; None takes GEMINI_API_KEY, or else GOOGLE_API_KEY, from the environment at the first call.
        base_url: another address of the service.
        timeout: seconds for a request with all its attempts.
        attempts: number of attempts of a request at most.
        remember: number of texts whose vectors are kept in memory.
    """

    def __init__(
        self,
        model: str = EMBEDDING_MODEL,
        *,
        dimensions: int = 768,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
        remember: int = REMEMBERED,
    ) -> None:
        check_whole("dimensions", dimensions)
        super().__init__(remember)
        self.model = model
        self._dimensions = dimensions
        self._caller = GoogleCaller(api_key=api_key, base_url=base_url, timeout=timeout, attempts=attempts)

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._dimensions

    def _rows(self, texts: list[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        rows: list[Any] = []
        for start in range(0, len(texts), BATCH):
            rows += self._batch(texts[start : start + BATCH])
        array = np.asarray(rows, dtype=np.float32)
        if array.shape != (len(texts), self._dimensions) or not np.isfinite(array).all():
            raise EmbedderError(f"{self.model} gave an array of shape {array.shape} for {len(texts)} texts")
        return array

    def _batch(self, texts: list[str]) -> list[Any]:
        sent = [redact_text(text[:MAX_CHARS], identifiers=True) or " " for text in texts]

        def work(client: Any, options: Any) -> Any:
            from google.genai import types

            # Separate contents: to some models a list of plain texts is one text of several parts.
            contents = [types.Content(parts=[types.Part(text=text)]) for text in sent]
            config = types.EmbedContentConfig(output_dimensionality=self._dimensions, http_options=options)
            return client.models.embed_content(model=self.model, contents=contents, config=config)

        try:
            answer, _ = self._caller.call(work)
        except JudgeError as error:
            raise EmbedderError(str(error)) from error
        embeddings = answer.embeddings or []
        if len(embeddings) != len(texts):
            raise EmbedderError(f"{self.model} gave {len(embeddings)} vectors for {len(texts)} texts")
        return [embedding.values or [] for embedding in embeddings]

    def __repr__(self) -> str:
        return f"GeminiEmbedder(model={self.model!r}, dimensions={self._dimensions})"
