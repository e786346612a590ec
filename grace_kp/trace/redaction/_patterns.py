"""Secrets that their surroundings give away, and identifiers.

Key files, addresses with a password, headers, commands, configuration files and sentences: `curl -u`, `mysql -p`, `.netrc`, XML, SQL,
"my password is …". The order is that of application: a secret that can be part of a longer one comes after it.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from typing import TYPE_CHECKING

from grace_kp.trace.redaction._names import (
    ANY_NAME,
    OTHER_NEEDLES,
    PASSWORD_NEEDLES,
    PASSWORDS,
    PASSWORDS_ELSEWHERE,
    SUFFIX,
    TOKENS,
    is_count_name,
    is_harmless,
    is_secret_name,
    looks_random,
)
from grace_kp.trace.redaction._rule import RedactionRule

if TYPE_CHECKING:
    from grace_kp.trace.redaction._rule import Decision


_I = re.IGNORECASE


def _keeps_harmless(style: str = "quoted", name: str | None = None) -> Decision:
    """Return the decision that keeps what is harmless as the value of the group `key`, or of this name."""
    return lambda match: is_harmless(name or match["key"], match["value"], style)


_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]{0,18}\.?")


def _keeps_bearer(match: re.Match[str]) -> bool:
    return _PLAIN_WORD.fullmatch(match["value"]) is not None or is_harmless(match["key"], match["value"], "spaced")


_PLACEHOLDER = re.compile(
    r"\$\{?\w{1,60}\}?|\{[\w.]{1,60}\}|<[^<>]{1,60}>|\*{1,40}|x{3,40}|\[?REDACTED\]?.{0,40}|%\w+%|\{\{.{1,60}\}\}", _I
)


def _keeps_basic(match: re.Match[str]) -> bool:
    """Keep what holds no credentials in base64: a colon between two printable texts."""
    value = match["value"].rstrip("=")
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return True
    return b":" not in decoded or not all(byte > 31 or byte > 127 for byte in decoded)


def _keeps_plain(match: re.Match[str]) -> bool:
    value = match["value"]
    return not looks_random(value, 12) and not (len(value) > 40 and "%" in value)


KEY_FILES = (
    RedactionRule(
        "api_key", "private keys",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END).)*+(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
        needs=("private key",), flags=re.DOTALL,
    ),
    RedactionRule("api_key", "PuTTY keys", r"PuTTY-User-Key-File-\d(?:(?!PuTTY-User|Private-MAC).)*+(?:Private-MAC: ?[a-f0-9]*+)?", needs=("putty-user-key-file-",), flags=re.DOTALL),
    RedactionRule("api_key", "OpenSSH keys", r"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=\s\\]{20,20000}+", needs=("b3blbnnzac1rzxktdje",)),
    RedactionRule("api_key", "private keys without a frame", r"(?<![A-Za-z0-9+/])MII[A-Za-z0-9+/]{2}(?:IBAAKC|AgEAAo|wIBADAN|vQIBADAN|EowIBAA|pAIBAA|JKAIBAAK)[A-Za-z0-9+/=\n\r\\]{60,20000}+",
         needs=("mii",)),
)  # fmt: skip

_SCHEMES = (
    r"postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|oracle|clickhouse|cockroachdb|cassandra|neo4j|bolt|nats|kafka|ldaps?|"
    r"smtps?|ftps?|sftp"
)
ADDRESSES = (
    RedactionRule(
        "connection_string", "databases and brokers",
        rf"(?<![A-Za-z0-9+])(?:jdbc:)?(?:{_SCHEMES})(?:\+[a-z0-9]{{1,20}})?(?::[a-z]{{1,10}})?:(?://|@)(?:[^\s,\"'<>)}}\]`\\]|[)}}\]](?=[^\s,\"'<>]{{0,200}}@)){{1,4000}}+",
        needs=("://", "jdbc:", ":@"), flags=_I,
    ),
    RedactionRule(
        "connection_string", "ADO.NET, ODBC and Azure",
        r"(?<![A-Za-z])(?:Server|Data Source|Host|Endpoint|AccountName|DefaultEndpointsProtocol|Driver|HostName|Addr(?:ess)?|dbname|user)=[^\n\"']{1,300}?"
        r"(?:Password|Pwd|SharedAccessKey|AccountKey)=[^\s;\"']{1,400}+;?(?:[A-Za-z ]{1,40}=[^\s;\"']{1,200}+;?){0,20}",
        needs=("password=", "pwd=", "sharedaccesskey=", "accountkey="), flags=_I,
    ),
    RedactionRule(
        "connection_string", "addresses with a password",
        r"(?<![A-Za-z0-9+])[a-z][a-z0-9+.-]{1,20}://[^\s/@:\"'<>]{0,200}+:(?P<password>[^\s/@\"'<>]{1,400}+)@[^\s,\"'<>`\\)\]}]{1,2000}+",
        needs=("://",), flags=_I, keeps=lambda match: _PLACEHOLDER.fullmatch(match["password"]) is not None,
    ),
    RedactionRule("connection_string", "addresses with a token", r"(?<![A-Za-z0-9+])(?:https?|git|ssh)://[A-Za-z0-9_-]{20,400}+@[^\s,\"'<>`\\)\]}]{1,2000}+",
         needs=("://",), flags=_I),
    RedactionRule(
        "api_key", "webhooks",
        r"(?<![A-Za-z0-9])(?:https?://)?(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{16,}"
        r"|(?:ptb\.|canary\.)?discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{10,24}/[A-Za-z0-9_-]{20,}"
        r"|[a-z0-9-]{1,60}\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{40,}|outlook\.office(?:365)?\.com/webhook/[A-Za-z0-9@/-]{40,}"
        r"|hooks\.zapier\.com/hooks/catch/\d{3,12}/[A-Za-z0-9]{4,}|maker\.ifttt\.com/(?:use|trigger/[\w-]{1,60}(?:/json)?/with/key)/[A-Za-z0-9_-]{16,}"
        r"|chat\.googleapis\.com/v1/spaces/[\w-]{4,40}/messages\?[^\s\"'<>]{10,}|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/[A-Za-z0-9-]{20,}"
        r"|oapi\.dingtalk\.com/robot/send\?access_token=[a-f0-9]{20,}|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=[A-Za-z0-9-]{20,}"
        r"|hook\.(?:eu\d|us\d|integromat)\.?(?:make\.com|com)?/[A-Za-z0-9]{20,}|api\.telegram\.org/bot[0-9]{6,16}:[A-Za-z0-9_-]{20,})[^\s\"'<>)\]},]*+",
        needs=("hooks.slack", "webhooks/", "webhook", "hooks.zapier", "ifttt.com", "chat.googleapis", "/hook/", "dingtalk", "weixin", "hook.", "telegram.org/bot"), flags=_I,
    ),
    RedactionRule("api_key", "Sentry DSN", r"https?://[a-f0-9]{32}(?::[a-f0-9]{32})?@[A-Za-z0-9.-]{4,100}/\d{1,20}", needs=("://",), flags=_I),
    RedactionRule("api_key", "signed addresses",
         r"(?P<key>[?&;](?:sig|signature|x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature|key|apikey|appkey|app_id_key|hmac|auth|code|hash|token|api_?token|sv_sig|st|hdnts|policy|AWSAccessKeyId|client_?id_?secret|k)=)"
         r"(?P<value>[A-Za-z0-9%_.~+/=-]{12,4000}+)", needs=tuple(f"{mark}{name}" for mark in "?&;" for name in ("sig", "x-", "key", "api", "app", "hmac", "auth", "code", "hash", "token", "sv_", "st=", "hdnts", "policy", "awsa", "client", "k=")), flags=_I, keeps=_keeps_plain),
    RedactionRule("api_key", "SAS", r"(?P<key>SharedAccessSignature )(?P<value>s[re]=[^\s\"']{20,2000}+)", needs=("sharedaccesssignature",), flags=_I),
)  # fmt: skip

JSON_TOKENS = (
    RedactionRule("api_key", "JSON web tokens", r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+){0,3}", needs=("eyj",)),
    RedactionRule("api_key", "JSON web tokens in base64", r"(?<![A-Za-z0-9+/])ZXlKaGJHY2lPaU[A-Za-z0-9+/_-]{40,}+={0,2}", needs=("zxlkagjhy2lpau",)),
)  # fmt: skip
HEADERS = (
    RedactionRule(
        "bearer_token", "bearer tokens",
        r"(?<![A-Za-z0-9])(?P<key>bearer(?:\s{1,8}|\s{0,8}[:=]\s{0,8}|%20|\+))(?P<value>[A-Za-z0-9._~+/=-]{8,4000}+)",
        needs=("bearer",), flags=_I, keeps=_keeps_bearer,
    ),
    RedactionRule(
        "bearer_token", "Authorization headers",
        r"(?<![A-Za-z0-9])(?P<key>authorization\\{0,4}[\"']?[\s,]{0,8}[:=,]\s{0,8}\\{0,4}[\"']?(?:basic|token|apikey|api-key|negotiate|ntlm|splunk|key|bot|hmac|sso-key|genie ?key|oauth|klaviyo-api-key)\s{1,8}(?:[a-z_-]{1,20}=)?)"
        r"(?P<value>[A-Za-z0-9._~+/=:-]{4,4000}+)",
        needs=("authorization",), flags=_I, keeps=_keeps_bearer,
    ),
    RedactionRule("bearer_token", "Basic", r"(?<![A-Za-z0-9])(?P<key>Basic )(?P<value>(?=[A-Za-z0-9+/]{0,80}[0-9A-Z=])[A-Za-z0-9+/]{8,4000}+={0,2})(?![A-Za-z0-9_.-])",
         needs=("basic ",), keeps=_keeps_basic),
    RedactionRule("api_key", "Digest and AWS signatures", r"(?P<key>(?:response|cnonce|Signature|Credential)=\"?)(?P<value>[A-Za-z0-9+/=]{16,200}(?:/[\w/-]{1,80})?+)(?=[\"',\s\\]|\Z)",
         needs=("response=", "cnonce=", "signature=", "credential="), flags=_I, keeps=_keeps_plain),
    RedactionRule(
        "password", "cookies",
        r"(?P<key>(?<![A-Za-z])cookie\\{0,4}[\"']?\s{0,8}[:=：,]\s{0,8}\\{0,4}[\"']?)(?P<value>[^\s=;,\"'\[\\]{1,200}+=[^\n\"'\\\[]{0,8000}+)",
        needs=("cookie",), flags=_I, keeps=_keeps_harmless(),
    ),
    RedactionRule("password", "session cookies", r"(?P<key>(?<![A-Za-z0-9])(?:connect\.sid|PHPSESSID|JSESSIONID|ASP\.NET_SessionId|laravel_session|sessionid|_session_id|csrftoken|XSRF-TOKEN|__Secure-[\w-]{1,40}|__Host-[\w-]{1,40}|wordpress_logged_in_\w{1,40}|remember_token)=)(?P<value>[^\s;,\"'<>]{8,4000}+)",
         needs=("sid=", "sessid=", "session", "csrftoken=", "xsrf-token=", "__secure-", "__host-", "wordpress_", "remember_token="), keeps=_keeps_harmless("tight"), flags=_I),
)  # fmt: skip


def luhn(digits: str) -> bool:
    """Whether the check digit of a card number is right."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def iban(text: str) -> bool:
    """Whether an IBAN without blanks has the length of its country and the right check digits (mod 97)."""
    text = text.upper()
    if len(text) != IBAN_LENGTHS.get(text[:2], 0):
        return False
    return int("".join(str(int(character, 36)) for character in text[4:] + text[:4])) % 97 == 1


