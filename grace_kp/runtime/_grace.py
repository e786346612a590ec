"""`Grace` wires the rooms together and holds no logic itself. `_pipeline` states what happens when a run has finished."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from uuid import uuid4

from grace_kp.background import Lock, Resident, is_subinterpreter, watch
from grace_kp.errors import GraceError, SettingsError
from grace_kp.record import HOST, PICKLED, TROUBLES, Listener, Recorder, Run, finish_late, new_trace_id
from grace_kp.runtime._approvals import Definitions
from grace_kp.runtime._choices import ModelChoice, ProfileChoice, check_model, profile_name
from grace_kp.runtime._front import Front
from grace_kp.runtime._live import LiveRuns
from grace_kp.settings import STORES, Settings, store_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from os import PathLike

    from grace_kp.approvals import Approvals
    from grace_kp.calibrate import Alarm, Monitor
    from grace_kp.confidence import Profile, Thresholds
    from grace_kp.gating import Policy, Reviewer
    from grace_kp.protocols import Embedder, Judge
    from grace_kp.record import Pause
    from grace_kp.runtime._gates import Gates
    from grace_kp.runtime._live import LiveCall, LiveRun
    from grace_kp.runtime._pipeline import Hook, Pipeline
    from grace_kp.runtime._promise import PromiseWatch
    from grace_kp.runtime._scoring import TraceScorers
    from grace_kp.runtime._seam import Action, GateTable
    from grace_kp.runtime._writer import Writer
    from grace_kp.store import Store
    from grace_kp.trace import ReasoningTrace

    AlarmHook = TypeVar("AlarmHook", bound=Callable[[Alarm], Any])


MAX_ACTIONS = 10_000
"""Named actions that are remembered, for calls that are recorded by name."""
SUBINTERPRETER = (
    "grace_kp does not work in a sub-interpreter, because numpy and pydantic cannot be loaded there: "
    "use threads or processes, and in mod_wsgi `WSGIApplicationGroup %{GLOBAL}`"
)


class Grace(Front, Resident):
    """Records the runs of your agents, scores them, computes a confidence, and gates actions on it.

    One object serves any number of agents, threads and event loops. It opens and starts nothing before the first run. Another process
    opens it from a pickle, once, with the same arguments.
    """

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep the arguments for pickles; a subclass may have others."""
        self = super().__new__(cls)
        self._arguments = args, kwargs
        return self

    def __init__(
        self,
        *,
        store: str | Store | None = None,
        domain: str | None = None,
        profile: str | PathLike[str] | Profile | None = None,
        thresholds: Thresholds | None = None,
        evaluator: str | Judge | Any | None = "auto",
        embedder: str | Embedder | Any | None = "auto",
        reviewer: Literal["auto"] | Reviewer | None = "auto",
        on_notify: Callable[[Any], Any] | None = None,
        policies: Mapping[str, Policy | str] | None = None,
        scorers: object = (),
        shadow: str | PathLike[str] | Profile | tuple[Any, Thresholds] | None = None,
        monitor: Monitor | bool | None = None,
        privacy_level: str | None = None,
        clock: Callable[[], int] = perf_counter_ns,
        wall_clock: Callable[[], int] = time_ns,
        new_id: Callable[[], str] = new_trace_id,
        **settings: Any,
    ) -> None:
        """Wire a runtime. Arguments that are None come from the environment, the configuration file or the default.

        Args:
            store: `memory:`, `sqlite:///path.db`, or a Store; a SQLite file in the user's data folder when None.
            domain: the task domain of runs that state none.
            profile: the confidence profile: `grace`, `strict`, the path of a learned profile (`profile.json`), which is read once, here,
                or a profile itself, such as a `CalibratedProfile`. See also the settings `profile_digest` and `on_mismatch`.
            thresholds: the lowest confidence at which an action runs silently, with a notice, or after a person confirms. When None, those
                of the settings; a learned profile fills the levels that these leave open.
            evaluator: the model that judges answers: `openai:MODEL` at any OpenAI-compatible endpoint (see the setting `openai_base_url`),
                a chat model of LangChain or a model of Pydantic AI, a `GeminiJudge` or `OpenAIJudge`, or any callable from prompt to text.
                `auto` is Gemini when its extra is installed and an API key is set. Without a model nothing is judged, and the trace states that.
            embedder: the model that embeds a trace for its novelty: `openai:MODEL`, embeddings of LangChain, an embedder of Pydantic AI,
                an Embedder, or a callable from text to vector. `auto` is ONNX, else sentence-transformers, if installed and the model is
                on disk. Without an embedder novelty stays 0.5, and the trace states that.
            reviewer: the reviewer that gates ask: a callable from InterventionRequest to InterventionResponse, sync or async, or an object
                with `review`. `auto` is the console when it is a terminal. Otherwise a gate that must ask cancels.
            on_notify: called with the request of each action that runs with a notice. When None, a line in the log (logger
                `grace_kp.gate`, level INFO) and, where standard error is a terminal, there too.
            policies: floors or policies by action name or glob, for example `{"delete_*": "confirm", "wire": "deny"}`. Those of the
                environment and of configuration files are combined with them to the stricter.
            scorers: scorers of every finished run: one or several of the scorers and suites of `grace_kp.scorers`, `OnTraces` with expected
                values, and callables from a trace to a number from 0 to 1. They run in the background. Their scores and errors are
                stored with the trace, and `store.query(scorer=…)` finds it by them.
            shadow: a second profile that is recorded next to the first and changes nothing: as `profile`, or a pair of such a thing and
                its thresholds.
            monitor: tests the promised error rates with every label that is stated: a `calibrate.Monitor`, or True for the promise of the
                learned profile. The store holds its counts. See `on_alarm`, the method and the setting.
            privacy_level: `private` removes secrets from traces; `aggregated` and `federated` remove identifiers too.
            clock: monotonic nanoseconds; for tests.
            wall_clock: nanoseconds since the epoch; for tests.
            new_id: returns the id of each trace; for tests.
            settings: any other setting by name, see `grace_kp.settings.Settings`.

        Raises:
            SettingsError: a setting is unknown or has no usable value, or the file of a profile cannot be used.
            ValueError: a policy cannot be used, or its name can match no action.
            TypeError: `thresholds` is not a `Thresholds`, or `policies` is not a mapping.
            GraceError: this is a sub-interpreter.
        """
        if is_subinterpreter():
            raise GraceError(SUBINTERPRETER)
        url = store if isinstance(store, str) else None
        self.settings = Settings.load(
            store=url, domain=domain, profile=profile_name(profile), privacy_level=privacy_level, **settings
        )
        models = ("evaluator", evaluator), ("embedder", embedder)
        evaluator, embedder = (check_model(name, model, self.settings) for name, model in models)
        self._own_store = store if store is not None and not isinstance(store, str) else None
        if store is not None and url is None and not all(hasattr(store, verb) for verb in ("put", "get", "query")):
            raise SettingsError(f"store: a {type(store).__name__} is not a store; pass a Store, or one of {STORES}")
        # A relative path means the working directory of now: a later change must not lead to another file.
        file = store_file(self.settings.store) if self.settings.store else None
        absolute = f"sqlite:///{file.absolute()}" if file else "?"
        self._store_url = self.settings.store if "?" in absolute else absolute
        self._lock = threading.RLock()
        self._profiles = ProfileChoice(self.settings, profile, shadow, thresholds)
        self._promise = self._watch(monitor)
        self._models = ModelChoice(
            self.settings, evaluator, embedder, lambda: self._profiles.get().main.calculator, self._resume_completing
        )
        self._reviewer = reviewer
        self._on_notify = on_notify
        self._scorers: TraceScorers | None = None
        if not (isinstance(scorers, tuple | list) and not scorers) and scorers is not None:
            from grace_kp.runtime._scoring import TraceScorers, trace_scorers

            self._scorers = TraceScorers(trace_scorers(scorers), self.settings.scorer_timeout, self._resume_completing)
        self._policies = [policies or {}, *self.settings.policies.places]
        self._made_gates: Gates | None = None
        self._defined = Definitions()
        self._actions: dict[str, Action] = {}
        self._wiring: Writer | None = None
        listener = Listener(
            opened=lambda run: self._writer.start_journal(),  # noqa: ARG005
            ended=self._run_ended,
            drain=self._drain,
            recall=lambda run: self._pipeline.recall(run),
            asked=self._run_asks,
        )
        self.recorder = Recorder(self.settings, listener, clock=clock, wall_clock=wall_clock, new_id=new_id)
        self._live = LiveRuns(
            self.recorder,
            lambda name: self._actions.get(name) or next(reversed(self._defined.find_named(name)), None),
            lambda: self._writer.store_soon(1.0),
        )
        if any(self._policies):
            self._gates()  # a policy that cannot be used is an error now, not at the first call of an action
        watch(self)

    def _watch(self, monitor: Monitor | bool | None) -> PromiseWatch | None:
        """Return the promise to watch, and have gates consult it; None without a monitor."""
        if monitor is None or monitor is False:
            return None
        from grace_kp.runtime._promise import PromiseWatch, monitor_of

        profiles = self._profiles.get()
        profile = profiles.main.learned or profiles.main.name
        test = monitor_of(monitor, profile, self.settings.audit_rate)
        promise = PromiseWatch(test, profile, lambda: self._writer.store(), asks=self.settings.on_alarm == "confirm")
        if profiles.trust is not None:
            profiles.trust.checks.append(promise.reasons_against)
        return promise

    def _runtime(self) -> Self:
        return self

    def _existing_gates(self) -> Gates | None:
        return self._made_gates

    def _gates(self) -> Gates:
        if self._made_gates is None:
            from grace_kp.runtime._gates import Gates, LazyInbox

            settings, profiles = self.settings, self._profiles.get()
            self.recorder.is_gated = True
            with self._lock:  # two ledgers would let one action run twice
                if self._made_gates is None:
                    self._made_gates = Gates(
                        profiles=profiles,
                        places=self._policies,
                        timeout=settings.gate_timeout,
                        chosen_reviewer=self._reviewer,
                        on_notify=self._on_notify,
                        promise=self._promise,
                        unmeasured=settings.unmeasured,
                        list_actions=lambda: self._defined.names(),
                        lazy_inbox=LazyInbox(lambda: self._writer.store(), settings),
                        judge=lambda: self._models.get().judge,
                        store=lambda: self._writer.store(),
                        recorder=self.recorder,
                        documents=lambda: self._pipeline.documents,
                    )
        return self._made_gates

    @property
    def thresholds(self) -> Thresholds:
        """Thresholds of this runtime's gates: those passed in, else those of the settings, else those of a learned profile."""
        return self._profiles.get().main.thresholds

    @property
    def _pipeline(self) -> Pipeline:
        return self._writer.pipeline

    @property
    def _writer(self) -> Writer:
        if self._wiring is None:
            with self._lock:
                if self._wiring is None:
                    wired = self._wire()
                    self._wiring = self._wiring or wired  # a signal handler may have been first
        return self._wiring

    def _wire(self) -> Writer:
        from grace_kp.record import Conversations
        from grace_kp.runtime._backlog import WriterLimits
        from grace_kp.runtime._pipeline import Pipeline
        from grace_kp.runtime._writer import Writer
        from grace_kp.store import open_store

        settings, place = self.settings, self._store_url if self._own_store is None else self._own_store
        pipeline = Pipeline(
            settings,
            self.recorder,
            self._models,
            self._profiles.get,
            self._scorers,
            Conversations(lambda: writer.store(), lambda: writer.write_now(), lambda: writer.write_pending()),
            put_later=lambda record: writer.put_later(record),
            write_settled=lambda: writer.write_pending(),
        )
        patience = 0.0
        if self._models.may_judge or self._models.may_embed:
            patience = settings.judge_timeout
        elif self._scorers is not None:
            patience = min(10, settings.scorer_timeout)
        limits = WriterLimits(
            journal_interval=settings.journal_ms / 1_000,
            max_pending_bytes=settings.max_pending_mb << 20,
            retention_days=settings.retention_days,
            exit_seconds=2 + patience,
            durability=settings.durability,
            overflow=settings.overflow,
        )
        writer = Writer(lambda: open_store(place, file_mode=settings.permissions), pipeline, limits)
        return writer

    def _resume_completing(self) -> None:
        if self._wiring is not None:
            self._wiring.pipeline.completer.resume()

    def _run_ended(self, run: Run) -> None:
        writer = self._writer
        if self._scorers is not None:
            self._scorers.expect(run.id)
        for claim in list(run.claims or ()):
            claim.unknown()
        if run.via is not None and not self.recorder.is_gated:
            self.recorder.is_gated = bool(self._defined.names())
        run.stored = writer.submit(run, can_await=run.spec.can_await)
        if run.capture is not None or writer.pipeline.collectors:
            self._drain()

    def _run_asks(self, waiting: Sequence[tuple[Run, Pause]]) -> None:
        self._writer.put_now(lambda: self._pipeline.suspended_records(waiting))

    def _drain(self) -> None:
        """Settle the runs that have ended, and wait until they are complete."""
        finish_late()
        writer = self._writer
        writer.write_now()
        writer.pipeline.completer.complete(time.monotonic() + self.settings.judge_timeout * 2 + 5)

    @property
    def store(self) -> Store:
        """The store, with every run that has ended so far: `grace.store.query(domain=…)`, `.get(id)`, `.clear()`.

        Raises:
            StoreError: the store cannot be opened.
        """
        writer = self._writer
        store = writer.store()
        writer.flush(timeout=5.0)
        return store

    @property
    def approvals(self) -> Approvals:
        """The requests for approval in the store: `grace.approvals.pending()`, `.approve(id, by="ana")`, `.watch()`, …"""
        from grace_kp.approvals import Approvals, Inbox
        from grace_kp.runtime._approvals import ApprovedActions

        def inbox() -> Inbox:
            return self._gates().inbox

        return Approvals(inbox, ApprovedActions(self._defined, inbox, self._recorder))

    def on_complete(self, callback: Hook) -> Hook:
        """Call `callback` once with every trace that is finished, judged, scored and stored. Works as a decorator.

        It runs on a background thread, in the order in which the runs ended. Exceptions in it are logged and have no other effect. A run
        whose process died before that is completed by another process, which does not call its hooks.
        """
        if not callable(callback):
            raise TypeError(f"on_complete takes a callable, not {type(callback).__name__}")
        self._pipeline.hooks.append(callback)
        return callback

    def action(
        self,
        name: str,
        *,
        schema: Mapping[str, Any] | None = None,
        policy: Policy | str | None = None,
        reviewer: Reviewer | None = None,
        key: str | None = None,
        ignore: Iterable[str] = (),
        sealed: Iterable[str] = (),
        version: str | None = None,
        failed: Callable[[Any], object] | None = None,
        timeout: float | None = None,
        judge: Literal["always", "when_needed", "never"] = "never",
        alarms: Collection[str] | str = "all",
        unmeasured: str | None = None,
    ) -> Action:
        """Return an action that a framework calls by name, for `LiveRun.decide` and `Action.decide`.

        It is the seam for code that is not a decorator: an adapter asks about each call, runs it under the claim of its verdict, and passes
        refusals to the model as text. See the guide to frameworks.

        Args:
            name: the name of the action, which policies match.
            schema: the JSON schema of the arguments, an object with `properties`; edits of reviewers are checked with it.
            policy: its policy or floor; combined with what the runtime's policies state for the name.
            key: identifies the operation by arguments in braces, in addition to the call; see `Grace.gate`.
            ignore, sealed: see `Grace.gate`; a sealed argument is recorded nowhere.
            version: version of the action; a hash of the arguments' names when None.
            failed: decides whether a result reports a failure; see `Grace.tool`.
            reviewer, timeout, judge, alarms, unmeasured: see `Grace.gate`.

        Raises:
            GateError: the schema is not JSON, or `key`, `ignore` or `sealed` names an argument that the schema does not have.
            ValueError: another argument has a value that cannot be used.
        """
        from grace_kp.gating import Policy
        from grace_kp.runtime._gates import GateSpec
        from grace_kp.runtime._seam import Action

        own = Policy.of(policy).combined(Policy(alarms=alarms, unmeasured=unmeasured))
        stated = {"key": key, "ignore": ignore, "sealed": sealed, "version": version}
        spec = GateSpec(policy=own, name=name, reviewer=reviewer, timeout=timeout, judge=judge, stated=stated)
        gates = self._gates()
        gates.tools.add(name)
        self.recorder.is_gated = True
        action = Action(self._gates, name, spec, schema, failed=failed, is_stated=policy is not None)
        self._actions[name] = action
        if len(self._actions) > MAX_ACTIONS:
            del self._actions[next(iter(self._actions))]
        return action

    def tool_gates(self, gates: Mapping[str, Policy | str] | None, title: str) -> GateTable:
        """Return the gates of an adapter by tool: policies or floors by name or glob, such as `{"pay": "confirm"}`.

        `action(tool, schema)` of it is the action of a tool, and `title` names the adapter in warnings.

        Raises:
            ValueError: a policy cannot be used, or its name can match no tool; the message names it.
            TypeError: `gates` is not a mapping.
        """
        from grace_kp.runtime._seam import GateTable

        return GateTable(self, gates, title)

    def on_alarm(self, callback: AlarmHook) -> AlarmHook:
        """Call `callback` with the `calibrate.Alarm` when a promise is refuted, once per alarm and process. Works as a decorator.

        It runs in the thread that finds the alarm, in `feedback`, `status` or before a gated action, so it must return quickly. Alarms that
        other processes raise are found within five seconds of activity at gates. Exceptions in it are logged and have no other effect.

        Raises:
            SettingsError: this runtime watches no promise.
            TypeError: it is not callable.
        """
        if not callable(callback):
            raise TypeError(f"on_alarm takes a callable, not {type(callback).__name__}")
        self._watched_promise().hooks.append(callback)
        return callback

    def reset_alarms(self) -> None:
        """Forget the labels and alarms of the promise in all processes, for example once their cause is removed.

        The test starts again with a new `delta`. Runs whose label was counted are not counted again.

        Raises:
            SettingsError: this runtime watches no promise.
            StoreError: the store cannot be used.
        """
        self._watched_promise().reset()

    def _watched_promise(self) -> PromiseWatch:
        if self._promise is None:
            raise SettingsError("this runtime watches no promise: pass monitor=True or a calibrate.Monitor to Grace")
        return self._promise

    def open_run(
        self,
        objective: str,
        *,
        name: str | None = None,
        framework: str | None = None,
        id: str | int | None = None,  # noqa: A002 — the public name
        session: str | None = None,
        user: str | None = None,
        domain: str | None = None,
        tags: Iterable[str] | str | None = None,
        metadata: dict[str, Any] | None = None,
        resume: str | None = None,
        inside: LiveRun | LiveCall | None = None,
        started: datetime | float | None = None,
    ) -> LiveRun:
        """Open a run that its caller ends itself, for hooks of a framework; see `LiveRun`. It raises nothing where recording fails.

        Args:
            objective: the task of the run.
            name: the agent's name; `framework` when None.
            framework: short name of the framework, such as `openai-agents`; that of `inside` when None.
            id: the framework's id of the run, by which `live_run` finds it while it is open.
            session: the conversation or job that the run is part of; that of `inside` when None.
            user: id of the user that the run is for; that of `inside` when None.
            domain: as in `run`, like tags and metadata.
            resume: the key with which a run of the same name, domain, framework, session and user was suspended. The same trace continues,
                once. If that run cannot be found, this one is new, and its gates ask at least for CONFIRM.
            inside: the live run or call that it is nested in; the current run, if any, when None.
            started: when it began: an aware datetime, or seconds since the epoch; now when None.
        """
        stated = {"domain": domain, "session": session, "user": user, "tags": tags, "metadata": metadata}
        return self._live.open(objective, name, framework, id, resume, inside, started, stated)

    def live_run(self, framework: str, id: str | int) -> LiveRun | None:  # noqa: A002 — the public name
        """Return the open run with this id of the framework, see `open_run`; None without one. Of several, the latest."""
        return self._live.by_id.get((framework, str(id)))

    def langchain(self, *, domain: str | None = None, scores: object = None) -> AbstractContextManager[Any]:
        """`with grace.langchain():` records every call of the framework that is made inside, without a change to the program.

        It applies to this context, its tasks, and the threads that the framework starts from it. It yields the callback handler.

        Args:
            domain: the task domain of the runs; the runtime's when None.
            scores: what the scores of search results are; see `GraceCallbackHandler`.

        Raises:
            MissingExtra: the framework is not installed.
        """
        adapter = HOST.frameworks["langchain"].load()
        return adapter.everywhere(self, domain, scores)  # type: ignore[no-any-return]

    @contextmanager
    def collect(self) -> Iterator[list[ReasoningTrace]]:
        """`with grace.collect() as traces:` — every trace of this runtime that is finished inside, in order, scored.

        For tests and notebooks: while it is open, each run is finished in the thread in which it ends, so that the list is always up to
        date.
        """
        traces: list[ReasoningTrace] = []
        self._drain()
        collectors = self._pipeline.collectors
        collectors.append(traces)
        try:
            yield traces
            self._drain()
        finally:
            # Compared by identity, because two collectors may hold equal traces.
            collectors[:] = [kept for kept in collectors if kept is not traces]

    def flush(self, timeout: float | None = 30.0) -> bool:
        """Wait until every run that has ended so far is stored and complete. It never raises.

        Returns:
            True only if another process can read all of these runs from the store's place. False if that took longer than `timeout`
            seconds, if the store cannot write, and for good once a run was dropped or lost; see `status()`.
        """
        finish_late()
        return True if self._wiring is None else self._wiring.flush(timeout)

    def close(self) -> None:
        """Flush, and give back the thread and the store. Runs that end later are still stored, one by one."""
        finish_late()
        if self._wiring is not None:
            self._wiring.close()

    def status(self) -> dict[str, Any]:
        """Return counts of stored, waiting and lost runs, and what makes gates milder; for `grace-kp doctor` and for monitoring."""
        writer = self._wiring
        return {
            "open_runs": len(self.recorder.open_runs),
            "writer": {} if writer is None else writer.stats(),
            "profile": self._profiles.describe(),
            "promise": None if self._promise is None else self._promise.describe(),
            "milder": self._profiles.get().milder(self.settings, self._policies[0], is_watched=bool(self._promise)),
            "alarms": {} if self._made_gates is None else dict(self._made_gates.alarm_counts),
            "unmatched_policies": {} if self._made_gates is None else self._made_gates.list_unmatched(),
            "sampled_out": writer.pipeline.sampled_out if writer is not None else 0,
            "models": self._models.get().describe() if self._models.are_chosen else None,
            "troubles": dict(TROUBLES.counts),
            "last_trouble": TROUBLES.last,
        }

    def __reduce__(self) -> Any:
        if self._own_store is not None:
            raise TypeError(
                "a Grace with a Store object cannot be pickled; name its store by a URL, such as sqlite:///traces.db"
            )
        name = next((name for name, known in PICKLED.items() if known is self), uuid4().hex)
        PICKLED[name] = self
        args, kwargs = self._arguments
        if type(self) is Grace:
            kwargs = {**kwargs, "store": self._store_url}  # another process may run in another folder
        return _unpickled, (type(self), name, args, kwargs)

    def import_locks(self) -> Sequence[Lock]:
        """Return what is held during a fork, so that nothing is half done then, an import least of all."""
        return (self._lock,)

    def after_fork(self) -> None:
        """In a forked child, the runs that are open belong to the parent: they are not ended here."""
        self._lock = threading.RLock()
        self.recorder.after_fork()
        self._live.after_fork()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Grace(store={self.settings.store or self._own_store!r}, domain={self.settings.domain!r})"


def _unpickled(kind: type[Grace], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Grace:
    """Return the runtime with this name in pickles; open it where this process does not have it."""
    found: Grace = PICKLED.get(name) or PICKLED.setdefault(name, kind(*args, **kwargs))
    return found
