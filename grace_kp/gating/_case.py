"""One gated call: its arguments, what their digest covers and how a reviewer's changes are read; the run and the program around it; its consent.

A framework whose programs may run again from an earlier point (as graphs do) registers with `grace_kp.record.HOST` and offers
`resumable()`. A gate inside such a program asks by pausing it, and recognises its calls when they come again.

`Terms` are what a gate fixes about requests that outlive the process: key, parameters without meaning, sealed parameters, version.

A reviewer's arguments must fit the signature and its declared types, without guessing. A value of the declared type runs as it was submitted.
The JSON form of a type, such as a string for a date, is read as that type. Everything else is a problem to report: the string "20" is not an int.
"""

from __future__ import annotations

import functools
import inspect
import json
import operator
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, get_args, get_origin, get_type_hints

from grace_kp.approvals import KeyTemplate, version_of
from grace_kp.errors import GateError
from grace_kp.gating._decision import Rules
from grace_kp.gating._digest import Identified, NotCheckable, OwnObject, closure_of, digest_of
from grace_kp.gating._request import InterventionResponse
from grace_kp.record import HOST
from grace_kp.trace import SCALARS, render

if TYPE_CHECKING:
    from collections.abc import Collection

    from pydantic import TypeAdapter, ValidationError

    from grace_kp.approvals import Approval, Inbox
    from grace_kp.confidence import ActionAlarm, Thresholds
    from grace_kp.gating._decision import Decision, RunConfidence
    from grace_kp.gating._ledger import AtMostOnce, Ledger
    from grace_kp.gating._outcome import GateEntry
    from grace_kp.gating._policy import Policy
    from grace_kp.gating._request import InterventionRequest, Reviewer, Reviews
    from grace_kp.levels import InterventionLevel
    from grace_kp.trace import Getter

    Slot = tuple[str, Getter]


_VARIADIC = _ARGS, _KWARGS = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY


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
    def judges_actions(self) -> bool:
        """Whether assessing reads what the agent has seen, which takes as long as looking for alarms."""

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
    terms: Terms | None = None
    """How requests about the action are identified and kept; None where it cannot be asked about in an inbox."""
    returned: Callable[[GatedCall, inspect.BoundArguments | None, object], object] | None = None
    """Called with the arguments and the result when the action has returned. It must return at once and not raise."""
    schema: Callable[[], Mapping[str, Any]] = dict
    """Returns the JSON schema of the parameters, which edits in an inbox are checked with."""
    own_schema: Callable[[], Mapping[str, Any]] = dict
    """Returns the JSON schema as far as the author of the program wrote it, and no MCP server: its constants are sources of values."""
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
    removes: Callable[[str], bool] = lambda _name: False
    """Returns whether a reviewer removes this argument by null."""
    decided: Decision | Exception | None = None
    """The decision that was made before any call of the turn was asked about, or why there is none."""
    notice: InterventionRequest | None = None
    """The notice to give when the action begins, where the call may be decided on several times."""
    alarms: tuple[ActionAlarm, ...] = ()
    """The alarms so far. A new decision about the call drops none."""

    def whole(self, bound: inspect.BoundArguments | None = None) -> inspect.BoundArguments:
        """Return the arguments with defaults; of the call, or of other arguments in their place."""
        whole = inspect.BoundArguments(self.signature, dict((bound or self.bound).arguments))
        whole.apply_defaults()
        return whole

    def shown_arguments(self, bound: inspect.BoundArguments | None = None) -> dict[str, object]:
        """Return the arguments that a reviewer sees and may change, defaults included; of the call, or of other arguments in their place."""
        passed, parameters = (bound or self.bound).arguments, self.signature.parameters
        if len(passed) == len(parameters) and not self.injected:  # no defaults
            return {name: value for name, value in passed.items() if name != self.hidden}
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

    @property
    def version(self) -> str:
        """The version of the action; empty where it has none."""
        return "" if self.terms is None else self.terms.version

    def rules(self, gaps: tuple[str, ...] = ()) -> Rules:
        """Return the rules for the call's level, with the gaps in the evidence."""
        return Rules(self.policy, self.scope.thresholds, gaps, self.at_least, self.scope.unmeasured)

    def digest(
        self, bound: inspect.BoundArguments | None = None, *, lasting: bool = False, ordered: bool | None = None
    ) -> str:
        """Return the digest of the call's arguments, or of those in their place."""
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
    is_fresh: bool = False
    """Whether the digest was computed just now: neither a person nor code of the program had time to change the arguments."""


@dataclass(frozen=True, slots=True)
class ProgramAnswer(InterventionResponse):
    """An answer to a program about a request that also waits in an inbox."""

    looks: bool = False
    """Whether it asks to look into the inbox, and is not a decision."""
    problem: str = ""


