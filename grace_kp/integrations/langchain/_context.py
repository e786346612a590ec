"""The location of LangChain in this context, from the configuration that it carries through its own threads and tasks.

A context variable of ours, set in a callback, would leak: streams call back in one context and continue in another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables.config import var_child_runnable_config

from grace_kp.record import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.integrations.langchain._frames import Frame
    from grace_kp.record import Call, Run

PLACE = "langgraph_checkpoint_ns"
"""Entry of LangGraph's metadata: the node of a graph in which an event happens."""
_config_here = var_child_runnable_config.get


def frame_here(frames: Mapping[int, Frame] | None = None) -> Frame | None:
    """Return the innermost LangChain event of this context among `frames`; by default, among those that any of our handlers knows."""
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
    """Return the inner of our own innermost frame and LangChain's."""
    if not _config_here():
        return ours
    frame = frame_here()
    return ours if frame is None else frame.inner(ours)


def _place() -> str | None:
    """Return the node of a graph that runs here. After an interrupt it is run again from its beginning."""
    config = _config_here()
    metadata = config.get("metadata") if config else None
    return metadata.get(PLACE) if metadata else None


def register() -> None:
    """Let calls that our decorators record inside LangChain belong to LangChain's event around them."""
    HOST.register_location(_find, _place)
