"""Secrets that only their name gives away: `password=…`, `"apiKey": "…"`, `密码：…` in a text.

The rule visits the places where such a name can begin and nothing else, so that its cost is the number of those places.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.trace.redaction._harmless import is_harmless, looks_random
from grace_kp.trace.redaction._names import (
    PASSWORDS,
    PASSWORDS_ELSEWHERE,
    SECRETS_ELSEWHERE,
    SHORT,
    SUFFIX,
    TOKENS,
    is_count_name,
)
from grace_kp.trace.redaction._rule import MARK, Rule, lower, places_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

_Q = r"\\{0,7}[\"'`]"
_BLANK = r"\s\u3000\u00a0"
# A value in quotes (escaped ones too, as in JSON inside of JSON; a cut text may lack the closing one), a list of such, a placeholder,
# or a bare one up to a blank, a comma or a bracket. An apostrophe inside a value belongs to it. All quantifiers are possessive:
# nothing is tried twice.
VALUE = (
    r"(?P<value>\"\"\"(?:[^\"]|\"(?!\"\"))*+(?:\"\"\")?"
    r"|\"(?:[^\"\\\n]|\\.)*+\"?"
    r"|'(?:[^'\\\n]|\\.|'(?=\w))*+'?"
    r"|`[^`\n]*+`?|“[^”\n]*+”?|「[^」\n]*+」?"
    r"|\\{1,7}[\"'](?:[^\"'\\\n]|\\++(?![\"'\\]))*+(?:\\{1,7}[\"'])?"
    r"|\[(?=\s{0,8}\\{0,7}[\"'])[^\]\n]{1,4000}+\]?"
    r"|\$\{[^}\n]{0,200}+\}{0,2}|\{\{[^}\n]{0,200}+\}{0,2}|\$\([^\n)]{0,200}+\)?|<[^<>\n]{0,120}+>"
    rf"|[^{_BLANK},;\"'“”\[\]\\]"
    rf"(?:[^{_BLANK},;\"“”\[\])}}\\]|\\(?![nrt\"'\\])|\[(?!REDACTED:)|[\])}}](?![{_BLANK},;.\"\\]|\Z)"
    rf"|,(?=[^{_BLANK},;=:\"'\[\]]{{1,64}}(?:[{_BLANK},;]|\Z)))*+)"
)
# Between the name and the value: the end of a key, of an index, of a bold word, a type, a block of YAML, a wrapper, a prefix of Python.
_WRAPPER = (
    r"(?:(?:(?:[A-Za-z_][\w.]{0,40}[.:])?(?:Secret(?:Str|Bytes|String)?|SecureString|str|bytes|bytearray|b64decode|Password|quote|unquote|from|new|of))?"
    r"\((?=[bru]{0,2}[\"']))?"
)
_SEPARATOR = (
    rf"(?:{_Q})?[\])]?\*{{0,3}}\??[{_BLANK}]{{0,8}}"
    rf"(?P<declared>(?: ?\{{[^{{}}\n]{{1,40}}\}}| [A-Za-z]\w{{0,20}})(?=[{_BLANK}]?:?=[{_BLANK}]?[\"'`])[{_BLANK}]{{0,8}}|)"  # accessors, or a type
    r"(?P<operator>:\s{0,4}&?[A-Za-z_][A-Za-z_.]{0,40}(?:\[[A-Za-z_., |\[\]]{0,40}\])?(?:\s?\|\s?[A-Za-z]{1,20}){0,3}\s{0,2}=(?![=>])"
    r"|=>|:=|={1,3}|!={1,2}|:-|\|\||\?\?|\?:|:(?!:)|[：＝]|%3[DdAa])"
    rf"(?P<after>\*{{0,3}}[{_BLANK}]{{0,8}}(?:[|>][+-]?[ \t]{{0,8}}\n\s{{0,40}})?(?:\\\r?\n[ \t]{{0,40}})?){_WRAPPER}(?:[bru@$]{{1,2}}(?=[\"']))?"
)
_PLAIN = rf"(?:{PASSWORDS}|{TOKENS}|authorization){SUFFIX}"
_PARTS = rf"(?:(?-i:(?<=[a-z])(?=[A-Z]))|(?<![A-Za-z]))(?:{SHORT}){SUFFIX}"
_ELSEWHERE = rf"(?:{PASSWORDS_ELSEWHERE}|{SECRETS_ELSEWHERE})(?:_?[^\x00-\x7f]{{1,6}}(?=[\"']?\s?[:=：＝]))?(?:[（(][^\n()（）]{{0,20}}[)）])?"
# Any other name that ends in "key" is the name of a secret only if its value looks generated: SENDGRID_KEY, encryption.key.
_OTHER_KEY = r"(?P<other>(?<=[A-Za-z0-9][_.-])key)"
_NAME = rf"(?:{_PLAIN}|{_PARTS}|{_ELSEWHERE}|{_OTHER_KEY})"

# Each name begins with one of these, in lower case; a name that ends in "key" is entered there.
PASSWORD_NEEDLES = (
    "pass", "pw", "pswd", "kennw", "kenwo", "contrase", "wachtwoord", "senha", "salasana", "heslo", "parol", "paroo", "adgangskode", "kata ", "losenord", "haslo", "sifre", "lozinka", "geslo", "clave", "lykilor",
)  # fmt: skip
ASCII_NEEDLES = (
    *PASSWORD_NEEDLES,
    "secret", "token", "credential", "creds", "mnemonic", "key", "sess", "conn", "seed", "recovery", "backup", "pin", "otp", "mfa", "2fa",
    "cv", "csc", "ccv", "jwt", "auth", "sid", "credit", "card", "ccn", "cc n", "cc_n", "cc-n", "security", "verification", "wpa", "psk", "dsn",
)  # fmt: skip
OTHER_NEEDLES = (
    "lösenord", "slaptaž", "jelszó", "hasło", "şifre", "mật khẩu", "パスワード", "パスコード", "パスフレーズ", "暗証番号", "合言葉", "密码", "密碼", "口令", "暗码",
    "парол", "비밀번호", "패스워드", "암호", "비번", "كلمة", "رمز عبور", "گذرواژه", "סיסמ", "รหัสผ่าน", "पासवर्ड", "κωδικός", "кодов", "シークレット", "トークン", "アクセスキー", "秘密",
    "密钥", "密鑰", "令牌", "私钥", "токен", "секрет", "ключ", "토큰", "비밀", "apiキー", "api密", "api키",
)  # fmt: skip
# What follows the beginning of a name: the rest of it, and a separator.
_AHEAD = re.compile(
    r"[\w '\u00a0-\uffff-]{2,60}?[\"'`\\\])）*?\s\u3000\u00a0]{0,24}(?:[=:：＝(（{?]|!=|%3|\|\|)", re.ASCII
)
_LONGEST_KEPT = 200


@dataclass(frozen=True, slots=True, eq=False)
class NamedRule(Rule):
    """Values after the name of a secret."""

    def sub(self, text: str, counts: Counter[str] | None) -> str:
        """Return the text without the values; the same object where there is none."""
        places = places_of(ASCII_NEEDLES if text.isascii() else self.needs, lower(text))
        return self.sub_at(places, text, counts)

    def sub_at(self, places: Iterable[int], text: str, counts: Counter[str] | None) -> str:
        """Do what `sub` does, with the places where names can begin."""
        pattern = self.compiled()
        parts: list[str] = []
        end = visited = 0
        for place in places:
            if place < visited or _AHEAD.match(text, place) is None:
                continue
            if _IN_MARK.search(text, max(0, place - 40), place) is not None:
                continue
            match = pattern.match(text, place)
            if match is None:
                continue
            value = match["value"]
            if value[-1] == "…" and text.startswith(" [cut: ", match.end()):
                value = value[:-1] or "…"  # the text was cut behind a whole value, which is no abbreviation
            if _keeps(match, value):
                # A secret may stand inside of what is kept; what is long is not read twice.
                visited = match.end() if len(value) > _LONGEST_KEPT else match.start("value")
                continue
            if counts is not None:
                counts[self.kind] += 1
            parts += (text[end : match.end("key")], MARK.format(self.kind))
            end = visited = match.end()
        if not parts:
            return text
        parts.append(text[end:])
        return "".join(parts)


NAMES = NamedRule(
    "password",
    "names of secrets",
    rf"(?P<key>{_NAME}{_SEPARATOR}){VALUE}",
    needs=ASCII_NEEDLES + OTHER_NEEDLES,
    also=("=", ":", "：", "＝", "%3", "||", "??"),
    flags=re.IGNORECASE,
)


def _keeps(match: re.Match[str], value: str) -> bool:
    operator, after = match["operator"], match["after"]
    name = _whole_name(match)
    if is_count_name(name):
        return True
    if match["other"] and (not looks_random(value.strip("\"'`"), 12) or NO_SECRET_KEY.search(name)):
        return True
    if "\n" in after and "\\" not in after and _SETTING.match(match.string, match.start("value")):
        return True  # the name has no value, and the next line holds another setting
    if value[0] in "\"'`“「\\":
        style = "quoted"
    elif operator[0] == "!" or operator in {"==", "===", "=>"}:
        style = "compare"
    elif "\n" in after and operator[0] in ":：" and after.strip(" \t")[:1] not in {"|", ">"}:
        style = "compare"  # the next line is another setting, unless the value looks like a secret
    else:
        style = "spaced" if after.strip("*") or operator == ":=" else "tight"
    return is_harmless(match["key"], value, style)


def _whole_name(match: re.Match[str]) -> str:
    """The name with what stands before the word that was recognised: nextPageToken, max_tokens."""
    start = match.start()
    before = _BEFORE.search(match.string, max(0, start - 40), start)
    name = match.string[start : match.start("declared")].rstrip("\"'`\\])*? \t")
    return (before[0] if before else "") + name


NO_SECRET_KEY = re.compile(
    r"(?:public|pub|primary|foreign|partition|sort|range|cache|idempotency|row|hash|object|s3|dedup|group|order|index|unique|natural|lookup|item|"
    r"cell|map|dict|i18n|translation|feature|config|route|parent|entity|event|message|session_cache)[_.-]?key\Z",
    re.IGNORECASE,
)
_SETTING = re.compile(r"[A-Za-z_][\w.-]{0,60}[ \t]{0,20}[=:](?![=:])")
_IN_MARK = re.compile(r"\[REDACTED:\w{0,24}\Z")  # "key" in "[REDACTED:api_key]: …" is no name
_BEFORE = re.compile(r"[\w.-]{1,40}\Z", re.ASCII)
