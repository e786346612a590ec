"""One gated call: its arguments and what their digest covers, the run and the program around it, its consent, and the terms of its requests.

A framework whose programs may run again from an earlier point (as graphs do) registers with `grace_kp.record.HOST` and offers
`resumable()`. A gate inside such a program asks by pausing it, and recognises its calls when they come again.

`Terms` are what a gate fixes about requests that outlive the process: key, parameters without meaning, sealed parameters, version.
"""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from grace_kp.errors import GateError
from grace_kp.gating._decision import Rules
from grace_kp.gating._digest import Identified, NotCheckable, OwnObject, digest_of
from grace_kp.gating._request import InterventionResponse
from grace_kp.record import HOST
from grace_kp.trace import SCALARS

if TYPE_CHECKING:
    from collections.abc import Collection

    from grace_kp.approvals import Approval, Inbox, KeyTemplate
    from grace_kp.confidence import Thresholds
    from grace_kp.gating._decision import RunConfidence
    from grace_kp.gating._ledger import AtMostOnce, Awaited, Ledger
    from grace_kp.gating._outcome import GateEntry
    from grace_kp.gating._policy import Policy
    from grace_kp.gating._request import InterventionRequest, Reviewer, Reviews
    from grace_kp.levels import InterventionLevel
    from grace_kp.trace import Getter

    Slot = tuple[str, Getter]


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


Identifier: TypeAlias = str | Callable[[Any], object]
"""The name of an attribute (dots lead further in), or a callable from the value to what identifies it."""

OWN = "self"
"""Name of the object of a bound method, or of a callable object."""
_UNCHANGEABLE = SCALARS | {complex, bytes}


class Unknown:
    """In place of the default of an optional parameter that is not known. It is neither shown nor checked."""


class Coverage:
    """The arguments, defaults and identities that the digests of an action cover.

    The object whose method is called is not an argument: it counts by class and identity, or by what `identity` names. Its parameter is
    `own`. Default values that could be changed count like arguments.

    Raises:
        GateError: `identity` names no parameter of the action, or is neither a name nor a callable.
    """

    def __init__(
        self,
        action: Callable[..., object] | None,
        signature: inspect.Signature,
        own: str | None,
        identity: Identifier | Mapping[str, Identifier] | None = None,
        leave_out: Collection[str] = (),
    ) -> None:
        self._own = own
        self._leave_out = leave_out
        self._owner = None if own is not None else _owner(action)
        self._defaults = {
            name: parameter.default
            for name, parameter in signature.parameters.items()
            if parameter.default is not parameter.empty
            and parameter.default is not Unknown
            and type(parameter.default) not in _UNCHANGEABLE
        }
        called = getattr(action, "__qualname__", type(action).__name__)
        if identity is not None and not isinstance(identity, Mapping):
            if own is None and self._owner is None:
                raise GateError(
                    f"identity={identity!r:.60} names what identifies a method's own object, and {called} has none; "
                    "use a mapping from parameter name to attribute or callable"
                )
            identity = {own or OWN: identity}
        known = [*signature.parameters, *([] if self._owner is None else [OWN])]
        self._identifiers: dict[str, Callable[[Any], object]] = {}
        for name, identifier in (identity or {}).items():
            if name not in known:
                raise GateError(
                    f"identity names {name!r:.60}, and {called} has no such parameter; it has {', '.join(known) or 'none'}"
                )
            if isinstance(identifier, str) and all(part.isidentifier() for part in identifier.split(".")):
                identifier = operator.attrgetter(identifier)
            if not callable(identifier):
                raise GateError(
                    f"identity of {name!r} must be the name of an attribute or a callable, not {identifier!r:.60}"
                )
            self._identifiers[name] = identifier

    def owner(self, arguments: Mapping[str, object]) -> tuple[str, Identified | OwnObject] | None:
        """Return the object whose method a call with these arguments is of, with its name among them; None for functions."""
        if self._own is not None and self._own in arguments:
            name, own = self._own, arguments[self._own]
        elif self._owner is not None:
            name, own = OWN, self._owner
        else:
            return None
        identify = self._identifiers.get(name)
        return name, OwnObject(own) if identify is None else Identified.by(identify, own, name)

    def digest(self, arguments: Mapping[str, object], *, lasting: bool = False, ordered: bool | None = None) -> str:
        """Return the SHA-256 of what a call with these arguments, by parameter name, would run with."""
        covered = {**self._defaults, **arguments}
        if self._owner is not None and OWN in self._identifiers:
            covered[OWN] = self._owner
        elif self._own is not None and self._own in covered and self._own not in self._identifiers:
            covered[self._own] = OwnObject(covered[self._own])
        for name, identify in self._identifiers.items():
            if name in covered:
                covered[name] = Identified.by(identify, covered[name], name)
        for name in self._leave_out:
            covered.pop(name, None)
        return digest_of(covered, lasting=lasting, ordered=ordered)


