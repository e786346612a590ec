"""Attributes of a run from the config of its root: tags, user, session and metadata.

The keys are those that LangSmith and Langfuse read, so that programs written for them need no change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.trace import render_text

if TYPE_CHECKING:
    from grace_kp.record import Run

SESSION_KEYS = ("langfuse_session_id", "session_id", "conversation_id", "thread_id")
USER_KEYS = ("langfuse_user_id", "user_id")
TAG_KEY = "langfuse_tags"
_INTERNAL_TAGS = ("seq:", "map:", "graph:", "langsmith:", "condition:", "branch:", "fallback:")
_INTERNAL_KEYS = ("langgraph_", "langfuse_", "ls_", "lc_", "checkpoint_", "graph_id", "__pregel")


def describe(run: Run, tags: list[str] | None, metadata: dict[str, Any] | None) -> None:
    """Record the attributes in the config of a root run."""
    run.update(**attributes_of_config(tags, metadata))


def attributes_of_config(tags: list[str] | None, metadata: dict[str, Any] | None) -> dict[str, Any]:
    """Return the attributes in the tags and metadata of a root run, without the entries of the frameworks themselves."""
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
    for key in keys:
        value = metadata.get(key)
        if value is not None and value != "":
            return render_text(value)
    return None
