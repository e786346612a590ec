"""The two protocols that several rooms share: a model that judges and a model that embeds.

Every other protocol stands beside the code that consumes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt


@runtime_checkable
class Judge(Protocol):
    """A model that reads a prompt and answers in text. Any callable from prompt to text is one."""

    def __call__(self, prompt: str, /) -> str:
        """The model's reply to `prompt`."""
        ...


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