# ISO 13616 register: characters of an IBAN by country.
IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU XK", 21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL", 24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA", 30: "JO KW MN MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip


def _keeps_address(match: re.Match[str]) -> bool:
    """Keep times, ratios and scopes of C++, which look like IPv6 addresses."""
    text = match["address"]
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return True
    groups = [group for group in text.split(":") if group]
    if len(groups) < 3 and not (groups and len(groups[0]) >= 3) and text != "::1":
        return True
    return not any(character.isdigit() for character in text)


def _keeps_card(match: re.Match[str]) -> bool:
    """Keep a number without the right check digit; the pattern has the length of each brand."""
    digits = "".join(character for character in match[0] if character.isdigit())
    separators = {character for character in match[0] if not character.isdigit()}
    return len(separators) > 1 or len(set(digits)) < 2 or not luhn(digits)


def _after_iban(match: re.Match[str]) -> str:
    """Return what follows the IBAN: the match may have taken the next word along."""
    length = IBAN_LENGTHS.get(match[0][:2].upper(), 0)
    return re.sub(rf"\A(?:[ -]*[^ -]){{0,{length}}}", "", match[0])


def _keeps_iban(match: re.Match[str]) -> bool:
    compact = match[0].replace(" ", "").replace("-", "")
    length = IBAN_LENGTHS.get(compact[:2].upper(), 0)
    return not length or not iban(compact[:length]) or _after_iban(match)[:1].isalnum()


def _keeps_ssn(match: re.Match[str]) -> bool:
    """Keep numbers that cannot be US social security numbers: areas 000, 666 and 900 to 999, group 00 and serial 0000 are never given out."""
    area = match["area"]
    return area in {"000", "666"} or area[0] == "9" or match["group"] == "00" or match["serial"] == "0000"


