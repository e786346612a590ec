"""The context of a LangChain event: its place, the attributes in its config, and the other handlers.

The place comes from the configuration that LangChain passes through its threads and tasks. A context variable set in a callback would leak,
because streams call back in one context and continue in another.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables.config import var_child_runnable_config

from grace_kp.record import HOST
from grace_kp.trace import render_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from grace_kp.integrations.langchain._frames import Frame
    from grace_kp.record import Call, Run


PLACE = "langgraph_checkpoint_ns"
"""Entry of LangGraph's metadata: the node of a graph in which an event happens."""
_config_here = var_child_runnable_config.get


def frame_here(frames: Mapping[int, Frame] | None = None) -> Frame | None:
    """Return the innermost LangChain event of this context among `frames`, by default those of all our handlers."""
    config = _config_here()
    if not config:
        return None
    manager = config.get("callbacks")
    if not isinstance(manager, BaseCallbackManager) or manager.parent_run_id is None:
        return None
    key = manager.parent_run_id.int
    if frames is not None:
        return frames.get(key)
    known = (getattr(getattr(handler, "tracker", None), "frames", {}).get(key) for handler in manager.handlers)
    return next((frame for frame in known if frame is not None), None)


def _find(ours: Call | Run | None) -> Call | Run | None:
    if not _config_here():
        return ours
    frame = frame_here()
    return ours if frame is None else frame.inner(ours)


def _place() -> str | None:
    """Return the node of a graph that runs here. After an interrupt, it restarts from its beginning."""
    config = _config_here()
    metadata = config.get("metadata") if config else None
    return metadata.get(PLACE) if metadata else None


def register() -> None:
    """Attach calls that our decorators record inside LangChain to the surrounding LangChain event."""
    HOST.register_location(_find, _place)


SESSION_KEYS = ("langfuse_session_id", "session_id", "conversation_id", "thread_id")
USER_KEYS = ("langfuse_user_id", "user_id")
TAG_KEY = "langfuse_tags"
_INTERNAL_TAGS = ("seq:", "map:", "graph:", "langsmith:", "condition:", "branch:", "fallback:")
_INTERNAL_KEYS = ("langgraph_", "langfuse_", "ls_", "lc_", "checkpoint_", "graph_id", "__pregel")


def attributes_of_config(tags: list[str] | None, metadata: dict[str, Any] | None) -> dict[str, Any]:
    """Return the attributes in the tags and metadata of a root run, without entries of the frameworks."""
    metadata = metadata or {}
    more = metadata.get(TAG_KEY)
    stated = [*(tags or ()), *(more if isinstance(more, list | tuple) else ())]
    own = {
        key: value
        for key, value in metadata.items()
        if key not in SESSION_KEYS and key not in USER_KEYS and not str(key).startswith(_INTERNAL_KEYS)
    }
    return {
        "tags": [tag for tag in stated if isinstance(tag, str) and not tag.startswith(_INTERNAL_TAGS)] or None,
        "user": _first(metadata, USER_KEYS),
        "session": _first(metadata, SESSION_KEYS),
        "metadata": own or None,
    }


def _first(metadata: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    values = (metadata.get(key) for key in keys)
    return next((render_text(value) for value in values if value is not None and value != ""), None)


CALLERS = 8
"""The most calls between LangChain's manager and a handler, subclasses of the handler included."""
_TEXT_MODEL_START = getattr(AsyncCallbackManager.on_llm_start, "__code__", None)
_frame_at = sys._getframe


class InlineHandler(BaseCallbackHandler):
    """A handler that never waits, so LangChain calls it inside the event loop, which is faster than a thread pool.

    It must call `include_others` at the start of a completion model.
    """

    run_inline = True


def include_others() -> None:
    """Report the start of a completion model to all handlers.

    With an inline handler attached, `AsyncCallbackManager.on_llm_start` calls only inline handlers. A foreign one has this effect anyway.
    """
    frame: FrameType | None = _frame_at(1)
    for _ in range(CALLERS):
        if frame is None or frame.f_code is _TEXT_MODEL_START:
            break
        frame = frame.f_back
    else:
        return
    found = frame.f_locals if frame is not None else {}
    called, others = found.get("inline_handlers"), found.get("non_inline_handlers")
    # The manager is still iterating over this list, so it calls the added handlers, too.
    if called and others and all(isinstance(handler, InlineHandler) for handler in called):
        called.extend(others)