def _owner(action: Callable[..., object] | None) -> object | None:
    if isinstance(action, types.MethodType):
        return action.__self__
    return None if isinstance(action, types.FunctionType | types.BuiltinFunctionType | functools.partial) else action


@dataclass(frozen=True, slots=True)
class HeldRefusal:
    """A reviewer's answer that prevents a call: a refusal, or a reply in place of the action."""

    entry: Mapping[str, Any]
    error: Exception
    """The error of the call, without its traceback."""
    digest: str
    """Digest of the arguments with their defaults, so that passing a default explicitly is the same call."""
    turn: str | None = None
    """Id of the model's message that proposed the call; None for a call of a function."""


class GateScope(Protocol):
    """The run around a gated call. `record` must not raise."""

    thresholds: Thresholds
    reviewer: Reviewer | None
    on_notify: Callable[[InterventionRequest], object] | None
    timeout: float | None
    own_timeout: float | None
    """The timeout that was set for this gate; None where the runtime's applies."""
    unmeasured: str | None
    """The runtime's level for calls about which nothing was measured."""

    @property
    def run_id(self) -> str | None:
        """The trace that will contain the decision."""

    @property
    def objective(self) -> str | None: ...

    @property
    def user(self) -> str | None: ...

    @property
    def waits(self) -> bool:
        """Whether assessing may wait for a model, and must not block an event loop."""

    @property
    def ledger(self) -> Ledger: ...

    @property
    def inbox(self) -> Inbox: ...

    def document(self) -> Mapping[str, Any] | None:
        """Return the trace of the run so far; None outside of a recorded run."""

    def assess(self, case: GatedCall) -> RunConfidence:
        """Return the confidence of the run so far, as the gate of this call asks for it."""

    def record(self, entry: dict[str, Any]) -> None:
        """Keep the gate's entry with the run. The gate adds to it until the action has ended."""

    def refusal(self) -> HeldRefusal | None:
        """Return the last refusal in the run; None if something else was recorded after it."""

    def keep(self, refusal: HeldRefusal) -> None:
        """Let a refusal apply until something else is recorded in the run."""


@dataclass(slots=True, kw_only=True)
class GatedCall:
    """One call of a gated action."""

    action: str
    signature: inspect.Signature
    bound: inspect.BoundArguments
    hidden: str | None = None
    """Name of the parameter that is the method's own object, and is not shown."""
    types: Callable[[], Mapping[str, object]] = dict
    """Resolves the declared type of each parameter that has one. Called when a reviewer changes arguments."""
    check: Callable[[Mapping[str, object]], str] | None = None
    """Returns a problem of arguments that fit the signature; empty where there is none."""
    injected: frozenset[str] = frozenset()
    """Parameters that a framework fills in. They are not arguments of the call, and are not shown."""
    policy: Policy
    scope: GateScope
    entry: GateEntry
    coverage: Coverage
    program: Resumable | None = None
    """The program around, where it may be run again."""
    ledger_entry: AtMostOnce | None = None
    """The entry of this call in the ledger, once the engine has looked it up for the program; or its request in an inbox."""
    inquiry: Awaited | None = None
    terms: Terms | None = None
    """How requests about the action are identified and kept; None where it cannot be asked about in an inbox."""
    schema: Callable[[], Mapping[str, Any]] = dict
    """Returns the JSON schema of the parameters, which edits in an inbox are checked with."""
    lookup: Callable[[], Policy] | None = None
    operation: str = ""
    """Id of the last question about the call."""
    is_filed: bool = False
    """Whether the inbox decides about the call in a program that may be run again."""
    is_void: bool = False
    """Whether the first answer of the program belongs to an earlier question."""
    handed_over: Approval | None = None
    """The request that waits in the inbox while the program goes on without the action."""
    at_least: InterventionLevel | None = None
    """The mildest level of this call, whatever the confidence."""

    def whole(self, bound: inspect.BoundArguments | None = None) -> inspect.BoundArguments:
        """Return the arguments with defaults; of the call, or of other arguments in their place."""
        whole = inspect.BoundArguments(self.signature, dict((bound or self.bound).arguments))
        whole.apply_defaults()
        return whole

    def shown_arguments(self, bound: inspect.BoundArguments | None = None) -> dict[str, object]:
        """Return the arguments that a reviewer sees and may change, defaults included; of the call, or of other arguments in their place."""
        passed, parameters = (bound or self.bound).arguments, self.signature.parameters
        return {
            name: value
            for name, value in self.whole(bound).arguments.items()
            if name != self.hidden
            and name not in self.injected
            and (name in passed or not (parameters[name].kind in _VARIADIC or value is Unknown))
        }

    @property
    def reviewer(self) -> Reviewer | None:
        """The reviewer to ask, outside of a program that may be run again."""
        return self.policy.reviewer if self.policy.reviewer is not None else self.scope.reviewer

    def rules(self, gaps: tuple[str, ...] = ()) -> Rules:
        return Rules(self.policy, self.scope.thresholds, gaps, self.at_least, self.scope.unmeasured)

    def digest(
        self, bound: inspect.BoundArguments | None = None, *, lasting: bool = False, ordered: bool | None = None
    ) -> str:
        return self.coverage.digest((bound or self.bound).arguments, lasting=lasting, ordered=ordered)

    def is_changed(self, bound: inspect.BoundArguments | None, digest: str) -> bool:
        """Return whether the arguments have another digest now; False where they could not be checked before."""
        if bound is None or not digest:
            return False
        try:
            return self.digest(bound) != digest
        except NotCheckable:
            return True


