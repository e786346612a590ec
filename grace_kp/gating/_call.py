"""Calls that a framework makes: mappings with a JSON schema, and what identifies them.

A call is identified by its framework, session, turn, call id, action and arguments. So a decision is found again by another process, and never
by another conversation, although models choose ids.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import canonical, encode, fitted_edit
from grace_kp.errors import ActionPending, GateError, brief
from grace_kp.gating._case import Coverage, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from grace_kp.approvals import Inbox
    from grace_kp.gating._ledger import Ledger
    from grace_kp.gating._request import InterventionResponse, Reviewer

MAX_PART = 200
"""Characters of an id that people are shown."""
MAX_BITS = 14_000
"""Bits of a whole number that Python writes as text."""
_PLAIN = (str, int, float, bool, type(None))


class JsonParameter(inspect.Parameter):
    """A parameter by any name, such as `from` or `user-id`, which Python's own would refuse."""

    def __init__(self, name: str) -> None:
        own: Any = self
        own._name, own._kind, own._annotation = name, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        own._default = Unknown  # the schema checks what is required


def json_signature(names: Iterable[str]) -> inspect.Signature:
    """Return the signature of calls that pass arguments by these names, as optional parameters of unknown default."""
    return inspect.Signature([JsonParameter(name) for name in dict.fromkeys(names)])