IDENTIFIERS: tuple[RedactionRule, ...] = (
    RedactionRule(
        "email", "",
        r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,1024}+@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])",
        needs=("@",),
    ),
    RedactionRule(
        "card", "",
        r"(?<![A-Za-z0-9_.,-])(?<!\d )(?:(?:4\d{3}|5[1-5]\d{2}|2(?:2[2-9]|[3-6]\d|7[01])\d|6(?:011|4[4-9]\d|5\d{2}|2\d{2})|35(?:2[89]|[3-8]\d)|8[16]\d{2}|5[06-8]\d{2}|6[37]\d{2})[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5}|3(?:0[0-5]|[689]\d)\d[ -]?\d{6}[ -]?\d{4}|4\d{12}|62\d{14,17})(?![A-Za-z0-9_]|[.,-]\d| \d)",
        needs=(), shapes=("0000",), keeps=_keeps_card,
    ),
    RedactionRule("iban", "", r"(?<![A-Za-z0-9_])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?(?![A-Za-z0-9_])", needs=(), shapes=("AA00",), keeps=_keeps_iban, tail=_after_iban),
    RedactionRule("ssn", "", r"(?P<key>)(?<![A-Za-z0-9_.+-])(?<!\d )(?P<area>\d{3})-(?P<group>\d{2})-(?P<serial>\d{4})(?![A-Za-z0-9_]|[.-]\d)", needs=(), shapes=("000-00-0000",), keeps=_keeps_ssn),
    RedactionRule("ssn", "", r"(?P<key>\b(?:ssn|social security(?: number| no\.?)?|social_security_number)\\{0,3}[\"']?\s{0,4}(?:[:=#]|is|was)?\s{0,4}\\{0,3}[\"']?)(?P<area>\d{3})[ -]?(?P<group>\d{2})[ -]?(?P<serial>\d{4})(?![A-Za-z0-9_])",
         needs=("ssn", "social"), flags=re.IGNORECASE, keeps=_keeps_ssn),
    RedactionRule(
        "ip", "version 6",
        r"(?<![A-Za-z0-9_.:])(?P<address>(?=[0-9A-Fa-f:.]{2,45})(?:[0-9A-Fa-f]{0,4}:){2,8}[0-9A-Fa-f]{0,4}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3}|(?:\.\d{1,3}){3})?)"
        r"(?:%[A-Za-z0-9]{1,16})?(?![A-Za-z0-9_:])",
        needs=(":",), keeps=_keeps_address, word=r"[0-9A-Fa-f]{3}::|:[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]",
    ),
    RedactionRule(
        "ip", "version 4",
        r"(?<![A-Za-z0-9_.])(?!\d{1,3}\.0\.0\.0(?!\d))(?:(?:25[0-5]|2[0-4]\d|[01]?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|[01]?\d?\d)(?![A-Za-z0-9_]|\.\d)",
        needs=(".",), word=r"\d\.\d{1,3}\.\d{1,3}\.\d",
    ),
    RedactionRule(
        "phone", "",
        r"(?<![A-Za-z0-9_.+-])(?:\+\d{7,15}(?![A-Za-z0-9_]|[.-]\d)"
        r"|\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,5}(?:[ .-]?\d{2,5}){1,4}(?![A-Za-z0-9_]|[.-]\d)"
        r"|\(\d{2,5}\) ?\d{1,4}[ .-]\d{3,4}(?![A-Za-z0-9_]|[.-]\d)|0\d{1,4}[-‐–ー－]\d{1,4}[-‐–ー－]\d{3,4}(?![A-Za-z0-9_]|[.-]\d)"
        r"|\d{3}[.-]\d{3}[.-]\d{4}(?![A-Za-z0-9_]|[.-]\d)|0[5789]0\d{8}(?![A-Za-z0-9_]|[.-]\d))",
        needs=(), shapes=("+0", "(00", "0-0", "0‐0", "0–0", "0ー0", "0－0", "000.000.0000", "00000000000"), keeps=lambda match: not 9 <= sum(character.isdigit() for character in match[0]) <= 15,
    ),
    RedactionRule(
        "filepath", "POSIX",
        r"(?<![A-Za-z0-9_.])(?<![A-Za-z]:)(?:file://)?(?:/mnt/[a-z])?/(?:home|Users|export/home|var/home)/[^\s,;/\"'<>|:`)}\]]{1,200}+"
        r"(?:/[^\s,;\]\"'<>|`)}]{0,1000}+)?",
        needs=("home/", "users/"), flags=re.IGNORECASE,
    ),
    RedactionRule(
        "filepath", "Windows",
        r"(?<![A-Za-z0-9_.])[A-Za-z]:(?:\\{1,4}|/)(?:Users|Documents and Settings)(?:\\{1,4}|/)"
        r"(?:[^\\/\s,;:\"'<>|]{1,40}(?: [^\\/\s,;:\"'<>|]{1,40}){1,3}(?=[\\/]))?[^\s,;\]\"'<>|]{1,1000}+",
        needs=("users", "settings"), flags=re.IGNORECASE,
    ),
)  # fmt: skip


_NAME = rf"(?:{PASSWORDS}|pass|{TOKENS}){SUFFIX}"
# The place of a command, its options, and one argument; a line may go on after a backslash.
_PATH = r"(?<![\w.-])"  # a folder may precede it
_GAP = r"[ \t]{1,4}(?:\\\r?\n[ \t]{0,8})?"
_OPTIONS = rf"(?:{_GAP}(?:\"[^\"\n]{{0,400}}+\"|'[^'\n]{{0,400}}+'|[^\s|;&\"'][^\s|;&]{{0,200}}+)){{0,14}}?{_GAP}"
ARGUMENT = (
    r"(?P<value>\"(?:[^\"\\\n]|\\.){1,400}+\"?|'[^'\n]{1,400}+'?|[^\s\"'|;&<>()\[\]{},`=-][^\s\"'|;&<>()`,]{0,400}+)"
)


def _keeps_argument(match: re.Match[str]) -> bool:
    """Keep the argument of an option that takes a password where it is a path or a variable."""
    value = match["value"].strip("\"'\\")
    option = match["key"].rstrip(" \t=").rpartition(" ")[2].strip("-").replace("-", "_")
    return (
        is_count_name(option)
        or (value.isdecimal() and "token" in option.lower())
        or _PLACEHOLDER.fullmatch(value) is not None
        or value.startswith(("$", "@", "/", "./", "<", "env:", "file:"))
        or is_harmless("password", value, "quoted")
    )


def _keeps_user(match: re.Match[str]) -> bool:
    """Keep the argument of `curl -u` and similar options where it is a user without a password."""
    value = match["value"].strip("\"'\\")
    password = value.partition(match["colon"] if "colon" in match.re.groupindex else ":")[2]
    return not password or _PLACEHOLDER.fullmatch(password) is not None or password.startswith(("$", "//"))


_OPTIONS_OF_FIND = frozenset({"rint", "rint0", "rintf", "rune", "erm", "ath"})  # find / -name mysql -print


def _keeps_attached(match: re.Match[str]) -> bool:
    """Decide on a password without a blank after its option: mysql -psecret."""
    value = match["value"].strip("\"'")
    is_short = len(value) < 3 or value in _OPTIONS_OF_FIND
    return is_short or value.startswith("$") or _PLACEHOLDER.fullmatch(value) is not None


def _keeps_named(match: re.Match[str]) -> bool:
    return not is_secret_name(match["name"]) or is_harmless(match["key"], match["value"], "quoted")


_NUMBERED = re.compile(
    r"\d+(?:[.,]\d+)?(?:-?(?:bit|byte|char|digit|day|hour|min|sec|hr|kb|mb|gb|k|m|s|ms|th|st|nd|rd|x|px|%)[a-z]{0,8})?|\d+-[a-z]+(?:-[a-z]+)*",
    _I,
)
_CODE = re.compile(r"(?:\b(?:pin|otp|code|passcode)\b|暗証番号|確認コード|認証コード|验证码|驗證碼)", _I)


def keeps_sentence(match: re.Match[str]) -> bool:
    """Keep a word of a sentence that does not look like a password, because any word may follow."""
    value = match["value"]
    core = value.strip("\"'`“”「」").rstrip(_STOPS)
    if not core or "[REDACTED" in core:
        return True
    if core.isdigit() and _CODE.search(match["key"] + match.string[match.end() : match.end() + 30]):
        return not 4 <= len(core) <= 8
    return is_word(match["key"], core, quoted=value[0] in "\"'`“「")


_STOPS = ".,;:!?)。、"


def _stops_behind(match: re.Match[str]) -> str:
    return match["value"][len(match["value"].rstrip(_STOPS)) :]


_ALGORITHM = re.compile(
    r"(?:sha|md|hs|rs|es|ps|aes|utf|base|rc|rfc|ecdsa|rsa|ed|python|node|oauth|http|x|v|argon|pbkdf|pkcs|crc|ipv)-?\d.*",
    _I,
)