@dataclass(frozen=True, slots=True)
class Consent:
    """The action may run with these arguments; or, with None, it is skipped."""

    bound: inspect.BoundArguments | None
    digest: str
    """Empty where the arguments cannot be checked, which is allowed only where no person was asked."""
    modified: bool = False


@dataclass(frozen=True, slots=True)
class ProgramAnswer(InterventionResponse):
    """An answer to a program about a request that also waits in an inbox."""

    looks: bool = False
    """Whether it asks to look into the inbox, and is not a decision."""
    problem: str = ""


class Resumable(Protocol):
    """One gated call in a program that may be run again."""

    @property
    def reviewer(self) -> Reviews:
        """The reviewer that pauses the program to ask."""

    origin: str
    """The framework, as approvals state it."""

    def asking(self, approval: str) -> Reviews:
        """Return the reviewer that pauses the program to ask about a request in the inbox. It returns a `ProgramAnswer`."""

    def whereabouts(self) -> Mapping[str, Any]:
        """Return where the program waits, for people who look at the request."""

    def remember(self, inbox: Inbox) -> None:
        """Keep how the program is found again when its requests are decided."""

    def begin(self) -> None:
        """Number the call. Called in the order in which the program makes its calls."""

    def wait(self) -> None:
        """Wait until the calls before this one have been decided on."""

    async def wait_async(self) -> None: ...

    def end(self) -> None:
        """Let the next call be decided on."""

    def may_have_forgotten(self, ledger: Ledger) -> bool:
        """Return whether this call may have been asked about by a process whose ledger is gone."""

    def ledger_key(self, action: str) -> str:
        """Return the key of the call in the ledger: the same one each time the program is run."""


def resumable() -> Resumable | None:
    """Return the resumable program that runs here; None elsewhere."""
    return cast("Resumable | None", HOST.resumable())


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How the calls of an action are identified and kept in an inbox."""

    signature: inspect.Signature
    hidden: str | None
    """The parameter that is the method's own object."""
    key: KeyTemplate | None = None
    ignore: tuple[str, ...] = ()
    """Parameters that carry no meaning. They may differ between request and execution."""
    sealed: tuple[str, ...] = ()
    """Parameters that are kept encrypted."""
    declared_version: str | None = None
    place: str = ""
    """Module and name of the function."""

    @classmethod
    def of(
        cls,
        action: Any,
        signature: inspect.Signature,
        hidden: str | None,
        stated: Mapping[str, Any],
        injected: Iterable[str] = (),
    ) -> Terms:
        ignore = tuple(
            dict.fromkeys([*_parameters("ignore", stated.get("ignore"), signature, hidden), *sorted(injected)])
        )
        sealed = _parameters("sealed", stated.get("sealed"), signature, hidden)
        if both := sorted({*ignore} & {*sealed}):
            raise GateError(
                f"{both[0]!r} is in ignore and in sealed; an ignored parameter is not kept, so that nothing is to be sealed"
            )
        version, key, template = stated.get("version"), stated.get("key"), None
        if version is not None and not (isinstance(version, str) and version.strip() and len(version) <= 100):
            raise GateError(f"version must be a string of 1 to 100 characters, not {version!r:.60}")
        if key is not None:
            from grace_kp.approvals import KeyTemplate

            template = KeyTemplate(key, signature, sealed=sealed)
            if wrong := sorted({*template.fields} & {*ignore, hidden}):
                raise GateError(
                    f"key names {wrong[0]!r}, which carries no meaning; name a parameter that identifies the operation"
                )
        return cls(
            signature=signature,
            hidden=hidden,
            key=template,
            ignore=ignore,
            sealed=sealed,
            declared_version=version,
            place=f"{getattr(action, '__module__', '')}:{getattr(action, '__qualname__', type(action).__name__)}",
        )

    @property
    def version(self) -> str:
        """The version of the action: the declared one, else a hash of its signature."""
        from grace_kp.approvals import version_of

        return version_of(self.signature, self.declared_version)


def _parameters(what: str, named: object, signature: inspect.Signature, hidden: str | None) -> tuple[str, ...]:
    if named is None:
        return ()
    if isinstance(named, str) or not isinstance(named, Iterable):
        raise GateError(f'{what} must be names of parameters, such as ("session",), not {named!r:.60}')
    names = tuple(dict.fromkeys(named))
    known = [name for name in signature.parameters if name != hidden]
    for name in names:
        if name not in known:
            raise GateError(
                f"{what} names {name!r:.60}, which is not a parameter of the action; it has {', '.join(known) or 'none'}"
            )
    return names
