"""The runtime as gates see it: the confidence of the run so far, the reviewer, the inbox, and the ledger of actions."""

from __future__ import annotations

import os
import re
import sys
import threading
import weakref
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from grace_kp.background import Lock, Resident, watch
from grace_kp.errors import GateError, StoreError
from grace_kp.gating import (
    ConsoleReviewer,
    GatedAction,
    InboxReviewer,
    InMemory,
    Policy,
    PolicySet,
    RunConfidence,
    check_key,
    gate,
)
from grace_kp.record import (
    AGENT,
    UNREAD_RUN,
    attempt,
    current_run,
    gaps_of,
    history_of,
    keep_refusal,
    kept_refusal,
    material_of,
    nearest,
    register,
    seal,
    shielded,
    survey_of,
)
from grace_kp.runtime._assessment import NOT_NEEDED
from grace_kp.runtime._profiles import Known
from grace_kp.trace import render

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from grace_kp.approvals import Inbox
    from grace_kp.confidence import ActionAlarm, ActionFeatures, ConfidenceFactors, RunEvidence
    from grace_kp.gating import GatedCall, HeldRefusal, Identifier, InterventionRequest, Ledger, Reviewer
    from grace_kp.levels import InterventionLevel
    from grace_kp.record import Documents, Recorder, Run
    from grace_kp.runtime._assessment import RunJudge
    from grace_kp.runtime._profiles import ProfileSet
    from grace_kp.runtime._promise import PromiseWatch
    from grace_kp.settings import Settings


_JSON = frozenset({str, int, float, bool, type(None), list, dict})
"""Types of arguments whose origin is looked up as they are; others in the form that traces hold."""
_PATH = re.compile(r"[^\W\d]\w{0,59}(?:(?:\.[^\W\d]\w{0,39}|\[\d{1,5}\])(?![^.\[]))*")
MAX_NODES, MAX_DEPTH = 20_000, 32
"""Values inside of arguments, and their depth, that are brought into that form."""
MAX_TOOL = 100
"""Characters of a tool's name in an alarm; a model may call tools by any name."""
NOT_JUDGED = "this gate asks for a judgement and got none"
"""A gap: an agent that makes its judge fail must not be better off than one that is judged badly."""


