"""Remove secrets and identifiers from JSON values, and from all strings and values of one document.

Names, pairs and argument lists show which strings are secrets. The strings of a document are scanned together first, because one scan
of many strings is cheaper than many scans.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from grace_kp.trace._render import storable, to_text
from grace_kp.trace.redaction._names import (
    NO_SECRET_KEY,
    PASSWORD_MARK,
    is_harmless,
    is_plain_name,
    is_secret_name,
    is_short_word,
    looks_random,
    names_number,
    plain_name,
)
from grace_kp.trace.redaction._patterns import is_word
from grace_kp.trace.redaction._places import DESCRIBES, has_values, secret_cells, secret_columns, secret_parameters
from grace_kp.trace.redaction._scan import redact_text, scanner

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Set


_NAME_KEYS = ("name", "key", "field", "header", "id", "label", "k", "param", "parameter", "variable", "property", "attribute", "column", "title", "Name", "Key", "Header", "ParameterKey", "setting", "option")  # fmt: skip
_VALUE_KEYS = frozenset((
    "value", "val", "v", "content", "default", "text", "data", "secret", "Value", "currentValue", "defaultValue", "stringValue",
    "ParameterValue", "string_value", "plaintext", "answer", "new_value", "old_value", "newValue", "oldValue", "NewValue", "OldValue",
))  # fmt: skip


NONE: frozenset[str] = frozenset()


def redact_value(
    value: Any, *, identifiers: bool, counts: Counter[str] | None = None, unaffected: Set[str] = NONE
) -> Any:
    """Return a JSON value without secrets; the same object where nothing was found.

    A string under a key such as `password` or `apiKey` is a secret unless it is plainly something else; so is a number under a key
    such as `pin` or `card_number`. `{"name": "password", "value": …}`, `["authorization", …]` and `["--token", …]` count as well.
    `counts` is increased by what was removed, by type. Strings in `unaffected` are known to match no rule.
    """
    kind = type(value)
    if kind is str:
        if value in unaffected:
            return value
        return redact_text(value, identifiers=identifiers, counts=counts)
    if kind is not dict and kind is not list:
        return value
    return _Walk(identifiers, counts, unaffected).run(value)


def is_plain(value: dict[Any, Any], unaffected: Set[str]) -> bool:
    """Return whether an object holds only strings that no rule can match, and numbers, under names that mean no secrets."""
    for key, item in value.items():
        kind = type(item)
        if kind is str:
            if item not in unaffected:
                return False
        elif not (item is None or kind is int or kind is float or kind is bool):
            return False
        if not is_plain_name(key):
            return False
    return _VALUE_KEYS.isdisjoint(value) or _pair_name(value) is None


def have_plain_names(names: Collection[str]) -> bool:
    """Return whether an object with some of these names, and strings that no rule can match, holds no secrets."""
    return all(map(is_plain_name, names)) and (_VALUE_KEYS.isdisjoint(names) or _NAMING_KEYS.isdisjoint(names))


class _Walk:
    """A redaction of one value: depth first with an explicit stack, so that deep values do not overflow the interpreter's."""

    __slots__ = ("changed", "counts", "identifiers", "stack", "unaffected")

    def __init__(self, identifiers: bool, counts: Counter[str] | None, unaffected: Set[str]) -> None:
        self.identifiers = identifiers
        self.counts = counts
        self.unaffected = unaffected
        self.changed = False
        # (value, container of the result, place in it, name of the secret around the value or the columns of its rows)
        self.stack: list[tuple[Any, Any, Any, Any]] = []

    def run(self, root: object) -> Any:
        out: list[Any] = [None]
        stack, unaffected = self.stack, self.unaffected
        stack.append((root, out, 0, None))
        while stack:
            value, target, place, secret = stack.pop()
            kind = type(value)
            if kind is str:
                if secret is None and value in unaffected:
                    target[place] = value
                    continue
                clean_text = self.text(value, secret)
                if clean_text is not value:
                    self.changed = True
                target[place] = clean_text
            elif kind is dict:
                target[place] = self.mapping(value, secret)
            elif kind is list:
                target[place] = self.sequence(value, secret)
            elif kind is int and secret is not None and type(place) is str and names_number(secret) and abs(value) > 99:
                self.changed = True
                target[place] = self.remove_secret()
            else:
                target[place] = value
        return out[0] if self.changed else root

    def text(self, value: str, secret: str | None) -> str:
        """Redact a string, or remove it if it is the secret of this name."""
        if secret is None:
            return redact_text(value, identifiers=self.identifiers, counts=self.counts)
        if not value or (value.startswith("[REDACTED:") and value.endswith("]") and value.count("[") == 1):
            return value
        if is_harmless(secret, value, "key"):
            return redact_text(value, identifiers=self.identifiers, counts=self.counts)
        return self.remove_secret()

    def remove_secret(self) -> str:
        if self.counts is not None:
            self.counts["password"] += 1
        return PASSWORD_MARK

    def mapping(self, value: dict[Any, Any], secret: Any) -> dict[Any, Any]:
        """Return the object with redacted names; its items follow on the stack."""
        cleaned: dict[Any, Any] = {}
        numbers: dict[Any, int] = {}
        below = _below(value, secret)
        secret = secret if type(secret) is str else None
        pair = secret or _pair_name(value)
        for key, item in value.items():
            name = key
            plain = is_plain_name(key)
            if not plain and type(key) is str and not is_short_word(key):
                name = redact_text(key, identifiers=self.identifiers, counts=self.counts)
                if name is not key:
                    self.changed = True
            if name in cleaned:  # two names are equal after redaction
                self.changed = True
                name = _free_name(name, cleaned, numbers)
            cleaned[name] = None
            under = below.get(key, secret)
            if secret is not None and type(key) is str and DESCRIBES.fullmatch(key):
                under = None
            if under is None:
                if not plain and (is_secret_name(key) or _is_generated_key(key, item)):
                    under = key
                elif pair is not None and key in _VALUE_KEYS:
                    under = pair
            self.stack.append((item, cleaned, name, under))
        return cleaned

    def sequence(self, value: list[Any], secret: Any) -> list[Any]:
        """Return a list for the items, which follow on the stack."""
        row: list[Any] = [None] * len(value)
        if secret is None:
            marked = _mark_arguments(value) or _rows(value)
        else:
            marked = {} if type(secret) is str else _cells(value, secret)
            secret = secret if type(secret) is str else None
        for number, item in enumerate(value):
            under = marked.get(number, secret)
            if type(item) is int and number in marked and type(under) is str:
                self.changed = True
                row[number] = self.remove_secret()
                continue
            known = type(under) is str or type(item) in {list, dict}
            self.stack.append((item, row, number, under if known else None))
        return row


