"""Tags, user, session and metadata of a live run: stated by a decorator, by a block, or from within the run.

Everything is bounded when it is stated and cleaned when the trace is written. A nested run belongs to the user and the session of
the run around it, so that both are found, and deleted, together.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from typing import TYPE_CHECKING, Any

from grace_kp.record._guard import attempt, note
from grace_kp.trace import MAX_METADATA, MAX_TAGS, MAX_VALUE, render, render_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PARAMETER = re.compile(r"\{(\w+)\}")


class Attributes:
    """The attributes of one run. Changed under the recorder's lock only."""

    __slots__ = ("changes", "dropped_metadata", "dropped_tags", "metadata", "session", "tags", "user")

    def __init__(self) -> None:
        self.tags: dict[str, None] = {}
        self.metadata: dict[str, Any] = {}
        self.user: str | None = None
        self.session: str | None = None
        self.dropped_tags = 0
        self.dropped_metadata = 0
        self.changes = 0
        """Number of changes; the journal writes the attributes again after a change."""

    def merge(self, *, tags: object, user: object, session: object, metadata: object, max_text: int) -> None:
        """Add tags, merge metadata by key, replace user and session. None changes nothing."""
        self.changes += 1
        for tag in _texts(tags, "tags", max_text):
            if tag in self.tags or len(self.tags) < MAX_TAGS:
                self.tags[tag] = None
            else:
                self.dropped_tags += 1
        self.user = _text(user, "user", max_text) or self.user
        self.session = _text(session, "session", max_text) or self.session
        if metadata is not None and not isinstance(metadata, dict):
            note("update", f"metadata must be a dict, not {type(metadata).__name__}")
        elif metadata:
            rendered = {render_text(key, max_text): render(value, MAX_VALUE) for key, value in metadata.items()}
            for key, value in rendered.items():
                if key in self.metadata or len(self.metadata) < MAX_METADATA:
                    self.metadata[key] = value
                else:
                    self.dropped_metadata += 1


def _texts(tags: object, name: str, max_text: int) -> list[str]:
    if tags is None:
        return []
    if isinstance(tags, str):  # one tag, not its letters
        tags = (tags,)
    if not isinstance(tags, list | tuple | set | frozenset):
        note("update", f"{name} must be a list of texts, not {type(tags).__name__}")
        return []
    in_order = sorted(tags, key=str) if isinstance(tags, set | frozenset) else tags
    return [tag for item in in_order if (tag := _text(item, name, max_text))]


def _text(value: object, name: str, max_text: int) -> str | None:
    if value is None:
        return None
    text = render_text(value, max_text)
    if not text.strip():
        note("update", f"{name} must not be empty")
        return None
    return text


class Declared:
    """Attributes that a decorator states: values, templates with parameters in braces, or callables on the bound arguments."""

    __slots__ = ("_defaults", "_place", "_values")

    def __init__(self, name: str, function: Callable[..., Any] | None, values: dict[str, Any]) -> None:
        self._place = f"attributes of {name}"
        self._defaults: dict[str, Any] = {}
        if function is not None:
            with contextlib.suppress(TypeError, ValueError):  # some builtins have no signature
                parameters = inspect.signature(function).parameters.values()
                self._defaults = {item.name: item.default for item in parameters if item.default is not item.empty}
        self._values = values
        tags, metadata = values.get("tags"), values.get("metadata")
        if not (tags is None or callable(tags) or isinstance(tags, str | list | tuple | set | frozenset)):
            raise TypeError(f"tags must be a list of texts or a callable, not {type(tags).__name__}")
        if not (metadata is None or callable(metadata) or isinstance(metadata, dict)):
            raise TypeError(f"metadata must be a dict or a callable, not {type(metadata).__name__}")

    def resolve(self, bound: Mapping[str, Any], *, capture_input: bool) -> dict[str, Any]:
        """Return the attributes of one call, without those that cannot be resolved; these are noted.

        Without `capture_input`, tags and metadata that depend on the arguments are left out. User and session stay: a run is found and
        deleted by them.
        """
        named = {**self._defaults, **bound}
        found: dict[str, Any] = {}
        for kind, value in self._values.items():
            hidden = not capture_input and kind in {"tags", "metadata"}
            if isinstance(value, dict):
                items = {key: self._resolve(item, named, hidden) for key, item in value.items()}
                found[kind] = {key: item for key, item in items.items() if item is not None}
            elif isinstance(value, list | tuple | set | frozenset):
                resolved = (self._resolve(item, named, hidden) for item in value)
                found[kind] = [item for item in resolved if item is not None]
            else:
                found[kind] = self._resolve(value, named, hidden)
        return found

    def _resolve(self, value: object, named: dict[str, Any], hidden: bool) -> Any:
        if isinstance(value, str):
            template = value
            if "{" not in template:
                return value
            return None if hidden else attempt(self._place, lambda: _fill_template(template, named))
        if not callable(value):
            return value
        function = value
        return None if hidden else attempt(self._place, lambda: call_on_arguments(function, named))


def _fill_template(template: str, named: dict[str, Any]) -> Any:
    """Fill in a template; one that is a single parameter becomes the argument itself."""
    whole = _PARAMETER.fullmatch(template)
    return named[whole[1]] if whole else template.format(**named)


def call_on_arguments(function: Callable[..., Any], named: dict[str, Any]) -> Any:
    """Call a user's callable on bound arguments: by name if its parameters match theirs, else with one mapping of all."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return function(named)
    if any(item.kind is inspect.Parameter.POSITIONAL_ONLY for item in parameters):
        return function(named)
    if any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters):
        return function(**named)
    required = [item.name for item in parameters if item.default is inspect.Parameter.empty]
    if all(name in named for name in required):
        return function(**{item.name: named[item.name] for item in parameters if item.name in named})
    return function(named)