class LazyInbox(Resident):
    """The one inbox of a runtime."""

    def __init__(self, store: Callable[[], object], settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._lock = threading.Lock()
        self._inbox: Inbox | None = None
        watch(self)

    def fork_locks(self) -> Sequence[Lock]:
        return (self._lock,)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def get(self) -> Inbox:
        if self._inbox is None:
            from grace_kp.approvals import Inbox, Secret, webhooks_of

            store = self._store()
            tables: Any = getattr(store, "approvals", None)
            if tables is None:
                raise StoreError(
                    f"the store {type(store).__name__} keeps no approvals, so an InboxReviewer cannot be used with it; use memory: or sqlite:///path.db"
                )
            # Without the lock, which a fork waits for: a keyring starts processes.
            settings, secret = self._settings, Secret.load()
            receivers = webhooks_of(settings.webhook_url, settings.approval_link, dict(os.environ))
            with self._lock:
                if self._inbox is None:
                    inbox = Inbox(tables, domain=settings.domain, groups=settings.reviewers, secret=secret)
                    inbox.notify(receivers)
                    self._inbox = inbox
        return self._inbox


@dataclass(kw_only=True, eq=False)
class Gates:
    """The gates of one runtime."""

    profiles: ProfileSet
    places: Sequence[Mapping[str, Policy | str | dict[str, str]]]
    """The policies of each place that states some."""
    timeout: float
    """Seconds that a reviewer has."""
    chosen_reviewer: Reviewer | str | None
    """`auto` is the console, where there is a terminal to ask at."""
    on_notify: Callable[[InterventionRequest], object] | None
    promise: PromiseWatch | None
    """The promise that is watched; the store holds its alarms."""
    unmeasured: str | None
    """The level of calls about which nothing was measured, as far as the runtime states one."""
    list_actions: Callable[[], Iterable[str]]
    """Returns the names of the gated actions that are defined so far."""
    lazy_inbox: LazyInbox
    judge: Callable[[], RunJudge]
    store: Callable[[], object]
    recorder: Recorder
    documents: Callable[[], Documents]
    in_memory: InMemory = field(default_factory=InMemory)
    tools: set[str] = field(default_factory=set)
    """Names of the tools that middlewares were offered so far."""
    others: weakref.WeakSet[PolicySet] = field(default_factory=weakref.WeakSet)
    """The policies of middlewares."""
    alarm_counts: Counter[str] = field(default_factory=Counter)
    """Calls whose arguments were examined, and calls by the alarms that they raised."""

    def __post_init__(self) -> None:
        self.policies = PolicySet(*self.places)
        self.thresholds = self.profiles.main.thresholds

    def entry_for(self, action: str) -> Policy | None:
        """Return what the runtime's policies state for an action, also under a name that it looks like; None where they state nothing."""
        entry = self.policies.stated_for(action, self._known)
        if entry is None or entry.thresholds is None:
            return entry
        return replace(entry, thresholds=self.profiles.at_least_stated(entry.thresholds, in_code=False))

    def policy_for(self, action: str, spec: GateSpec) -> Policy:
        """Return the policy of an action: that of its gate and the runtime's at once, which is never milder than either.

        Thresholds that are stated for the whole runtime hold for a gate's own thresholds, too. The runtime's policy has the last word
        about the reviewer; where it names a group or a quorum, a reviewer of the gate that cannot check them is not asked.
        """
        own, entry = spec.policy, self.entry_for(action)
        if own.thresholds is not None:
            own = replace(own, thresholds=self.profiles.at_least_stated(own.thresholds))
        if entry is None:
            return own
        policy = entry.combined(own)
        reviewer = spec.reviewer if own.reviewer is None else own.reviewer
        if entry.reviewer is not None:
            both = Policy(reviewer=entry.reviewer).combined(Policy(reviewer=reviewer))
            policy = replace(policy, reviewer=both.reviewer)
        elif (entry.group or entry.quorum) and reviewer is not None and not isinstance(reviewer, InboxReviewer):
            policy = replace(policy, reviewer=_cannot_check if self.reviewer is None else self.reviewer)
        proceeds, timeouts = policy.auto_proceed_on_timeout is True, [policy.timeout, spec.timeout]
        if proceeds and policy.timeout is None and own.auto_proceed_on_timeout is None:
            timeouts.append(self.timeout)  # a gate must not shorten the time after which the runtime's policy proceeds
        stated = [each for each in timeouts if each is not None]
        if spec.timeout is not None and own.timeout is None and len(stated) > 1:
            policy = replace(policy, timeout=(max if proceeds else min)(stated))
        return policy

    def list_unmatched(self) -> dict[str, str | None]:
        """Return the entries of policies that match no action defined or called so far, each with the nearest name."""
        known = self._known()
        return {entry: near for each in (self.policies, *self.others) for entry, near in each.unmatched(known).items()}

    def _known(self) -> set[str]:
        return {*self.list_actions(), *self.tools}

    @property
    def inbox(self) -> Inbox:
        """Where requests wait that outlive the process."""
        return self.lazy_inbox.get()

    @property
    def ledger(self) -> Ledger:
        """The ledger of actions: the store, or memory where a store of the user's keeps none."""
        store = self.store()
        return cast("Ledger", store) if callable(getattr(store, "put_action", None)) else self.in_memory

    @property
    def reviewer(self) -> Reviewer | None:
        """Who is asked."""
        if self.chosen_reviewer != "auto":
            return cast("Reviewer | None", self.chosen_reviewer)
        return ConsoleReviewer() if _at_terminal() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSpec:
    """How one action is gated."""

    policy: Policy = field(default_factory=Policy)
    name: str | None = None
    reviewer: Reviewer | None = None
    timeout: float | None = None
    judge: str = "never"
    identity: Identifier | Mapping[str, Identifier] | None = None
    stated: Mapping[str, Any] = field(default_factory=dict)
    """`key`, `ignore`, `sealed` and `version`, for requests in an inbox."""
    check: Callable[..., object] | None = None
    """Says later, by the result, whether the action was right."""
    undoes: str | None = None
    """The parameter that names the action which this one undoes."""

    def __post_init__(self) -> None:
        if self.judge not in {"always", "when_needed", "never"}:
            raise ValueError(f"judge must be one of always, when_needed, never (got {self.judge!r:.40})")


class Scope:
    """The run around one gated call."""

    def __init__(self, gates: Gates, spec: GateSpec) -> None:
        self._judge = spec.judge
        self._run: Run | None = current_run()
        self._survey: Any = None
        """The last survey of the run, which `evidence` makes."""
        self._seen: tuple[ActionFeatures, list[str]] | None = None
        self._gates = gates
        self.thresholds = gates.thresholds
        self.reviewer = spec.reviewer if spec.reviewer is not None else gates.reviewer
        self.on_notify = gates.on_notify
        self.timeout: float | None = gates.timeout if spec.timeout is None else spec.timeout
        self.own_timeout = spec.timeout
        self.unmeasured: str | None = gates.unmeasured

    @property
    def run_id(self) -> str | None:
        """The id of the trace that will hold the decision."""
        return None if self._run is None else self._run.id

    @property
    def objective(self) -> str | None:
        """The objective of the run."""
        return None if self._run is None else self._run.objective

    @property
    def user(self) -> str | None:
        """The user of the run."""
        return None if self._run is None else nearest(self._run, "user")

    @property
    def inbox(self) -> Inbox:
        """Where requests wait that outlive the process."""
        return self._gates.inbox

    def document(self) -> dict[str, Any] | None:
        """Return the trace of the run so far; None outside of a recorded run."""
        return None if self._run is None else self._gates.documents().build_open(self._run)

    @property
    def waits(self) -> bool:
        """Whether assessing may wait for a model, or for the store."""
        promise = self._gates.promise
        reads = promise is not None and promise.is_due
        return reads or self._judge != "never" or (self._run is not None and self._run.lacks_past)

    @property
    def judges_actions(self) -> bool:
        """Whether assessing reads what the agent has seen, also where no alarm is looked for."""
        return self._gates.profiles.judges_actions

    @property
    def ledger(self) -> Ledger:
        """Where it is kept that an action runs."""
        return self._gates.ledger

    def assess(self, case: GatedCall) -> RunConfidence:
        """Return the confidence of the run so far."""
        evidence, self._seen = self.evidence(), None
        self.thresholds = self._gates.profiles.thresholds_for(case.action)
        gaps, factors = self.gaps(evidence) + self.find_alarms(case), evidence.factors()
        evaluation: dict[str, Any] | None = None
        profiles, rules = self._gates.profiles, replace(case.rules(gaps), alarms=case.alarms)

        def level_of(judged: ConfidenceFactors) -> InterventionLevel:
            measured, basis = profiles.main.before_action(None, Known(evidence, judged))
            return rules.decide(measured.score.score, basis).level

        if self._judge != "never":
            material = lambda: material_of(self._run, case.action, case.shown_arguments())  # noqa: E731
            factors, evaluation = self._gates.judge().before_gate(self._judge, factors, level_of, material, self.run_id)
            failed = any(evaluation.get(name, {}).get("fallback") for name in ("self_evaluation", "coverage"))
            if failed or evaluation.get("skipped", NOT_NEEDED) != NOT_NEEDED:
                rules = replace(rules, gaps=(*gaps, NOT_JUDGED))
        known = Known(evidence, factors, evaluation)
        assessment = profiles.before_action(case.action, known, self._document, rules, lambda: self._features(case))
        if self._run is not None:
            assessment.facts["step"] = self._survey.steps
        if self._survey.has_others:
            assessment.facts["evidence"] = evidence.readings()  # which the trace of this run does not hold
        return replace(assessment, alarms=case.alarms) if case.alarms else assessment

    def find_alarms(self, case: GatedCall) -> tuple[str, ...]:
        """Look for alarms about the arguments of a call, and add them to it; return why one could not be looked for."""
        names, run = case.policy.alarms, self._run
        if not names or run is None or not self._is_known():
            return ()
        found = attempt("the origin of arguments", lambda: self._examine(case))
        if found is None:
            return (f"the origin of the arguments of {case.action} could not be looked up",)
        raised = [alarm for alarm in found[0] if alarm.name in names]
        self._gates.alarm_counts.update(["examined", *dict.fromkeys(alarm.name for alarm in raised)])
        case.alarms = tuple(dict.fromkeys((*case.alarms, *raised)))
        return found[1]

    def _examine(self, case: GatedCall) -> tuple[tuple[ActionAlarm, ...], tuple[str, ...]]:
        """Return the alarms of a call, and the arguments that may come from something that could not be read."""
        seen = self._look(case)
        if seen is None:
            return (), ()
        found, gaps = seen
        alarms = tuple(
            replace(each, parameter=_plain_path(each.parameter, case), tool=each.tool[:MAX_TOOL])
            for each in found.alarms
        )
        if UNREAD_RUN in gaps:
            return alarms, (UNREAD_RUN,)
        unknown = [each for each in found.places if each.kind == "unknown" and each.shape != "common"]
        if not unknown:
            return alarms, ()
        why = "; ".join(gaps) or "it could not be read, or an agent inside of a tool returned it"
        return alarms, (f"where `{_plain_path(unknown[0].parameter, case)}` is from cannot be known: {why}",)

    def _features(self, case: GatedCall) -> ActionFeatures | None:
        """Return what is known of a call; None where what the agent has seen could not be read."""
        seen = self._look(case)
        return None if seen is None or UNREAD_RUN in seen[1] else seen[0]

    def _look(self, case: GatedCall) -> tuple[ActionFeatures, list[str]] | None:
        self._seen = self._seen or _look(self._run, case)
        return self._seen

    def _is_known(self) -> bool:
        """Return whether anything is known of a run: there is one, and the action alone did not open it."""
        return self._run is not None and (bool(self._survey.steps) or self._run.spec.kind == AGENT)

    def _document(self) -> dict[str, Any] | None:
        """Return the run so far; None where nothing is known of it, because the action alone opened it or because it is not recorded."""
        if self._run is None or not self._is_known():
            return None
        return self.document() if self._gates.profiles.reads_contents else self._gates.documents().outline(self._run)

    def evidence(self) -> RunEvidence:
        """Return the evidence of the run and of those around and inside it, and count its steps."""
        self._survey = survey_of(self._run)
        return cast("RunEvidence", self._survey.evidence)

    def gaps(self, evidence: RunEvidence) -> tuple[str, ...]:
        """Return why evidence is missing or cannot be used."""
        return gaps_of(self._run, self._gates.recorder, evidence, self._survey.lost)

    @shielded
    def record(self, entry: dict[str, Any]) -> None:
        """Keep the gate's entry with the run."""
        if self._run is not None:
            if "sealed" in entry:
                register(self._run, entry)
            self._run.decisions.append(entry)

    def refusal(self) -> HeldRefusal | None:
        """Return the last refusal in the run; None if anything else has been recorded since."""
        found: HeldRefusal | None = None if self._run is None else kept_refusal(self._run)
        return found

    @shielded
    def keep(self, refusal: HeldRefusal) -> None:
        """Have a refusal hold until anything else is recorded in the run."""
        if self._run is not None:
            keep_refusal(self._run, refusal)


def _look(run: Run | None, case: GatedCall) -> tuple[ActionFeatures, list[str]] | None:
    """Return what is known of a call, and the gaps in what the agent has seen; None outside of any run."""
    history = history_of(run)
    if history is None:
        return None
    left_out, left = () if case.terms is None else case.terms.ignore, iter(range(MAX_NODES))
    arguments = {name: _readable(value, left) for name, value in case.shown_arguments().items() if name not in left_out}
    defaults = {name: each.default for name, each in case.signature.parameters.items() if type(each.default) in _JSON}
    schema = {"declared": case.own_schema(), "defaults": {name: {"default": each} for name, each in defaults.items()}}
    found = history.features(case.action, arguments, schema=schema)
    # A recorded call has only those defaults that were passed.
    passed = {name: value for name, value in arguments.items() if name in case.bound.arguments}
    needed = {name: value for name, value in passed.items() if name not in defaults or value != defaults[name]}
    if any(history.index.has_succeeded(case.action, each) for each in (passed, needed) if each != arguments):
        found = found.as_repeated()
    return found, [*history.index.gaps]


def _readable(value: object, left: Iterator[int], depth: int = 0) -> object:
    """Return an argument with what is not of a JSON type in the form that traces hold. What is too much or too deep stays, and counts as unread."""
    if type(value) in _JSON - {list, dict} or depth == MAX_DEPTH or next(left, None) is None:
        return value
    if type(value) is dict:
        return {name: _readable(inner, left, depth + 1) for name, inner in value.items()}
    if type(value) in {list, tuple, set, frozenset}:
        return [_readable(inner, left, depth + 1) for inner in cast("Iterable[object]", value)]
    return render(value)


def _plain_path(path: str, case: GatedCall) -> str:
    """Return the path of a value up to the first key that is no plain name, because keys inside of an argument may be content.

    Inside of a sealed argument they are content. A parameter that the author declared is shown by its name, whatever that is.
    """
    sealed, declared = () if case.terms is None else case.terms.sealed, case.own_schema().get("properties") or ()
    names = [name for name in (*sealed, *declared) if path == name or path[: len(name) + 1] in {f"{name}.", f"{name}["}]
    if names and (name := max(names, key=len)) is not None:
        found = _PATH.match(f"x{path[len(name) :]}")
        return name if name in sealed or found is None else f"{name}{found[0][1:]}"
    found = _PATH.match(path)
    return found[0] if found else "…" * bool(path)


def held_policy(gates: Callable[[], Gates], spec: GateSpec) -> Callable[[str], Policy]:
    """Return a function that returns the policy in force of an action; it computes the policy once for a runtime."""
    held: tuple[PolicySet, Policy] | None = None

    def policy_for(called: str) -> Policy:
        nonlocal held
        now = gates()
        if held is None or held[0] is not now.policies:
            held = now.policies, now.policy_for(called, spec)
        return held[1]

    return policy_for


def gate_action(
    action: Callable[..., Any],
    gates: Callable[[], Gates],
    spec: GateSpec,
    define: Callable[[GatedAction], object] | None = None,
    existing: Gates | None = None,
) -> Callable[..., Any]:
    """Return `action` behind a gate of the runtime that `gates` returns when the action is called."""
    Policy(timeout=spec.timeout)  # what cannot be used is an error now, not when the action is called

    @shielded
    def returned(case: GatedCall, bound: inspect.BoundArguments | None, result: object) -> None:
        run = current_run()
        if run is not None and case.policy.alarms and not hasattr(type(result), "__next__"):
            run.returned[case.entry.fields.get("id")] = result
        if run is not None and (spec.check, spec.undoes) != (None, None):
            from grace_kp.runtime._feedback import ResultLabels

            here, arguments, entry = gates(), case.shown_arguments(bound), case.entry.fields
            undone = None if spec.undoes is None else arguments.get(spec.undoes)
            labels = ResultLabels(here.store, here.lazy_inbox.get, spec.check, undone, entry, arguments, result)
            run.checks.append(labels.write)

    behind = GatedAction(
        action,
        name=spec.name,
        policy_for=held_policy(gates, spec),
        scope=lambda: Scope(gates(), spec),
        identity=spec.identity,
        stated=spec.stated,
        returned=returned,
    )
    if spec.undoes is not None and spec.undoes not in {*behind.signature.parameters} - {behind.hidden}:
        raise GateError(f"undoes names {spec.undoes!r:.60}, which is not a parameter of {behind.name}")
    check_key(spec.policy.reviewer or spec.reviewer, behind.terms.key, behind.name)
    if existing is not None:
        existing.policies.for_action(behind.name, spec.policy)
    if define is not None:
        define(behind)
    return seal(gate(behind, action), behind.terms.sealed)


def _cannot_check(request: InterventionRequest) -> object:
    raise GateError(
        f"the policy of {request.action} names a group or a quorum, which only an inbox checks; set Grace(reviewer=InboxReviewer(...))"
    )


def _at_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None
    except (ValueError, OSError):  # closed
        return False