_SETTING_BEFORE = re.compile(r"(?:\A|\n)[ \t]*(?:[\w/-]+[ \t]+){0,3}\Z")
_SETTING_AFTER = re.compile(r"[ \t]*(?:R[OW])?[ \t\r]*(?:\n|\Z)")


def _keeps_behind(match: re.Match[str]) -> bool:
    """Keep a value directly after its name unless it looks generated or mixes letters, digits and marks."""
    core = match["value"].strip("\"'`").rstrip(".,;:!?)")
    text, start = match.string, match.start()
    if _SETTING_BEFORE.search(text, max(0, start - 80), start) and _SETTING_AFTER.match(text, match.end()):
        return keeps_sentence(match)
    digits, letters = any("0" <= c <= "9" for c in core), any(c.isalpha() for c in core)
    marked = any(c in "!@#$%^&*+?~" for c in core)
    return (
        not (digits and letters and (marked or looks_random(core, 8)))
        or _ALGORITHM.fullmatch(core) is not None
        or "[REDACTED" in core
        or _NUMBERED.fullmatch(core) is not None
        or is_harmless(match["key"], core, "quoted")
    )


def is_word(name: str, core: str, *, quoted: bool) -> bool:
    """Return whether a value in a sentence is an ordinary word, and not a secret."""
    if len(core) < 6 or is_harmless(name, core, "quoted") or _NUMBERED.fullmatch(core):
        return True
    path = core.startswith(("/", "./", "~")) or core.endswith("=")
    if (path and not looks_random(core, 20)) or core.startswith(("http", "$", "--")) or "(" in core:
        return True
    digits, letters = any("0" <= c <= "9" for c in core), any(c.isalpha() for c in core)
    marked = any(c in "!@#$%^&*+=?~" for c in core)
    if digits and letters:
        return (
            re.fullmatch(r"[A-Za-z]+[-_.]?v?\d{1,2}(?:\.\d+)*|v\d.*", core) is not None and not quoted and len(core) < 8
        )
    return not (
        (marked and (letters or digits)) or (quoted and core.isalpha() and not core.istitle() and looks_random(core, 6))
    )


_keeps_password = _keeps_harmless("quoted", "password")


def _keeps_other_option(match: re.Match[str]) -> bool:
    """Options of one letter mean a port or a file in many commands, so that digits and paths stay."""
    value = match["value"].strip("\"'")
    is_port = re.fullmatch(r"[\d:.]{1,24}(?:/\w+)?", value) is not None
    takes_password = re.search(r"-(?:w|pw|N|pass\w*|\w*pass) {1,4}(?:pass:)?\Z", match["key"])
    return (is_port and not takes_password) or _keeps_argument(match)


def _keeps_setting(match: re.Match[str]) -> bool:
    named = re.search(rf"(?:{_NAME}|authtoken)[ \t]+\Z", match["key"], _I)
    return (named is None and not match["key"].startswith("vault login")) or _keeps_password(match)


