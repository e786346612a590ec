"""Identity of a call: the digest of its arguments, the version of its action, its key, and the idempotency key for the receiving service.

A digest covers the action, its version and the encoded arguments in canonical JSON. With a key it is an HMAC, so that nobody can find a short secret
by trying. Its prefix names the scheme and the key: digests made before a key was set, or with an earlier key, remain verifiable.

A gate's template such as `refund:{invoice}` gives the key: canonical JSON of the domain, the action, the template and its fields, each on its own, so
that values cannot run into each other.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import inspect
import math
import re
import string
import types
import typing
import uuid
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import NoEncoding, canonical, encode_value, qualified_name
from grace_kp.errors import GateError
from grace_kp.trace import redact_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from grace_kp.approvals._seal import Secret


_PLAIN, _KEYED = "sha256:", "hmac-sha256:"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_NAMESPACE = uuid.UUID("0d9f64b6-0c2e-5d0b-9a6c-3f1c6f6b7a13")


def digest(
    action: str,
    version: str,
    encoded: Mapping[str, Any],
    *,
    leave_out: Collection[str] = (),
    secret: Secret | None = None,
) -> str:
    """Return the digest of a call."""
    data = _covered(action, version, encoded, leave_out)
    return _plain_digest(data) if secret is None else f"{_KEYED}{secret.key_id}:{secret.mac(data)}"


def has_digest(
    expected: str,
    action: str,
    version: str,
    encoded: Mapping[str, Any],
    *,
    leave_out: Collection[str] = (),
    secret: Secret | None = None,
) -> bool:
    """Return whether a call has this digest, under the scheme and the key that the digest itself names."""
    data = _covered(action, version, encoded, leave_out)
    if expected.startswith(_PLAIN):
        return same_digest(expected, _plain_digest(data))
    scheme, _, rest = expected.partition(":")
    key_id, separator, found = rest.partition(":")
    if f"{scheme}:" != _KEYED or not separator:
        raise ValueError(f"the digest {expected!r:.80} must begin with {_PLAIN} or {_KEYED}<key id>:")
    if secret is None:
        raise ValueError(f"the digest was computed with the key {key_id}; set GRACE_KP_KEY to it")
    return same_digest(found, secret.mac(data, key_id=key_id))


def same_digest(first: str, second: str) -> bool:
    """Compare two digests in a time that does not depend on where they differ."""
    return hmac.compare_digest(first.encode("utf-8", "replace"), second.encode("utf-8", "replace"))


def version_of(signature: inspect.Signature, declared: str | None = None) -> str:
    """Return the version of an action: the declared one, else a hash of its signature.

    The hash covers names, kinds and types of the parameters, and which have defaults. It does not cover the source, so that moving or
    reformatting an action changes nothing; declare a version where another behaviour needs another decision.
    """
    if declared is not None:
        if not isinstance(declared, str) or not declared.strip() or len(declared) > 100:
            raise ValueError(f"version must be a text of 1 to 100 characters, not {declared!r:.60}")
        return declared
    parameters = [
        [name, parameter.kind.name, parameter.default is not parameter.empty, _type_text(parameter.annotation)]
        for name, parameter in signature.parameters.items()
    ]
    return f"signature:{hashlib.sha256(canonical(parameters)).hexdigest()[:16]}"


def operation_of(store: str, key: str, arguments: str, failed: int) -> str:
    """Return what all attempts at one operation have in common, also those that a restored backup has lost."""
    return hashlib.sha256(canonical([store, key, arguments, failed])).hexdigest()


def idempotency_key_of(operation: str) -> str:
    """Return the key that an action passes to the service it calls: a UUID that is the same for each attempt at an operation."""
    return str(uuid.uuid5(_NAMESPACE, operation))


def _covered(action: str, version: str, encoded: Mapping[str, Any], leave_out: Collection[str]) -> bytes:
    arguments = {name: value for name, value in encoded.items() if name not in leave_out}
    return canonical({"action": action, "version": version, "arguments": arguments})


def _plain_digest(data: bytes) -> str:
    return f"{_PLAIN}{hashlib.sha256(data).hexdigest()}"


def _type_text(annotation: Any) -> str:
    """A type as a text that is the same in every process and, as far as possible, in every version of Python."""
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, str):
        return annotation
    if hasattr(annotation, "__metadata__"):  # Annotated: constraints may print addresses
        return _type_text(annotation.__origin__)
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Union, types.UnionType}:
        return " | ".join(map(_type_text, inside))
    if origin is typing.Literal:
        return f"Literal{list(inside)!r}"
    if origin is not None:
        return f"{_type_text(origin)}[{', '.join(map(_type_text, inside))}]"
    if isinstance(annotation, type):
        return qualified_name(annotation).removeprefix("builtins.")
    if isinstance(annotation, list):  # the parameters of a Callable
        return f"[{', '.join(map(_type_text, annotation))}]"
    return _ADDRESS.sub("", repr(annotation)).encode("utf-8", "replace").decode()


MAX_FIELD = 1_000
"""Characters that one field may have."""
_SCALARS = {"str", "int", "bool", "float", "Decimal", "date", "datetime", "time", "UUID"}
_MODULES = {"builtins", "decimal", "datetime", "uuid"}
_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


class KeyTemplate:
    """A template such as `refund:{invoice}`, checked against the parameters of its action.

    Args:
        template: a text with names of parameters in braces. `{{` and `}}` stand for braces.
        signature: the signature of the action.
        sealed: parameters that are kept encrypted; a key is kept in the clear, so that none of them may occur in it.

    Raises:
        GateError: the template is empty or malformed, or a field is no parameter, is `*args` or `**kwargs`, is sealed, or has a format,
            an attribute or an index.
    """

    __slots__ = ("fields", "template")

    def __init__(self, template: str, signature: inspect.Signature, *, sealed: Collection[str] = ()) -> None:
        if not isinstance(template, str) or not template.strip():
            raise GateError(f'key must be a text such as "refund:{{invoice}}", not {template!r:.60}')
        self.template = template
        self.fields = tuple(dict.fromkeys(_fields(template)))
        """Names of the parameters that the key is made of."""
        known = [name for name, parameter in signature.parameters.items() if parameter.kind not in _VARIADIC]
        for name in self.fields:
            if name not in known:
                raise GateError(
                    f"key {template!r:.100} names {name!r:.60}, which is no single parameter of the action; it has {', '.join(known) or 'none'}"
                )
            if name in sealed:
                raise GateError(f"key {template!r:.100} names {name!r}, which is sealed; a key is kept in the clear")

    def key(self, domain: str, action: str, arguments: Mapping[str, object]) -> str:
        """Return the key of a call, as canonical JSON."""
        fields = {name: self._field(name, arguments.get(name)) for name in self.fields}
        shown = {name: _plain(arguments[name]) for name in self.fields}
        if redact_value(shown, identifiers=False) != shown:
            secret = next(
                (name for name in shown if redact_value({name: shown[name]}, identifiers=False) != {name: shown[name]}),
                "",
            )
            raise ValueError(f"{self._place(secret)} holds a secret; a key is kept in the clear, use another field")
        return canonical({"domain": domain, "action": action, "template": self.template, "fields": fields}).decode()

    def _field(self, name: str, value: Any) -> Any:
        plain = _plain(value)
        kind = type(plain)
        if plain is None:
            raise ValueError(f"{self._place(name)} is None; a key needs a value that identifies the operation")
        if kind.__name__ not in _SCALARS or kind.__module__ not in _MODULES:
            raise ValueError(
                f"{self._place(name)} is a {type(value).__name__}; a key takes texts, numbers, dates, UUIDs and members of enums"
            )
        if kind is str and not plain.strip():
            raise ValueError(f"{self._place(name)} is an empty text; a key needs a value that identifies the operation")
        if (kind is float and not math.isfinite(plain)) or (kind.__name__ == "Decimal" and not plain.is_finite()):
            raise ValueError(f"{self._place(name)} is {plain}; a key takes finite numbers")
        try:
            encoded = encode_value(value)
        except NoEncoding as error:
            raise ValueError(f"{self._place(name)} cannot be part of a key: {error}") from None
        if len(canonical(encoded)) > MAX_FIELD:
            raise ValueError(f"{self._place(name)} has more than {MAX_FIELD:,} characters; a key takes short values")
        return encoded

    def _place(self, name: str) -> str:
        return f"the field {name!r} of the key {self.template!r:.100}"


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _fields(template: str) -> list[str]:
    names = []
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise GateError(f"key {template!r:.100} cannot be read: {error}") from None
    for _, name, form, conversion in parsed:
        if name is None:
            continue
        if form or conversion or not name.isidentifier():
            raise GateError(
                f"key {template!r:.100} may hold only names of parameters in braces, such as {{invoice}}, without a format, an attribute or an index"
            )
        names.append(name)
    return names
