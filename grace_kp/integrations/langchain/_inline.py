"""Handlers that LangChain calls inside its event loop, which is several times cheaper than a hop into a thread pool.

While any handler with `run_inline` is attached, langchain-core reports the start of text models (`on_llm_start` in its
`AsyncCallbackManager`) to such handlers only. Other handlers would then receive the end of a run whose start they have not seen.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler

if TYPE_CHECKING:
    from types import FrameType

CALLERS = 8
"""Functions of LangChain, and of a subclass, that may stand between its manager and a handler."""
_TEXT_MODEL_START = getattr(AsyncCallbackManager.on_llm_start, "__code__", None)
_frame_at = sys._getframe


class InlineHandler(BaseCallbackHandler):
    """A handler that never waits. It calls `include_others` at the start of a text model."""

    run_inline = True


def include_others() -> None:
    """Let all handlers know of the text model that starts, unless an inline handler that is not ours keeps it from them anyway."""
    frame: FrameType | None = _frame_at(1)
    for _ in range(CALLERS):
        if frame is None or frame.f_code is _TEXT_MODEL_START:
            break
        frame = frame.f_back
    else:
        return
    found = frame.f_locals if frame is not None else {}
    called, others = found.get("inline_handlers"), found.get("non_inline_handlers")
    # LangChain calls the inline handlers in this list first, and then the others in it.
    if called and others and all(isinstance(handler, InlineHandler) for handler in called):
        called.extend(others)