class Resumable(Protocol):
    """One gated call in a program that may be run again."""

    @property
    def reviewer(self) -> Reviewer | None:
        """The reviewer that pauses the program to ask, or that repeats what was answered."""

    origin: str
    """The framework, as approvals state it."""
    interrupts: bool
    """Whether asking pauses the program, which then asks the same questions again; else the decision is waited for, or left to a later call."""

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
        """Return the terms of an action."""
        ignored = _parameters("ignore", stated.get("ignore"), signature, hidden)
        ignore = tuple(dict.fromkeys([*ignored, *sorted(injected)]))
        sealed = _parameters("sealed", stated.get("sealed"), signature, hidden)
        if both := sorted({*ignore} & {*sealed}):
            raise GateError(
                f"{both[0]!r} is in ignore and in sealed; an ignored parameter is not kept, so that nothing is to be sealed"
            )
        version, key, template = stated.get("version"), stated.get("key"), None
        if version is not None and not (isinstance(version, str) and version.strip() and len(version) <= 100):
            raise GateError(f"version must be a string of 1 to 100 characters, not {version!r:.60}")
        if key is not None:
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


class EditMisfit(Exception):
    """A value does not fit; the message says why."""

    def within(self, name: str) -> EditMisfit:
        """Return the same problem of the value that holds this one under `name`."""
        problem = str(self)
        return EditMisfit(f"{name}{problem}" if problem.startswith(".") else f"{name}: {problem}")


def apply_changes(call: GatedCall, changes: Mapping[str, Any]) -> inspect.BoundArguments:
    """Return the arguments of the call with a reviewer's changes, or raise `EditMisfit`."""
    parameters = call.signature.parameters
    rest = next((parameter.name for parameter in parameters.values() if parameter.kind is _KWARGS), None)
    arguments = dict(call.bound.arguments)
    declared = call.types()
    gone = {name for name, value in changes.items() if value is None and call.removes(name)}
    for name in gone:
        arguments.pop(name, None)
    changes = {name: value for name, value in changes.items() if name not in gone}
    # Parameters first: `**more` as a whole does not undo changes of single keywords.
    for name, value in sorted(changes.items(), key=lambda change: change[0] not in parameters):
        if name == call.hidden or name in call.injected or (name not in parameters and rest is None):
            known = ", ".join(key for key in parameters if key not in {call.hidden, *call.injected}) or "none"
            raise EditMisfit(f"{call.action} has no parameter {name!r}; it has {known}")
        if name in parameters:
            parameter = parameters[name]
            original = call.bound.arguments.get(name, parameter.default)
            is_kept = _is_unchanged(value, original)
            arguments[name] = original if is_kept else _read_argument(value, parameter, declared.get(name))
        else:
            extra = str(rest)
            original = call.bound.arguments.get(extra, {}).get(name, inspect.Parameter.empty)
            is_kept = _is_unchanged(value, original)
            fitting = original if is_kept else _read_item(value, name, declared.get(extra))
            arguments[extra] = {**arguments.get(extra, {}), name: fitting}
    changed = inspect.BoundArguments(call.signature, _without_gaps(call.signature, arguments))
    try:
        bound = call.signature.bind(*changed.args, **changed.kwargs)
    except TypeError as error:
        raise EditMisfit(str(error)) from error
    if call.check is not None and (problem := call.check(arguments)):
        raise EditMisfit(problem)
    return bound


def consent_to_changes(case: GatedCall, changes: Mapping[str, Any], digest: str) -> Consent | str:
    """Return a consent to the call with the reviewer's arguments, or their problem; `digest` is that of the arguments in the question."""
    try:
        bound = apply_changes(case, changes)
        changed = case.digest(bound)
    except EditMisfit as problem:
        return f"the arguments do not fit {case.action}: {problem}"
    except NotCheckable as error:
        return str(error)
    return Consent(bound, changed, modified=changed != digest)


def problem_with(value: object, declared: object) -> str:
    """Return why a value does not fit a type; empty where it fits, or where the type cannot be checked."""
    try:
        _read(value, declared)
    except EditMisfit as problem:
        return str(problem)
    return ""


def declared_types(action: object, signature: inspect.Signature) -> dict[str, Any]:
    """Return the type of each parameter that declares a type which can be resolved."""
    call: Any = action if inspect.isroutine(action) or isinstance(action, type) else type(action).__call__
    function = inspect.unwrap(call)
    names = getattr(function, "__globals__", {})
    inner = {**names, **closure_of(function)}
    found: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.annotation is parameter.empty:
            continue
        holder: Any = SimpleNamespace(__annotations__={name: parameter.annotation})
        try:
            found.update(get_type_hints(holder, names, inner, include_extras=True))
        except (NameError, AttributeError, TypeError, SyntaxError):
            continue  # a name that is only known to a type checker
    return found