_MYSQL = r"(?:mysql(?:dump|admin|import|show|check|sh)?|mariadb(?:-dump|-admin)?|mycli)"
OPTIONS = (
    RedactionRule("password", "options of commands",
         rf"(?<![\w-])(?P<key>(?:--(?:[a-z]{{1,20}}-){{0,3}}(?:{_NAME}|auth|pin|pw|pass)|-(?:pass(?:word|wd|phrase)?|pwd?|token|secret|api[-_]?key|(?:dest|src)?(?:store|key)pass))(?:{_GAP}|=)){ARGUMENT}",
         needs=("--", "-pass", "-pw", "-token", "-secret", "-api", "-dest", "-src", "-store", "-key"), flags=_I, keeps=_keeps_argument),
    RedactionRule("password", "user and password of curl and wget",
         rf"(?P<key>{_PATH}(?:curl|wget|http|https|xh|rclone|siege|svn|aria2c|lftp|cadaver){_OPTIONS}(?:-u|--user|--proxy-user|-U|-a|-A)(?:[ \t]{{1,4}}|=|(?=\w))){ARGUMENT}",
         also=("-",), begins=True, needs=("curl", "wget", "http", "https", "rclone", "cadaver", "xh", "lftp", "siege", "aria2c", "svn"), keeps=_keeps_user),
    RedactionRule("password", "MySQL and MariaDB", rf"(?P<key>{_PATH}{_MYSQL}{_OPTIONS}-p)(?P<value>\"[^\"\n]{{1,200}}+\"|'[^'\n]{{1,200}}+'|[^\s\"'|;&<>()=-][^\s\"'|;&<>()]{{2,200}}+)",
         also=("-",), begins=True, needs=("mysql", "mariadb", "mycli"), keeps=_keeps_attached),
    RedactionRule("password", "sshpass and archives", rf"(?P<key>{_PATH}(?:sshpass|7z[arz]?|unrar|rar|zip|unzip){_OPTIONS}-(?:p|hp|P)[ \t]{{0,4}}){ARGUMENT}",
         also=("-",), begins=True, needs=("sshpass", "7z", "7za", "7zr", "7zz", "unrar", "rar", "zip", "unzip"), keeps=_keeps_attached),
    RedactionRule("password", "-p, -w, -a and the like of other commands",
         rf"(?P<key>{_PATH}(?:docker|podman|buildah|skopeo|helm|az|oc|mongo(?:sh|dump|restore|export|import)?|sqlcmd|bcp|isql|ldap(?:search|add|modify|delete|whoami|passwd)|mosquitto_(?:pub|sub)|redis-cli|plink|pscp|psftp|winscp|smbclient|xfreerdp|openssl|gpg|keytool|jarsigner|ipmitool|snmpwalk|snmpget|rabbitmqadmin|impala-shell|beeline|vertica|vsql|cqlsh|hydra|evil-winrm|crackmapexec|netexec|ansible-vault|ssh-keygen|aws|vault|nats|databricks|influx|db2|fly|mc|restic|borg|duplicity){_OPTIONS}"
         rf"(?:-p|-w|-a|-P|-pw|-passin|-passout|-storepass|-keypass|-srcstorepass|-deststorepass|-passphrase|-N|-pass|-c|--pass)[ \t]{{1,4}}(?:pass:)?){ARGUMENT}",
         also=("-",), begins=True, needs=("docker", "podman", "buildah", "skopeo", "helm", "az", "oc", "mongo", "sqlcmd", "bcp", "isql", "ldap", "mosquitto_", "redis-cli", "plink", "pscp", "psftp", "winscp", "smbclient", "xfreerdp", "openssl", "gpg", "keytool", "jarsigner", "ipmitool", "snmpwalk", "snmpget", "rabbitmqadmin", "impala-shell", "beeline", "vertica", "vsql", "cqlsh", "hydra", "evil-winrm", "crackmapexec", "netexec", "ansible-vault", "ssh-keygen", "aws", "vault", "nats", "databricks", "influx", "db2", "fly", "mc", "restic", "borg", "duplicity"),
         keeps=_keeps_other_option),
    RedactionRule("password", "user%password", rf"(?P<key>{_PATH}(?:smbclient|rpcclient|net|smbget|winexe|mount){_OPTIONS}-U[ \t]{{0,4}})(?P<value>\"?[\w.\\-]{{1,60}}(?P<colon>%)[^\s\"']{{1,200}}+\"?)",
         also=("-u",), begins=True, needs=("smbclient", "rpcclient", "net", "smbget", "winexe", "mount"), keeps=_keeps_user),
    RedactionRule("password", "values of stores and codes", rf"(?P<key>(?:{_NAME}|SecureString)(?:[^\n|;&]|\\\n){{0,200}}?[ \t]--(?:body|value)(?:{_GAP}|=)|WIFI:[^\n]{{0,100}}?;P:){ARGUMENT}",
         needs=("--body", "--value", "wifi:"), flags=_I, keeps=_keeps_argument),
    RedactionRule("password", "net use and runas", rf"(?P<key>(?<![\w.-])net use [^\s]{{1,20}} [^\s]{{3,120}} ){ARGUMENT}(?= /user)", needs=("net use",), keeps=_keeps_argument, flags=_I),
    RedactionRule("password", "chpasswd and htpasswd", r"(?P<key>(?:echo|printf)[ \t]{1,4}(?:-\w )?[\"']?[\w.-]{1,40}:)(?P<value>[^\s\"'|]{3,200}+)(?=[\"']?[ \t]{0,4}\|[ \t]{0,4}(?:sudo )?(?:chpasswd|docker|passwd))",
         also=("|",), needs=("chpasswd", "passwd", "docker"), keeps=_keeps_argument),
    RedactionRule("password", "passwords through a pipe", r"(?P<key>(?:echo|printf)[ \t]{1,4}(?:-\w{1,2} )?)(?P<value>\"[^\"\n$]{3,200}+\"|'[^'\n]{3,200}+'|[^\s\"'|$;&-][^\s\"'|;&]{2,200}+)(?=[ \t]{0,4}\|[^\n|]{0,120}(?:sudo (?:[^\n|]{0,20} )?-S|--password-stdin|passwd --stdin|--passphrase-fd|cryptsetup))",
         also=("|",), needs=("sudo", "-stdin", "--stdin", "passphrase-fd", "cryptsetup"), keeps=_keeps_argument),
    RedactionRule("password", "htpasswd -b and useradd", rf"(?P<key>{_PATH}htpasswd[ \t]{{1,4}}-[a-zA-Z]{{0,6}}b[a-zA-Z]{{0,6}}(?:[ \t]{{1,4}}[^\s-][^\s]{{0,100}}){{1,2}}?[ \t]{{1,4}}[\w.@-]{{1,60}}[ \t]{{1,4}}){ARGUMENT}(?=[ \t]{{0,4}}(?:\n|\Z|[;&|]))",
         also=("-",), begins=True, needs=("htpasswd",), keeps=_keeps_argument),
    RedactionRule("password", "rabbitmqctl and user management", rf"(?P<key>(?<![\w.-])(?:rabbitmqctl[ \t]{{1,4}}(?:add_user|change_password)|wpa_passphrase|nmcli[^\n]{{1,100}}password)[ \t]{{1,4}}(?:[\w.@-]{{1,60}}[ \t]{{1,4}})?){ARGUMENT}(?=[ \t]{{0,4}}(?:\n|\Z|[;&|]))",
         needs=("rabbitmqctl", "wpa_passphrase", "nmcli"), keeps=_keeps_argument),
    RedactionRule("password", "user/password of Oracle", rf"(?P<key>{_PATH}(?:sqlplus|expdp|impdp|sqlldr|rman)(?:{_GAP}(?:-\w{{1,10}}|target)){{0,4}}{_GAP}[\"']?\w{{1,40}}/)(?P<value>[^\s/@\"']{{2,100}}+)",
         begins=True, needs=("sqlplus", "expdp", "impdp", "sqlldr", "rman"), keeps=_keeps_argument),
    RedactionRule("password", "accounts of Windows", rf"(?P<key>(?<![\w.-])net user [\w.-]{{1,60}} ){ARGUMENT}", needs=("net user",), keeps=_keeps_argument, flags=_I),
    RedactionRule("password", "options of Windows", r"(?P<key>(?<=\s)/(?:p|pass|password|rp|pw):)(?P<value>\"[^\"\n]{1,200}+\"|[^\s\"']{3,200}+)", needs=("/p", "/rp"), keeps=_keeps_argument, flags=_I),
    RedactionRule("password", "secure strings of PowerShell", r"(?P<key>ConvertTo-SecureString\s{1,4}(?:-String\s{1,4})?)(?P<value>\"[^\"\n]{1,200}+\"|'[^'\n]{1,200}+')", needs=("convertto-securestring",), keeps=_keeps_argument, flags=_I),
    RedactionRule("password", "variables of csh and fish", rf"(?P<key>(?<![\w.-])(?:setenv|set -[gxU]{{1,3}}|set --\w{{1,10}})[ \t]{{1,4}}[\w]{{0,60}}?(?:{_NAME})[ \t]{{1,4}}){ARGUMENT}", needs=("setenv", "set -"), keeps=_keeps_argument, flags=_I),
    RedactionRule("password", "settings of tools", rf"(?P<key>(?<![\w.-])(?:aws configure set|npm config set|yarn config set|git config(?: --\w{{1,10}})?|setx?|fly secrets set|gh secret set|heroku config:set|pulumi config set --secret|kubectl config set-credentials|conda config --set)[ \t]{{1,4}}(?:[\w./:-]{{0,80}}(?:{_NAME}|authtoken))?[ \t]{{1,4}}|(?<![\w.-])vault login[ \t]{{1,4}}(?:token=)?){ARGUMENT}",
         needs=("configure set", "config set", "git config", "config --", "set ", "set\t", "setx", "config:set", "vault login"), flags=_I, keeps=_keeps_setting),
)  # fmt: skip


def _keeps_second(match: re.Match[str]) -> bool:
    """The second of two texts: a plain word after the name of a secret is more likely the name of another field."""
    core = match["value"].strip("\"'")
    if "phrase" in match["key"].lower() and core.count(" ") > 2:
        return _keeps_password(match)
    return (
        re.fullmatch(r"[A-Za-z]+(?:[ _-][A-Za-z]+)*[.:?!]?", core) is not None
        or core.startswith(("http", "/", "#", ".", "$", "{", "%", "*"))
        or is_harmless(match["key"], match["value"], "quoted")
        or len(core) < 3
        or (" " in core and not looks_random(core, 8))
    )


