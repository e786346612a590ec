"""Names of secrets: `password`, `db_password`, `apiKey`, `x-api-key`, `パスワード`; not `max_tokens`, `token_type` or `compass`."""

from __future__ import annotations

import re

from grace_kp.trace.redaction._rule import RUN_LENGTH


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Each word, in lower case, stands at the beginning of its name in the list below it.
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
_NAME = re.compile(
    rf"[\w.$ -]{{0,60}}?(?:{PASSWORDS}|{TOKENS}){SUFFIX}|(?:[\w.$-]{{0,60}}[^A-Za-z])?(?:{SHORT}){SUFFIX}|.{{0,40}}(?:{PASSWORDS_ELSEWHERE}|{SECRETS_ELSEWHERE}).{{0,12}}",
    re.IGNORECASE,
)
_NAME_EXACT = _words(
    "authorization proxyauthorization xauthorization cookie cookies setcookie bearer sig signature xamzsignature xamzsecuritytoken pass auth "
    "pin jwt ssn socialsecuritynumber xamzcredential secretid accountkey sharedaccesskey sharedaccesssignature sastoken webhookurl "
    "slackwebhook slackwebhookurl clientkeydata clientcertificatekey dockerconfigjson"
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
    return type(name) is str and (_KNOWN_NAMES.get(name) or _meaning(name)) == _SECRET


def is_plain_name(name: object) -> bool:
    """Whether a key of an object is a short word that no rule matches, and that neither names a secret nor ends in "key"."""
    return type(name) is str and (_KNOWN_NAMES.get(name) or _meaning(name)) == _PLAIN


def is_short_word(text: str) -> bool:
    """Whether a text is a word that is too short for every rule."""
    return len(text) < RUN_LENGTH and text.isascii() and text.isidentifier()


_PLAIN, _SECRET, _OTHER = 1, 2, 3
_KNOWN_NAMES: dict[str, int] = {}


def _meaning(name: str) -> int:
    if 2 <= len(name) <= 80 and _names_secret(plain_name(name).lstrip("-").rstrip(":=")):
        meaning = _SECRET
    else:
        meaning = _PLAIN if is_short_word(name) and name[-3:].lower() != "key" else _OTHER
    if len(name) <= 80 and len(_KNOWN_NAMES) < 4_096:
        _KNOWN_NAMES[name] = meaning
    return meaning


def _names_secret(name: str) -> bool:
    snake = _CAMEL.sub("_", name)
    if name.replace("-", "").replace("_", "").lower() in _NAME_EXACT:
        return True
    if _OTHER_NAME.fullmatch(snake) is not None:
        return False
    return _NAME.fullmatch(snake) is not None or (snake != name and _NAME.fullmatch(name) is not None)


def is_count_name(name: str) -> bool:
    """Whether a name with the word "token" in it counts tokens or names a page of a result: `max_tokens`, `nextPageToken`."""
    return _COUNT_NAME.fullmatch(_CAMEL.sub("_", name)) is not None


def names_number(name: str) -> bool:
    """Whether a number under this key is a secret as well: a PIN, a card number, a password of digits."""
    return _NUMERIC.fullmatch(_CAMEL.sub("_", plain_name(name))) is not None
