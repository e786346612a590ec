"""The decorators and verbs that a user meets, on a runtime of their own or on the default one.

Typed so that a decorated function keeps its signature: what changes nothing is `F -> F`, and a gate adds None to what is
returned, because a skipped action returns None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from grace_kp.record import AGENT, RETRIEVER, SCOPE, TOOL, RunBlock, current_run, decorate, note

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from grace_kp.confidence import Scores
    from grace_kp.gating import Identifier, Policy, Reviewer
    from grace_kp.levels import InterventionLevel
    from grace_kp.record import Recorder
    from grace_kp.runtime._gates import Gates

    Floor = InterventionLevel | Literal["silent", "notify", "confirm", "escalate", "deny"]

F = TypeVar("F", bound="Callable[..., Any]")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Attribute: TypeAlias = "T | str | Callable[..., Any] | None"
"""An attribute of runs as a decorator states it: a value, a template, or a callable on the bound arguments."""


class GateDecorator(Protocol):
    """What `@grace.gate(...)` gives: a decorator that adds None to what the action returns."""

    @overload
    def __call__(
        self, action: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Callable[P, Coroutine[Any, Any, R | None]]: ...
    @overload
    def __call__(self, action: Callable[P, R], /) -> Callable[P, R | None]: ...


class Front(ABC):
    """Everything that can be written above a function or called inside of one."""

    @abstractmethod
    def _recorder(self) -> Recorder:
        """Where runs that begin now are recorded."""

    @abstractmethod
    def _gates(self) -> Gates:
        """How actions that are called now are gated."""

    @overload
    def agent(self, function: F, /) -> F: ...
    @overload
    def agent(
        self,
        *,
        domain: str | None = None,
        objective: str | Callable[..., str] | None = None,
        name: str | None = None,
        release: bool = False,
        tags: Attribute[Iterable[str] | str] = None,
        user: Attribute[str] = None,
        session: Attribute[str] = None,
        metadata: Attribute[dict[str, Any]] = None,
    ) -> Callable[[F], F]: ...
    def agent(
        self,
        function: object = None,
        *,
        domain: str | None = None,
        objective: str | Callable[..., str] | None = None,
        name: str | None = None,
        release: bool = False,
        tags: Attribute[Iterable[str] | str] = None,
        user: Attribute[str] = None,
        session: Attribute[str] = None,
        metadata: Attribute[dict[str, Any]] = None,
    ) -> Any:
        """Record every call of a function as a run of its own: one trace, scored when it ends.

        Works on functions, coroutine functions, generators, async generators and methods. Inside another agent it is a
        trace of its own, linked both ways, and a step of the outer one.

        Args:
            domain: the task domain; selects the weights of the value score. The runtime's domain when None.
            objective: what the run is for: a text with the parameters in braces ("Analyse {ticker}"), or a callable on the
                bound arguments. The first text among the arguments when None.
            name: the agent's name; the function's own when None.
            release: gate the final answer as if giving it out were an action; not for generators.
            tags: texts that the run is found by. Here and below, a text may name parameters in braces ("{user_id}"), and a callable
                is called on the bound arguments.
            user: who the run is for, as an id.
            session: the conversation or job that the run is part of.
            metadata: any JSON values by name; see `update`.

        Raises:
            TypeError: what is decorated is not a function or method, or an attribute has a type it cannot have.
            GateError: `release=True` on a generator function, whose answer is out before it could be gated.
        """

        def record(target: object) -> Any:
            if release:
                target = _around(target, lambda plain: self._gates_now(plain, name=name))
            return decorate(
                target,
                recorder=self._recorder,
                kind=AGENT,
                name=name,
                domain=domain,
                objective=objective,
                attributes={"tags": tags, "user": user, "session": session, "metadata": metadata},
            )

        return record if function is None else record(function)

    def _gates_now(self, function: object, *, name: str | None) -> Any:
        from grace_kp.runtime._release import released

        return released(function, gates=self._gates, name=name)

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self, *, name: str | None = None, kind: Literal["tool", "search"] = "tool", scores: Scores | None = None
    ) -> Callable[[F], F]: ...
    def tool(
        self,
        function: object = None,
        *,
        name: str | None = None,
        kind: Literal["tool", "search"] = "tool",
        scores: Scores | None = None,
    ) -> Any:
        """Record every call of a function as a step of the run it is called in: the call, and what came of it.

        What is recorded as its input is what was passed, even if the function changes it afterwards. Outside of any run the
        call is a run of its own.

        Args:
            name: the tool's name; the function's own when None.
            kind: `search` for a tool whose result is search results, as with `retriever`.
            scores: what the figures beside search results are; see `retriever`. Only with `kind="search"`.

        Raises:
            TypeError: what is decorated is not a function or method.
            ValueError: an unknown kind, or `scores` that are unknown or stand without `kind="search"`.
        """
        if kind not in {"tool", "search"}:
            raise ValueError(f"kind must be 'tool' or 'search', not {kind!r}")
        if scores is not None:
            from grace_kp.confidence import checked_scores

            if kind != "search":
                raise ValueError("scores belong to search results; pass kind='search', or use @grace.retriever")
            checked_scores(scores)
        what = RETRIEVER if kind == "search" else TOOL

        def record(target: object) -> Any:
            return decorate(target, recorder=self._recorder, kind=what, name=name, scores=scores)

        return record if function is None else record(function)

    @overload
    def retriever(self, function: F, /) -> F: ...
    @overload
    def retriever(self, *, name: str | None = None, scores: Scores | None = None) -> Callable[[F], F]: ...
    def retriever(
        self, function: Callable[..., Any] | None = None, *, name: str | None = None, scores: Scores | None = None
    ) -> Any:
        """Record a tool whose result carries search results: their number, scores and sources become evidence.

        Results may be a list of dicts with `score` and `source`, of `(document, score)` pairs, or of objects with a
        `score` or a `metadata` dict. A field such as `score` or `similarity` is a similarity by its name. The bare figure of
        a pair may also be a distance, so it is unusable until `scores` declares it. An unusable score is named in the trace;
        it counts as 0 in the profile `strict`, and gates then ask at least for CONFIRM.

        Args:
            name: the retriever's name; the function's own when None.
            scores: what the figures are:

                - `similarity` (0 to 1, higher is better) or `cosine_similarity` (-1 to 1; below 0 counts as 0)
                - `cosine_distance` (0 to 2), `l2_distance` (Euclidean, 0 to 2) or `squared_l2_distance` (0 to 4; what FAISS and
                  Chroma return by default), each between vectors of length 1; they become the cosine similarity
                - `distance`: another distance between such vectors, or one whose metric is not known; `1 - distance`, at
                  least 0, which no metric's cosine similarity falls below
                - `none`: figures that are not scores, such as ranks; they are left alone
                - a function from a figure to a similarity from 0 to 1, for any other scale, such as BM25

        Raises:
            TypeError: what is decorated is not a function or method.
            ValueError: `scores` is none of these.
        """
        record = self.tool(name=name, kind="search", scores=scores)
        return record if function is None else record(function)

    @overload
    def gate(self, action: Callable[P, Coroutine[Any, Any, R]], /) -> Callable[P, Coroutine[Any, Any, R | None]]: ...
    @overload
    def gate(self, action: Callable[P, R], /) -> Callable[P, R | None]: ...
    @overload
    def gate(
        self,
        *,
        floor: Floor | str | None = None,
        policy: Policy | str | None = None,
        name: str | None = None,
        reviewer: Reviewer | None = None,
        timeout: float | None = None,
        judge: Literal["always", "when_needed", "never"] = "never",
        identity: Identifier | Mapping[str, Identifier] | None = None,
    ) -> GateDecorator: ...
    def gate(
        self,
        action: object = None,
        *,
        floor: object = None,
        policy: object = None,
        name: str | None = None,
        reviewer: object = None,
        timeout: float | None = None,
        judge: Literal["always", "when_needed", "never"] = "never",
        identity: Identifier | Mapping[str, Identifier] | None = None,
    ) -> Any:
        """Let an action go ahead silently, with a notice, after a person confirms, or only with a person's help.

        The level follows from the confidence of the run so far. PROCEED runs the action, MODIFY runs it with the
        reviewer's arguments, SKIP returns None, RETRY decides again, INPUT raises ActionRedirected, CANCEL raises
        ActionCancelled. Whatever breaks, the action does not run. Stands outside of `@grace.tool`.

        Args:
            floor: the level is never milder than this; `deny` blocks without asking.
            policy: floor, timeout and reviewer in one (see Policy); combined with the runtime's policies, stricter wins.
            name: the action's name, which policies match; the function's own when None.
            reviewer: who is asked; the runtime's reviewer when None.
            timeout: seconds to wait for an answer; the runtime's when None.
            judge: whether a model judges the run so far before the gate decides: `always`, `when_needed` (only if its answer could
                change the level), `never`. The action waits for it; a judgement that fails counts as 0.5.
            identity: what identifies the object whose method this is, or arguments by name, in place of their contents: the name of an
                attribute, or a callable. Arguments must not change between the decision and the call; a person is not asked
                about an argument whose changes would go unnoticed, unless it is identified here.

        Raises:
            ValueError: `judge` is none of these, or another argument cannot be used.
            GateError: the action is a generator function or a class, or `identity` names no parameter of it; the message says why.
        """

        if judge not in {"always", "when_needed", "never"}:
            raise ValueError(f"judge must be one of always, when_needed, never (got {judge!r:.40})")

        def guard(target: object) -> Any:
            def one(plain: object) -> Any:
                from grace_kp.runtime._gates import gated

                return gated(
                    plain,
                    gates=self._gates,
                    floor=floor,
                    policy=policy,
                    name=name,
                    reviewer=reviewer,
                    timeout=timeout,
                    judge=judge,
                    identity=identity,
                )

            # An action that is gated outside of any run is a run of its own, so that the decision is kept.
            return decorate(_around(target, one), recorder=self._recorder, kind=SCOPE, name=name)

        return guard if action is None else guard(action)

    def run(
        self,
        objective: str,
        *,
        domain: str | None = None,
        name: str = "run",
        tags: Iterable[str] | str | None = None,
        user: str | None = None,
        session: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> RunBlock:
        """`with grace.run("objective") as run:` records the block as a run; `run.trace` is its trace afterwards.

        Args:
            objective: what the run is for.
            domain: the task domain; the runtime's when None.
            name: the agent's name.
            tags: texts that the run is found by.
            user: who the run is for, as an id.
            session: the conversation or job that the run is part of.
            metadata: any JSON values by name; see `update`.

        Raises:
            ValueError: the objective is not a non-empty text.
        """
        if not isinstance(objective, str) or not objective:
            raise ValueError(f"the objective of a run is a non-empty text, not {objective!r:.60}")
        attributes = {"tags": tags, "user": user, "session": session, "metadata": metadata}
        stated = {kind: value for kind, value in attributes.items() if value is not None}
        return RunBlock(objective, recorder=self._recorder, name=name, domain=domain, attributes=stated)

    def thought(self, text: str) -> None:
        """Record what the agent thinks, as a step of the run this is called in. Outside of any run it does nothing."""
        run = current_run()
        if run is None:
            note("thought", "said outside of any run")
        else:
            run.thought(text)

    def outcome(self, *, confidence: float | None = None, success: bool | None = None, result: object = None) -> None:
        """Say how the run this is called in ended; what is not given stays as computed.

        Args:
            confidence: the run's own confidence, 0 to 1; it wins over the computed one.
            success: whether the run succeeded, whatever its root call does.
            result: what the run came to, instead of what its root returned.
        """
        run = current_run()
        if run is None:
            note("outcome", "set outside of any run")
        else:
            run.outcome(confidence=confidence, success=success, result=result)

    def update(
        self,
        *,
        tags: Iterable[str] | str | None = None,
        user: str | None = None,
        session: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """State what the run this is called in is found by. Outside of any run it does nothing.

        Args:
            tags: added to those that the run has.
            user: who the run is for, as an id.
            session: the conversation or job that the run is part of.
            metadata: any JSON values by name; merged with what the run has.
        """
        run = current_run()
        if run is None:
            note("update", "called outside of any run")
        else:
            run.update(tags=tags, user=user, session=session, metadata=metadata)


def _around(target: object, wrapper: Callable[[Any], Any]) -> Any:
    """Wrap what is inside a static or class method, so that it stays one."""
    if isinstance(target, staticmethod | classmethod):
        return type(target)(wrapper(target.__func__))
    return wrapper(target)