_VENDOR_WORDS = (
    "adafruit", "adobe", "algolia", "alibaba", "anthropic", "artifactory", "asana", "atlassian", "auth0", "azure",
    "beamer", "bitbucket", "bittrex", "braintree", "cisco", "clojars", "cloudflare", "codecov", "cohere", "coinbase",
    "confluence", "confluent", "contentful", "datadog", "deepgram", "deepseek", "discord", "dropbox", "droneci",
    "dynatrace", "elastic", "etsy", "facebook", "fastly", "finicity", "finnhub", "flickr", "freshbooks", "gemini",
    "github", "gitlab", "gitter", "gocardless", "grafana", "heroku", "hubspot", "intercom", "jfrog", "jira", "kraken",
    "kucoin", "launchdarkly", "linear", "linkedin", "looker", "mailchimp", "mailgun", "mapbox", "mattermost", "meraki",
    "messagebird", "mistral", "netlify", "newrelic", "new_relic", "new-relic", "notion", "nytimes", "okta", "openai",
    "opsgenie", "pagerduty", "pinecone", "plaid", "postmark", "privateai", "private_ai", "pusher", "rapidapi", "rollbar",
    "segment", "sendbird", "sendgrid", "sentry", "shodan", "slack", "snowflake", "snyk", "sonar", "splunk", "square",
    "stripe", "sumologic", "sumo_logic", "supabase", "telegram", "travis", "trello", "twilio", "twitch", "twitter",
    "typeform", "vercel", "wandb", "weatherapi", "yandex", "zendesk", "zoom",
)  # fmt: skip
_VENDOR = "|".join(_VENDOR_WORDS)
FILES = (
    RedactionRule("password", "XML elements", rf"(?P<key><(?:[A-Za-z_][\w:.-]{{0,40}}?)?(?:{_NAME}|(?<![A-Za-z])(?:pin|cvv2?|otp))(?: [^<>]{{0,200}})?>)(?P<value><!\[CDATA\[[^\]]{{1,4000}}+\]\]>|[^<>\n]{{1,4000}}+)(?=</)",
         needs=("</",), flags=_I, keeps=_keeps_harmless()),
    RedactionRule("password", "elements with a name and a value",
         rf"(?P<key>\b(?:name|key|id|field|property|variable)\\{{0,4}}[\"']?\s{{0,4}}[=:]\s{{0,4}}\\{{0,4}}[\"'](?P<name>[\w.$-]{{0,60}}?(?:{_NAME}|(?:(?<![A-Za-z])|(?<=_))(?:pin|cvv|otp|auth|authorization|cookie|x-api-key)))\\{{0,4}}[\"'](?:\s{{0,8}},\s{{0,8}}\\{{0,4}}[\"']?|\s{{1,8}}|/?>\s{{0,8}}<)(?:type=[\"']\w{{1,12}}[\"']\s{{0,4}})?(?:value|val|content|default|secret)\\{{0,4}}[\"']?(?:\s{{0,4}}[=:]\s{{0,4}}|>))(?P<value>\\{{0,4}}\"(?:[^\"\\\n]|\\(?!\"))*+\\{{0,4}}\"|\\{{0,4}}'[^'\n]*+'|[^<\s\"',;]{{1,400}}+)",
         needs=("value", "val", "content", "default", "secret"), also=("name", "key", "id\"", "id=", "id:", "id'", "id\\", "id ", "id\t", "id\n", "id\r", "id\v", "id\f", "field", "property", "variable"), flags=_I, keeps=_keeps_named),
    RedactionRule("password", "names and values in YAML", rf"(?P<key>(?:name|key):[ \t]{{1,4}}[\"']?[\w.-]{{0,60}}?(?:{_NAME}|(?<![A-Za-z])(?:pin|otp|auth))[\"']?[ \t]{{0,4}}\n[ \t]{{0,40}}value:[ \t]{{1,4}})(?P<value>\"[^\"\n]{{1,4000}}+\"|'[^'\n]{{1,4000}}+'|[^\s\"'#&*!|>{{-][^\n]{{0,4000}}+)",
         needs=("value:",), also=("name:", "key:"), flags=_I, keeps=_keeps_harmless()),
    RedactionRule("password", "two arguments, a name and a value",
         r"(?P<key>(?:[\"'][^\"'\n{<$]{0,60}?(?:passw(?:or)?d|passcode|passphrase|(?<![A-Za-z])pwd|secret|(?:api|access|private)[_-]?key|(?<![A-Za-z])(?:otp|cvv|cvc|pin)(?![A-Za-z])|token)[^\"'\n]{0,30}[\"'])\s{0,4}(?:,|=>)\s{0,4})(?P<value>\"[^\"\n]{1,400}+\"|'[^'\n]{1,400}+')",
         needs=("passw", "passcode", "passphrase", "pwd", "secret", "key", "otp", "cvv", "cvc", "pin", "token"), also=(",", "=>"), flags=_I, keeps=_keeps_second),
    RedactionRule("password", "card verification codes", r"(?P<key>(?<![A-Za-z])(?:cvv2?|cvc2?|csc)[ :#]{1,3}(?:is |code |number )?[: ]{0,2})(?P<value>\d{3,4})(?!\d)", needs=("cvv", "cvc", "csc"), flags=_I),
    RedactionRule("password", "multipart forms", rf"(?P<key>form-data; name=\\{{0,2}}\"(?P<name>[\w.-]{{0,60}}?{_NAME})\\{{0,2}}\"(?:\r?\n|\\r\\n|\\n){{2}})(?P<value>[^\r\n\\]{{1,4000}}+)",
         needs=("form-data",), flags=_I, keeps=_keeps_named),
    RedactionRule("password", "SQL", r"(?P<key>\b(?:IDENTIFIED (?:WITH \w{1,40} )?(?:BY|AS)\s{1,4}|(?:WITH |SET )?(?:ENCRYPTED )?PASSWORD(?:\s{0,4}=\s{0,4}PASSWORD\(\s{0,4}|\(\s{0,4}| FOR [^\s]{1,60} =\s{0,4}|\s{1,4})))(?P<value>'[^'\n]{1,400}+'|\"[^\"\n]{1,400}+\")",
         needs=("identified", "password"), flags=_I, keeps=_keeps_harmless()),
    RedactionRule("password", ".netrc", r"(?P<key>(?:machine|default|login)\s{1,8}[^\s]{0,100}(?:\s{1,8}(?:login|account)\s{1,8}[^\s]{1,100}){0,2}\s{1,8}password\s{1,8})(?P<value>[^\s]{1,400}+)",
         needs=("password",), keeps=_keeps_harmless("tight")),
    RedactionRule("password", ".pgpass", r"(?P<key>^[ \t]{0,4}(?:\*|[\w.-]{1,100}|\[[0-9a-fA-F:]{2,40}\]):(?:\*|\d{2,5}):(?:\*|[\w-]{1,60}):(?:\*|[\w-]{1,60}):)(?P<value>[^\s:]{1,200}+)(?=[ \t]*$)",
         needs=(":",), flags=re.MULTILINE, word=r":(?:\*|\d{2,5}):(?:\*|[\w-]{1,60}):(?:\*|[\w-]{1,60}):", keeps=_keeps_harmless("tight")),
    RedactionRule("password", "hashes of passwords", r"\$(?:(?:apr1|1|5|6|7|y|gy|sha1|md5|scrypt|pbkdf2(?:-sha\d{1,3})?)\$(?:[\w=,]{1,60}\$)?[./A-Za-z0-9+=,]{1,64}\$[./A-Za-z0-9+=]{16,200}+|2[abxy]?\$\d\d\$[./A-Za-z0-9]{40,60}+|argon2(?:id|i|d)\$[A-Za-z0-9./$=,+*-]{12,300}+)",
         needs=("$1$", "$5$", "$6$", "$7$", "$y$", "$gy$", "$apr1$", "$sha1$", "$md5$", "$scrypt$", "$pbkdf2", "$2$", "$2a$", "$2b$", "$2x$", "$2y$", "$argon2")),
    RedactionRule("password", "hashes of Django and Werkzeug", r"(?<![\w$])(?:pbkdf2_sha(?:1|256)|argon2|bcrypt_sha256|scrypt:\d{1,8}:\d{1,3}:\d{1,3}|pbkdf2:sha(?:1|256|512)(?::\d{1,8})?)\$[A-Za-z0-9./$=,+*-]{12,400}+",
         needs=("pbkdf2", "argon2$", "bcrypt_sha256", "scrypt:")),
    RedactionRule("password", "LDAP and PostgreSQL hashes", r"(?:\{(?:SSHA|SHA|SMD5|MD5|CRYPT)(?:\d{3})?\}[A-Za-z0-9+/=$.]{16,200}+|SCRAM-SHA-256\$\d{3,7}:[A-Za-z0-9+/=]{16,80}\$[A-Za-z0-9+/=:]{40,120}+)",
         needs=("{ssha", "{sha", "{smd5", "{md5", "{crypt", "scram-sha-256$")),
    RedactionRule("password", "kubeconfig and Docker", r"(?P<key>(?:client-key-data|_auth|\"auth\"|identitytoken|tls\.key)[\"']?\s{0,4}[:=]\s{0,4}[\"']?)(?P<value>[A-Za-z0-9+/]{12,40000}+={0,2})",
         needs=("client-key-data", "_auth", '"auth"', "identitytoken", "tls.key"), keeps=_keeps_harmless()),
    RedactionRule("password", "WireGuard", r"(?P<key>(?:PrivateKey|PresharedKey)\s{0,4}=\s{0,4})(?P<value>[A-Za-z0-9+/]{43}=)", needs=("privatekey", "presharedkey"), keeps=_keeps_harmless()),
    RedactionRule("password", "data of a Kubernetes secret", r"(?P<key>kind: ?Secret\b[^\0]{0,400}?\n(?:data|stringData):[ \t]{0,4}\n(?:[ \t]{1,8}[\w.-]{1,80}:[ \t]{0,4}\[REDACTED:password\]\n){0,40}[ \t]{1,8}[\w.-]{1,80}:[ \t]{0,4})(?P<value>[^\s\[][^\s]{3,4000}+)",
         needs=("kind: secret", "kind:secret"), keeps=_keeps_harmless()),
    RedactionRule("password", "card numbers by name", r"(?P<key>(?:card(?:[ _-]?(?:num(?:ber)?|no\.?|#))?|(?:cc|pan)[ _-]?(?:num(?:ber)?|no\.?))(?:\\{0,4}[\"'])?\s{0,4}(?:[:=#：]|is|was)\s{0,4}(?:\\{0,4}[\"'])?)(?P<value>\d(?:[ -]?\d){12,18})(?!\d)",
         begins=True, needs=("card", "cc n", "cc_n", "cc-n", "ccn", "pan n", "pan_n", "pan-n", "pann"), flags=_I),
)  # fmt: skip

