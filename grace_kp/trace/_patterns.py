"""What secrets and identifiers look like: a table of rules, in the order in which they are applied.

Each rule has the substrings without which it cannot match, so that clean text costs a few searches for substrings. Where a shape is
ambiguous, a secret that was missed is worse than a word too many; ordinary figures such as `token: 512` are left alone.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter

MARK = "[REDACTED:{}]"

Replacement = Callable[["re.Match[str]"], "str | None"]


class Rule:
    """One kind of thing to remove: its pattern, what has to be in a text for it to match, and what is left in its place."""

    __slots__ = ("_keep", "_pattern", "kind", "needs")

    def __init__(
        self, kind: str, pattern: str, *, needs: tuple[str, ...] = (), flags: int = 0, keep: Replacement | None = None
    ) -> None:
        """`keep` gives the replacement of a match, or None to leave it; `needs` are lower-case substrings, one is enough."""
        self.kind = kind
        self._pattern = re.compile(pattern, flags)
        self.needs = needs
        self._keep = keep

    def may(self, text: str) -> bool:
        """Whether the text can hold a match at all."""
        if not self.needs:
            return True
        low = text.lower()
        return any(need in low for need in self.needs)

    def sub(self, text: str, counts: Counter[str] | None) -> str:
        """The text with every match replaced; the same object where there is none."""
        mark = MARK.format(self.kind)

        def replace(match: re.Match[str]) -> str:
            put = mark if self._keep is None else self._keep(match)
            if put is None:
                return match[0]
            if counts is not None:
                counts[self.kind] += 1
            return put

        replaced = self._pattern.sub(replace, text)
        return text if replaced == text else replaced


# Names of secrets, as keys in text and in objects. What stands before them (db_, client, x-) belongs to the name.
_NAMES = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|token|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|secret[_-]?key|"
    r"signing[_-]?key|encryption[_-]?key|master[_-]?key|account[_-]?key|auth[_-]?key|credential|session[_-]?id|"
    r"connection[_-]?string)s?"
)
# A truth value, a type or a word of explanation is no secret, nor a short figure after a word that is counted as well.
_NO_SECRET = re.compile(
    r"(?:true|false|null|none|str|string|int|integer|bytes|bool|boolean|any|optional|\*{3,32}|<[^>]{0,80}>)[.)\]}]{0,4}",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"\d{1,3}(?:,?\d{3}){0,2}(?:\.\d{1,9})?%?[.)\]}]{0,4}")
_COUNTED = re.compile(r"(?:token|key|s[\"'\\]{0,8})\W*\Z", re.IGNORECASE)

_KEY = re.compile(rf"[\w.-]{{0,60}}?(?:{_NAMES})(?:[_-]?(?:value|hash|v\d|\d{{1,3}}))?", re.IGNORECASE)
_KEY_EXACT = frozenset({"authorization", "cookie", "setcookie", "pass", "passwort", "auth", "bearer", "pin", "jwt"})
_COUNTERS = re.compile(
    r"(?:max|min|num|n|total|prompt|completion|input|output|count|used|cached)[_-]?.{0,20}tokens?", re.IGNORECASE
)


def is_secret_name(name: object) -> bool:
    """Whether a key of an object names a secret: `password`, `db_password`, `apiKey`, `x-api-key`, `AWS_SECRET_ACCESS_KEY`."""
    if type(name) is not str or not 3 <= len(name) <= 80:
        return False
    known = _KNOWN_NAMES.get(name)
    if known is None:
        plain = name.strip().strip("\"'")
        known = plain.replace("-", "").replace("_", "").lower() in _KEY_EXACT or (
            _KEY.fullmatch(plain) is not None and _COUNTERS.fullmatch(plain) is None
        )
        if len(_KNOWN_NAMES) < 4_096:
            _KNOWN_NAMES[name] = known
    return known


_KNOWN_NAMES: dict[str, bool] = {}


_SCHEMES = frozenset({"bearer", "basic", "digest", "negotiate", "apikey"})


def _named(match: re.Match[str]) -> str | None:
    """A value after a key that names a secret."""
    value = match["value"]
    bare = value.strip("\"'\\")
    if not bare or "[REDACTED:" in value[:12] or _NO_SECRET.fullmatch(bare):
        return None
    if bare.lower() in _SCHEMES and "authorization" in match["key"].lower():
        return None
    if _FIGURE.fullmatch(bare) and _COUNTED.search(match["key"]):
        return None
    return match["key"] + MARK.format("password")


_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]{0,18}\.?")


def _bearer(match: re.Match[str]) -> str | None:
    return None if _PLAIN_WORD.fullmatch(match["value"]) else match["key"] + MARK.format("bearer_token")


def _phone(match: re.Match[str]) -> str | None:
    digits = sum(sign.isdigit() for sign in match[0])
    return MARK.format("phone") if 9 <= digits <= 15 else None


def _address(match: re.Match[str]) -> str | None:
    """An IPv6 address; times, ratios and scopes of C++ look alike and are none."""
    text = match["address"]
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return None
    groups = [group for group in text.split(":") if group]
    if len(groups) < 3 and not (groups and len(groups[0]) >= 3) and text != "::1":
        return None
    return MARK.format("ip") if any(sign.isdigit() for sign in text) else None


_Q = r"\\{0,4}[\"']"
# A value in quotes (escaped ones too, as in JSON inside of JSON; a cut text may lack the closing one), a list of such, or a bare one up
# to a blank, a comma or a bracket. An apostrophe inside a value belongs to it. All quantifiers are possessive: nothing is tried twice.
_VALUE = (
    r"(?P<value>\"\"\"(?:[^\"]|\"(?!\"\"))*+(?:\"\"\")?"
    r"|\"(?:[^\"\\\n]|\\.)*+\"?"
    r"|'(?:[^'\\\n]|\\.|'(?=\w))*+'?"
    r"|“[^”\n]*+”?|「[^」\n]*+」?"
    r"|\\{1,7}[\"'](?:[^\"'\\\n]|\\++(?![\"'\\]))*+(?:\\{1,7}[\"'])?"
    r"|\[(?=\s{0,8}\\{0,7}[\"'])[^\]\n]{1,4000}+\]?"
    r"|[^\s,;\"'“”\[\]\\]"
    r"(?:[^\s,;\"“”\[\])}]|\[(?!REDACTED:)|[\])}](?![\s,;.\"]|\Z)|,(?=[^\s,;=:\"'\[\]]{1,64}(?:[\s,;]|\Z)))++)"
)
# Between the name and the value: the end of a key, of an index, of a bold word, a type, a block of YAML, a prefix of Python.
_SEPARATOR = (
    rf"(?:{_Q})?\]?\*{{0,3}}\s{{0,8}}(?::\s{{0,4}}[A-Za-z][\w.\[\]| ]{{0,40}}=(?!=)|=>|:=|={{1,3}}|:(?!:)|[：＝])"
    rf"\*{{0,3}}\s{{0,8}}(?:[|>][+-]?[ \t]{{0,8}}\n\s{{0,40}})?(?:\((?=[\"']))?(?:[bBrRuUfF]{{1,2}}(?=[\"']))?"
)

SECRETS: tuple[Rule, ...] = (
    Rule(
        "api_key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END).)*+(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
        needs=("private key",),
        flags=re.DOTALL,
    ),
    Rule(
        "connection_string",
        r"(?<![A-Za-z0-9+])(?:jdbc:)?(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|oracle|clickhouse|"
        r"cockroachdb|cassandra|neo4j|bolt|nats|kafka|ldaps?|smtps?|ftps?|sftp)(?:\+[a-z0-9]{1,20})?(?::[a-z]{1,10})?:(?://|@)(?:[^\s,\"'<>)}\]]|[)}\]](?=[^\s,\"'<>]{0,200}@)){1,4000}",
        needs=("://", "jdbc:"),
        flags=re.IGNORECASE,
    ),
    Rule(
        "connection_string",
        r"(?<![A-Za-z])(?:Server|Data Source|Host|Endpoint|AccountName|DefaultEndpointsProtocol)=[^\n\"']{1,300}?"
        r"(?:Password|Pwd|SharedAccessKey|AccountKey)=[^\s;\"']{1,400};?(?:[A-Za-z ]{1,40}=[^\s;\"']{1,200};?){0,20}",
        needs=("password=", "pwd=", "sharedaccesskey=", "accountkey="),
        flags=re.IGNORECASE,
    ),
    Rule(
        "connection_string",
        r"(?<![A-Za-z0-9+])[a-z][a-z0-9+.-]{1,20}://[^\s/@:\"'<>]{0,200}:[^\s/@\"'<>]{1,400}@[^\s,\"'<>]{1,2000}",
        needs=("://",),
        flags=re.IGNORECASE,
    ),
    Rule(
        "api_key",
        r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{4,8000}(?:\.[A-Za-z0-9_-]{0,2000})?",
        needs=("eyj",),
    ),
    Rule(
        "api_key",
        r"(?<![A-Za-z0-9])(?:"
        r"sk-(?:proj|ant|svcacct|admin|or|live|test)-[A-Za-z0-9_-]{8,400}|sk-(?=[A-Za-z_-]{0,40}\d|[A-Za-z0-9]{20})[A-Za-z0-9][A-Za-z0-9_-]{15,400}"
        r"|kp_(?=[A-Za-z_-]{0,40}\d|[a-f]{16})[A-Za-z0-9_-]{6,200}|AKIA[A-Z0-9]{12,32}|(?:ASIA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])|gh[pousr]_[A-Za-z0-9]{16,300}|github_pat_[A-Za-z0-9_]{16,300}"
        r"|glpat-[A-Za-z0-9_-]{12,100}|xox[abeoprs]-[A-Za-z0-9-]{6,400}|xapp-[A-Za-z0-9-]{10,400}|AIza[A-Za-z0-9_-]{20,60}"
        r"|(?:sk|rk|pk|whsec)_(?:live|test)_[A-Za-z0-9]{8,200}|whsec_[A-Za-z0-9]{16,200}|npm_[A-Za-z0-9]{20,100}|hf_[A-Za-z0-9]{20,100}"
        r"|pypi-[A-Za-z0-9_-]{30,400}|SG\.[A-Za-z0-9_-]{10,100}\.[A-Za-z0-9_-]{10,200}|dop_v1_[a-f0-9]{32,100}|ya29\.[A-Za-z0-9_-]{20,400}"
        r"|lsv2_[a-z]{2}_[A-Za-z0-9_]{16,200}|pplx-[A-Za-z0-9]{20,100}|gsk_[A-Za-z0-9]{20,100}|r8_[A-Za-z0-9]{20,100}"
        r")",
        needs=(
            "sk-",
            "kp_",
            "akia",
            "asia",
            "aroa",
            "aida",
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "ghr_",
            "github_pat_",
            "glpat-",
            "xox",
            "xapp-",
            "aiza",
            "sk_",
            "rk_",
            "pk_",
            "whsec_",
            "npm_",
            "hf_",
            "pypi-",
            "sg.",
            "dop_v1_",
            "ya29.",
            "lsv2_",
            "pplx-",
            "gsk_",
            "r8_",
        ),
    ),
    Rule(
        "bearer_token",
        r"(?<![A-Za-z0-9])(?P<key>bearer(?:\s{1,8}|\s{0,8}[:=]\s{0,8}|%20|\+))(?P<value>[A-Za-z0-9._~+/=-]{8,4000})",
        needs=("bearer",),
        flags=re.IGNORECASE,
        keep=_bearer,
    ),
    Rule(
        "bearer_token",
        r"(?<![A-Za-z0-9])(?P<key>authorization[\"']?\s{0,8}[:=]\s{0,8}[\"']?(?:basic|digest|token|apikey|negotiate)\s{1,8})"
        r"(?P<value>[A-Za-z0-9._~+/=-]{4,4000})",
        needs=("authorization",),
        flags=re.IGNORECASE,
        keep=_bearer,
    ),
    Rule(
        "password",
        rf"(?<!REDACTED:)(?P<key>(?:{_NAMES})(?:[_-]?(?:value|hash|v\d|\d{{1,3}}))?{_SEPARATOR}){_VALUE}",
        needs=("pass", "pwd", "secret", "token", "key", "credential", "session", "connection"),
        flags=re.IGNORECASE,
        keep=_named,
    ),
    Rule(
        "password",
        rf"(?<![A-Za-z0-9_])(?P<key>(?:{_Q})?(?:authorization|passwort|パスワード|暗証番号){_SEPARATOR}){_VALUE}",
        needs=("authorization", "passwort", "パスワード", "暗証番号"),
        flags=re.IGNORECASE,
        keep=_named,
    ),
    Rule(
        "password",
        rf"(?P<key>(?<![A-Za-z])cookie(?:{_Q})?\s{{0,8}}[:=：]\s{{0,8}}\\{{0,4}}[\"']?)(?P<value>[^\s=;,\"'\[]{{1,200}}=[^\n\"'\\\[]{{0,8000}})",
        needs=("cookie",),
        flags=re.IGNORECASE,
        keep=_named,
    ),
    Rule(
        "password",
        rf"(?P<key><[A-Za-z_][\w:.-]{{0,40}}?(?:{_NAMES})>|<(?:{_NAMES})>)(?P<value>[^<>\n]{{1,4000}})(?=</)",
        needs=("</",),
        flags=re.IGNORECASE,
        keep=_named,
    ),
    Rule(
        "password",
        rf"(?<![\w-])(?P<key>--(?:[a-z]{{1,20}}-){{0,3}}(?:{_NAMES})[ \t]{{1,4}})(?P<value>\"[^\"\n]{{0,4000}}\"?|'[^'\n]{{0,4000}}'?|[^\s\"'-][^\s\"']{{0,4000}})",
        needs=("--",),
        flags=re.IGNORECASE,
        keep=_named,
    ),
)

# Boundaries are those of ASCII: between Japanese words there are no blanks.
IDENTIFIERS: tuple[Rule, ...] = (
    Rule(
        "email",
        r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,1024}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])",
        needs=("@",),
    ),
    Rule(
        "ip",
        r"(?<![A-Za-z0-9_.:])(?P<address>(?=[0-9A-Fa-f:.]{2,45})(?:[0-9A-Fa-f]{0,4}:){2,8}[0-9A-Fa-f]{0,4}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3}|(?:\.\d{1,3}){3})?)"
        r"(?:%[A-Za-z0-9]{1,16})?(?![A-Za-z0-9_:])",
        needs=(":",),
        flags=re.ASCII,
        keep=_address,
    ),
    Rule(
        "ip",
        r"(?<![A-Za-z0-9_.])(?!\d{1,3}\.0\.0\.0(?!\d))(?:(?:25[0-5]|2[0-4]\d|[01]?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|[01]?\d?\d)(?![A-Za-z0-9_]|\.\d)",
        needs=(".",),
        flags=re.ASCII,
    ),
    Rule(
        "phone",
        r"(?<![A-Za-z0-9_.+-])(?:\+\d{7,15}(?![A-Za-z0-9_]|[.-]\d)"
        r"|\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,5}(?:[ .-]?\d{2,5}){1,4}(?![A-Za-z0-9_]|[.-]\d)"
        r"|\(\d{2,5}\) ?\d{1,4}[ .-]\d{3,4}(?![A-Za-z0-9_]|[.-]\d)|0\d{1,4}[-‐–ー－]\d{1,4}[-‐–ー－]\d{3,4}(?![A-Za-z0-9_]|[.-]\d)"
        r"|\d{3}[.-]\d{3}[.-]\d{4}(?![A-Za-z0-9_]|[.-]\d)|0[5789]0\d{8}(?![A-Za-z0-9_]|[.-]\d))",
        flags=re.ASCII,
        keep=_phone,
    ),
    Rule(
        "filepath",
        r"(?<![A-Za-z0-9_.])(?<![A-Za-z]:)(?:file://)?(?:/mnt/[a-z])?/(?:home|Users|export/home|var/home)/[^\s,;/\"'<>|:`)}\]]{1,200}"
        r"(?:/[^\s,;\]\"'<>|`)}]{0,1000})?",
        needs=("home/", "users/"),
        flags=re.IGNORECASE,
    ),
    Rule(
        "filepath",
        r"(?<![A-Za-z0-9_.])[A-Za-z]:(?:\\{1,4}|/)(?:Users|Documents and Settings)(?:\\{1,4}|/)"
        r"(?:[^\\/\s,;:\"'<>|]{1,40}(?: [^\\/\s,;:\"'<>|]{1,40}){1,3}(?=[\\/]))?[^\s,;\]\"'<>|]{1,1000}",
        needs=("users", "settings"),
        flags=re.IGNORECASE,
    ),
)


def may_hold_secret(text: str) -> bool:
    """Whether any rule for secrets could match; written out, because it runs over every recorded text."""
    low = text.lower()
    if "key" in low or "token" in low or "secret" in low or "pass" in low or "://" in low or "bearer" in low:
        return True
    if "pwd" in low or "credential" in low or "session" in low or "connection" in low or "eyj" in low or "jdbc:" in low:
        return True
    if "authoriz" in low or "cookie" in low or "akia" in low or "asia" in low or "aroa" in low or "aida" in low:
        return True
    if "xox" in low or "aiza" in low or "sg." in low or "ya29." in low or "パスワード" in low or "暗証番号" in low:
        return True
    return ("_" in low or "-" in low) and any(need in low for need in _MARKED)


_MARKED = tuple(need for rule in SECRETS for need in rule.needs if "_" in need or "-" in need)
may_hold_identifier: Callable[[str], object] = re.compile(r"[0-9:@]|home/|users/", re.IGNORECASE).search
