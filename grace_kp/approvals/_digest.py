"""Identity and secrecy of a call: the digest of its arguments, the version of its action, its key, and the sealing of secret arguments.

A digest covers the action, its version and the encoded arguments in canonical JSON. With a key it is an HMAC, so that a short secret cannot be found
by trying. Its prefix names the scheme and the key: digests from before a key was set, or of an earlier key, remain verifiable.

A template such as `refund:{invoice}` gives the key of a call: canonical JSON of the domain, the action, the template and its fields. The fields are
separate values, so that two calls never share a key by accident.

A parameter is sealed as a whole, bound to its approval, its digest and its name. Sealed are the parameters that a gate names, and those in which
redaction recognises a secret by its form, by the name of the parameter or of a key around it, or by another argument.
"""

from __future__ import annotations

import base64
import enum
import hashlib
import hmac
import inspect
import json
import math
import os
import re
import secrets
import string
import types
import typing
import uuid
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import (
    SEALED,
    NoEncoding,
    canonical,
    encode_value,
    plain_json,
    qualified_name,
    tag_of,
)
from grace_kp.errors import ApprovalError, GateError, MissingExtra, SettingsError
from grace_kp.trace import redact_text, redact_value, storable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


VARIABLE = "GRACE_KP_KEY"
SERVICE, ENTRY = "grace_kp", "key"
_BYTES, _NONCE = 32, 12


def new_key() -> str:
    """Return a new key for `GRACE_KP_KEY` or the keyring: 32 random bytes in base64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(_BYTES)).decode()


class Secret:
    """A key with the earlier ones. It prints without their contents.

    Raises:
        SettingsError: the string does not hold keys.
        MissingExtra: `cryptography` is not installed.
    """

    __slots__ = ("_keys", "key_id")

    def __init__(self, text: str, *, place: str = "the key") -> None:
        keys = [_Derived(_key_bytes(part.strip(), place)) for part in text.split(",")]
        self._keys = {key.id: key for key in reversed(keys)}
        self.key_id = keys[0].id
        """Names the current key. The key cannot be computed from it."""

    def __repr__(self) -> str:
        return f"<Secret {self.key_id}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Secret is not pickled or copied; load it where it is needed")

    @classmethod
    def load(cls) -> Secret | None:
        """Return the key of this installation; None where there is none."""
        if text := os.environ.get(VARIABLE):
            return cls(text, place=VARIABLE)
        kept = _from_keyring()
        return None if kept is None else cls(kept, place="the key in the keyring")

    def seal(self, data: bytes, bound: bytes) -> dict[str, str]:
        """Encrypt data by AES-256-GCM."""
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + self._keys[self.key_id].cipher.encrypt(nonce, data, bound)
        return {"$sealed": base64.b64encode(sealed).decode(), "key": self.key_id}

    def open(self, sealed: Mapping[str, Any], bound: bytes) -> bytes:
        """Return what was sealed."""
        from cryptography.exceptions import InvalidTag

        key = self._key(sealed.get("key"))
        try:
            data = base64.b64decode(sealed["$sealed"], validate=True)
            return bytes(key.cipher.decrypt(data[:_NONCE], data[_NONCE:], bound))
        except (InvalidTag, KeyError, TypeError, ValueError):
            raise ValueError("sealed data was changed, or belongs to another request or parameter") from None

    def mac(self, data: bytes, *, key_id: str | None = None) -> str:
        """Return the HMAC-SHA256 of data in hexadecimal."""
        return hmac.digest(self._key(key_id or self.key_id).mac, data, "sha256").hex()

    def has_key(self, key_id: object) -> bool:
        """Return whether the key with this id is among those loaded."""
        return key_id in self._keys

    def _key(self, key_id: object) -> _Derived:
        key = self._keys.get(key_id) if isinstance(key_id, str) else None
        if key is None:
            known = ", ".join(self._keys)
            raise ValueError(
                f"this needs the key {key_id!r:.40}, and the keys here are {known}; add it to {VARIABLE} after the current one, separated by a comma"
            )
        return key


class _Derived:
    """The parts that are derived from one key."""

    __slots__ = ("cipher", "id", "mac")

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF
        except ImportError:
            raise MissingExtra("Sealing arguments", "approvals") from None

        def derive(purpose: bytes, length: int) -> bytes:
            return HKDF(SHA256(), length, salt=None, info=b"grace_kp approvals 1 " + purpose).derive(key)

        self.cipher = AESGCM(derive(b"seal", 32))
        self.mac = derive(b"mac", 32)
        self.id = derive(b"id", 8).hex()


def _key_bytes(text: str, place: str) -> bytes:
    try:
        if len(text) == 2 * _BYTES:
            key = bytes.fromhex(text)
        else:
            altchars = b"-_" if {"-", "_"} & set(text) else None
            key = base64.b64decode(text.rstrip("=") + "=", altchars=altchars, validate=True)
    except ValueError:
        key = b""
    if len(key) != _BYTES:
        # The string itself is not shown: it may be nearly the key.
        raise SettingsError(
            f"{place} must be {_BYTES} random bytes in base64 or hexadecimal, not {len(text)} other characters; make one with "
            '`python -c "import secrets; print(secrets.token_urlsafe(32))"`'
        )
    if len(set(key)) < 8:
        raise SettingsError(f"{place} must be random; only {len(set(key))} of its {_BYTES} bytes differ")
    return key


def _from_keyring() -> str | None:
    try:
        import keyring
        from keyring.errors import KeyringError, NoKeyringError
    except ImportError:
        return None
    try:
        return keyring.get_password(SERVICE, ENTRY)
    except NoKeyringError:
        return None
    except KeyringError as error:
        raise SettingsError(
            f"the keyring cannot be read ({type(error).__name__}: {error}); unlock it, set {VARIABLE}, or switch it off with "
            "PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring"
        ) from error


MIN_LENGTH = 3
"""Minimum length at which a sealed string with a digit, such as a PIN, is hidden elsewhere if it is a whole word."""
_PART = 6
"""Minimum length at which any sealed string is hidden elsewhere, also inside of words."""
_BLOCK = 64
"""Contents are padded to a multiple of this size, which hides the length of a short secret."""


class SealNeeded(ValueError):
    """An argument must not reach the disk in the clear, and no key can seal it."""

    def __init__(self, parameter: str, why: str) -> None:
        super().__init__(
            f"the argument {parameter!r} {why}, and there is no key to seal it with; set {VARIABLE} to a key "
            '(`python -c "import secrets; print(secrets.token_urlsafe(32))"`), or keep one in the keyring as `key` of `grace_kp`'
        )


def secret_parameters(encoded: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters in which redaction recognises a secret."""
    shown = {name: plain_json(value) for name, value in encoded.items()}
    cleaned = redact_value(shown, identifiers=False)
    if cleaned is shown:
        return ()
    pairs = zip(shown.items(), cleaned.items(), strict=True)
    return tuple(name for (name, value), (clean_name, clean) in pairs if name != clean_name or value != clean)


