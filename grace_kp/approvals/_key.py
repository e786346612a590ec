"""Keys of actions: the template of a gate, `refund:{invoice}`, and the key that it makes of a call.

A key is canonical JSON of the domain, the action, the template and its fields, each on its own, so that values cannot run into each other.
"""

from __future__ import annotations

import enum
import inspect
import math
import string
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._canonical import NoEncoding, canonical, encode_value
from grace_kp.errors import GateError
from grace_kp.trace import redact_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
        """Return the key of a call, as canonical JSON.

        Args:
            domain: the domain of the runtime.
            action: name of the action.
            arguments: its arguments by parameter name, with defaults.

        Raises:
            ValueError: a field is None, empty, no scalar, not a number, longer than `MAX_FIELD` characters, or a recognised secret.
        """
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
