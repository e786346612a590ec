"""The decorators and verbs of a runtime, for `Grace` and for the default runtime.

Their types keep the signature of a decorated function: decorators that change nothing are `F -> F`, and a gate adds None to the return
type, because a skipped action returns None.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from inspect import iscoroutinefunction as is_async
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

from grace_kp.errors import GateError
from grace_kp.levels import PrivacyLevel
from grace_kp.record import AGENT, RETRIEVER, SCOPE, TOOL, RunBlock, current_run, decorate, note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping

    from grace_kp.confidence import Scores
    from grace_kp.gating import Identifier, Policy, Reviewer
    from grace_kp.levels import InterventionLevel
    from grace_kp.record import Recorder
    from grace_kp.runtime._approvals import Definitions
    from grace_kp.runtime._gates import Gates

    Floor = InterventionLevel | Literal["silent", "notify", "confirm", "escalate", "deny"]
    Unmeasured = InterventionLevel | Literal["silent", "notify", "confirm"]

F = TypeVar("F", bound="Callable[..., Any]")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Attribute: TypeAlias = "T | str | Callable[..., Any] | None"
"""An attribute of runs in a decorator: a value, a template, or a callable on the bound arguments."""


class GateDecorator(Protocol):
    """The decorator that `@grace.gate(...)` returns: it adds None to the return type of the action."""

    @overload
    def __call__(
        self, action: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Callable[P, Coroutine[Any, Any, R | None]]: ...
    @overload
    def __call__(self, action: Callable[P, R], /) -> Callable[P, R | None]: ...


class Front(ABC):
    """The decorators for functions, and the verbs to call inside them."""

    _defined: Definitions
    """The actions that this runtime gates."""

    @abstractmethod
    def _runtime(self) -> Any:
        """Return the `Grace` in use now."""

    def _recorder(self) -> Recorder:
        """Return the recorder of runs that begin now."""
        return self._runtime().recorder  # type: ignore[no-any-return]

    @abstractmethod
    def _gates(self) -> Gates:
        """Return the gates of actions that are called now."""

    @abstractmethod
    def _existing_gates(self) -> Gates | None:
        """Return the gates of actions that are called now, where they exist already."""

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
        """Record every call of a function as a run: one trace, scored when it ends.

        Works on functions, coroutine functions, generators, async generators and methods. Inside another agent the call has its own
        trace, linked both ways, and is a step of the outer one.

        Args:
            domain: the task domain; selects the weights of the value score. The runtime's domain when None.
            objective: the task of the run: a string with parameters in braces ("Analyse {ticker}"), or a callable on the bound arguments.
                The first text among the arguments when None.
            name: the agent's name; the function's name when None.
            release: True gates the final answer like an action; not for generators.
            tags: strings to find the run by. Here and below, a string may name parameters in braces ("{user_id}"), and a callable is called
                on the bound arguments.
            user, session, metadata: see `update`.

        Raises:
            TypeError: the decorated object is not a function or method, or an attribute has a type that it cannot have.
            GateError: `release=True` on a generator function, which releases its answer before a gate could stop it.
        """

        def record(target: object) -> Any:
            if release:
                target = _around(target, lambda plain: gate_release(plain, gates=self._gates, name=name))
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

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        kind: Literal["tool", "search"] = "tool",
        scores: Scores | None = None,
        failed: Callable[[Any], object] | None = None,
    ) -> Callable[[F], F]: ...
    def tool(
        self,
        function: object = None,
        *,
        name: str | None = None,
        kind: Literal["tool", "search"] = "tool",
        scores: Scores | None = None,
        failed: Callable[[Any], object] | None = None,
    ) -> Any:
        """Record every call of a function as a step of the run around it: the call and its result.

        The recorded input is the one that was passed, even if the function changes it afterwards. Outside of any run the call is a run
        itself.

        A result may report a failure: a result of MCP with `isError` or `is_error` that is True, or a message of a tool with the status
        "error". The call then counts as failed, as if it had raised.

        Args:
            name: the tool's name; the function's name when None.
            kind: `search` for a tool whose result is search results, as with `retriever`.
            scores: what the scores of search results are; see `retriever`. Only with `kind="search"`.
            failed: decides in place of these rules, on the agent's thread, whether a result is a failure: a callable that returns a bool, or
                a string that says why. It gets what the function returned; from a generator, what it yielded last if it returned None. A
                call about which it raises counts as failed.

        Raises:
            TypeError: the decorated object is not a function or method, or `failed` is not a plain function.
            ValueError: `kind` or `scores` is unknown, or `scores` is passed without `kind="search"`.
        """
        if kind not in {"tool", "search"}:
            raise ValueError(f"kind must be 'tool' or 'search', not {kind!r}")
        if failed is not None and (not callable(failed) or is_async(failed)):
            raise TypeError(f"failed must be a plain function that takes the result, not {failed!r:.60}")
        if scores is not None:
            from grace_kp.confidence import checked_scores

            if kind != "search":
                raise ValueError("scores belong to search results; pass kind='search', or use @grace.retriever")
            checked_scores(scores)
        what = RETRIEVER if kind == "search" else TOOL

        def record(target: object) -> Any:
            return decorate(target, recorder=self._recorder, kind=what, name=name, scores=scores, failed=failed)

        return record if function is None else record(function)

    @overload
    def retriever(self, function: F, /) -> F: ...
    @overload
    def retriever(
        self,
        *,
        name: str | None = None,
        scores: Scores | None = None,
        failed: Callable[[Any], object] | None = None,
    ) -> Callable[[F], F]: ...
    def retriever(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        scores: Scores | None = None,
        failed: Callable[[Any], object] | None = None,
    ) -> Any:
        """Record a tool that returns search results: their number, scores and sources become evidence.

        Results may be a list of dicts or objects with a `score`, or of `(document, score)` pairs. The name of a field such as `score` or
        `similarity` states that it is a similarity. The number in a pair may also be a distance, so it is unusable until `scores`
        declares it. The trace lists unusable scores. They count as 0 in the profile `strict`. Other authors write the documents, so no
        score is read from a document or its metadata undeclared. Gates ask at least for CONFIRM after a search with unusable scores, and
        after one without any.

        Args:
            name: the retriever's name; the function's name when None.
            scores: what the scores are, and where they are:

                - `similarity` (0 to 1, higher is better) or `cosine_similarity` (-1 to 1; below 0 counts as 0)
                - `cosine_distance` (0 to 2), `l2_distance` (Euclidean, 0 to 2) or `squared_l2_distance` (0 to 4; what FAISS and
                  Chroma return by default), each between vectors of length 1; they become the cosine similarity
                - `distance`: another or an unknown distance between such vectors; it becomes `1 - distance`, at least 0, which is
                  never more than the cosine similarity
                - `none`: results have no scores; numbers such as ranks are ignored, and gates do not ask for that reason
                - a path of field names from a result to its similarity, such as `metadata.score`; names may contain dots
                - a path with its kind or function: `("metadata.distance", "cosine_distance")`
                - a function that returns a similarity from 0 to 1. It gets the engine's number, for any other scale, such as BM25; where
                  the engine puts none, or the function does not take a number, it gets the whole result
            failed: decides whether a result is a failure; see `tool`.

        Raises:
            TypeError: the decorated object is not a function or method, or `failed` is not a plain function.
            ValueError: `scores` is none of these.
        """
        record = self.tool(name=name, kind="search", scores=scores, failed=failed)
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
        key: str | None = None,
        ignore: Iterable[str] = (),
        sealed: Iterable[str] = (),
        version: str | None = None,
        unmeasured: Unmeasured | None = None,
        alarms: Collection[str] | str = "none",
        check: Callable[..., bool | None] | None = None,
        undoes: str | None = None,
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
        key: str | None = None,
        ignore: Iterable[str] = (),
        sealed: Iterable[str] = (),
        version: str | None = None,
        unmeasured: Unmeasured | None = None,
        alarms: Collection[str] | str = "none",
        check: Callable[..., bool | None] | None = None,
        undoes: str | None = None,
    ) -> Any:
        """Gate an action: run it silently, with a notice, after a person confirms, or only with a person's help.

        The level follows from the confidence of the run so far. PROCEED runs the action, MODIFY runs it with the reviewer's arguments,
        SKIP returns None, RETRY decides again, INPUT raises ActionRedirected, CANCEL raises ActionCancelled. Whatever breaks, the
        action does not run. Place this decorator above `@grace.tool`.

        Args:
            floor: the mildest level; `deny` blocks the action without asking.
            policy: floor, timeout and reviewer together (see Policy). It is combined with what the runtime's policies state for the action,
                so that the result is not milder than either.
            name: the action's name, which policies match; the function's name when None. In an inbox, functions that one piece of code
                defines several times, with other values around them, need different names.
            reviewer: the reviewer to ask; the runtime's reviewer when None.
            timeout: seconds to wait for an answer; the runtime's when None.
            judge: whether a model judges the run so far before the gate decides: `always`, `when_needed` (only if its answer could
                change the level), `never`. The action waits for the judgement. One that fails counts as 0.5, and the
                gate then asks at least for CONFIRM.
            identity: the attribute name or callable that identifies the object of a method, or a mapping of such by argument name, in place
                of their contents. Arguments must not change between decision and call. So no person is asked about an argument whose
                changes would go unnoticed, unless it is identified here. An inbox needs it for a method, unless its gate waits: an approval
                then holds for the objects that it names, and for no other.
            key: identifies the operation in an inbox by parameters in braces ("refund:{invoice}"). Calls with the same key join one request,
                also from other processes and later runs; with other arguments they raise `KeyReused`.
            ignore: parameters that carry no meaning, such as a freshly issued token. They are not kept, may differ between request and
                execution, and are shown as not covered.
            sealed: parameters that an inbox keeps encrypted; needs `GRACE_KP_KEY` or a key in the keyring.
            version: version of the action; an approval of another version does not entitle to run. A hash of the signature when None.
            unmeasured: the level of a call about which nothing was measured: `confirm`, `notify` or `silent`. Where several places state
                it, the stricter applies; `confirm` where none does.
            alarms: the alarms about the origin of arguments that are looked for: `all` where a model chooses the arguments, `none`, or names
                among `beside`, `nowhere` and `repeat`. A call that raises one needs at least CONFIRM. Policies may only add alarms.
            check: states by the result whether the action was right: `check(result)`, or `check(result, arguments)` with the arguments by
                name. True, False or None (unknown) becomes a label of the action with the source `check`. It is called on a background
                thread once the run is stored, also for an action that is carried out after its approval. It must be a plain function;
                its errors are logged and have no other effect. Such a label counts where no other does, and never in a promise.
            undoes: the parameter that names the action which this one undoes, by its idempotency key, the id of its decision or of its tool
                call in the same run, or by the id of its approval in any run. When this action has returned, that one gets the label
                wrong, with the source `reversal`. Such a label, too, is only for fitting.

        Raises:
            ValueError: `judge` or another argument has a value that cannot be used, or the runtime's policy and this one name groups that
                have none in common.
            TypeError: `check` is not a plain function.
            GateError: an alarm has an unknown name; the action is a generator function or a class; `identity`, `key`, `ignore`, `sealed` or `undoes`
                names a parameter that it does not have; or its InboxReviewer has `wait="raise"` without a key.
        """
        if check is not None:
            from grace_kp.runtime._feedback import arguments_of_check

            if not callable(check) or is_async(check) or not arguments_of_check(check):
                raise TypeError(
                    f"check must be a plain function of the result, or result and arguments, not {check!r:.60}"
                )

        from grace_kp.gating import Policy
        from grace_kp.runtime._gates import GateSpec, gate_action

        own = Policy.of(floor if policy is None else policy).at_least(cast("Floor | str | None", floor))
        spec = GateSpec(
            policy=own.combined(Policy(alarms=alarms, unmeasured=unmeasured)),
            name=name,
            reviewer=cast("Reviewer | None", reviewer),
            timeout=timeout,
            judge=judge,
            identity=identity,
            stated={"key": key, "ignore": ignore, "sealed": sealed, "version": version},
            check=check,
            undoes=undoes,
        )

        def guard(target: object) -> Any:
            def gate_plain(plain: Any) -> Any:
                return gate_action(plain, self._gates, spec, self._defined.add, self._existing_gates())

            # Outside of any run a gated action is a run itself, so that its decision is kept.
            return decorate(_around(target, gate_plain), recorder=self._recorder, kind=SCOPE, name=name)

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
            objective: the task of the run.
            domain: the task domain; the runtime's domain when None.
            name: the agent's name.
            tags, user, session, metadata: see `update`.

        Raises:
            ValueError: the objective is not a non-empty string.
        """
        if not isinstance(objective, str) or not objective:
            raise ValueError(f"the objective of a run is a non-empty string, not {objective!r:.60}")
        attributes = {"tags": tags, "user": user, "session": session, "metadata": metadata}
        stated = {kind: value for kind, value in attributes.items() if value is not None}
        return RunBlock(objective, recorder=self._recorder, name=name, domain=domain, attributes=stated)

    def feedback(
        self,
        trace_id: str,
        correct: bool | float,
        source: str = "user",
        *,
        by: str | None = None,
        note: str | None = None,
        probability: float | None = None,
        program: bool = False,
        action: str | int | None = None,
    ) -> None:
        """State whether a finished run was right, or with `action` one of its gated actions. The label is stored with its trace: `trace.grace["feedback"]`, newest last.

        Runs of other processes in the same store may be labelled, and any run repeatedly. A label with the name of a person counts before one
        without a name, and that before one of a program; among equals, the newest counts. A label by the run's own `user` never counts. It
        writes to the store before it returns. In an event loop call `await asyncio.to_thread(grace.feedback, trace_id, True)`.

        Args:
            trace_id: the id of the run or trace; a suspended run has one, too, an open run not yet.
            correct: True or False, or a number from 0 (wrong) to 1 (right). Guarantees use only 0 and 1.
            source: where the label comes from: `user`, `test`, `audit` (the run was drawn at random), `approval` (a person agreed to it,
                which is not a label of correctness and counts only where it is named), `outcome`, or a name of your own.
            by: who stated it; at most 200 characters. Pass the name of the person whose judgement your program records.
            note: a remark; at most 2,000 characters. Secrets are removed from `by` and `note`.
            probability: the probability with which the run was chosen to be labelled, above 0 and at most 1. Labels are weighted by its
                inverse. When None, it is 1, and for an `audit` what the gates have recorded.
            program: True states that `by` is a program, such as an agent. Its label may have none of the sources that are reserved for
                people (`approval`, `audit`, `person`, `reviewer`, `seeded`), and no probability below 1.
            action: the gated action that the label is about: the id of its decision (`trace.decisions[0].id`), of its approval or of its
                tool call, or its number in the run, from 1 on. The label is stored under `trace.grace["action_feedback"]`, and never counts
                as one of the run.

        Raises:
            ValueError: an argument cannot be used, an audit has no probability, or `action` names none of the run's actions, or several.
            UnknownTrace: the store holds no such trace, or its run is still open.
            StoreError: the store cannot be opened or written, or keeps no feedback.
        """
        from grace_kp.runtime._feedback import feedback_entry, mark_action, mark_program, state_feedback

        runtime = self._runtime()
        entry = feedback_entry(
            trace_id,
            correct,
            source,
            by=by,
            note=note,
            probability=probability,
            identifiers=PrivacyLevel(runtime.settings.privacy_level).hides_identifiers,
            at_ns=runtime.recorder.wall_clock(),
        )
        entry = mark_action(mark_program(entry) if program else entry, action)
        if runtime._promise is not None:
            runtime._promise.states()  # from now on the store counts labels for it
        entry = state_feedback(runtime._writer, entry, {run.id for run in list(runtime.recorder.open_runs)})
        if runtime._promise is not None:
            runtime._promise.count_label(entry)

    def thought(self, text: str) -> None:
        """Record a thought of the agent as a step of the current run. Outside of any run this does nothing."""
        run = current_run()
        if run is None:
            note("thought", "recorded outside of any run")
        else:
            run.thought(text)

    def outcome(self, *, confidence: float | None = None, success: bool | None = None, result: object = None) -> None:
        """State how the current run ended. Arguments that are None change nothing.

        Args:
            confidence: the run's own confidence, 0 to 1; it replaces the computed one. Any other value is ignored and logged once: a
                model's slip must not break the agent.
            success: whether the run succeeded; by default, it did if its root returned.
            result: the result of the run; by default, the value that its root returned.
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
        """State attributes of the current run, to find it by. Outside of any run this does nothing.

        Args:
            tags: strings such as "beta" or "nightly", added to the tags of the run.
            user: id of the user that the run is for.
            session: the conversation or job that the run is part of.
            metadata: any JSON values by name; merged with the metadata of the run.
        """
        run = current_run()
        if run is None:
            note("update", "called outside of any run")
        else:
            run.update(tags=tags, user=user, session=session, metadata=metadata)


def _around(target: object, wrapper: Callable[[Any], Any]) -> Any:
    """Wrap the function inside a static or class method, so that the method keeps its kind."""
    if isinstance(target, staticmethod | classmethod):
        return type(target)(wrapper(target.__func__))
    return wrapper(target)


def gate_release(function: Any, *, gates: Callable[[], Gates], name: str | None) -> Any:
    """`function`, whose answer is handed on only when the gate lets it.

    The action is called `<agent>.release` and has one argument, `answer`, which a reviewer may replace. A skipped release
    returns None. It runs inside the agent's run, so that the confidence is that of the whole run.
    """
    from grace_kp.runtime._gates import GateSpec, gate_action

    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise GateError(
            f"release=True on the generator {function.__qualname__}: what it yields is out before it could be gated; "
            "return the answer, or gate the action that publishes it"
        )
    spec = GateSpec(name=f"{name or getattr(function, '__name__', type(function).__name__)}.release")

    if inspect.iscoroutinefunction(function):

        async def hand_over(answer: Any) -> Any:
            return answer

        release_async = gate_action(hand_over, gates, spec)

        @functools.wraps(function)
        async def release_answer_async(*args: Any, **kwargs: Any) -> Any:
            return await release_async(await function(*args, **kwargs))

        return release_answer_async

    def hand_on(answer: Any) -> Any:
        return answer

    release = gate_action(hand_on, gates, spec)

    @functools.wraps(function)
    def release_answer(*args: Any, **kwargs: Any) -> Any:
        return release(function(*args, **kwargs))

    return release_answer