# The names of the columns of the rows below, or those of the parameters of a statement by place or name.
Names = list[str] | dict[Any, str]
_HEADERS = frozenset(("columns", "column_names", "columnNames", "cols", "header", "headers", "fields", "field_names", "fieldNames", "schema", "rowType", "resultSetMetaData", "columnMetadata", "description", "names"))  # fmt: skip
_PARAMETERS = frozenset(
    ("params", "parameters", "args", "arguments", "values", "bindings", "binds", "bind", "vars", "variables", "data")
)


def _below(value: dict[Any, Any], known: str | Names | None) -> dict[Any, Any]:
    """Return the keys of an object below which the names of columns or parameters are known."""
    lists = [key for key, item in value.items() if type(item) is list]
    if type(known) in {list, dict}:
        return {**dict.fromkeys(lists, known), **(known if type(known) is dict else {})}
    for key in _HEADERS.intersection(value) if lists and known is None else ():
        if names := _names(value[key]):
            rows = {other: value[other][:1] for other in lists if other != key}
            return {
                other: names
                for other, row in rows.items()
                if row and (type(row[0]) in {list, dict} or len(value[other]) == len(names))
            }
    for key in _PARAMETERS.intersection(value) if known is None else ():
        for item in value.values():
            if type(item) is str and type(value[key]) in {list, dict} and (named := secret_parameters(item)):
                return {key: named}
    return {}


def _names(columns: Any) -> list[str] | None:
    """Return the names of columns: texts, or objects and lists that hold one."""
    if type(columns) is dict:
        inner = columns.get("fields") or columns.get("rowType")
        columns = inner if type(inner) is list else list(columns.values())
    if type(columns) is not list or not 0 < len(columns) <= 1_000:
        return None
    names = [item.get("name", _only(item)) if type(item) is dict else item[0] if type(item) is list and item else item for item in columns]  # fmt: skip
    return names if all(type(name) is str for name in names) else None


def _only(item: Any) -> Any:
    return next(iter(item.values())) if type(item) is dict and len(item) == 1 else item


