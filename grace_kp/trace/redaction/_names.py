"""Names of secrets, and the values behind them: `password=…`, `"apiKey": "…"`, `密码：…`.

Names come first: `password`, `db_password`, `apiKey`, `x-api-key`, `パスワード`; not `max_tokens`, `token_type` or `compass`. Then the decision
whether the value of such a name is harmless: computed values, placeholders, types and ordinary words of documentation are. In doubt a
value counts as a secret: a word removed for nothing is better than a missed secret. Last comes the search for names with their values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from grace_kp.trace.redaction._rule import MARK, SHORTEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from grace_kp.trace.redaction._rule import Found

PASSWORD_MARK = MARK.format("password")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Each word, in lower case, begins its name in the list of needles below.
PASSWORDS = (
    r"pass(?:[_-]?word|wd|phrase|code|wort|wrd|key|w(?![a-z]))|passwd|pwd|pswd|kenn?wort|contrase(?:ñ|n|\\u00f1)a|wachtwoord|senha|lösenord|"
    r"salasana|jelszó|heslo|has[łl]o|[şs]ifre(?:niz|m|n)?|parol[aă](?: d'ordine)?|adgangskode|mật khẩu|kata (?:sandi|laluan)|losenord|passord|parool|lozinka|geslo|slaptažodis|lykilorð|(?<=mot de )passe|(?<=mot_de_)passe|(?<=motde)passe|(?<=mots de )passe|(?<=palavra-)passe"
)
PASSWORDS_ELSEWHERE = (
    r"パスワード|パスコード|パスフレーズ|暗証番号|合言葉|密码|密碼|口令|暗码|[Пп]арол[ьяюе]|ПАРОЛЬ|비밀번호|패스워드|암호|비번|كلمة (?:المرور|السر)|رمز عبور|گذرواژه|סיסמ[אה]|"
    r"รหัสผ่าน|पासवर्ड|κωδικός|[Кк]одов(?:ое|а)"
)
SECRETS_ELSEWHERE = r"シークレット|トークン|アクセスキー|秘密鍵|秘密键|密钥|密鑰|令牌|私钥|[Тт]окен|[Сс]екрет|[Кк]люч доступа|토큰|비밀 ?키|(?:api|API)(?:キー|密钥|密鑰|키)"
_BEFORE_KEY = sorted(
    _words(
        "api access secret private signing encryption encrypt decryption master account auth storage shared subscription licence license "
        "ssh deploy consumer client app application service server webhook root jwt hmac aes rsa gpg pgp host admin functions function "
        "session cipher crypto sas wrapping symmetric primary_access authorization integration ingest insert write personal gemini openai "
        "anthropic cohere stripe fernet vault azure google maps registry publish project restic recovery"
    )
)
KEYS = "".join(f"(?<={word})|(?<={word}[ _.-])|" for word in _BEFORE_KEY)[:-1]
TOKENS = (
    r"key[_-]?material|secret(?:[ _-]?(?:access[_-]?)?key(?:[_-]?base)?)?|token|credential|creds|mnemonic|"
    rf"(?:{KEYS})key(?:[_-]?(?:id|data|base))?"
    r"|sess(?:ion)?[_-]?id|conn(?:ection)?[ _-]?str(?:ing)?|seed[ _-]?phrase|recovery[ _-]?(?:code|phrase)|backup[ _-]?code"
)
# Words that are parts of other words count only as a part of a name: db_pass, userPin.
SHORT = (
    r"pass|psw|pin|pincode|pin[ _-]code|otp|totp|mfa|mfa[ _-]?code|otp[ _-]?code|totp[ _-]?(?:secret|code)|2fa[ _-]?code|cvv2?|cvc2?|cvn|csc|jwt|pw|"
    r"auth|sid|credit[ _-]?card(?:[ _-]?num(?:ber)?|[ _-]?no)?|card[ _-]?(?:num(?:ber)?|no|code)|cc[ _-]?num(?:ber)?|security[ _-]?code|"
    r"verification[ _-]?code|ccv|passe|wpa[ _-]?psk|psk|dsn|clave|(?:secret|security)[ _-]?answer"
)
SUFFIX = (
    r"s?(?:[_-]?(?:value|hash|hashed|confirm(?:ation|ed)?|repeat|again|new|old|current|previous|plain(?:text)?|text|raw|string|str|b64|base64|"
    r"encrypted|prod(?:uction)?|dev|staging|test|live|primary|secondary|admin|root|user|backup|main|default|env|pem|v\d|\d{1,3}|[ab]))?"
)
ANY_NAME = rf"(?:{PASSWORDS}|{PASSWORDS_ELSEWHERE}|pass|pin|{TOKENS}){SUFFIX}"

PASSWORD_NAME = re.compile(
    rf"pass(?!age|eng|ed|ing|es\b|port|ive)|pwd|pw\b|{PASSWORDS}|{PASSWORDS_ELSEWHERE}|pin|cvv|cvc|otp|psk|mfa",
    re.IGNORECASE,
)
_NUMERIC = re.compile(
    r"(?:.{0,40}[^a-z])?(?:pin(?:[_-]?code)?|cvv2?|cvc2?|ccv|csc|cvn|t?otp|(?:t?otp|mfa|2fa|verification|security)[_-]?code|pass(?:word|wd|code)?|pwd|"
    r"(?:credit[_-]?)?card[_-]?(?:num(?:ber)?|no)|credit[_-]?card|cc[_-]?num(?:ber)?|ssn|social[_-]?security(?:[_-]?number)?|暗証番号|パスワード|密码|密碼)",
    re.IGNORECASE,
)
_NAME_OF_SECRET = re.compile(
    rf"[\w.$ -]{{0,60}}?(?:{PASSWORDS}|{TOKENS}){SUFFIX}|(?:[\w.$-]{{0,60}}[^A-Za-z])?(?:{SHORT}){SUFFIX}|.{{0,40}}(?:{PASSWORDS_ELSEWHERE}|{SECRETS_ELSEWHERE}).{{0,12}}",
    re.IGNORECASE,
)
_NAME_EXACT = _words(
    "authorization proxyauthorization xauthorization cookie cookies setcookie bearer sig signature xamzsignature xamzsecuritytoken pass auth "
    "pin jwt ssn socialsecuritynumber xamzcredential secretid accountkey sharedaccesskey sharedaccesssignature sastoken webhookurl "
    "slackwebhook slackwebhookurl clientkeydata clientcertificatekey dockerconfigjson"
)
# Counts and positions. Pages of a result are not secrets either.
_COUNTS = (
    r"(?:max|min|num|number|n|total|prompt|completion|input|output|count|used|cached|cache|reasoning|audio|image|remaining|new|avg|mean|per|sum|limit|budget)"
    r"[_-]?.{0,24}tokens?(?:[_-]?(?:count|limit|usage|used))?|"
    r"(?:.{0,20}[_-])?(?:next|page|prev|previous|continuation|pagination|sync|cancel|cancellation|stop|pad|eos|bos|unk|sep|cls|mask|special|start|end|first|last|delimiter)"
    r"[_-]?(?:page)?[_-]?tokens?"
)
_COUNT_NAME = re.compile(_COUNTS, re.IGNORECASE)
_OTHER_NAME = re.compile(
    rf"{_COUNTS}|(?:is|has|show|hide|forgot|require|requires|no|enable|need|needs|allow|toggle|invalid|missing|wrong)"
    r"[_-].{0,60}|.{0,60}[_-]?(?:policy|length|type|name|field|label|placeholder|hint|error|message|count|limit|expiry|expires|ttl|url|uri|path|file|ref|arn|format)",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BYTES = re.compile(r"""[bB]?(?P<quote>["'])(?P<name>.*)(?P=quote)\Z""", re.DOTALL)


def plain_name(name: str) -> str:
    """Return a key without the quotes and the prefix that it keeps when it was bytes or was quoted twice."""
    name = name.strip()
    match = _BYTES.match(name)
    return match["name"] if match else name


def is_secret_name(name: object) -> bool:
    """Whether a key of an object names a secret: `password`, `db_password`, `apiKey`, `x-api-key`, `AWS_SECRET_ACCESS_KEY`."""
    return type(name) is str and (_KNOWN_NAMES.get(name) or _meaning(name)) == _IS_SECRET


def is_plain_name(name: object) -> bool:
    """Whether a key of an object is a short word that no rule matches, and that neither names a secret nor ends in "key"."""
    return type(name) is str and (_KNOWN_NAMES.get(name) or _meaning(name)) == _IS_PLAIN


def is_short_word(text: str) -> bool:
    """Whether a string is a word that is too short for every rule."""
    return len(text) < SHORTEST and text.isascii() and text.isidentifier()


_IS_PLAIN, _IS_SECRET, _IS_OTHER = 1, 2, 3
_KNOWN_NAMES: dict[str, int] = {}


def _meaning(name: str) -> int:
    plain = plain_name(name).lstrip("-").rstrip(":=") if 2 <= len(name) <= 80 else ""
    snake = _CAMEL.sub("_", plain)
    if plain.replace("-", "").replace("_", "").lower() in _NAME_EXACT or (
        _OTHER_NAME.fullmatch(snake) is None and any(map(_NAME_OF_SECRET.fullmatch, {snake, plain}))
    ):
        meaning = _IS_SECRET
    else:
        meaning = _IS_PLAIN if is_short_word(name) and name[-3:].lower() != "key" else _IS_OTHER
    if len(name) <= 80 and len(_KNOWN_NAMES) < 4_096:
        _KNOWN_NAMES[name] = meaning
    return meaning


def is_count_name(name: str) -> bool:
    """Whether a name with the word "token" in it counts tokens or names a page of a result: `max_tokens`, `nextPageToken`."""
    return _COUNT_NAME.fullmatch(_CAMEL.sub("_", name)) is not None


def names_number(name: str) -> bool:
    """Whether a number under this key is a secret as well: a PIN, a card number, a password of digits."""
    return _NUMERIC.fullmatch(_CAMEL.sub("_", plain_name(name))) is not None


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
    """Return whether the value after a secret's name is not a secret.

    Args:
        name: the name, with the characters up to the value.
    """
    bare = value.strip("\"'\\“”「」` \t\r\n")
    core = bare.rstrip(_ENDING)
    if not core or "[REDACTED:" in value[:14]:
        return True
    low = core.lower()
    if (
        (low.startswith("/") and _WORKING_FOLDER.search(name))
        or low in (_CODE_WORDS if _assigns_password(name, style) else _WORDS)
        or _PLACEHOLDER.fullmatch(bare)
        or _PLACEHOLDER.fullmatch(core)
        or _MONEY.fullmatch(core)
        or (len(core) < 20 and _LABEL.fullmatch(core))  # the name in another language
        or (low.startswith(":") and _NAMED_AGAIN.search(low) and low[1:].isidentifier())  # a parameter of a statement
        or core.endswith("-")  # the beginning of a key, shown as an example
        or (value.rstrip("\"'").endswith(("...", "…")) and len(core) < 16)
        or (low in _SCHEMES and "auth" in name.lower())
        or (_FIGURE.fullmatch(core) and (_COUNTED.search(name) or len(core) < 3))
    ):
        return True
    return (_harmless_quoted if style in {"quoted", "key"} else _harmless_bare)(name, bare, core, style)


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
        return True  # the quote ends a string that itself ends with the name: print("Password:", end="")
    words = core.lower().split()
    if len(words) > 1 and (not _SENTENCE.isdisjoint(words) or len(words) > 12):
        return True
    if bare.startswith(("http://", "https://")) and "@" not in bare and "?" not in bare:
        return "webhook" not in name.lower()
    if _PATH.fullmatch(bare) and not looks_random(bare, 24) and ("/" in bare[1:] or "\\" in bare or "." in bare[1:]):
        return True
    if not core.isascii() or not core.replace("_", "").replace("-", "").replace(" ", "").isalpha():
        return False
    plain = core.lower().replace(" ", "").replace("_", "").replace("-", "")
    if (core.isupper() and "_" in core) or plain in name.lower().replace("_", "").replace("-", ""):
        return True  # the first is the name of an environment variable
    # Words that a program cut into tokens are not secrets; a password may be any word.
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
    is_address = bare.startswith(("http://", "https://", "./", "../", "~/"))
    is_path = not assigned and ("/" in core[1:] or "." in core[1:]) and _PATH.fullmatch(core)
    if (
        (bare.endswith("[") and _CHAIN.fullmatch(bare))
        or (is_address and not re.search(r"[:?][^/]*@|[?&]", bare))
        or _CALL.match(bare)
        or (is_path and not looks_random(core, 24))
        or (_TYPE_NAME.fullmatch(core) and ":" in name)
        or (style == "compare" and not (looks_random(core, 8) or _MIXED.match(core) or _NUMBER_AT_END.search(core)))
    ):
        return True
    chain = _CHAIN.fullmatch(core)
    if chain is not None:
        parts = re.split(r"\.|::|->|\?\.|!\.|\[", core.lstrip("!*&"))
        if parts[0].lower().lstrip("_$") in _CHAIN_ROOT or _NAMED_AGAIN.search(parts[-1]) or style == "compare":
            return not looks_random(core, 20)
    return _IDENTIFIER.fullmatch(core) is not None and _harmless_word(name, core, style)


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
    """Whether the string has at least `least` characters and looks generated.

    A string with digits needs a change of character kind in every seventh place, one without digits in every fourth.
    """
    if len(text) < least:
        return False
    share = changes(text) / len(text)
    return share >= (0.15 if any(character.isdigit() for character in text) else 0.25)


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
# The rest of a name after its beginning, and a separator.
_AHEAD = re.compile(
    r"[\w '\u00a0-\uffff-]{2,60}?[\"'`\\\])）*?\s\u3000\u00a0]{0,24}(?:[=:：＝(（{?]|!=|%3|\|\|)", re.ASCII
)
_LONGEST_KEPT = 200


NAMED_VALUE = rf"(?P<key>{_NAME}{_SEPARATOR}){VALUE}"
_NAMED_VALUE = re.compile(NAMED_VALUE, re.IGNORECASE | re.ASCII)


def named_secrets(text: str, places: Iterable[int]) -> Iterator[Found]:
    """Yield the values of the names of secrets that begin at these places.

    Only these places are visited, so their number is the cost.
    """
    visited = 0
    for place in places:
        if place < visited or _AHEAD.match(text, place) is None:
            continue
        if _IN_MARK.search(text, max(0, place - 40), place) is not None:
            continue
        match = _NAMED_VALUE.match(text, place)
        if match is None:
            continue
        value = match["value"]
        if value[-1] == "…" and text.startswith(" [cut: ", match.end()):
            value = value[:-1] or "…"  # the cut follows a whole value, which is not an abbreviation
        if _keeps(match, value):
            # A kept value may contain a secret; a long one is not read twice.
            visited = match.end() if len(value) > _LONGEST_KEPT else match.start("value")
        else:
            yield match.end("key"), match.end(), PASSWORD_MARK
            visited = match.end()


def _keeps(match: re.Match[str], value: str) -> bool:
    operator, after, start = match["operator"], match["after"], match.start()
    # The whole name around the word that was recognised: nextPageToken, max_tokens.
    before = _BEFORE.search(match.string, max(0, start - 40), start)
    name = match.string[start : match.start("declared")].rstrip("\"'`\\])*? \t")
    name = (before[0] if before else "") + name
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


NO_SECRET_KEY = re.compile(
    r"(?:public|pub|primary|foreign|partition|sort|range|cache|idempotency|row|hash|object|s3|dedup|group|order|index|unique|natural|lookup|item|"
    r"cell|map|dict|i18n|translation|feature|config|route|parent|entity|event|message|session_cache)[_.-]?key\Z",
    re.IGNORECASE,
)
_SETTING = re.compile(r"[A-Za-z_][\w.-]{0,60}[ \t]{0,20}[=:](?![=:])")
_IN_MARK = re.compile(r"\[REDACTED:\w{0,24}\Z")  # "key" in "[REDACTED:api_key]: …" is not a name
_BEFORE = re.compile(r"[\w.-]{1,40}\Z", re.ASCII)
