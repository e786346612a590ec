"""Names of secrets, and whether the value after such a name is one.

`password`, `db_password`, `apiKey`, `x-api-key` and `パスワード` name secrets; `max_tokens`, `token_type` and `compass` do not.
A value that a program computes, a placeholder, a type or an ordinary word of documentation is not a secret.
"""

from __future__ import annotations

import re

from grace_kp.trace._randomness import looks_random

# Each word, in lower case, stands at the beginning of its name in the list below it.
PASSWORDS = (
    r"pass(?:word|wd|phrase|code|wort|wrd|key)|passwd|pwd|pswd|kenn?wort|contrase(?:ñ|n|\\u00f1)a|wachtwoord|senha|lösenord|"
    r"salasana|jelszó|heslo|hasło|şifre|parola|adgangskode|mật khẩu|kata sandi|(?<=mot de )passe|(?<=mot_de_)passe|(?<=motde)passe|(?<=mots de )passe"
)
PASSWORDS_ELSEWHERE = (
    r"パスワード|パスフレーズ|暗証番号|合言葉|密码|密碼|口令|暗码|[Пп]арол[ьяюе]|ПАРОЛЬ|비밀번호|암호|비번|كلمة (?:المرور|السر)|סיסמ[אה]|"
    r"รหัสผ่าน|पासवर्ड|κωδικός|[Кк]одов(?:ое|а)"
)
SECRETS_ELSEWHERE = r"シークレット|トークン|アクセスキー|秘密鍵|秘密键|密钥|密鑰|令牌|私钥|[Тт]окен|[Сс]екрет|[Кк]люч доступа|토큰|비밀 ?키|(?:api|API)(?:キー|密钥|密鑰|키)"
_BEFORE_KEY = [
    "api",
    "access",
    "secret",
    "private",
    "signing",
    "encryption",
    "encrypt",
    "decryption",
    "master",
    "account",
    "auth",
    "storage",
    "shared",
    "subscription",
    "licence",
    "license",
    "ssh",
    "deploy",
    "consumer",
    "client",
    "app",
    "application",
    "service",
    "server",
    "webhook",
    "root",
    "jwt",
    "hmac",
    "aes",
    "rsa",
    "gpg",
    "pgp",
    "host",
    "admin",
    "functions",
    "function",
    "session",
    "cipher",
    "crypto",
    "sas",
    "wrapping",
    "symmetric",
    "primary_access",
    "authorization",
    "integration",
    "ingest",
    "insert",
    "write",
    "personal",
    "gemini",
    "openai",
    "anthropic",
    "cohere",
    "stripe",
    "fernet",
    "vault",
    "azure",
    "google",
    "maps",
    "registry",
    "publish",
    "project",
    "restic",
    "recovery",
]
KEYS = "".join(f"(?<={word})|(?<={word}[ _-])|" for word in _BEFORE_KEY)[:-1]
BEFORE_KEYS = rf"(?:{'|'.join(_BEFORE_KEY)})[ _-]?"
TOKENS = (
    r"secret(?:[ _-]?(?:access[_-]?)?key(?:[_-]?base)?)?|token|credential|creds|mnemonic|"
    rf"(?:{KEYS})key(?:[_-]?(?:id|data|base))?"
    r"|sess(?:ion)?[_-]?id|conn(?:ection)?[ _-]?str(?:ing)?|seed[ _-]?phrase|recovery[ _-]?(?:code|phrase)|backup[ _-]?code"
)
# Words that are parts of other words count only as a part of a name: db_pass, userPin.
SHORT = (
    r"pass|pin|pincode|pin[ _-]code|otp|totp|mfa|mfa[ _-]?code|otp[ _-]?code|totp[ _-]?(?:secret|code)|2fa[ _-]?code|cvv2?|cvc2?|cvn|csc|jwt|pw|"
    r"auth|sid|credit[ _-]?card(?:[ _-]?num(?:ber)?|[ _-]?no)?|card[ _-]?(?:num(?:ber)?|no|code)|cc[ _-]?num(?:ber)?|security[ _-]?(?:code|answer)|"
    r"verification[ _-]?code|ccv|passe|wpa[ _-]?psk|psk|dsn"
)
SUFFIX = (
    r"s?(?:[_-]?(?:value|hash|hashed|confirm(?:ation|ed)?|repeat|again|new|old|current|previous|plain(?:text)?|text|raw|string|str|b64|base64|"
    r"encrypted|prod(?:uction)?|dev|staging|test|live|primary|secondary|admin|root|user|backup|main|default|env|v\d|\d{1,3}|[ab]))?"
)

