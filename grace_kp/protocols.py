"""The protocols that several rooms share: the judge and the embedder. Other protocols are defined by their consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import numpy as np
    import numpy.typing as npt


class JudgeReply(str):
    """A judge's reply with its cost. A judge may return it instead of a plain string."""

    model: str | None
    """Name of the model."""
    tokens_in: int | None
    """Tokens read."""
    tokens_out: int | None
    """Tokens written."""
    attempts: int
    """Number of attempts."""
    p_true: float | None
    """Probability of `true` as the token of the model's verdict that the judged text is correct; None when unknown."""

    __slots__ = ("attempts", "model", "p_true", "tokens_in", "tokens_out")

    def __new__(
        cls,
        text: str,
        *,
        model: str | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        attempts: int = 1,
        p_true: float | None = None,
    ) -> JudgeReply:
        """Return the reply with its cost."""
        reply = super().__new__(cls, text)
        reply.model, reply.tokens_in, reply.tokens_out, reply.attempts = model, tokens_in, tokens_out, attempts
        reply.p_true = p_true
        return reply


@runtime_checkable
class Judge(Protocol):
    """A model that replies to a prompt. Any callable from string to string is a judge, sync or async.

    A judge may also define `ask(prompt, *, vary, fields)` and `async aask(prompt, *, vary, fields)`, which are then called instead.
    `vary` is True if several independent judgements of the same prompt are wanted. `fields` names the requested scores; it is empty if
    the prompt itself describes the reply.
    """

    def __call__(self, prompt: str, /) -> str:
        """Return the model's reply to `prompt`."""


class AskableJudge(Protocol):
    """A judge with the optional method; see `Judge`."""

    def ask(self, prompt: str, *, vary: bool, fields: Sequence[str]) -> str:
        """Return the model's reply; `fields` names the scores that it must hold."""


JudgeLike: TypeAlias = "Callable[[str], str | Awaitable[str]] | AskableJudge"
"""Every type that is accepted as a judge."""


@runtime_checkable
class Embedder(Protocol):
    """A model that turns strings into vectors. A callable from one string to one vector is accepted wherever an Embedder is."""

    @property
    def dimensions(self) -> int:
        """Length of every vector, for example 384."""

    def embed(self, texts: Sequence[str], /) -> npt.NDArray[np.float32]:
        """Return one row per string, shape (n, dimensions), float32."""


EmbedderLike: TypeAlias = "Embedder | Callable[[str], Sequence[float] | npt.NDArray[Any]]"
"""Every type that is accepted as an embedder."""