def _rows(items: list[Any]) -> dict[int, Any]:
    """Return the places of the rows below a header, or of the parameters behind a statement."""
    if len(items) < 2:
        return {}
    first, second = _only(items[0]), _only(items[1])
    if type(first) is str and type(second) in {list, dict} and (named := secret_parameters(first)):
        return {1: named}
    names = _names(first) if type(first) is list and type(second) is list and len(first) > 1 else None
    if names is None or not (secret_columns(names) or has_values(names)):
        return {}
    if len(names) == 2 and secret_columns(names) == [0] and not _is_name(names[1]):
        return {}  # a name and its value
    return dict.fromkeys(range(1, len(items)), names)


def _cells(items: list[Any], names: Names) -> dict[int, Any]:
    """Return the places of the secrets in a row, or what is known of the rows in a list."""
    cells = list(map(_only, items))
    if any(type(cell) in {list, dict} for cell in cells):
        return dict.fromkeys(range(len(items)), names)
    if isinstance(names, dict):
        return names
    return secret_cells(
        names, [str(cell) if type(cell) is str or (type(cell) is int and abs(cell) < 10**20) else "" for cell in cells]
    )


_OTHER_KEY = re.compile(r"[\w.-]{2,60}[_.-]KEY|[\w.-]{2,60}(?:[_.-]key|[a-z]Key)")


def _is_generated_key(key: object, value: object) -> bool:
    """Return whether the value looks generated and its name resembles SENDGRID_KEY; `cache_key` and similar names are not secrets."""
    if type(key) is not str or type(value) is not str or not 16 <= len(value) <= 400:
        return False
    return _OTHER_KEY.fullmatch(key) is not None and NO_SECRET_KEY.search(key) is None and looks_random(value, 16)


def _free_name(name: object, taken: dict[Any, Any], numbers: dict[Any, int]) -> str:
    """Return a free name; the last number is kept, so that many equal names cost no more than different ones."""
    number = numbers.get(name, 1) + 1
    while (free := f"{name} ({number})") in taken:
        number += 1
    numbers[name] = number
    return free


# Fields of programs that fill in forms: the description of a field names the secret.
_FIELD_KEYS = (
    "selector", "element", "locator", "target", "xpath", "css", "placeholder", "description", "aria_label", "element_description",
)  # fmt: skip
_NAMING_KEYS = frozenset({*_NAME_KEYS, "type", "question", *_FIELD_KEYS})
_FIELD = re.compile(
    r"passw(?:or)?d|passcode|passphrase|(?<![a-z])pwd|api[_-]?key|(?:auth|access)[ _-]?token|(?<![a-z])(?:otp|cvv|cvc|pin)(?![a-z])|secret|パスワード|密码",
    re.IGNORECASE,
)


def _pair_name(value: dict[Any, Any]) -> str | None:
    """Return the name of the secret in {"name": "password", "value": …} or {"selector": "#password", "text": …}; None without one."""
    if len(value) > 12 or _VALUE_KEYS.isdisjoint(value):
        return None
    named: str | None = next(filter(is_secret_name, map(value.get, _NAME_KEYS)), None)
    if named is not None:
        return named
    described = [name for name in map(value.get, _FIELD_KEYS) if type(name) is str and len(name) <= 200]
    if value.get("type") in ("password", "secret") or any(map(_FIELD.search, described)):
        return "password"
    question, answer = value.get("question"), value.get("answer")
    if type(question) is str and type(answer) is str and _FIELD.search(question[-20:]):
        return None if is_word("password", answer, quoted=True) or " " in answer else "password"
    return None


_OPTION = re.compile(r"--?[A-Za-z][\w.-]{1,60}")
_SHORT_OPTIONS = {
    "sshpass": ("-p",), "redis-cli": ("-a", "--pass"), "docker": ("-p",), "podman": ("-p",), "mongosh": ("-p",), "mongo": ("-p",),
    "mongodump": ("-p",), "mongorestore": ("-p",), "sqlcmd": ("-P",), "bcp": ("-P",), "ldapsearch": ("-w",), "ldapmodify": ("-w",),
    "ldapadd": ("-w",), "ldapwhoami": ("-w",), "mosquitto_pub": ("-P",), "mosquitto_sub": ("-P",), "plink": ("-pw",), "pscp": ("-pw",),
    "zip": ("-P",), "unzip": ("-P",), "az": ("-p",), "helm": ("-p",), "ssh-keygen": ("-N",), "openssl": ("-passin", "-passout", "-pass", "-k"),
    "keytool": ("-storepass", "-keypass"), "ipmitool": ("-P",), "beeline": ("-p",), "cqlsh": ("-p",), "skopeo": ("-p",), "oc": ("-p",),
    "evil-winrm": ("-p",), "rabbitmqadmin": ("-p",),
}  # fmt: skip
_LOGIN = frozenset({"docker", "podman", "az", "helm", "skopeo", "oc"})  # elsewhere, -p is a port or a project
_MYSQL = re.compile(r"(?:mysql|mariadb)(?:dump|admin|import|show|check|-dump|-admin)?")
_ATTACHED = re.compile(r"-p[^-].{2,}", re.DOTALL)
_USER = re.compile(r"[^\s:/]{1,100}:[^\s/].*", re.DOTALL)