_PASSWORD_NAME = re.compile(
    rf"pass(?!age|eng|ed|ing|es\b|port|ive)|pwd|pw\b|{PASSWORDS}|{PASSWORDS_ELSEWHERE}|pin|cvv|cvc|otp|psk|mfa",
    re.IGNORECASE,
)
_NUMERIC = re.compile(
    r"(?:.{0,40}[^a-z])?(?:pin(?:[_-]?code)?|cvv2?|cvc2?|ccv|csc|cvn|t?otp|(?:t?otp|mfa|2fa|verification|security)[_-]?code|pass(?:word|wd|code)?|pwd|"
    r"(?:credit[_-]?)?card[_-]?(?:num(?:ber)?|no)|credit[_-]?card|cc[_-]?num(?:ber)?|ssn|social[_-]?security(?:[_-]?number)?|暗証番号|パスワード|密码|密碼)",
    re.IGNORECASE,
)
_NAME = re.compile(
    rf"[\w.$ -]{{0,60}}?(?:{PASSWORDS}|{TOKENS}){SUFFIX}|(?:[\w.$-]{{0,60}}[^A-Za-z])?(?:{SHORT}){SUFFIX}|.{{0,40}}(?:{PASSWORDS_ELSEWHERE}|{SECRETS_ELSEWHERE}).{{0,12}}",
    re.IGNORECASE,
)
_NAME_EXACT = frozenset(
    [
        "authorization",
        "proxyauthorization",
        "xauthorization",
        "cookie",
        "setcookie",
        "bearer",
        "sig",
        "signature",
        "xamzsignature",
        "xamzsecuritytoken",
        "pass",
        "auth",
        "pin",
        "jwt",
        "ssn",
        "socialsecuritynumber",
        "xamzcredential",
        "secretid",
        "accountkey",
        "sharedaccesskey",
        "sharedaccesssignature",
        "sastoken",
        "webhookurl",
        "slackwebhook",
        "slackwebhookurl",
        "clientkeydata",
        "clientcertificatekey",
        "dockerconfigjson",
    ]
)
# Counts and places in a text; pages of a result are no secrets either.
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
    if type(name) is not str or not 2 <= len(name) <= 80:
        return False
    known = _KNOWN_NAMES.get(name)
    if known is None:
        known = _names_secret(plain_name(name).lstrip("-").rstrip(":="))
        if len(_KNOWN_NAMES) < 4_096:
            _KNOWN_NAMES[name] = known
    return known


_KNOWN_NAMES: dict[str, bool] = {}


def _names_secret(name: str) -> bool:
    snake = _CAMEL.sub("_", name)
    if name.replace("-", "").replace("_", "").lower() in _NAME_EXACT:
        return True
    if _OTHER_NAME.fullmatch(snake) is not None:
        return False
    return _NAME.fullmatch(snake) is not None or _NAME.fullmatch(name) is not None


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
_WORDS = frozenset(
    f"{_TYPES} true false yes no on off enabled disabled required optional missing invalid incorrect wrong expired must should is are was "
    "the a an not your my our their this that here see use used set unset empty default defaults auto automatic generated generate hidden "
    "redacted masked removed omitted protected encrypted hashed plaintext clear field value key name secret secrets passwords tokens token "
    "credentials auth authentication authorization bearer basic digest cookie session user username login email required: needed reset change "
    "changed update updated forgot forgotten enter confirm new old current n/a na tbd todo fixme unlimited expected actual result input output "
    "data payload request response header headers body form config settings env environ vault prompt interactive strong weak valid ok okay "
    "correct traceback accepted rejected denied failed success passed fail error warning info debug include includes same-origin omit from for with and "
    "or if else return await async new function lambda def class const let var import export print raise throw and/or to be of in at by it "
    "必須 必要 任意 不要 なし 無し 変更 必填 可选 无 非公開 省略".split()
)
_CODE_WORDS = frozenset(
    f"{_TYPES} true false yes no on off required optional value password passwords secret key expected actual result input output data payload "
    "request response header headers body form config settings env environ vault prompt await async new function lambda def class val default "
    "args argv kwargs line row item field text".split()
)
_PLACEHOLDER = re.compile(
    r"<[^<>]{0,120}>?|\$\{.{0,200}|\$\(.{0,400}|\$\$?[A-Za-z_][\w.:]{0,80}|%[A-Za-z_]\w{0,60}%|%\(\w{1,60}\)s|%s|\{\{.{0,200}|\{[\w.:!\[\]'\"-]{0,80}\}|\[[A-Za-z_ -]{1,60}\]|"
    r"[*xX•.#_–—?…-]{1,80}|\\?\*{1,80}|(?:x{3,}|X{3,}|\*{3,})[\w-]{0,8}|"
    r"(?:your|my|the|some|an?|insert|enter|replace|put|add|paste)[ _-][\w .'-]{0,80}|(?:replace|change|fill)[ _-]?(?:me|this|in)\b.{0,40}|"
    r"@[\w./:-]{1,120}|!\w{1,30}.{0,120}|(?:env|file|vault|ssm|secretsmanager|op|keyring|aws-sm|gcp-sm|doppler|sops|arn)[:(].{0,200}|\.{2,}.{0,10}|"
    r"(?:example|sample|dummy|placeholder)[ _-]?(?:password|token|key|secret|value|api[_-]?key)s?",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"[+-]?\d{1,3}(?:,?\d{3}){0,2}(?:\.\d{1,9})?(?:%|k|m|ms|s|h|d)?", re.IGNORECASE)
