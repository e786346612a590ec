"""The decision whether the value after the name of a secret is harmless.

Computed values, placeholders, types and ordinary words of documentation are harmless. In doubt a value counts as a secret: a word removed
for nothing is better than a missed secret.
"""

from __future__ import annotations

import re

from grace_kp.trace.redaction._names import PASSWORD_NAME, PASSWORDS, PASSWORDS_ELSEWHERE


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A truth value, a type, a placeholder, or a word of explanation.
_TYPES = (
    "str string int integer bytes bool boolean any optional object number float none null nil undefined void unknown text varchar char "
    "secretstr secretbytes token password type buffer bytearray array list dict map never self"
)
_WORDS = _words(
    f"{_TYPES} true false yes no on off enabled disabled required optional missing invalid incorrect wrong expired must should is are was "
    "the a an not your my our their this that here please see use used set unset empty default defaults auto automatic generated generate hidden "
    "redacted masked removed omitted protected encrypted hashed plaintext clear field value key name secret secrets passwords tokens token "
    "credentials auth authentication authorization bearer basic digest cookie session user username login email required: needed reset change "
    "changed update updated forgot forgotten enter confirm new old current n/a na tbd todo fixme unlimited expected actual result input output "
    "data payload request response header headers body form config settings env environ vault prompt interactive strong weak valid ok okay "
    "correct traceback accepted rejected denied failed success passed fail error warning info debug include includes same-origin omit from for with and "
    "oauth oauth2 oidc saml sso ldap kerberos jwt ntlm mtls apikey api_key hs256 rs256 bcrypt argon2 sha256 md5 totp "
    "or if else return await async new function lambda def class const let var import export print raise throw and/or to be of in at by it "
    "必須 必要 任意 不要 なし 無し 変更 必填 可选 无 非公開 省略"
)
_CODE_WORDS = _words(
    f"{_TYPES} true false yes no on off required optional value password passwords secret key expected actual result input output data payload "
    "request response header headers body form config settings env environ vault prompt await async new function lambda def class val default "
    "args argv kwargs line row item field text"
)
_PLACEHOLDER = re.compile(
    r"(?:<|&lt;)[^<>]{0,120}>?|\$\{.{0,200}|\$\(.{0,400}|\$\$?[A-Za-z_][\w.:]{0,80}|%[A-Za-z_]\w{0,60}%|%\(\w{1,60}\)s|%s|\{\{.{0,200}|\{[\w.:!\[\]'\"-]{0,80}\}|\[[A-Za-z_ -]{1,60}\]|"
    r"[*xX•.#_–—?…@$-]{1,80}|[\w.-]{0,24}(?:x{4,}|X{4,}|\*{4,})|\\?\*{1,80}|(?:x{3,}|X{3,}|\*{3,})[\w-]{0,8}|"
    r"(?:your|my|the|some|an?|insert|enter|replace|put|add|paste)[ _-][\w .'-]{0,80}|(?:replace|change|fill)[ _-]?(?:me|this|in)\b.{0,40}|"
    r"@[\w./:-]{1,120}|!\w{1,30}.{0,120}|(?:env|file|vault|ssm|secretsmanager|op|keyring|aws-sm|gcp-sm|doppler|sops|arn)[:(].{0,200}|\.{2,}.{0,10}|"
    r"(?:[a-z]+ )?[a-z]+\(\d{1,5}(?:, ?\d{1,3})?\)|[~^]\d+(?:\.\d+){1,3}|(?:example|sample|dummy|placeholder)[ _-]?(?:password|token|key|secret|value|api[_-]?key)s?",
    re.IGNORECASE,
)
_MONEY = re.compile(r"(?:[$€£¥]|USD ?|EUR ?)\d[\d,.]*[kKmM]?")
_FIGURE = re.compile(r"[+-]?\d{1,3}(?:,?\d{3}){0,2}(?:\.\d{1,9})?(?:%|k|m|ms|s|h|d)?", re.IGNORECASE)
_COUNTED = re.compile(r"(?:token|key|トークン数?|令牌数?|토큰 ?수?|токенов|s[\"'\\]{0,8})\W*\Z", re.IGNORECASE)
_SENTENCE = _words(
    "must should is are was were be the your a an required invalid enter please at least cannot can't characters forgot reset incorrect "
    "wrong missing expired not field fields for to of with when if and or used will does do did has have contain contains could failed "
    "forgotten change choose create confirm length token password must-have than from in on this that by as least letters provided type "
    "field. を は が に"
)
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z_$]*")
_CHAIN = re.compile(r"[!*&]?[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_$*][\w$]*|\[[^\[\]\s]{0,60}\]?)++[!?]?")
_CHAIN_ROOT = _words(
    "self cls this os sys config cfg conf settings env environ process args opts options params request req res resp response ctx "
    "context data user app kwargs secrets secret credentials creds auth client session event state props var vars local module vault "
    "github inputs steps deno rails system environment values body headers form payload obj item row result account db model instance "
    "input output token tokens password passwords key keys string typing t pydantic types java javax std np torch tf json flask django "
    "fastapi import meta parser ns match message msg info meta metadata root parent node el element target value"
)
_CALL = re.compile(r"[!*&]?(?:await |new )?[A-Za-z_$][\w$.:>?-]{0,80}!?(?:<[\w, ]{0,40}>)?\(")
_TYPE_NAME = re.compile(
    r"(?:[A-Za-z_]\w*\.)*(?:Optional|Union|List|Dict|Annotated|Literal|Promise|Option|Vec|Box|Arc|Mapping|Sequence|list|dict|tuple|set|type)\b.*|"
    r"&?(?:'\w+ )?(?:mut )?(?:str|String|SecretStr|Secret<.*|[A-Z][A-Za-z]*(?:Str|String|Type|Token|Key|Field|Secret|Config|Provider|Schema|Password|Bytes|Credential|Credentials|Response|Request|Manager|Service|Store|Handler|Factory|Column|Info|Input|Auth|Options|Kind|Source))[\]|?!]*.{0,40}|"
    r"(?:str|bytes|string|int|any|bool)(?:\[\]|\?| ?\|.*|\].*|\).*)?",
)
_PATH = re.compile(
    r"(?:file:)?(?:~|\.{1,2}|[A-Za-z]:)?[\\/](?:[\w.@ -]+[\\/])*[\w.@-]*|[\w.@-]+(?:/[\w.@-]+)*\.(?:json|ya?ml|txt|pem|key|crt|cer|env|conf|cfg|ini|toml|py|js|ts|md|html|p12|pfx|jks|log|csv)",
)
_WORKING_FOLDER = re.compile(r"(?<![A-Za-z])(?:OLD)?(?:PWD|pwd)\W*\Z")
_SCHEMES = frozenset(
    {"bearer", "basic", "digest", "negotiate", "apikey", "token", "ntlm", "aws4-hmac-sha256", "splunk", "key"}
)
_NAMED_AGAIN = re.compile(
    r"pass|pwd|token|secret|key|cred|auth|cookie|session|otp|pin|user|value|env|arg", re.IGNORECASE
)
_LABEL = re.compile(rf"(?:mot de )?(?:{PASSWORDS}|{PASSWORDS_ELSEWHERE})", re.IGNORECASE)
_ENDING = ".,;:!?)]}>'\"\\"
_MIXED = re.compile(r"[^\d]*+\d[^A-Za-z]*+[A-Za-z][^\d]*+\d", re.ASCII)  # a digit, a letter and a digit, in this order
_NUMBER_AT_END = re.compile(r"[A-Za-z]\d+\Z", re.ASCII)
_LONGEST_WORD = 500  # characters; a longer value without blanks is neither a name, a path, a type nor a placeholder


