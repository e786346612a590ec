"""The description of a recorded function, derived once when it is decorated: its name, its kind, the names of its parameters.

Arguments are bound to names when the run finishes, not while it is live: `Signature.bind` costs more than a whole recorded call.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from grace_kp.record._arguments import mask_of
from grace_kp.record._attributes import call_on_arguments, declare_attributes
from grace_kp.record._current import HOST
from grace_kp.record._guard import attempt
from grace_kp.trace import cut, render, render_text, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

TOOL, RETRIEVER, AGENT, SCOPE = "tool", "retriever", "agent", "scope"
"""Kinds of recorded functions. A scope opens a run only outside of any run; inside a run it leaves no trace."""

MAX_OBJECTIVE = 2_000


class Spec:
    """The description of a recorded function."""

    __slots__ = (
        "attributes", "bound", "can_await", "domain", "failed", "injected", "kind", "looks", "mask", "name", "objective", "positional", "scores", "searches",
        "var_keyword", "var_positional",
    )  # fmt: skip

    def __init__(
        self,
        function: Callable[..., Any] | None,
        *,
        kind: str,
        name: str | None = None,
        domain: str | None = None,
        objective: str | Callable[..., Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
        scores: object = None,
        sealed: Iterable[str] = (),
    ) -> None:
        self.name = name or name_of(function)
        self.scores = scores
        """The declared kind of the figures beside search results; None if undeclared."""
        self.kind = kind
        self.searches = kind == RETRIEVER
        self.failed: Callable[[Any], object] | None = None
        """Declared by the program: whether a result is a failure."""
        self.looks = self.searches
        """Whether each result is looked at: for what was found, or for a failure."""
        self.domain = domain
        self.objective = objective
        self.attributes = None if attributes is None else declare_attributes(self.name, function, attributes)
        """Tags, user, session and metadata of every run of the function."""
        self.positional: tuple[str, ...] = ()
        self.var_positional = "args"
        self.var_keyword = "kwargs"
        self.bound = False
        """Whether the first parameter is the instance or class that a method belongs to, which is no input."""
        self.injected = frozenset() if function is None else HOST.injected(function)
        """Parameters that a framework fills in. They are not recorded."""
        self.mask = mask_of(function, (*sealed, *self.injected))
        """Replaces the sealed arguments of a call; None where none are sealed."""
        self.can_await = False
        """Whether a coroutine awaits at the end of the run until it is stored, so that nothing blocks its event loop."""
        if function is not None:
            self._read(function)

    def _read(self, function: Callable[..., Any]) -> None:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return  # some builtins have no signature; their arguments are named by position
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.positional = tuple(item.name for item in parameters if item.kind in by_position)
        for item in parameters:
            if item.kind is inspect.Parameter.VAR_POSITIONAL:
                self.var_positional = item.name
            elif item.kind is inspect.Parameter.VAR_KEYWORD:
                self.var_keyword = item.name
        owner = getattr(function, "__qualname__", "").rpartition(".")[0]
        method = bool(owner) and not owner.endswith("<locals>")
        self.bound = method and bool(self.positional) and self.positional[0] in {"self", "cls", "mcs"}
        if self.bound:
            self.positional = self.positional[1:]

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the passed arguments by parameter name; those left to their defaults are not among them."""
        known = len(self.positional)
        named: dict[str, Any] = dict(zip(self.positional, args, strict=False))
        if len(args) > known:
            named[self.var_positional] = list(args[known:])
        if kwargs:
            for key, value in kwargs.items():
                named[key if key not in named else f"{self.var_keyword}.{key}"] = value
        for name in self.injected:
            named.pop(name, None)
        return named

    def objective_of(self, args: Sequence[Any], kwargs: Mapping[str, Any], max_text: int) -> str:
        """Return the objective of a run: the stated one, else the first text among the arguments, else the call itself.

        `args` are without the bound instance. If the user's template or callable fails, the next rule applies.
        """
        limit = max_text if max_text < MAX_OBJECTIVE else MAX_OBJECTIVE  # noqa: FURB136 — cheaper than a call
        if self.objective is not None:
            stated = self.objective
            text = attempt(f"objective of {self.name}", lambda: _fill_objective(stated, self.bind(args, kwargs)))
            if text is not None and text.strip():
                return cut(text, limit)
        for value in (*args, *kwargs.values()) if kwargs else args:
            if type(value) is str:
                if value and not value.isspace():
                    return value if len(value) <= limit else cut(value, limit)
            elif issubclass(type(value), str) and str.strip(value):
                return cut(str.__getitem__(value, slice(None)), limit)
        return cut(f"{self.name}({self._shown(args, kwargs)})", limit)

    def _shown(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        shown = [to_text(render(value, 80)) for value in args]
        shown += [f"{key}={to_text(render(value, 80))}" for key, value in kwargs.items()]
        return ", ".join(cut(text, 80) for text in shown)


def _fill_objective(objective: str | Callable[..., Any], named: dict[str, Any]) -> str:
    if isinstance(objective, str):
        return objective.format(**named) if "{" in objective else objective
    return render_text(call_on_arguments(objective, named), MAX_OBJECTIVE)


def name_of(function: object) -> str:
    """Return the function's own name, through partials and callable objects."""
    while hasattr(function, "func") and not hasattr(function, "__name__"):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name)