_SENTENCE = (
    r"(?P<key>(?<![A-Za-z-])(?:(?:pass(?:word|code|phrase|wd)?|wachtwoord|pwd|credentials?|creds|secret(?: key)?|(?:api|access|private|license|licence|secret|auth(?:entication)?)[ -]?(?:key|token|code)|token|pin(?: (?:code|number))?|otp|(?:verification|security|recovery|backup|one[- ]time|login|2fa|mfa) (?:code|password|pin))s?"
    r"(?:(?: (?:for|of|to|on) [\w.@'-]{1,40}(?: [\w.@'-]{1,30}){0,4}?)?(?: (?:(?:has been|was|is|were) (?:re)?(?:set|changed) to|(?:re)?set to|changed to|is|was|=|will be|should be|are|equals))(?: now| still| currently| just| set to)?| (?:for|of|on) [^\s,;]{1,60}?(?: [\w.@'-]{1,30}){0,4}?(?: to|:))[: ]{1,3}|(?:log ?in|sign ?in|connect|authenticate) (?:with|as|using) [\w.@-]{1,60} ?/ ?|(?:use|try|with|using) (?:the |this |my |our )?(?:pass(?:word|code|phrase)|pwd|token|api[ -]?key|key|secret|pin|otp) ))"
)
_IS = ("ist", "lautet", "war", "wird", "est", "sera", "es", "será", "é", "è", "sarà", "är", "er", "jest", "je", "это", "adalah")  # fmt: skip
_CODES = ("確認コード", "認証コード", "apiト", "アクセスト", "apiキー", "アクセスキー", "トークン", "验证码", "驗證碼", "令牌", "密钥")  # fmt: skip
SENTENCES = (
    RedactionRule("password", "sentences",
         _SENTENCE +
         r"(?P<value>\"[^\"\n]{1,200}+\"|'[^'\n]{1,200}+'|`[^`\n]{1,200}+`|“[^”\n]{1,200}+”|[^\s,\"'`]{4,400}+)",
         begins=True, needs=("pass", "wachtwoord", "pwd", "cred", "secret", "api", "access", "private", "license", "licence", "auth", "token", "pin", "otp", "verification", "security", "recovery", "backup", "one-time", "one time", "login", "2fa", "mfa", "log in", "signin", "sign in", "connect", "use ", "try ", "with ", "using "), flags=_I,
         also=("pass", "wachtwoord", "pwd", "cred", "secret", "key", "token", "code", "pin", "otp", "log", "sign", "connect", "auth"),
         keeps=keeps_sentence, tail=_stops_behind),
    RedactionRule("password", "a user and a password",
         r"(?P<key>(?<![A-Za-z-])(?:credentials?|creds|log ?in|account)(?: are| is| with)?(?: (?:for|of|on|to) [^\s,;]{1,60})?[: ]{1,3}[\w.@-]{1,60}(?::(?!//)| ?/ ?))(?P<value>[^\s,\"'`]{6,200}+)",
         needs=("credential", "creds", "login", "log in", "account"), also=("/", ":"), flags=_I, keeps=keeps_sentence, tail=_stops_behind),
    RedactionRule("password", "a pair of user and password in code",
         r"(?P<key>(?:auth[\"']?\s{0,4}[:=]\s{0,4}[(\[]|(?:basic|digest|proxy|ntlm)auth\(|(?<=\.)(?:login|begin|authenticate)\(|_connect\([^(),]{1,80},)\s{0,4}(?:\[REDACTED:\w{1,20}\]|\"[^\"\n]{1,200}+\"|'[^'\n]{1,200}+')\s{0,4},\s{0,4})(?P<value>\"[^\"\n]{1,4000}+\"|'[^'\n]{1,4000}+')",
         needs=("auth", "login(", "begin(", "_connect("), also=("(", "["), flags=_I, keeps=_keeps_password),
    RedactionRule("password", "values typed into a field",
         r"(?P<key>(?:p?assw(?:or)?d|p?assphrase|passcode|pwd|secret|token|otp|api[_-]?key)[^\n\"']{0,20}[\"'][^\n]{0,40}?(?:\n[^\n\"']{0,40}?)?(?<!\w)(?:(?:send_keys|fill|type|setValue|set_value|input|sendKeys|press_sequentially)\(|send(?:line)?[( ](?:-- )?))(?P<value>\"[^\"\n]{1,200}+\"|'[^'\n]{1,200}+')",
         needs=("send", "fill(", "type(", "setvalue(", "set_value(", "input(", "press_sequentially("), flags=_I, keeps=_keeps_second),
    RedactionRule("password", "sentences that name the value first",
         r"(?P<key>(?<![A-Za-z-])(?:use|set|enter|type|with|put|try|provide|using|entering) )(?P<value>\"[^\"\s]{4,200}+\"|'[^'\s]{4,200}+'|`[^`\s]{4,200}+`|[^\s,\"'`]{6,200}+)"
         r"(?= (?:as|for|in|into) (?:the |my |your |our |its |his |her |a )?(?:\w{1,20} ){0,2}(?:pass(?:word|code|phrase)|pwd|pin|token|api[ -]?key|secret|otp)\b)",
         needs=("password", "passcode", "passphrase", "pwd", "pin", "token", "key", "secret", "otp"), also=("use ", "set ", "enter ", "type ", "with ", "put ", "try ", "provide ", "using ", "entering "), flags=_I, keeps=keeps_sentence, tail=_stops_behind),
    RedactionRule("password", "names with the value right behind",
         r"(?P<key>(?<![A-Za-z-])(?:password|passwd|passphrase|passcode|pwd|rootpw|bindpw|community|wpa-psk|(?:api|access|secret)[ -]?key|token|secret)[ \t]{1,4}(?:(?:--\w{1,12}|-?\d)[ \t]{1,4})?)(?P<value>\"[^\"\s]{8,200}+\"|'[^'\s]{8,200}+'|`[^`\s]{8,200}+`|[^\s,\"'`()<>{}\[\]=:/-][^\s,\"'`()<>{}\[\]=]{7,200}+)",
         begins=True, needs=("password", "passwd", "passphrase", "passcode", "pwd", "rootpw", "bindpw", "community", "wpa-psk", "api", "access", "secret", "token"), also=("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"), flags=_I, keeps=_keeps_behind, tail=_stops_behind),
    RedactionRule("password", "sentences in other languages",
         rf"(?P<key>(?:(?:{PASSWORDS}|{PASSWORDS_ELSEWHERE}|clave)[^\s,;:.]{{0,8}}(?: [^\s,;]{{1,60}}){{0,5}}? (?:{'|'.join(_IS)}) |"
         rf"(?:{PASSWORDS_ELSEWHERE}|確認コード|認証コード|(?:API|アクセス)(?:キー|トークン)|トークン|验证码|驗證碼|令牌|密钥)\s{{0,2}}(?:は、|は|が|を|是|为|為|:|—|–|-|는|은)?)\s{{0,2}}[「『\"“]?)"
         r"(?P<value>[!-~]{4,200}?)(?=[」』\"”]|です|でした|に|を|と|で|。|、|，|\s|[.]?\Z)",
         begins=True, needs=(*PASSWORD_NEEDLES, *OTHER_NEEDLES, *_CODES), also=(*(f" {word} " for word in _IS), *OTHER_NEEDLES, *_CODES), flags=_I, keeps=keeps_sentence, tail=_stops_behind),
    RedactionRule("password", "names without a separator", r"(?P<key>(?<![\w-])(?:(?:user(?:name)?|login|usr|account)[ :=]{1,3}[\w.@-]{1,60}[ ,;/]{1,3}(?:(?:and|with) )?)(?:pass(?:word)?|pwd|pw)[ :=]{1,3})(?P<value>\"[^\"\n]{1,200}+\"|[^\s,;\"']{3,200}+)",
         needs=("pass", "pwd", "pw"), also=("user", "login", "usr", "account"), flags=_I, keeps=keeps_sentence, tail=_stops_behind),
)  # fmt: skip