def is_harmless(name: str, value: str, style: str) -> bool:
    """Return whether the value after a secret's name is no secret.

    Args:
        name: the name, with the characters up to the value.
        value: the value with its quotes.
        style: `quoted`; `tight` (no blank before the value); `spaced`; `compare` (after `==`); `key` (of a JSON object).
    """
    bare = value.strip("\"'\\“”「」` \t\r\n")
    core = bare.rstrip(_ENDING)
    if not core or "[REDACTED:" in value[:14]:
        return True
    low = core.lower()
    if low.startswith("/") and _WORKING_FOLDER.search(name):
        return True
    if (
        low in (_CODE_WORDS if _assigns_password(name, style) else _WORDS)
        or _PLACEHOLDER.fullmatch(bare)
        or _PLACEHOLDER.fullmatch(core)
    ):
        return True
    if _MONEY.fullmatch(core) or (len(core) < 20 and _LABEL.fullmatch(core)):
        return True  # the second is the name in another language
    if low.startswith(":") and _NAMED_AGAIN.search(low) and low[1:].isidentifier():
        return True  # a parameter of a statement
    if core.endswith("-") or (value.rstrip("\"'").endswith(("...", "…")) and len(core) < 16):
        return True  # the beginning of a key, shown as an example
    if low in _SCHEMES and "auth" in name.lower():
        return True
    if _FIGURE.fullmatch(core) and (_COUNTED.search(name) or len(core) < 3):
        return True
    if style in {"quoted", "key"}:
        return _harmless_quoted(name, bare, core, style)
    return _harmless_bare(name, bare, core, style)