def json_copy(value: object, place: str = "arguments") -> Any:
    """Return a copy of a JSON value that shares nothing with it.

    Raises:
        GateError: it holds something else, is too deep, or a key is not a string; the message names the place.
    """
    if type(value) in _PLAIN:
        if (type(value) is float and value - value != 0) or (type(value) is int and value.bit_length() > MAX_BITS):
            raise GateError(f"{place} is a number that JSON cannot hold")
        return value
    try:
        if isinstance(value, Mapping):
            if (other := next((key for key in value if type(key) is not str), None)) is not None:
                raise GateError(f"{place} has the key {brief(other)}, which is not a string")
            return {key: json_copy(item, f"{place}.{key:.60}") for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [json_copy(item, f"{place}[{number}]") for number, item in enumerate(value)]
    except RecursionError:
        raise GateError("the arguments are nested too deeply") from None
    raise GateError(f"{place} is a {type(value).__name__}; the arguments of a call are JSON values")


class JsonCoverage(Coverage):
    """The digest of arguments that are JSON: by content, whatever the order of their keys."""

    def __init__(self, ignore: Sequence[str]) -> None:
        self._ignored = frozenset(ignore)

    def owner(self, arguments: Mapping[str, object]) -> None:  # noqa: ARG002 — no method is called
        """Return None: there is no object whose method is called."""
        return

    def digest(self, arguments: Mapping[str, object], *, lasting: bool = False, ordered: bool | None = None) -> str:  # noqa: ARG002
        """Return the SHA-256 of the canonical form of the arguments."""
        covered, _ = encode({name: value for name, value in arguments.items() if name not in self._ignored})
        return hashlib.sha256(canonical(covered)).hexdigest()


def editable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema for edits: an optional property that may not be null also takes null, which removes the argument."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    required = schema.get("required") or ()
    changed = {
        name: {"anyOf": [each, {"type": "null"}]} if name not in required and not _takes_null(each) else each
        for name, each in properties.items()
    }
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {"type": "object", "properties": changed, "required": list(required), **definitions}


def _takes_null(schema: object) -> bool:
    if not isinstance(schema, dict) or not schema:
        return True
    if "$ref" in schema or "allOf" in schema:
        return False
    kinds = schema.get("type")
    branches = schema.get("anyOf") or schema.get("oneOf") or ()
    if kinds is None and not branches:
        values = schema.get("enum", [None])
        return None in values and schema.get("const") is None
    return "null" in (kinds if isinstance(kinds, list) else [kinds]) or any(map(_takes_null, branches))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call belongs: a decision is found again by all of these, and by the action and its arguments."""

    framework: str
    session: str
    turn: str | int | None = None
    call_id: str | int | None = None
    number: int = 1
    """1, or the number of the call among equal ones of its turn that have the same id."""

    def to_dict(self) -> dict[str, Any]:
        """Return the place as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    def key(self, domain: str, action: str, digest: str, stated: str) -> str:
        """Return the key of a call in the ledger. `stated` is the key that the program states, which only tells calls apart further."""
        parts = [domain, self.framework, self.session, self.turn, self.call_id, self.number, action, digest, stated]
        return f"call|{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


class StandingCall:
    """The program around one call, which may come back to it in another process; a `Resumable` that does not pause by an exception."""

    interrupts = False

    def __init__(self, place: Place, key: str, wait: bool | None) -> None:
        self.place, self.key, self.wait_for = place, key, wait
        self.origin = place.framework
        self.answer: InterventionResponse | None = None
        """The answer of a reviewer that is not an inbox, once it is kept."""
        self.own: Reviewer | None = None

    @property
    def reviewer(self) -> Reviewer | None:
        """Return the answer that was kept as a reviewer, else the gate's own reviewer unless it must not be asked."""
        if self.answer is not None or self.wait_for is False:
            return _Kept(self.origin, self.answer)
        return self.own

    def asking(self, approval: str) -> _Kept:  # noqa: ARG002 — the inbox has the request
        """Return a reviewer that leaves the decision to a later call."""
        return _Kept(self.origin, None)

    def whereabouts(self) -> dict[str, Any]:
        """Return where the call belongs, for people who look at the request."""
        stated = {name: getattr(self.place, name) for name in ("framework", "session", "turn", "call_id")}
        return {name: str(value)[:MAX_PART] for name, value in stated.items() if value is not None}

    def begin(self, _inbox: Inbox | None = None) -> None:
        """Do nothing: the program finds its calls again by itself, and those of a turn have no order."""

    remember = wait = end = begin

    async def wait_async(self) -> None:
        """Do nothing, as `wait`."""

    def may_have_forgotten(self, ledger: Ledger) -> bool:  # noqa: ARG002 — the key is found in no other ledger
        """Return False: a call whose decision is gone is decided again."""
        return False

    def ledger_key(self, action: str) -> str:  # noqa: ARG002 — the key covers the action
        """Return the key of the call in the ledger."""
        return self.key


class _Kept:
    """A reviewer that repeats an answer; without one, the call waits for it."""

    pauses = True

    def __init__(self, name: str, answer: InterventionResponse | None) -> None:
        self.name, self._answer = name, answer

    def review(self, request: Any) -> InterventionResponse:
        if self._answer is None:
            raise CallWaits(f"{request.action} has not run: it waits for an answer", request=request)
        return self._answer


class CallWaits(ActionPending):
    """A call that waits for an answer which the framework brings; the gate states it as waiting, and not as failed."""


def removes_argument(schema: Mapping[str, Any], name: str) -> bool:
    """Return whether null in place of this argument removes it."""
    properties = schema.get("properties")
    each = properties.get(name) if isinstance(properties, dict) else None
    return each is not None and name not in (schema.get("required") or ()) and not _takes_null(each)


def edit_problem(
    schema: Mapping[str, Any], action: str, before: Mapping[str, Any], sealed: Sequence[str] = ()
) -> Callable[[Any], str]:
    """Return a check of edited arguments against the schema, which returns the problem without sealed values; empty where there is none."""

    def check(arguments: Mapping[str, Any]) -> str:
        try:
            json_copy(arguments)
            # Compared as text, because 1 equals True in Python.
            texts = {name: json.dumps(value) for name, value in before.items()}
            changed = {name: value for name, value in arguments.items() if texts.get(name) != json.dumps(value)}
            if not changed or not schema:
                return ""
            fitted_edit(editable_schema(schema), encode(changed)[0], action=action, hidden=sealed)
        except (ValueError, ImportError, GateError) as error:
            return str(error)
        return ""

    return check