_FIELD_NAMES = re.compile(
    r"\b(?:name|id|type|placeholder|aria-label|autocomplete)\s{0,4}=[\s\\\"']{0,8}([\w .$-]+)", _I
)
_SETS = re.compile(r"set|create|passwd", _I)


def _keeps_field(match: re.Match[str]) -> bool:
    tag = match.string[match.start() : match.end() + 600].partition(">")[0]
    names = (name.strip().replace(" ", "_") for name in _FIELD_NAMES.findall(tag))
    return not any(map(is_secret_name, names)) or is_harmless(match["key"], match["value"], "quoted")


def _keeps_answer(match: re.Match[str]) -> bool:
    is_answer = match["key"].startswith("334") and "[REDACTED" not in match[0]
    return not is_answer and keeps_sentence(match)


def _keeps_function(match: re.Match[str]) -> bool:
    setter = re.search(r"set_?(\w+)\(", match["key"], _I)
    if setter and not is_secret_name(setter[1]):
        return True
    return (_keeps_password if _SETS.search(match["key"]) else keeps_sentence)(match)


LABELS = (
    RedactionRule("password", "fields of forms in HTML",
         rf"(?P<key><(?:input|textarea|param)\b(?=[^<>]{{0,600}}?\b(?:name|id|type|placeholder|aria-label|autocomplete)\s{{0,4}}=\s{{0,4}}\\{{0,4}}[\"']?[\w .$-]{{0,40}}?(?:{ANY_NAME}|otp))[^<>]{{0,600}}?(?:\bvalue\s{{0,4}}=\s{{0,4}}|(?<!/)>(?=[^<>\n]{{1,200}}</textarea)))(?P<value>\\{{0,4}}\"[^\"<>]{{1,400}}+\"|'[^'<>]{{1,400}}+'|[^\s<>\"'\\]{{1,400}}+)",
         needs=("<input", "<textarea", "<param"), also=("value", "</textarea"), flags=_I, keeps=_keeps_field),
    RedactionRule("password", "commands of protocols",
         r"(?P<key>(?<![\w-])(?:(?:AUTH|requirepass|masterauth|IDENTIFY)\s(?:[\w.@-]{1,60} )?|USER [^\s]{1,60}\s{1,4}(?:[+\d][^\n]{0,80}\n)?PASS |[A-Za-z]{0,4}\d{1,4} LOGIN \"?[^\s\"]{1,60}\"? |334 UGFzc3dvcmQ6\r?\n(?:C: )?))(?P<value>\"[^\"\n]{1,200}+\"|[^\s,\"'`]{4,400}+)",
         needs=("auth", "requirepass", "masterauth", "identify", "pass ", "login ", "334 "),
         keeps=_keeps_answer, tail=_stops_behind),
    RedactionRule("password", "functions that hash a password",
         r"(?P<key>(?<![\w.])(?:\w{1,20}(?:\.|::))?(?:crypt|(?:aes_)?encrypt|set_?\w{0,20}?(?:password|passwd|phrase|secret|token|key)|Password\.create|old_password|password_hash|(?:make|hash|check)_password|generate_password_hash|hash_?pw|check_?pw|md5|sha_?(?:1|2|256|512)|bcrypt)\(\s{0,8}[bu]?|openssl passwd (?:-\w{1,10} ){0,3})(?P<value>\"[^\"\n]{1,400}+\"|'[^'\n]{1,400}+')",
         needs=("crypt(", "password(", "_hash(", "pw(", "md5(", "sha", "passwd(", "phrase(", "secret(", "token(", "key(", "password.create", "openssl passwd"), also=("(", "openssl"), flags=_I, keeps=_keeps_function, tail=_stops_behind),
)  # fmt: skip


def _keeps_hash(match: re.Match[str]) -> bool:
    """Forty characters of base64 are an AWS secret key where capitals, small letters and digits are well mixed; hex is a hash."""
    value = match[0]
    letters = value.replace("/", "").replace("+", "")
    mixed = any(c.isupper() for c in value) and any(c.islower() for c in value) and any(c.isdigit() for c in value)
    return not (mixed and len(letters) >= 34 and looks_random(letters, 30) and len(set(value)) > 18)


VENDOR_NAMES = (
    RedactionRule("api_key", "keys near the name of a vendor", rf"(?P<key>(?<![A-Za-z0-9])(?:{_VENDOR})[\w.-]{{0,24}}[\"'\]]{{0,2}}[ \t]{{0,4}}(?:=>|:=|==?|:|\|\|:|>)[ \t]{{0,4}}[\"'`]?)(?P<value>[A-Za-z0-9_-]{{15,200}}+[A-Za-z0-9_+/=-]{{0,200}}+)(?![\w.(/])",
         begins=True, needs=_VENDOR_WORDS, flags=_I, keeps=lambda match: "[REDACTED" in match["value"] or not looks_random(match["value"], 14)),
)  # fmt: skip
BARE = (
    RedactionRule("api_key", "AWS secret keys", r"(?:(?<![A-Za-z0-9+/_.-])|(?<=\\[nrt]))[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=_-])", needs=(),
         keeps=_keeps_hash),
)  # fmt: skip
