"""Synthetic secrets in the formats of their vendors and in structures, and texts and values that hold none.

Every secret is generated from a fixed seed, with the right alphabet, length and check digits, so that none of them stands in this
file and none of them opens anything.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import string
import uuid
import zlib
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

_random = random.Random(20260701)
LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
HEX, ALNUM = DIGITS + "abcdef", string.ascii_letters + DIGITS
LOWNUM, UPNUM, BASE64, URLSAFE = LOWER + DIGITS, UPPER + DIGITS, ALNUM + "+/", ALNUM + "-_"


def read_lines(name: str) -> list[Any]:
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()]


def some(alphabet: str, length: int) -> str:
    """A random text that has at least one digit and one letter where the alphabet allows it."""
    wanted = [group for group in (DIGITS, string.ascii_letters) if length >= 6 and not set(group).isdisjoint(alphabet)]
    while True:
        text = "".join(_random.choice(alphabet) for _ in range(length))
        if all(not set(group).isdisjoint(text) for group in wanted):
            return text


def uid() -> str:
    return str(uuid.UUID(int=_random.getrandbits(128), version=4))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def b64url(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def github(prefix: str) -> str:
    """A token of GitHub ends in its CRC-32 in base 62."""
    body = some(ALNUM, 30)
    number, check = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        check = (DIGITS + UPPER + LOWER)[digit] + check
    return f"{prefix}_{body}{check}"


def jwt() -> str:
    head = b64url({"alg": "HS256", "typ": "JWT"})
    return f"{head}.{b64url({'sub': some(DIGITS, 10), 'iat': 1516239022})}.{some(URLSAFE, 43)}"


def pem(kind: str = "RSA ") -> str:
    lines = "\n".join(some(BASE64, 64) for _ in range(6))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


def password() -> str:
    return some(ALNUM, 9) + _random.choice("!#%^*") + some(LOWNUM, 3)


def luhn(prefix: str, length: int) -> str:
    body = prefix + some(DIGITS, length - len(prefix) - 1)
    total = sum(sum(divmod(int(c) * (1 + place % 2), 10)) for place, c in enumerate(reversed(body + "0")))
    return body + str(-total % 10)


def iban(country: str, bban: str) -> str:
    number = int("".join(str(int(c, 36)) for c in bban + country + "00"))
    return f"{country}{98 - number % 97:02d}{bban}"


def tokens() -> list[tuple[str, str]]:
    """Vendor and key, for keys whose format gives them away."""
    h, a, u = (lambda n: some(HEX, n)), (lambda n: some(ALNUM, n)), (lambda n: some(URLSAFE, n))
    ln, un, b = (lambda n: some(LOWNUM, n)), (lambda n: some(UPNUM, n)), (lambda n: some(BASE64, n))
    aws = UPPER + "234567"
    return [
        ("AWS access key", "AKIA" + some(aws, 16)), ("AWS temporary key", "ASIA" + some(aws, 16)), ("AWS secret key", b(40)),
        ("AWS session token", "IQoJb3JpZ2luX2Vj" + b(300) + "=="), ("AWS Bedrock", "ABSK" + b(120)), ("AWS MWS", "amzn.mws." + uid()),
        ("Google API", "AIza" + u(35)), ("Google OAuth secret", "GOCSPX-" + u(28)), ("Google OAuth access", "ya29." + u(120)),
        ("Google refresh", "1//0" + u(60)), ("Firebase", "AAAA" + u(7) + ":APA91b" + u(134)), ("Azure AD", a(3) + "8Q~" + u(34)),
        ("Azure storage", b(76) + "+ASt" + b(6) + "=="), ("Azure OpenAI", a(52) + "JQQJ99" + un(10) + "AC" + a(14)), ("Azure DevOps", a(76) + "AZDO" + a(4)),
        ("Alibaba", "LTAI5t" + a(18)), ("Tencent", "AKID" + a(32)), ("Yandex", "AQVN" + u(36)), ("DigitalOcean", "dop_v1_" + h(64)),
        ("DigitalOcean OAuth", "doo_v1_" + h(64)), ("DigitalOcean refresh", "dor_v1_" + h(64)), ("Heroku", "HRKU-AA" + u(58)),
        ("Fly.io", "fo1_" + u(43)), ("Fly.io macaroon", "fm2_" + b(140)), ("Vercel", "vcp_" + a(40)), ("Netlify", "nfp_" + a(36)),
        ("Cloudflare CA", f"v1.0-{h(24)}-{h(146)}"), ("Supabase", "sbp_" + h(40)), ("Supabase secret", "sb_secret_" + u(31)),
        ("PlanetScale", "pscale_tkn_" + u(43)), ("PlanetScale password", "pscale_pw_" + u(43)), ("Neon", "napi_" + ln(64)),
        ("Tailscale", f"tskey-auth-{a(16)}-{a(32)}"), ("Pulumi", "pul-" + h(40)), ("Terraform Cloud", f"{a(14)}.atlasv1.{u(67)}"),
        ("Vault", "hvs." + u(95)), ("Vault batch", "hvb." + u(150)), ("Vault legacy", "s." + a(24)), ("Aiven", "AVNS_" + u(19)),
        ("ClickHouse", "4b1d" + a(38)), ("Databricks", "dapi" + h(32)), ("Databricks with a number", "dapi" + h(32) + "-2"),
        ("OpenShift", "sha256~" + u(43)), ("NVIDIA", "nvapi-" + u(64)), ("Kubernetes", jwt()), ("Scaleway", "SCW" + un(17)),
        ("GitHub classic", github("ghp")), ("GitHub OAuth", github("gho")), ("GitHub user", github("ghu")), ("GitHub server", github("ghs")),
        ("GitHub refresh", "ghr_" + a(76)), ("GitHub fine-grained", f"github_pat_{a(22)}_{a(59)}"), ("GitLab", "glpat-" + u(20)),
        ("GitLab deploy", "gldt-" + u(20)), ("GitLab runner", "glrt-" + u(20)), ("GitLab registration", "GR1348941" + u(20)),
        ("GitLab job", "glcbt-64_" + u(20)), ("GitLab trigger", "glptt-" + h(40)), ("GitLab feed", "glft-" + u(20)), ("GitLab agent", "glagent-" + u(50)),
        ("GitLab OAuth", "gloas-" + h(64)), ("GitLab SCIM", "glsoat-" + u(20)), ("Bitbucket", "ATBB" + a(32)), ("Atlassian", "ATATT3xFfGF0" + u(180)),
        ("npm", "npm_" + a(36)), ("PyPI", "pypi-AgEIcHlwaS5vcmc" + u(150)), ("RubyGems", "rubygems_" + h(48)), ("crates.io", "cio" + a(32)),
        ("NuGet", "oy2" + ln(43)), ("Docker Hub", "dckr_pat_" + u(27)), ("JFrog", "AKCp" + a(69)), ("CircleCI", f"CCIPAT_{a(22)}_{h(40)}"),
        ("Buildkite", "bkua_" + h(40)), ("SonarQube", "squ_" + h(40)), ("Postman", f"PMAK-{h(24)}-{h(34)}"), ("RapidAPI", f"{ln(10)}msh{ln(15)}p1{ln(6)}jsn{ln(12)}"),
        ("ReadMe", "rdme_" + ln(70)), ("Doppler", "dp.pt." + a(43)), ("Doppler service", "dp.st.dev." + a(43)), ("1Password service", "ops_eyJ" + b(280)),
        ("1Password secret key", f"A3-{un(6)}-{un(6)}-{un(5)}-{un(5)}-{un(5)}-{un(5)}"), ("Infracost", "ico-" + a(32)), ("Prefect", "pnu_" + a(36)),
        ("dbt", "dbtc_" + a(36)), ("Snyk", f"snyk_uat.{h(8)}.{u(60)}"), ("Sourcegraph", "sgp_" + h(40)), ("LaunchDarkly", "sdk-" + uid()),
        ("Django", "django-insecure-" + some(LOWNUM + "@#%^&*(-_=+)", 50)), ("Laravel", "base64:" + b(43) + "="), ("MaxMind", f"{a(6)}_{a(29)}_mmk"),
        ("PostHog", "phx_" + a(43)), ("Clojars", "CLOJARS_" + h(60)), ("ngrok", f"2{a(26)}_{a(21)}"), ("Octopus", "API-" + un(26)),
        ("OpenAI", f"sk-{a(20)}T3BlbkFJ{a(20)}"), ("OpenAI project", f"sk-proj-{u(74)}T3BlbkFJ{u(74)}"), ("OpenAI service", f"sk-svcacct-{u(74)}T3BlbkFJ{u(74)}"),
        ("OpenAI admin", "sk-admin-" + u(100)), ("Anthropic", f"sk-ant-api03-{u(93)}AA"), ("Anthropic admin", f"sk-ant-admin01-{u(93)}AA"),
        ("OpenRouter", "sk-or-v1-" + h(64)), ("DeepSeek", "sk-" + h(32)), ("Langfuse", "sk-lf-" + uid()), ("LangSmith", f"lsv2_pt_{h(32)}_{h(10)}"),
        ("Hugging Face", "hf_" + some(string.ascii_letters, 34)), ("Groq", "gsk_" + a(52)), ("xAI", "xai-" + a(80)), ("Perplexity", "pplx-" + a(48)),
        ("Replicate", "r8_" + a(37)), ("Pinecone", f"pcsk_{a(6)}_{a(63)}"), ("Tavily", "tvly-dev-" + a(32)), ("Jina", "jina_" + h(32) + u(28)),
        ("Firecrawl", "fc-" + h(32)), ("Voyage", "pa-" + u(43)), ("Fireworks", "fw_" + a(24)), ("ElevenLabs", "sk_" + h(48)),
        ("KnowledgePulse", "kp_" + h(20)), ("Cerebras", "csk-" + ln(48)), ("Together", "tgp_v1_" + u(43)),
        ("Slack bot", f"xoxb-{some(DIGITS, 12)}-{some(DIGITS, 12)}-{a(24)}"), ("Slack user", f"xoxp-{some(DIGITS, 12)}-{some(DIGITS, 12)}-{some(DIGITS, 12)}-{h(32)}"),
        ("Slack app", f"xapp-1-A{un(10)}-{some(DIGITS, 13)}-{h(64)}"), ("Slack configuration", "xoxe.xoxp-1-" + un(163)),
        ("Slack webhook", f"https://hooks.slack.com/services/T{un(10)}/B{un(10)}/{a(24)}"), ("Slack workflow", f"https://hooks.slack.com/workflows/T{un(10)}/A{un(10)}/{some(DIGITS, 18)}/{a(24)}"),
        ("Discord bot", f"M{a(25)}.{a(6)}.{u(38)}"), ("Discord webhook", f"https://discord.com/api/webhooks/{some(DIGITS, 18)}/{u(68)}"),
        ("Teams webhook", f"https://acme.webhook.office.com/webhookb2/{uid()}@{uid()}/IncomingWebhook/{h(32)}/{uid()}"),
        ("Telegram", f"{some('123456789', 10)}:AA{u(33)}"), ("Stripe", "sk_live_" + a(24)), ("Stripe restricted", "rk_live_" + a(99)),
        ("Stripe test", "sk_test_" + a(24)), ("Stripe webhook", "whsec_" + a(32)), ("Square", "sq0atp-" + u(22)), ("Square OAuth", "sq0csp-" + u(43)),
        ("Square access", "EAAA" + u(60)), ("PayPal", f"access_token$production${ln(16)}${h(32)}"), ("Shopify", "shpat_" + h(32)), ("Shopify custom", "shpca_" + h(32)),
        ("Shopify private", "shppa_" + h(32)), ("Shopify shared", "shpss_" + h(32)), ("Razorpay", "rzp_live_" + a(14)), ("Flutterwave", f"FLWSECK_TEST-{h(32)}-X"),
        ("Plaid", "access-sandbox-" + uid()), ("EasyPost", "EZAK" + a(54)), ("Shippo", "shippo_live_" + h(40)), ("Lob", "live_" + h(35)),
        ("Twilio", "SK" + h(32)), ("SendGrid", f"SG.{u(22)}.{u(43)}"), ("Mailgun", "key-" + h(32)), ("Mailgun with parts", f"{h(32)}-{h(8)}-{h(8)}"),
        ("Mailchimp", h(32) + "-us12"), ("Brevo", f"xkeysib-{h(64)}-{a(16)}"), ("Resend", f"re_{a(8)}_{a(24)}"), ("Notion", "ntn_" + some(DIGITS, 11) + a(35)),
        ("Notion legacy", "secret_" + a(43)), ("Airtable", f"pat{a(14)}.{h(64)}"), ("Asana", f"1/{some('123456789', 16)}:{h(32)}"), ("Linear", "lin_api_" + a(40)),
        ("Figma", "figd_" + u(40)), ("ClickUp", f"pk_{some('123456789', 8)}_{un(32)}"), ("Typeform", "tfp_" + u(59)), ("HubSpot", "pat-na1-" + uid()),
        ("Salesforce", f"00D{a(12)}!{a(96)}"), ("Okta", "00" + some(string.ascii_letters, 1) + u(39)), ("Dropbox", "sl.B" + u(135)), ("Adobe", "p8e-" + ln(32)),
        ("Grafana", f"glsa_{a(32)}_{h(8)}"), ("Grafana Cloud", "glc_" + b(80)), ("Grafana legacy", "eyJrIjoi" + b(80)), ("New Relic", "NRAK-" + un(27)),
        ("New Relic licence", h(36) + "NRAL"), ("Dynatrace", f"dt0c01.{un(24)}.{un(64)}"), ("Sentry user", "sntryu_" + h(64)), ("Sentry DSN", f"https://{h(32)}@o{some('123456789', 6)}.ingest.sentry.io/{some('123456789', 7)}"),
        ("Mapbox", f"sk.eyJ{u(60)}.{u(22)}"), ("Contentful", "CFPAT-" + u(43)), ("age", "AGE-SECRET-KEY-1" + some("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
        ("Meta", "EAAC" + a(120)), ("X", "A" * 22 + a(85)), ("Duffel", "duffel_live_" + u(43)), ("JSON web token", jwt()), ("JSON web token encrypted", ".".join([b64url({"alg": "dir", "enc": "A256GCM"}), u(10), u(16), u(60), u(22)])),
        ("RSA key", pem()), ("EC key", pem("EC ")), ("OpenSSH key", pem("OPENSSH ")), ("PKCS 8 key", pem("")), ("PGP key", pem("PGP ").replace("KEY-----", "KEY BLOCK-----")),
        ("bcrypt", "$2b$12$" + some(ALNUM + "./", 53)), ("SHA-512 crypt", f"$6${a(16)}${some(ALNUM + './', 86)}"), ("argon2", f"$argon2id$v=19$m=65536,t=3,p=4${b(22)}${b(43)}"),
        ("PostgreSQL", f"postgresql://app:{a(16)}@db.example.test:5432/shop"), ("MongoDB", f"mongodb+srv://app:{a(16)}@cluster0.example.test/shop"),
        ("Redis", f"redis://:{a(16)}@cache.example.test:6379/0"), ("AMQP", f"amqps://app:{a(12)}@mq.example.test/v"), ("HTTP", f"https://ana:{a(12)}@git.example.test/x.git"),
        ("GitHub address", f"https://{github('ghp')}@github.com/acme/shop.git"), ("SQL Server", f"Server=tcp:db.example.test,1433;Database=shop;User Id=sa;Password={a(14)};Encrypt=True;"),
        ("Azure storage connection", f"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={b(86)}==;EndpointSuffix=core.windows.net"),
        ("Azure Service Bus", f"Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey={b(43)}="),
        ("SAS", f"https://shop.blob.core.windows.net/c/f.txt?sv=2022-11-02&st=2026-01-01&se=2027-01-01&sr=b&sp=r&sig={some(ALNUM, 40)}%2B{a(3)}%3D"),
        ("S3 signed", f"https://b.s3.amazonaws.com/k?X-Amz-Expires=300&X-Amz-Signature={h(64)}"),
    ]  # fmt: skip


TOKENS = tokens()
# Identifiers with check digits, and their types.
IDENTIFIERS = [
    (luhn("4", 16), "card"), (luhn("5212", 16), "card"), (luhn("37", 15), "card"), (luhn("6011", 16), "card"), (luhn("3530", 16), "card"),
    *((f"{card[:4]} {card[4:8]} {card[8:12]} {card[12:]}", "card") for card in [luhn("4", 16), luhn("2221", 16)]),
    *((f"{card[:4]}-{card[4:8]}-{card[8:12]}-{card[12:]}", "card") for card in [luhn("5500", 16)]),
    (iban("DE", some(DIGITS, 18)), "iban"), (iban("GB", "NWBK" + some(DIGITS, 14)), "iban"), (iban("FR", some(DIGITS, 23)), "iban"), (iban("NL", "ABNA" + some(DIGITS, 10)), "iban"),
    ("DE" + " ".join([(number := iban("DE", some(DIGITS, 18)))[2:4], *(number[place : place + 4] for place in range(4, 22, 4))]), "iban"),
    ("536-90-4399", "ssn"), ("219-09-9998", "ssn"),
]  # fmt: skip


SECRET_FORMS = [
    ('{"password": "x1y2z3q"}', "x1y2z3q"),
    ('{\\"password\\": \\"x1y2z3q\\"}', "x1y2z3q"),
    ("db_password=hunter2secret", "hunter2secret"),
    ("client_secret=abc123def", "abc123def"),
    ("refresh_token=zzz111yyy", "zzz111yyy"),
    ("api-key: qwe123rty", "qwe123rty"),
    ("X-API-Key: qwe123rty", "qwe123rty"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "wJalrXUtnFEMI"),
    ("password=don't-tell-anyone", "tell-anyone"),
    ('password: "it\'s me inside"', "me inside"),
    ("password: 'it's me inside'", "me inside"),
    ("sk-proj-abcDEF123456_789-xyz", "abcDEF123456"),
    ("sk-ant-api03-abcDEF123456_789-xyz", "abcDEF123456"),
    ("github_pat_11ABCDEFG0123456789_abcdef", "11ABCDEFG"),
    ("ghu_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c"),
    ("ghr_1B4a2e77838347a7E420ce178F2E7c6912E169246c34", "1B4a2e77838347"),
    ("gho_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c"),
    ("authorization: bearer abcdef1234567890", "abcdef1234567890"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNz"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdef\n-----END RSA PRIVATE KEY-----", "MIIEabcdef"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA", "b3BlbnNzaA"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_X", "dozjgNryP4J3"),
    ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    ("AIzaSyD-1234567890abcdefghijklmnopqrstu", "1234567890abc"),
    ("xoxb-1234567890-abcdefghij", "abcdefghij"),
    ("glpat-abcdefghij1234567890", "abcdefghij"),
    ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijkl"),
    ("hf_abcdefghijklmnopqrstuvwxyz01234567", "abcdefghijkl"),
    ("sk_live_abcdefghijklmnop", "abcdefghijkl"),
    ("https://user:pa55word9@example.com/x", "pa55word9"),
    ("postgres://u:p4ssw0rd@db/app", "p4ssw0rd"),
    ("Server=db;User Id=sa;Password=abc123xyz;", "abc123xyz"),
    ("https://x.example/?token=abc123def&x=1", "abc123def"),
    ("パスワード：ひみつ123です", "ひみつ123"),
]
IDENTIFIER_FORMS = [
    ("090-1234-5678", "phone"), ("+81-90-1234-5678", "phone"), ("03-1234-5678", "phone"), ("+1 (555) 010-1234", "phone"),
    ("2001:db8::1", "ip"), ("::1", "ip"), ("fe80::1%eth0", "ip"), ("2001:0db8:85a3:0000:0000:8a2e:0370:7334", "ip"),
    ("192.0.2.10", "ip"), ("/home/山田/秘密.txt", "filepath"), ("/Users/José/x.py", "filepath"), ("C:\\Users\\山田\\doc.txt", "filepath"),
    ("first.last+tag@mail.example.co.jp", "email"), ("4111-1111-1111-1111", "card"), ("GB82 WEST 1234 5698 7654 32", "iban"),
    ("536-90-4399", "ssn"),
]  # fmt: skip

FRAGMENTS = st.sampled_from(
    [text for text, _ in SECRET_FORMS] + [text for text, _ in IDENTIFIER_FORMS]
    + ["password=", "token: ", '"', "'", "\\", "、", " ", "\n", ",", "[REDACTED:password]", "Bearer ", "://", "@", ":", "sk-", "eyJ", "日本"]
    + ["password", "UPDATE t SET password = ?", "user,password\n", "| user | password |\n|--|--|\n", "ana,x1y2z3q\n", "| ana | x1y2z3q |\n", "\\n", '\\"', "|", "\t", "  ", "[secrets]\n", "passwords:\n",
       "password: |\n  ", "<th>password</th>", "</td>", "INSERT INTO t (a, password) VALUES (", "'x1y2z3q'", "(", ")", "[", "{", "+ ", "<<EOF\n", "EOF\n", "Password [", "? "]
)  # fmt: skip

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12) | FRAGMENTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["password", "apiKey", "q", "max_tokens", "columns", "rows", "sql", "params", "secrets"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


def structures() -> list[tuple[str, Any, str]]:
    """Label, JSON value, and the secret in it."""
    rows: list[tuple[str, Any, str]] = []
    a = lambda n: some(ALNUM, n)  # noqa: E731
    for key in (
        "password", "Password", "PASSWORD", "passwd", "pwd", "pass", "db_password", "dbPassword", "passwordConfirm", "password_confirmation", "newPassword", "currentPassword", "passphrase", "passcode",
        "secret", "clientSecret", "client_secret", "secretKey", "secret_key_base", "apiKey", "api_key", "API-KEY", "x-api-key", "X-Api-Key", "access_key", "accessKeyId", "secretAccessKey", "AWS_SECRET_ACCESS_KEY",
        "token", "accessToken", "refresh_token", "id_token", "auth_token", "bot_token", "csrf_token", "bearer", "authorization", "Authorization", "proxy_authorization", "Proxy-Authorization", "cookie", "Set-Cookie",
        "private_key", "privateKey", "signing_key", "encryptionKey", "credentials", "credential", "session_id", "sessionId", "connection_string", "connectionString", "jwt", "otp", "mfa_code", "totp_secret", "pin", "PIN", "userPin",
        "cvv", "cvc", "cvv2", "card_cvc", "credit_card", "creditCardNumber", "card_number", "cardNumber", "security_code", "security_answer", "mnemonic", "seed_phrase", "recovery_code", "パスワード", "暗証番号", "密码", "пароль", "비밀번호", "contraseña",
        "motDePasse", "passwort", "account_key", "storageAccountKey", "sas_token", "webhook_secret", "license_key", "b'authorization'",
    ):  # fmt: skip
        rows.append((key, {"user": "ana", key: (secret := a(14))}, secret))
    rows.append(("number", {"pin": 4821}, "4821"))
    rows.append(("number, card", {"card_number": int(luhn("5555", 16))}, "5555"))
    rows.append(("number, CVV", {"cvv": 737}, "737"))
    for label, value in read_lines("structures.jsonl"):
        secret = a(24)
        rows.append((label, json.loads(json.dumps(value).replace("{}", secret)), secret))
    return rows


STRUCTURES = structures()
# Secrets named by the column, group or place that holds them, and harmless text in the same formats: the family of the case, its value,
# the secrets in it and the neighbours that stay. Made of formats, names and invented values without looking at the rules.
with gzip.open(Path(__file__).with_name("places.jsonl.gz"), "rt", encoding="utf-8") as _file:
    PLACES: list[tuple[str, Any, list[str], list[str]]] = [tuple(json.loads(line)) for line in _file]


HARMLESS = [
    text.replace("TMP/", "/" + "tmp/")
    for text in Path(__file__).with_name("harmless.txt").read_text(encoding="utf-8").splitlines()
]
# Texts are tables, groups and several lines with the names of secrets and without secrets. Others are structures: keys that look like
# those of secrets, and values under such keys that are none.
HARMLESS += [row for row in read_lines("harmless.jsonl") if isinstance(row, str)]
HARMLESS_VALUES = [row for row in read_lines("harmless.jsonl") if not isinstance(row, str)]
