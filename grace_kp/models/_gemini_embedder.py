"""Gemini as an embedder: batched, retried within one deadline (extra `gemini`). Texts leave the machine redacted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.errors import EmbedderError, JudgeError
from grace_kp.models._gemini_judge import ATTEMPTS, TIMEOUT
from grace_kp.models._google import GoogleCaller
from grace_kp.models._memory import REMEMBERED, Memory
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

EMBEDDING_MODEL = "gemini-embedding-001"
BATCH = 100
MAX_CHARS = 8_000


class GeminiEmbedder:
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
        if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions < 1:
            raise ValueError(f"dimensions must be a whole number >= 1 (got {dimensions!r})")
        self.model = model
        self._dimensions = dimensions
        self._caller = GoogleCaller(api_key=api_key, base_url=base_url, timeout=timeout, attempts=attempts)
        self._memory = Memory(remember)

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._dimensions

    def embed(self, texts: Sequence[str], /) -> npt.NDArray[np.float32]:
        """Return one row per text, shape (n, dimensions), float32.

        Raises:
            EmbedderError: the service failed, or returned other vectors.
            MissingExtra: the extra `gemini` is not installed.
        """
        return self._memory.embed(texts, lambda: self._dimensions, self._rows)

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
