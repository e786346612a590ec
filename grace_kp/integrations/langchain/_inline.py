"""When LangChain may call our handler inside its event loop: always, unless that would hide a run from other handlers.

A handler with `run_inline` is called in the event loop instead of a thread pool, which is several times cheaper. But while any inline
handler is attached, langchain-core reports the start of text models (`on_llm_start` in its `AsyncCallbackManager`) to inline handlers
only. Other handlers then receive the end of a run whose start they have not seen.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Self, overload

from langchain_core.callbacks import AsyncCallbackManager

if TYPE_CHECKING:
    from types import FrameType


def _code_ids(function: object) -> frozenset[int]:
    """Return the ids of a function's code and of the comprehensions in it, which are separate functions before Python 3.12."""
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None:
        return frozenset()
    return frozenset([id(code), *(id(part) for part in code.co_consts if isinstance(part, CodeType))])


_TEXT_MODEL_STARTS = _code_ids(AsyncCallbackManager.on_llm_start)
_frame_at = sys._getframe


@dataclass(frozen=True, slots=True)
class RunInline:
    """The attribute `run_inline` of a handler: True, except for the start of a text model that other handlers need, too."""

    @overload
    def __get__(self, handler: None, kind: type) -> Self: ...
    @overload
    def __get__(self, handler: object, kind: type | None = None) -> bool: ...
    def __get__(self, handler: object, kind: type | None = None) -> Self | bool:
        """Return whether the reader may call the handler inline; from the class, this object."""
        if handler is None:
            return self
        reader = _frame_at(1)
        return id(reader.f_code) not in _TEXT_MODEL_STARTS or _another_is_inline(reader)


def _another_is_inline(reader: FrameType) -> bool:
    """Return whether the manager has another inline handler. Then it calls inline handlers only, so ours stays inline."""
    outer: FrameType | None = reader
    while outer is not None and "self" not in outer.f_locals:
        outer = outer.f_back
    handlers = getattr(outer.f_locals["self"], "handlers", ()) if outer is not None else ()
    return any(
        not isinstance(getattr(type(handler), "run_inline", None), RunInline) and getattr(handler, "run_inline", False)
        for handler in handlers
    )