def _without_gaps(signature: inspect.Signature, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments with the defaults in front of others, which would otherwise end up in another parameter or in `**more`."""
    filled = dict(arguments)
    missing: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name not in arguments:
            missing.append(parameter)
        elif parameter.kind is _POSITIONAL_ONLY or (parameter.kind is _ARGS and arguments[name]):
            filled.update({item.name: item.default for item in missing})
        elif parameter.kind is _KWARGS and arguments[name]:
            filled.update({item.name: item.default for item in missing if item.kind is _POSITIONAL_ONLY})
    return filled


def _read_argument(value: object, parameter: inspect.Parameter, declared: object) -> object:
    name = parameter.name
    if parameter.kind is _ARGS:
        if not isinstance(value, list | tuple):
            raise EditMisfit(f"{name}: must be a list, not {type(value).__name__}")
        return tuple(_read_item(item, f"{name}[{number}]", declared) for number, item in enumerate(value))
    if parameter.kind is _KWARGS:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise EditMisfit(f"{name}: must be an object, not {type(value).__name__}")
        return {key: _read_item(item, key, declared) for key, item in value.items()}
    if value is None and parameter.default is None:
        return None  # `x: int = None`
    return _read_item(value, name, declared)


def _read_item(value: object, name: str, declared: object) -> object:
    if get_origin(declared) is typing.Unpack:
        declared = get_type_hints(get_args(declared)[0], include_extras=True).get(name)
    if declared is None:
        return value
    try:
        return _read(value, declared)
    except EditMisfit as problem:
        raise problem.within(name) from None


def _read(value: object, declared: object) -> object:
    if typing.is_typeddict(declared):
        return _read_fields(value, declared)
    adapter = _adapter(declared)
    if adapter is None:
        return value
    from pydantic import PydanticUserError, ValidationError

    try:
        read = adapter.validate_python(value, strict=True)
    except PydanticUserError:
        return value  # the type refers to a type that is not defined
    except ValidationError as error:
        problem = _first_problem(error)
    else:
        # A number stays a number and an object becomes the model that it describes; conversions of a string by the type are not wanted.
        return value if type(read) is type(value) and isinstance(value, str | bytes | int | float) else read
    text = _as_json(value)
    if text is not None:
        try:
            return adapter.validate_json(text, strict=True)
        except ValidationError as error:
            # Some types cannot be checked in JSON; then the message about the value itself is clearer.
            if all(item["type"] != "needs_python_object" for item in error.errors()):
                problem = _first_problem(error)
    raise EditMisfit(problem)


def _read_fields(value: object, declared: Any) -> dict[str, object]:
    """A dict with declared keys. Each is read by itself, because pydantic reads such a type only from Python 3.12 on."""
    if not isinstance(value, dict):
        raise EditMisfit("Input should be a valid dictionary")
    types = get_type_hints(declared, include_extras=True)
    # Where annotations are strings, `__required_keys__` ignores Required and NotRequired.
    origins = {name: get_origin(hint) for name, hint in types.items()}
    required = {name for name, origin in origins.items() if origin is typing.Required}
    required |= {name for name in declared.__required_keys__ if origins.get(name) is not typing.NotRequired}
    if missing := required - value.keys():
        raise EditMisfit(f".{min(missing)}: Field required")
    read: dict[str, object] = {}
    for name, item in value.items():
        if name not in types:
            raise EditMisfit(f".{name}: Extra inputs are not permitted")
        hint = types[name]
        while get_origin(hint) in (typing.Required, typing.NotRequired):
            hint = get_args(hint)[0]
        try:
            read[name] = _read(item, hint)
        except EditMisfit as problem:
            raise problem.within(f".{name}") from None
    return read


def _adapter(declared: Any) -> TypeAdapter[Any] | None:
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation

    try:
        try:
            return TypeAdapter(declared, config=ConfigDict(arbitrary_types_allowed=True))
        except PydanticUserError:
            return TypeAdapter(declared)  # models, dataclasses and TypedDicts have their own configuration
    except (PydanticUserError, PydanticUndefinedAnnotation, NameError, TypeError, AttributeError):
        return None


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    inside = "".join(f".{part}" for part in first["loc"])
    return f"{inside}: {first['msg']}" if inside else str(first["msg"])


def _as_json(value: object) -> str | None:
    """The value as JSON, if it comes back from it the same."""
    try:
        text = json.dumps(value, allow_nan=False)
        return text if digest_of({"": json.loads(text)}) == digest_of({"": value}) else None
    except (TypeError, ValueError, RecursionError, NotCheckable):
        return None


def _is_unchanged(value: object, original: object) -> bool:
    """Whether a reviewer returned an argument unchanged, or in its JSON form."""
    if value is original:
        return True
    try:
        if (found := digest_of({"": value})) == digest_of({"": original}):
            return True
    except NotCheckable:
        return False
    if isinstance(original, str) or _as_json(value) is None:
        return False
    return any(found == digest_of({"": render(original, hides=hides)}) for hides in (False, True))
