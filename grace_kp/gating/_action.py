"""A gate around a function: which functions can be gated, and their calls as the engine takes them.

An approved action can also be carried out where no caller waits for it, with the arguments that were kept with its approval.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import ENTITLING, ApprovalState, decode, list_sealed, opened_arguments, schema_of
from grace_kp.errors import ActionPending, AlreadyDecided, ApprovalError, GateError
from grace_kp.gating._case import OWN, Consent, Coverage, GatedCall, Terms, declared_types, problem_with, resumable
from grace_kp.gating._digest import NotCheckable
from grace_kp.gating._drivers import drive, drive_async
from grace_kp.gating._engine import FunctionCall, execution, gated_call
from grace_kp.gating._inquiry import Inquiry, decided_response, state_approval
from grace_kp.gating._outcome import GateEntry, raise_or_return
from grace_kp.gating.reviewers._inbox import InboxReviewer
from grace_kp.record import HOST, argument_check, fitting, reseal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.approvals import Approval, Inbox
    from grace_kp.gating._case import GateScope, Identifier, Resumable
    from grace_kp.gating._drivers import Steps
    from grace_kp.gating._outcome import Outcome
    from grace_kp.gating._policy import Policy


_BY_NAME_OR_VARIADIC = frozenset(
    {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
)


class GatedAction:
    """An action behind a gate, and its calls as the engine takes them.

    Arguments of a partial count like arguments of the call. `identity` names attributes that identify the method's own object, or arguments
    whose contents are not checked. `stated` has `key`, `ignore`, `sealed` and `version`, for requests in an inbox. `returned` is that of
    each `GatedCall`.

    Raises:
        GateError: a generator function or a class, with the reason why it cannot be gated; or a parameter is named that does not exist.
    """

    def __init__(
        self,
        action: Callable[..., Any],
        *,
        name: str | None,
        policy_for: Callable[[str], Policy],
        scope: Callable[[], GateScope],
        identity: Identifier | Mapping[str, Identifier] | None = None,
        stated: Mapping[str, Any] | None = None,
        returned: Callable[[GatedCall, inspect.BoundArguments | None, object], object] | None = None,
    ) -> None:
        self.action, self._preset, self._preset_by_name = _unwrap(action)
        _check(self.action)
        self.name: str = name or getattr(self.action, "__name__", None) or type(self.action).__name__
        self.signature = inspect.signature(self.action)
        kinds = [parameter.kind for parameter in self.signature.parameters.values()]
        self._takes_all_by_place = not any(kind in _BY_NAME_OR_VARIADIC for kind in kinds)
        owner = getattr(self.action, "__qualname__", "").rpartition(".")[0]
        first = next(iter(self.signature.parameters), None)
        is_method = bool(owner) and not owner.endswith("<locals>")
        self.hidden = first if is_method and first in {"self", "cls", "mcs"} else None
        self.injected = HOST.injected(self.action) & self.signature.parameters.keys()
        self.terms = Terms.of(self.action, self.signature, self.hidden, stated or {}, self.injected)
        self.action = reseal(self.action, self.terms.sealed)
        self._coverage = Coverage(self.action, self.signature, self.hidden, identity, leave_out=self.terms.ignore)
        self._policy_for, self._scope, self._returned = policy_for, scope, returned
        self.is_coroutine = inspect.iscoroutinefunction(self.action)
        self._schema: Mapping[str, Any] | None = None

    def types(self) -> Mapping[str, Any]:
        """Resolve the declared type of each parameter that has one."""
        return declared_types(self.action, self.signature)

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON schema of the parameters."""
        if self._schema is None:
            leave_out = (*self.terms.ignore, *(() if self.hidden is None else (self.hidden,)))
            self._schema = schema_of(self.signature, self.types(), leave_out=leave_out)
        return self._schema

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        """Return the arguments of a call."""
        names = self.signature.parameters
        if (
            self._takes_all_by_place
            and not (kwargs or self._preset or self._preset_by_name)
            and len(args) == len(names)
        ):
            return inspect.BoundArguments(self.signature, dict(zip(names, args, strict=True)))
        return self.signature.bind(*_fill_places(self._preset, args), **{**self._preset_by_name, **kwargs})

    def call_with(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> GatedCall:
        """Return a call as the engine takes it."""
        # Comes first: a program identifies concurrent calls by the order in which they begin.
        program = resumable()
        if program is not None:
            program.begin()
        try:
            # A call that does not fit fails here, before a person is asked.
            return self.case(self.bind(args, kwargs), program)
        except BaseException:
            if program is not None:
                program.end()
            raise

    def case(self, bound: inspect.BoundArguments, program: Resumable | None = None) -> GatedCall:
        """Return the call with these arguments."""
        case = GatedCall(
            action=self.name,
            signature=self.signature,
            bound=bound,
            hidden=self.hidden,
            injected=self.injected,
            types=self.types,
            policy=self._policy_for(self.name),
            scope=self._scope(),
            entry=GateEntry({}),
            coverage=self._coverage,
            program=program,
            terms=self.terms,
            schema=self.schema,
            own_schema=self.schema,
            returned=self._returned,
            lookup=lambda: self._policy_for(self.name),
        )
        if program is None and self.terms.key is None:
            check_key(case.reviewer, None, self.name)
        case.entry = GateEntry.new(self.name, case.shown_arguments(), sealed=self.terms.sealed)
        return case

    def kept_arguments(self, approval: Approval, inbox: Inbox, ignored: Mapping[str, object]) -> inspect.BoundArguments:
        """Return the arguments of an approved action that is carried out: the approved ones, and the ignored parameters as passed in `ignored`."""
        _check_executable(approval)
        terms, types, parameters = self.terms, self.types(), self.signature.parameters

        def refuse(problem: str) -> ApprovalError:
            return ApprovalError(f"{approval.id} cannot be carried out here: {problem}", approval_id=approval.id)

        if terms.hidden is not None:
            raise refuse(
                f"{approval.action} is a method, and its object exists only in the program that called it; call it again there"
            )
        if unknown := sorted({*ignored} - {*terms.ignore}):
            raise refuse(
                f"{unknown[0]!r} is not an ignored parameter ({', '.join(terms.ignore) or 'none'}); the others run as they were approved"
            )
        try:
            opened = opened_arguments(approval.encoded, inbox.secret, approval_id=approval.id, digest=approval.digest)
            if sealed := list_sealed(opened):
                raise refuse(f"{', '.join(sealed)} is sealed with a key that is not here; set GRACE_KP_KEY")
            kept = decode(opened, types)
            if OWN not in parameters:
                kept.pop(OWN, None)  # the object of a bound method; the claim compares its identity
        except ValueError as error:
            raise refuse(str(error)) from error
        for name, value in kept.items():
            parameter = parameters.get(name)
            if parameter is None or name not in types or (value is None and parameter.default is None):
                continue
            is_single = parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
            if is_single and (problem := problem_with(value, types[name])):
                raise refuse(f"{name} does not fit {approval.action}: {problem}")
        values = {**kept, **ignored}
        if missing := sorted({*values} - {*parameters}):
            raise refuse(f"{approval.action} has no parameter {missing[0]!r}")
        whole = inspect.BoundArguments(self.signature, {name: values[name] for name in parameters if name in values})
        try:
            return self.signature.bind(*whole.args, **whole.kwargs)
        except TypeError as error:
            names = ", ".join(terms.ignore)
            hint = f"; pass ignored parameters with arguments={{...}}: {names}" if names else ""
            raise refuse(f"{error}{hint}") from error

    def carry_out(self, approval: Approval, bound: inspect.BoundArguments) -> Steps[Outcome]:
        """Run an approved action under its claim, at most once."""
        case = self.case(bound)
        case.ledger_entry = Inquiry(case, approval)
        case.scope.record(case.entry.fields)
        case.entry.fields.update(level=approval.level, score=approval.score, reason=approval.reason)
        state_approval(case, approval, approval.waits)
        if approval.decision is not None and approval.state in ENTITLING:
            case.entry.state_answer(decided_response(approval, {}))
        try:
            digest = case.digest()
        except NotCheckable:
            digest = ""  # a default that cannot be checked; the claim compares the arguments by their own digest
        return (yield from execution(FunctionCall(case, Consent(case.bound, digest))))

    def run(self, consent: Consent) -> Any:
        """Run the action with the arguments of a consent."""
        bound = consent.bound
        assert bound is not None  # noqa: S101
        if self._takes_all_by_place and len(bound.arguments) == len(self.signature.parameters):
            return self.action(*bound.arguments.values())
        return self.action(*bound.args, **bound.kwargs)


def check_key(reviewer: object, key: object, action: str) -> None:
    """Refuse a gate whose calls could not be distinguished when they are repeated."""
    if key is None and isinstance(reviewer, InboxReviewer) and reviewer.wait == "raise":
        raise GateError(
            f"{action} needs a key, because its InboxReviewer has wait='raise': a later call finds its request by the key. "
            'Name the parameters that identify the operation: @grace.gate(key="refund:{invoice}")'
        )


def gate(gated: GatedAction, named: Callable[..., Any]) -> Callable[..., Any]:
    """Return an action behind its gate, a coroutine function where it is one."""
    called = gated.name
    if gated.is_coroutine:

        async def gated_coroutine(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return raise_or_return(await drive_async(gated_call(gated.call_with(args, kwargs)), gated.run), called)

        return fitting(named, gated_coroutine)
    check = argument_check(named)

    @functools.wraps(named)
    def gated_function(*args: Any, **kwargs: Any) -> Any:
        check(*args, **kwargs)
        return raise_or_return(drive(gated_call(gated.call_with(args, kwargs)), gated.run), called)

    return gated_function


_PLACEHOLDER = getattr(functools, "Placeholder", object())
"""Marks a place in a partial for an argument of the call, from Python 3.14 on."""


def _unwrap(action: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the function in a partial, and the arguments that the partial sets."""
    preset: tuple[Any, ...] = ()
    by_name: dict[str, Any] = {}
    while isinstance(action, functools.partial):
        preset = _fill_places(action.args, preset)
        by_name = {**action.keywords, **by_name}
        action = action.func
    return action, preset, by_name


def _fill_places(preset: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the positional arguments: the preset ones, with arguments of the call in place of placeholders and at the end."""
    rest = list(args)
    front = [rest.pop(0) if value is _PLACEHOLDER and rest else value for value in preset]
    return (*front, *rest)


def _check(action: Any) -> None:
    if inspect.isclass(action):
        raise GateError(f"a gate goes on a function, not on the class {action.__name__}; gate the method that acts")
    if not callable(action):
        raise GateError(f"a gate goes on a function, not on {type(action).__name__}")
    call = action if inspect.isroutine(action) else type(action).__call__
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise GateError(
            f"{getattr(action, '__qualname__', action)} is a generator, which acts step by step after its gate has returned; "
            "gate the function that acts"
        )


def _check_executable(approval: Approval) -> None:
    """Refuse an approval that only its own process can carry out, or that entitles to nothing."""
    if approval.state is ApprovalState.PENDING:
        raise ActionPending(
            f"{approval.action} has not run: it waits for the approval {approval.id}", approval=approval
        )
    if approval.state not in ENTITLING and not approval.state.may_have_run:
        decision = approval.decision
        by, at = ("", 0.0) if decision is None else (decision.actor.name, decision.at)
        message = f"{approval.id} was {approval.state}{f' by {by}' if by else ''}, so that {approval.action} cannot be carried out"
        raise AlreadyDecided(message, approval_id=approval.id, state=str(approval.state), by=by, at=at)
    problem = ""
    if approval.origin != "gate":
        problem = f"it is an interrupt of {approval.origin}; resume the program that was interrupted"
    elif approval.unencoded:
        problem = f"only the process that asked holds {', '.join(approval.unencoded)}"
    elif approval.deleted:
        problem = "its contents were deleted by retention"
    elif approval.waits == "wait" and approval.is_awaited and approval.state in ENTITLING:
        problem = "a live process waits for it and carries it out itself"
    if problem:
        raise ApprovalError(f"{approval.id} cannot be carried out here: {problem}", approval_id=approval.id)
