"""Secrets that the text around them gives away: key files, addresses with a password, headers, options of commands.

The order is that of application: what stands inside of something longer comes after it.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from typing import TYPE_CHECKING

from grace_kp.trace.redaction._names import is_harmless, looks_random
from grace_kp.trace.redaction._rule import MARK, RedactionRule

if TYPE_CHECKING:
    from grace_kp.trace.redaction._rule import Replacement


_I = re.IGNORECASE


def after_key(kind: str, style: str = "quoted") -> Replacement:
    """Keep the group `key`, and replace the group `value` unless it is harmless."""

    def replacement(match: re.Match[str]) -> str | None:
        if is_harmless(match["key"], match["value"], style):
            return None
        return match["key"] + MARK.format(kind) + (match["rest"] if "rest" in match.re.groupindex else "")

    return replacement


_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]{0,18}\.?")


def _bearer(match: re.Match[str]) -> str | None:
    value = match["value"]
    if _PLAIN_WORD.fullmatch(value) or is_harmless(match["key"], value, "spaced"):
        return None
    return match["key"] + MARK.format("bearer_token")


def _userinfo(match: re.Match[str]) -> str | None:
    return None if PLACEHOLDER.fullmatch(match["password"]) else MARK.format("connection_string")


PLACEHOLDER = re.compile(
    r"\$\{?\w{1,60}\}?|\{[\w.]{1,60}\}|<[^<>]{1,60}>|\*{1,40}|x{3,40}|\[?REDACTED\]?.{0,40}|%\w+%|\{\{.{1,60}\}\}", _I
)


def _basic(match: re.Match[str]) -> str | None:
    """Credentials in base64: they hold a colon between two printable texts."""
    value = match["value"].rstrip("=")
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    plain = b":" in decoded and all(byte > 31 or byte > 127 for byte in decoded)
    return match["key"] + MARK.format("bearer_token") if plain else None


def if_random(match: re.Match[str]) -> str | None:
    value = match["value"]
    return (
        match["key"] + MARK.format("api_key") if looks_random(value, 12) or (len(value) > 40 and "%" in value) else None
    )


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
        needs=("://",), flags=_I, replacement=_userinfo,
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
         r"(?P<value>[A-Za-z0-9%_.~+/=-]{12,4000}+)", needs=tuple(f"{mark}{name}" for mark in "?&;" for name in ("sig", "x-", "key", "api", "app", "hmac", "auth", "code", "hash", "token", "sv_", "st=", "hdnts", "policy", "awsa", "client", "k=")), flags=_I, replacement=if_random),
    RedactionRule("api_key", "SAS", r"(?P<key>SharedAccessSignature )(?P<value>s[re]=[^\s\"']{20,2000}+)", needs=("sharedaccesssignature",), flags=_I,
         replacement=lambda match: match["key"] + MARK.format("api_key")),
)  # fmt: skip

JSON_TOKENS = (
    RedactionRule("api_key", "JSON web tokens", r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+){0,3}", needs=("eyj",)),
    RedactionRule("api_key", "JSON web tokens in base64", r"(?<![A-Za-z0-9+/])ZXlKaGJHY2lPaU[A-Za-z0-9+/_-]{40,}+={0,2}", needs=("zxlkagjhy2lpau",)),
)  # fmt: skip
HEADERS = (
    RedactionRule(
        "bearer_token", "bearer tokens",
        r"(?<![A-Za-z0-9])(?P<key>bearer(?:\s{1,8}|\s{0,8}[:=]\s{0,8}|%20|\+))(?P<value>[A-Za-z0-9._~+/=-]{8,4000}+)",
        needs=("bearer",), flags=_I, replacement=_bearer,
    ),
    RedactionRule(
        "bearer_token", "Authorization headers",
        r"(?<![A-Za-z0-9])(?P<key>authorization\\{0,4}[\"']?[\s,]{0,8}[:=,]\s{0,8}\\{0,4}[\"']?(?:basic|token|apikey|api-key|negotiate|ntlm|splunk|key|bot|hmac|sso-key|genie ?key|oauth|klaviyo-api-key)\s{1,8}(?:[a-z_-]{1,20}=)?)"
        r"(?P<value>[A-Za-z0-9._~+/=:-]{4,4000}+)",
        needs=("authorization",), flags=_I, replacement=_bearer,
    ),
    RedactionRule("bearer_token", "Basic", r"(?<![A-Za-z0-9])(?P<key>Basic )(?P<value>(?=[A-Za-z0-9+/]{0,80}[0-9A-Z=])[A-Za-z0-9+/]{8,4000}+={0,2})(?![A-Za-z0-9_.-])",
         needs=("basic ",), replacement=_basic),
    RedactionRule("password", "Digest and AWS signatures", r"(?P<key>(?:response|cnonce|Signature|Credential)=\"?)(?P<value>[A-Za-z0-9+/=]{16,200}(?:/[\w/-]{1,80})?+)(?=[\"',\s\\]|\Z)",
         needs=("response=", "cnonce=", "signature=", "credential="), flags=_I, replacement=if_random),
    RedactionRule(
        "password", "cookies",
        r"(?P<key>(?<![A-Za-z])cookie\\{0,4}[\"']?\s{0,8}[:=：,]\s{0,8}\\{0,4}[\"']?)(?P<value>[^\s=;,\"'\[\\]{1,200}+=[^\n\"'\\\[]{0,8000}+)",
        needs=("cookie",), flags=_I, replacement=after_key("password"),
    ),
    RedactionRule("password", "session cookies", r"(?P<key>(?<![A-Za-z0-9])(?:connect\.sid|PHPSESSID|JSESSIONID|ASP\.NET_SessionId|laravel_session|sessionid|_session_id|csrftoken|XSRF-TOKEN|__Secure-[\w-]{1,40}|__Host-[\w-]{1,40}|wordpress_logged_in_\w{1,40}|remember_token)=)(?P<value>[^\s;,\"'<>]{8,4000}+)",
         needs=("sid=", "sessid=", "session", "csrftoken=", "xsrf-token=", "__secure-", "__host-", "wordpress_", "remember_token="), replacement=after_key("password", "tight"), flags=_I),
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


def _phone(match: re.Match[str]) -> str | None:
    digits = sum(character.isdigit() for character in match[0])
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
    return MARK.format("ip") if any(character.isdigit() for character in text) else None


def _card(match: re.Match[str]) -> str | None:
    """A card number: the length of its brand, and the right check digit."""
    digits = "".join(character for character in match[0] if character.isdigit())
    separators = {character for character in match[0] if not character.isdigit()}
    if len(separators) > 1 or len(set(digits)) < 2 or not luhn(digits):
        return None
    return MARK.format("card")


def _iban(match: re.Match[str]) -> str | None:
    text = match[0]
    compact = text.replace(" ", "").replace("-", "")
    length = IBAN_LENGTHS.get(compact[:2].upper(), 0)
    if len(compact) < length or not length:
        return None
    # The match may have taken the next word along.
    if not iban(compact[:length]):
        return None
    place = left = 0
    while left < length:
        left += text[place] not in " -"
        place += 1
    rest = text[place:]
    return MARK.format("iban") + rest if not rest[:1].isalnum() else None


def _ssn(match: re.Match[str]) -> str | None:
    """A US social security number: areas 000, 666 and 900 to 999, group 00 and serial 0000 are never given out."""
    area, group, serial = match["area"], match["group"], match["serial"]
    never = area in {"000", "666"} or area[0] == "9" or group == "00" or serial == "0000"
    return None if never else match["key"] + MARK.format("ssn")


IDENTIFIERS: tuple[RedactionRule, ...] = (
    RedactionRule(
        "email", "",
        r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,1024}+@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])",
        needs=("@",),
    ),
    RedactionRule(
        "card", "",
        r"(?<![A-Za-z0-9_.,-])(?<!\d )(?:(?:4\d{3}|5[1-5]\d{2}|2(?:2[2-9]|[3-6]\d|7[01])\d|6(?:011|4[4-9]\d|5\d{2}|2\d{2})|35(?:2[89]|[3-8]\d)|8[16]\d{2}|5[06-8]\d{2}|6[37]\d{2})[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5}|3(?:0[0-5]|[689]\d)\d[ -]?\d{6}[ -]?\d{4}|4\d{12}|62\d{14,17})(?![A-Za-z0-9_]|[.,-]\d| \d)",
        needs=(), shapes=("0000",), replacement=_card,
    ),
    RedactionRule("iban", "", r"(?<![A-Za-z0-9_])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?(?![A-Za-z0-9_])", needs=(), shapes=("AA00",), replacement=_iban),
    RedactionRule("ssn", "", r"(?P<key>)(?<![A-Za-z0-9_.+-])(?<!\d )(?P<area>\d{3})-(?P<group>\d{2})-(?P<serial>\d{4})(?![A-Za-z0-9_]|[.-]\d)", needs=(), shapes=("000-00-0000",), replacement=_ssn),
    RedactionRule("ssn", "", r"(?P<key>\b(?:ssn|social security(?: number| no\.?)?|social_security_number)\\{0,3}[\"']?\s{0,4}(?:[:=#]|is|was)?\s{0,4}\\{0,3}[\"']?)(?P<area>\d{3})[ -]?(?P<group>\d{2})[ -]?(?P<serial>\d{4})(?![A-Za-z0-9_])",
         needs=("ssn", "social"), flags=re.IGNORECASE, replacement=_ssn),
    RedactionRule(
        "ip", "version 6",
        r"(?<![A-Za-z0-9_.:])(?P<address>(?=[0-9A-Fa-f:.]{2,45})(?:[0-9A-Fa-f]{0,4}:){2,8}[0-9A-Fa-f]{0,4}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3}|(?:\.\d{1,3}){3})?)"
        r"(?:%[A-Za-z0-9]{1,16})?(?![A-Za-z0-9_:])",
        needs=(":",), replacement=_address, word=r"[0-9A-Fa-f]{3}::|:[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]",
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
        needs=(), shapes=("+0", "(00", "0-0", "0‐0", "0–0", "0ー0", "0－0", "000.000.0000", "00000000000"), replacement=_phone,
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
