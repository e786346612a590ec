"""Tags, user, session and metadata of a live run: as stated by a decorator, by a block, or from within the run.

Everything is bounded when it is stated and cleaned when the trace is written. A nested run belongs to the user and the session of
the run around it, so that both are found, and deleted, together.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from grace_kp.record._guard import attempt, note
from grace_kp.trace import MAX_METADATA, MAX_TAGS, MAX_VALUE, render, render_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARAMETER = re.compile(r"\{(\w+)\}")


class Attributes:
    """What has been stated about one run. Changed under the recorder's lock only."""

    __slots__ = ("changes", "dropped_metadata", "dropped_tags", "metadata", "session", "tags", "user")

    def __init__(self) -> None:
        self.tags: dict[str, None] = {}
        self.metadata: dict[str, Any] = {}
        self.user: str | None = None
        self.session: str | None = None
        self.dropped_tags = 0
        self.dropped_metadata = 0
        self.changes = 0
        """How often it was changed; the journal writes it again after a change."""

    def merge(self, *, tags: Any, user: Any, session: Any, metadata: Any, max_text: int) -> None:
        """Add tags, put metadata over what is there, replace user and session; None changes nothing."""
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


def _texts(tags: Any, name: str, max_text: int) -> list[str]:
    if tags is None:
        return []
    if isinstance(tags, str):  # one tag, not its letters
        tags = (tags,)
    if not isinstance(tags, list | tuple | set | frozenset):
        note("update", f"{name} must be a list of texts, not {type(tags).__name__}")
        return []
    found = (
        _text(tag, name, max_text) for tag in (sorted(tags, key=str) if isinstance(tags, set | frozenset) else tags)
    )
    return [tag for tag in found if tag]


def _text(value: Any, name: str, max_text: int) -> str | None:
    if value is None:
        return None
    text = render_text(value, max_text)
    if not text.strip():
        note("update", f"{name} must not be empty")
        return None
    return text


class Declared:
    """Attributes as a decorator states them: values, templates with parameters in braces, or callables on the bound arguments."""

    __slots__ = ("_defaults", "_name", "_values")

    def __init__(self, name: str, defaults: dict[str, Any], values: Mapping[str, Any]) -> None:
        """Check the values.

        Raises:
            TypeError: a value has a type that this attribute cannot have.
        """
        self._name = name
        self._defaults = defaults
        self._values = dict(values)
        tags, metadata = values.get("tags"), values.get("metadata")
        if not (tags is None or callable(tags) or isinstance(tags, str | list | tuple | set | frozenset)):
            raise TypeError(f"tags must be a list of texts or a callable, not {type(tags).__name__}")
        if not (metadata is None or callable(metadata) or isinstance(metadata, dict)):
            raise TypeError(f"metadata must be a dict or a callable, not {type(metadata).__name__}")

    def resolve(self, bound: Mapping[str, Any], *, capture_input: bool) -> dict[str, Any]:
        """The attributes of one call. What cannot be worked out is left out and noted.

        Without `capture_input`, tags and metadata that depend on the arguments are left out. User and session stay: they are what a
        run is found and deleted by.
        """
        named = {**self._defaults, **bound}
        found: dict[str, Any] = {}
        for kind, value in self._values.items():
            hidden = not capture_input and kind in {"tags", "metadata"}
            if isinstance(value, dict):
                found[kind] = {
                    key: made for key, item in value.items() if (made := self._one(item, named, hidden)) is not None
                }
            elif isinstance(value, list | tuple | set | frozenset):
                found[kind] = [made for item in value if (made := self._one(item, named, hidden)) is not None]
            else:
                found[kind] = self._one(value, named, hidden)
        return found

    def _one(self, value: Any, named: dict[str, Any], hidden: bool) -> Any:
        template = isinstance(value, str) and "{" in value
        if not template and not callable(value):
            return value
        if hidden:
            return None
        return attempt(f"attributes of {self._name}", lambda: _worked_out(value, named))


def _worked_out(value: Any, named: dict[str, Any]) -> Any:
    if not isinstance(value, str):
        return call_on_arguments(value, named)
    whole = _PARAMETER.fullmatch(value)
    return named[whole[1]] if whole else value.format(**named)


def declared(name: str, function: Any, values: Mapping[str, Any]) -> Declared | None:
    """What a decorator states about the runs of a function; None where it states nothing."""
    stated = {kind: value for kind, value in values.items() if value is not None}
    if not stated:
        return None
    defaults: dict[str, Any] = {}
    try:
        for item in inspect.signature(function).parameters.values():
            if item.default is not inspect.Parameter.empty:
                defaults[item.name] = item.default
    except (TypeError, ValueError):
        pass
    return Declared(name, defaults, stated)


def call_on_arguments(function: Any, named: dict[str, Any]) -> Any:
    """Call a user's callable on bound arguments: by name where its parameters are theirs, else with one mapping of them all."""
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