def sealed_arguments(
    encoded: Mapping[str, Any], names: Collection[str], secret: Secret | None, *, approval_id: str, digest: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return arguments with secrets sealed, and the names of those that are sealed."""
    recognised = secret_parameters(encoded)
    sealed = tuple(name for name in encoded if name in names or name in recognised)
    if sealed and secret is None:
        raise SealNeeded(sealed[0], "is to be sealed" if sealed[0] in names else "holds a secret")
    stored = dict(encoded)
    if secret is not None:
        for name in sealed:
            data = canonical(encoded[name])
            padded = data + b" " * (-len(data) % _BLOCK)
            stored[name] = secret.seal(padded, _bound(approval_id, digest, name))
    return stored, sealed


def opened_arguments(
    stored: Mapping[str, Any], secret: Secret | None, *, approval_id: str, digest: str
) -> dict[str, Any]:
    """Return stored arguments, opened if their key is here. Others stay sealed, and `decode` returns `SEALED` for them."""
    encoded = dict(stored)
    for name, value in stored.items():
        if tag_of(value) != "$sealed" or secret is None or not secret.has_key(value.get("key")):
            continue
        try:
            encoded[name] = json.loads(secret.open(value, _bound(approval_id, digest, name)))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return encoded


def list_sealed(encoded: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters that are still sealed."""
    return tuple(name for name, value in encoded.items() if tag_of(value) == "$sealed")


def sealed_texts(encoded: Mapping[str, Any], sealed: Collection[str]) -> list[str]:
    """Return strings and numbers in sealed arguments, longest first. Field names, and short strings without a digit, may be any word: they are left out."""
    found: set[str] = set()
    stack = [plain_json(encoded[name]) for name in sealed if name in encoded]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += [*(name for name in value if not name.isidentifier()), *value.values()]
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            text = str(value)
            if len(text) >= _PART or (len(text) >= MIN_LENGTH and any(map(str.isdigit, text))):
                found.add(text)
    return sorted(found, key=len, reverse=True)


def without_texts(value: Any, texts: Sequence[str]) -> Any:
    """Return a JSON value with `[SEALED]` in place of these strings, also in keys."""
    if not texts:
        return value
    if isinstance(value, str):
        for text in texts:
            if text in value:
                whole = re.escape(text) if len(text) >= _PART else rf"(?<!\w){re.escape(text)}(?!\w)"
                value = re.sub(whole, str(SEALED), value)
        return value
    if isinstance(value, dict):
        return {without_texts(name, texts): without_texts(item, texts) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_texts(item, texts) for item in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(SEALED) if is_number and str(value) in texts else value


def _bound(approval_id: str, digest: str, name: str) -> bytes:
    return canonical(["grace_kp approvals 1", approval_id, digest, name])


MAX_NOTE = 10_000
"""Maximum number of characters of a note."""
MAX_RESULT = 100_000
"""Maximum size of a recorded result as JSON, in bytes."""
_RESULT_DEPTH = 100


def clean_note(text: object, approval_id: str, *, what: str = "note") -> str:
    """Return a note without secrets."""
    if not isinstance(text, str):
        raise ApprovalError(f"the {what} must be a string, not {type(text).__name__}", approval_id=approval_id)
    if len(text) > MAX_NOTE:
        raise ApprovalError(
            f"the {what} has {len(text):,} characters, and at most {MAX_NOTE:,} are kept; shorten it",
            approval_id=approval_id,
        )
    return redact_text(storable(text), identifiers=False)


def clean_json(value: object, sealed: Sequence[str] = ()) -> Any:
    """Return JSON without secrets. Values that JSON cannot hold become strings."""
    plain = json.loads(json.dumps(value, default=str, skipkeys=True), parse_constant=str)
    # Before redaction, which could change a part of such a string and so leave the rest in the clear.
    return redact_value(without_texts(plain, sealed), identifiers=False)


def kept_result(value: object) -> bool:
    """Return whether a result can be recorded and returned later: JSON, at most `MAX_RESULT` bytes, without recognised secrets."""
    try:
        if (
            not _is_json(value, 0)
            or len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) > MAX_RESULT
        ):
            return False
    except (ValueError, RecursionError):  # an integer with too many digits
        return False
    return bool(redact_value(value, identifiers=False) == value)


def _is_json(value: Any, depth: int) -> bool:
    kind = type(value)  # instances of subclasses would be read back as another type
    if kind is list or kind is dict:
        items = value if kind is list else value.values()
        is_readable = kind is list or all(type(key) is str for key in value)
        return depth <= _RESULT_DEPTH and is_readable and all(_is_json(item, depth + 1) for item in items)
    return value is None or kind in {bool, str, int} or (kind is float and math.isfinite(value))


# Identity


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
    data = _call_bytes(action, version, encoded, leave_out)
    if secret is None:
        return f"{_PLAIN}{hashlib.sha256(data).hexdigest()}"
    return f"{_KEYED}{secret.key_id}:{secret.mac(data)}"


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
    data = _call_bytes(action, version, encoded, leave_out)
    if expected.startswith(_PLAIN):
        return _is_same(expected, f"{_PLAIN}{hashlib.sha256(data).hexdigest()}")
    key_id, separator, found = expected.removeprefix(_KEYED).partition(":")
    if not expected.startswith(_KEYED) or not separator:
        raise ValueError(f"the digest {expected!r:.80} must begin with {_PLAIN} or {_KEYED}<key id>:")
    if secret is None:
        raise ValueError(f"the digest was computed with the key {key_id}; set GRACE_KP_KEY to it")
    return _is_same(found, secret.mac(data, key_id=key_id))


def _is_same(first: str, second: str) -> bool:
    # In constant time.
    return hmac.compare_digest(first.encode("utf-8", "replace"), second.encode("utf-8", "replace"))


def version_of(signature: inspect.Signature, declared: str | None = None) -> str:
    """Return the version of an action: the declared one, else a hash of its signature.

    The hash covers names, kinds and types of the parameters, and which of them have defaults. It does not cover the source: declare a version if
    a change of behaviour needs a new decision.
    """
    if declared is not None:
        if not isinstance(declared, str) or not declared.strip() or len(declared) > 100:
            raise ValueError(f"version must be a string of 1 to 100 characters, not {declared!r:.60}")
        return declared
    parameters = [
        [name, parameter.kind.name, parameter.default is not parameter.empty, _type_text(parameter.annotation)]
        for name, parameter in signature.parameters.items()
    ]
    return f"signature:{hashlib.sha256(canonical(parameters)).hexdigest()[:16]}"


def operation_of(store: str, key: str, arguments: str, failed: int) -> str:
    """Return the id that all attempts at one operation share, also those that a restored backup has lost."""
    return hashlib.sha256(canonical([store, key, arguments, failed])).hexdigest()


def idempotency_key_of(operation: str) -> str:
    """Return the key that an action passes to the service it calls: a UUID that is the same for each attempt at an operation."""
    return str(uuid.uuid5(_NAMESPACE, operation))


def _call_bytes(action: str, version: str, encoded: Mapping[str, Any], leave_out: Collection[str]) -> bytes:
    arguments = {name: value for name, value in encoded.items() if name not in leave_out}
    return canonical({"action": action, "version": version, "arguments": arguments})


def _type_text(annotation: Any) -> str:
    """Return a type as a string that is the same in every process and, as far as possible, in every version of Python."""
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
"""Maximum number of characters of one field."""
_SCALARS = {"str", "int", "bool", "float", "Decimal", "date", "datetime", "time", "UUID"}
_MODULES = {"builtins", "decimal", "datetime", "uuid"}
_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


class KeyTemplate:
    """A template such as `refund:{invoice}`, checked against the parameters of its action.

    Args:
        template: a string with names of parameters in braces; `{{` and `}}` are literal braces.
        signature: the signature of the action.
        sealed: encrypted parameters, which the template must not name: keys are stored in the clear.

    Raises:
        GateError: the template is empty or malformed, or a field is not a parameter, is `*args` or `**kwargs`, is sealed, or has a format,
            an attribute or an index.
    """

    __slots__ = ("fields", "template")

    def __init__(self, template: str, signature: inspect.Signature, *, sealed: Collection[str] = ()) -> None:
        if not isinstance(template, str) or not template.strip():
            raise GateError(f'key must be a string such as "refund:{{invoice}}", not {template!r:.60}')
        self.template = template
        self.fields = tuple(dict.fromkeys(_fields(template)))
        """Names of the parameters that the key is made of."""
        known = [name for name, parameter in signature.parameters.items() if parameter.kind not in _VARIADIC]
        for name in self.fields:
            problem = ""
            if name not in known:
                problem = f"no single parameter of the action; it has {', '.join(known) or 'none'}"
            elif name in sealed:
                problem = "sealed; a key is kept in the clear"
            if problem:
                raise GateError(f"key {template!r:.100} names {name!r:.60}, which is {problem}")

    def key(self, domain: str, action: str, arguments: Mapping[str, object]) -> str:
        """Return the key of a call, as canonical JSON."""
        fields = {name: self._encode_field(name, arguments.get(name)) for name in self.fields}
        shown = {name: _plain(arguments[name]) for name in self.fields}
        if redact_value(shown, identifiers=False) != shown:
            alone = ({name: value} for name, value in shown.items())
            (secret,) = next((each for each in alone if redact_value(each, identifiers=False) != each), {"": None})
            raise ValueError(f"{self._place(secret)} holds a secret; a key is kept in the clear, use another field")
        return canonical({"domain": domain, "action": action, "template": self.template, "fields": fields}).decode()

    def _encode_field(self, name: str, value: Any) -> Any:
        plain, problem = _plain(value), ""
        kind = type(plain)
        if plain is None or (kind is str and not plain.strip()):
            found = "None" if plain is None else "an empty string"
            problem = f"is {found}; a key needs a value that identifies the operation"
        elif kind.__name__ not in _SCALARS or kind.__module__ not in _MODULES:
            problem = f"is a {type(value).__name__}; a key takes strings, numbers, dates, UUIDs and members of enums"
        elif (kind is float and not math.isfinite(plain)) or (kind.__name__ == "Decimal" and not plain.is_finite()):
            problem = f"is {plain}; a key takes finite numbers"
        else:
            try:
                encoded = encode_value(value)
                if len(canonical(encoded)) <= MAX_FIELD:
                    return encoded
                problem = f"has more than {MAX_FIELD:,} characters; a key takes short values"
            except NoEncoding as error:
                problem = f"cannot be part of a key: {error}"
        raise ValueError(f"{self._place(name)} {problem}")

    def _place(self, name: str) -> str:
        return f"the field {name!r} of the key {self.template!r:.100}"


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _fields(template: str) -> list[str]:
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise GateError(f"key {template!r:.100} cannot be read: {error}") from None
    names = []
    for _, name, form, conversion in parsed:
        if name is None:
            continue
        if form or conversion or not name.isidentifier():
            allowed = "names of parameters in braces, such as {invoice}, without a format, an attribute or an index"
            raise GateError(f"key {template!r:.100} may hold only {allowed}")
        names.append(name)
    return names