def _mark_arguments(items: list[Any]) -> dict[int, str]:
    """Return the places of secrets in a list, with their names: [name, value], and the arguments of a command."""
    if len(items) < 2 or type(items[0]) is not str or len(items) > 1_000:
        return {}
    marked: dict[int, str] = {}
    if len(items) == 2 and type(items[1]) is str and is_secret_name(items[0]) and not items[0].startswith("-"):
        if not _is_name(items[1]):
            marked[1] = plain_name(items[0])
        return marked
    texts = [item if type(item) is str else "" for item in items]
    command = texts[0].rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    short = _SHORT_OPTIONS.get(command, ())
    if command in _LOGIN and "login" not in texts:
        short = ()
    for number, item in enumerate(texts[:-1]):
        follows = texts[number + 1]
        if not item.startswith("-") or not follows:
            continue
        if (
            item in short
            or (_OPTION.fullmatch(item) and is_secret_name(item.lstrip("-")) and not follows.startswith("-"))
            or (
                item in {"-u", "--user", "--proxy-user", "-U"}
                and command in {"curl", "wget", "http", "https"}
                and _USER.fullmatch(follows)
            )
        ):
            marked[number + 1] = "password"
    if _MYSQL.fullmatch(command):
        marked.update((number, "password") for number, item in enumerate(texts) if _ATTACHED.fullmatch(item))
    return marked


def _is_name(text: str) -> bool:
    return (re.fullmatch(r"[a-z]+(?:_[a-z]+)*", text) is not None and len(text) <= 12) or is_secret_name(text)


def redacted_arguments(arguments: Mapping[str, Any], *, identifiers: bool) -> tuple[dict[str, Any], dict[str, int]]:
    """Redact arguments, and count the characters that were removed from each; structures count as their JSON text."""
    before = dict(arguments)
    after: dict[str, Any] = redact_value(before, identifiers=identifiers)
    counts: dict[str, int] = {}
    for (name, new), old in zip(after.items(), before.values(), strict=True):
        if new is not old and new != old:
            text, clean = to_text(old), to_text(new)
            marks = sum(map(len, _MARKS.findall(clean))) - sum(map(len, _MARKS.findall(text)))
            counts[name] = max(len(text) - len(clean) + marks, 1)
    return after, counts


_MARKS = re.compile(r"\[REDACTED:[^\[\]]*\]")


class Redactor:
    """Removes secrets, and identifiers if asked, from the strings and values of one document.

    Attributes:
        counts: places that were removed, by type.
    """

    __slots__ = ("_identifiers", "counts", "harmless")

    def __init__(self, *, identifiers: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._identifiers = identifiers
        self.harmless: Set[str] = NONE
        """Strings that no rule can match."""

    def expect(self, texts: Collection[str]) -> None:
        """Scan strings that are redacted next, alone or inside values. This replaces the strings expected before."""
        self.harmless = scanner(self._identifiers).expect(texts)

    def text(self, text: str, *, is_counted: bool = True) -> str:
        """Return the string redacted, in a form that UTF-8 can hold.

        A string that occurs more than once in the document is counted once.
        """
        if text in self.harmless:
            return text
        return redact_text(storable(text), identifiers=self._identifiers, counts=self.counts if is_counted else None)

    def value(self, value: object) -> Any:
        """Return a JSON value redacted; the same object if nothing was found."""
        if type(value) is dict and is_plain(value, self.harmless):
            return value
        return redact_value(value, identifiers=self._identifiers, counts=self.counts, unaffected=self.harmless)


def texts_in(value: object, texts: list[str]) -> None:
    """Add the strings of a rendered value to the list, except for the names of fields."""
    kind = type(value)
    if kind is str:
        texts.append(value)  # type: ignore[arg-type]
    elif kind is dict:
        for item in value.values():  # type: ignore[attr-defined]
            texts_in(item, texts)
    elif kind is list:
        for item in value:  # type: ignore[attr-defined]
            texts_in(item, texts)
