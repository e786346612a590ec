"""The two protocols that several rooms share: a model that judges and a model that embeds.

Every other protocol stands beside the code that consumes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import numpy as np
    import numpy.typing as npt


class JudgeReply(str):
    """A judge's reply that says what it cost. A judge may return it instead of a plain text."""

    model: str | None
    """Who replied."""
    tokens_in: int | None
    """Tokens read."""
    tokens_out: int | None
    """Tokens written."""
    attempts: int
    """How often the model had to be asked."""

    __slots__ = ("attempts", "model", "tokens_in", "tokens_out")

    def __new__(
        cls,
        text: str,
        *,
        model: str | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        attempts: int = 1,
    ) -> JudgeReply:
        """The text, with what is known of how it came about."""
        reply = super().__new__(cls, text)
        reply.model, reply.tokens_in, reply.tokens_out, reply.attempts = model, tokens_in, tokens_out, attempts
        return reply


@runtime_checkable
class Judge(Protocol):
    """A model that reads a prompt and answers in text. Any callable from prompt to text is one, sync or async.

    A judge may also have `ask(prompt, *, vary, fields)` and `async aask(prompt, *, vary, fields)`; they are used then, with `vary` true
    where several independent judgements of the same prompt are wanted, and in `fields` the names of the scores that are asked for; none where
    the prompt says what the reply looks like.
    """

    def __call__(self, prompt: str, /) -> str:
        """The model's reply to `prompt`."""
        ...


class AskableJudge(Protocol):
    """A judge with the optional method; see `Judge`."""

    def ask(self, prompt: str, *, vary: bool, fields: Sequence[str]) -> str:
        """Return the model's reply; `fields` names the scores that it must hold."""
        ...


JudgeLike: TypeAlias = "Callable[[str], str | Awaitable[str]] | AskableJudge"
"""Whatever is accepted as a judge."""


@runtime_checkable
class Embedder(Protocol):
    """A model that turns texts into vectors.

    A plain callable from one text to one vector is taken wherever an Embedder is.
    """

    @property
    def dimensions(self) -> int:
        """Length of every vector, for example 384."""
        ...

    def embed(self, texts: Sequence[str], /) -> npt.NDArray[np.float32]:
        """One row per text, shape (n, dimensions), float32."""
        ...


EmbedderLike: TypeAlias = "Embedder | Callable[[str], Sequence[float] | npt.NDArray[Any]]"
"""Whatever is accepted as an embedder: also a callable from one text to one vector."""