_COUNTED = re.compile(r"(?:token|key|s[\"'\\]{0,8})\W*\Z", re.IGNORECASE)
_SENTENCE = frozenset(
    [
        "must",
        "should",
        "is",
        "are",
        "was",
        "were",
        "be",
        "the",
        "your",
        "a",
        "an",
        "required",
        "invalid",
        "enter",
        "please",
        "at",
        "least",
        "cannot",
        "can't",
        "characters",
        "forgot",
        "reset",
        "incorrect",
        "wrong",
        "missing",
        "expired",
        "not",
        "field",
        "fields",
        "for",
        "to",
        "of",
        "with",
        "when",
        "if",
        "and",
        "or",
        "used",
        "will",
        "does",
        "do",
        "did",
        "has",
        "have",
        "contain",
        "contains",
        "could",
        "failed",
        "forgotten",
        "change",
        "choose",
        "create",
        "confirm",
        "length",
        "token",
        "password",
        "must-have",
        "than",
        "from",
        "in",
        "on",
        "this",
        "that",
        "by",
        "as",
        "least",
        "letters",
        "provided",
        "type",
        "field.",
        "を",
        "は",
        "が",
        "に",
    ]
)
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z_$]*")
_CHAIN = re.compile(r"[!*&]?[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_$*][\w$]*|\[[^\]\s]{0,60}\]?)+[!?]?")
_CHAIN_ROOT = frozenset(
    [
        "self",
        "cls",
        "this",
        "os",
        "sys",
        "config",
        "cfg",
        "conf",
        "settings",
        "env",
        "environ",
        "process",
        "args",
        "opts",
        "options",
        "params",
        "request",
        "req",
        "res",
        "resp",
        "response",
        "ctx",
        "context",
        "data",
        "user",
        "app",
        "kwargs",
        "secrets",
        "secret",
        "credentials",
        "creds",
        "auth",
        "client",
        "session",
        "event",
        "state",
        "props",
        "var",
        "vars",
        "local",
        "module",
        "vault",
        "github",
        "inputs",
        "steps",
        "deno",
        "rails",
        "system",
        "environment",
        "values",
        "body",
        "headers",
        "form",
        "payload",
        "obj",
        "item",
        "row",
        "result",
        "account",
        "db",
        "model",
        "instance",
        "input",
        "output",
        "token",
        "tokens",
        "password",
        "passwords",
        "key",
        "keys",
        "string",
        "typing",
        "t",
        "pydantic",
        "types",
        "java",
        "javax",
        "std",
        "np",
        "torch",
        "tf",
        "json",
        "flask",
        "django",
        "fastapi",
        "import",
        "meta",
        "parser",
        "ns",
        "match",
        "message",
        "msg",
        "info",
        "meta",
        "metadata",
        "root",
        "parent",
        "node",
        "el",
        "element",
        "target",
        "value",
    ]
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
_ENDING = re.compile(r"[.,;:!?)\]}>'\"\\]+\Z")


def is_harmless(name: str, value: str, style: str) -> bool:
    """Whether the value after a secret's name is no secret.

    Args:
        name: the name, and what stands between it and the value.
        value: the value with its quotes.
        style: `quoted`; `tight` (no blank before the value); `spaced`; `compare` (after `==`); `key` (of a JSON object).
    """
    bare = value.strip("\"'\\“”「」` \t\r\n")
    core = _ENDING.sub("", bare)
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
        and _PASSWORD_NAME.search(name) is not None
    )


def _harmless_quoted(name: str, bare: str, core: str, style: str) -> bool:
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
    if bare[0] in "-?{(&|" or core[0] in "=>" or (bare.endswith((":", "=")) and style != "tight" and not assigned):
        return True
    if bare.endswith(":"):
        return False
    if bare.startswith(("http://", "https://", "./", "../", "~/")) and not re.search(r"[:?][^/]*@|[?&]", bare):
        return True
    if _CALL.match(bare) or (
        not assigned and _PATH.fullmatch(core) and not looks_random(core, 24) and ("/" in core[1:] or "." in core[1:])
    ):
        return True
    if _TYPE_NAME.fullmatch(core) and ":" in name:
        return True
    if style == "compare" and not (looks_random(core, 8) or re.search(r"\d.*[A-Za-z].*\d|[A-Za-z]\d+\Z", core)):
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
    if _PASSWORD_NAME.search(name) and name.rstrip().endswith((":", "：")):
        return len(core) < 4
    return not looks_random(core, 12)