def _assigns_password(name: str, style: str) -> bool:
    """`password = word`: any ordinary word may be the password here; only what programs assign is harmless."""
    return (
        style in {"tight", "spaced"}
        and name.rstrip()[-1:] in {"=", "＝"}
        and ":" not in name
        and PASSWORD_NAME.search(name) is not None
    )


def _harmless_quoted(name: str, bare: str, core: str, style: str) -> bool:
    if style == "quoted" and bare[0] in ",)]}" and name[-1:] in ":=：" and name[-2:-1].isalnum():
        return True  # the quote ends a text that itself ends with the name: print("Password:", end="")
    words = core.lower().split()
    if len(words) > 1 and (not _SENTENCE.isdisjoint(words) or len(words) > 12):
        return True
    if bare.startswith(("http://", "https://")) and "@" not in bare and "?" not in bare:
        return "webhook" not in name.lower()
    if _PATH.fullmatch(bare) and not looks_random(bare, 24) and ("/" in bare[1:] or "\\" in bare or "." in bare[1:]):
        return True
    if not core.isascii() or not core.replace("_", "").replace("-", "").replace(" ", "").isalpha():
        return False
    if core.isupper() and "_" in core:  # the name of an environment variable
        return True
    if core.lower().replace(" ", "").replace("_", "").replace("-", "") in name.lower().replace("_", "").replace(
        "-", ""
    ):
        return True
    # Words of a text that a program cut into tokens are no secrets; a password may be any word.
    return (
        len(core) <= 12
        and bool(re.search(r"token|key|cred|auth", name, re.IGNORECASE))
        and style == "key"
        and not looks_random(core, 6)
    )


def _harmless_bare(name: str, bare: str, core: str, style: str) -> bool:
    assigned = _assigns_password(name, style)
    if (
        bare[0] in "-?{(&|"
        or core[0] in "=>"
        or (bare.endswith((":", "=")) and style != "tight" and not assigned and not looks_random(core, 16))
    ):
        return True
    if bare.endswith(":"):
        return False
    if len(bare) > _LONGEST_WORD:
        return _CALL.match(bare) is not None
    if bare.endswith("[") and _CHAIN.fullmatch(bare):
        return True
    if bare.startswith(("http://", "https://", "./", "../", "~/")) and not re.search(r"[:?][^/]*@|[?&]", bare):
        return True
    if _CALL.match(bare) or (
        not assigned and _PATH.fullmatch(core) and not looks_random(core, 24) and ("/" in core[1:] or "." in core[1:])
    ):
        return True
    if _TYPE_NAME.fullmatch(core) and ":" in name:
        return True
    if style == "compare" and not (looks_random(core, 8) or _MIXED.match(core) or _NUMBER_AT_END.search(core)):
        return True
    chain = _CHAIN.fullmatch(core)
    if chain is not None:
        parts = re.split(r"\.|::|->|\?\.|!\.|\[", core.lstrip("!*&"))
        if parts[0].lower().lstrip("_$") in _CHAIN_ROOT or _NAMED_AGAIN.search(parts[-1]) or style == "compare":
            return not looks_random(core, 20)
    if _IDENTIFIER.fullmatch(core) is None:
        return False
    return _harmless_word(name, core, style)


def _harmless_word(name: str, core: str, style: str) -> bool:
    """A bare word of letters and underscores: a variable, an ordinary word, or a poor password."""
    if "_" in core.strip("_") and (_NAMED_AGAIN.search(core) or style == "spaced" or core.isupper()):
        return True
    if _NAMED_AGAIN.fullmatch(core) or re.fullmatch(
        r"\w{0,20}(?:password|token|secret|key|credentials?|passwd|pwd)s?", core, re.IGNORECASE
    ):
        return True
    if style == "tight" or _assigns_password(name, style):
        return False
    if PASSWORD_NAME.search(name) and name.rstrip().endswith((":", "：")):
        return len(core) < 4
    return not looks_random(core, 12)


_CHANGE = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[0-9]|(?<=[0-9])[A-Za-z]")


def changes(text: str) -> int:
    """Count the places where lower case, upper case and digits follow each other; the start of a capitalised word is none."""
    return len(_CHANGE.findall(text))


def looks_random(text: str, least: int = 16) -> bool:
    """Whether the text has at least `least` characters and looks generated.

    A text with digits needs a change of character kind in every seventh place, a text without any in every fourth.
    """
    if len(text) < least:
        return False
    share = changes(text) / len(text)
    return share >= (0.15 if any(character.isdigit() for character in text) else 0.25)
