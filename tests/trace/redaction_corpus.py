"""Synthetic secrets in the formats of their vendors: bare, in a context, and in structures.

Every secret is generated from a fixed seed, with the right alphabet, length and check digits, so that none of them stands in this
file and none of them opens anything.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
import zlib
from typing import Any

_random = random.Random(20260701)
LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
HEX, ALNUM = DIGITS + "abcdef", string.ascii_letters + DIGITS
LOWNUM, UPNUM, BASE64, URLSAFE = LOWER + DIGITS, UPPER + DIGITS, ALNUM + "+/", ALNUM + "-_"


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


def contexts() -> list[tuple[str, str, str]]:
    """Label, text, and the secret in it: commands, configuration, logs, sentences."""
    rows: list[tuple[str, str, str]] = []

    def add(label: str, template: str, secret: str) -> None:
        rows.append((label, template.replace("{}", secret), secret))

    h, a = (lambda n: some(HEX, n)), (lambda n: some(ALNUM, n))
    for name in (
        "password=", "PASSWORD=", "DB_PASSWORD=", "export DB_PASS=", "PGPASSWORD=", "MYSQL_PWD=", "SMTP_PASSWORD: ", "db.password=", "spring.datasource.password=",
        "  password: ", "passwd: ", "pwd=", "passphrase = ", "user_pass=", "admin_password: ", "REDIS_PASSWORD=", "--from-literal=password=",
        "密码:", "密码：", "密碼: ", "口令：", "パスワード: ", "パスワード：", "暗証番号：", "пароль: ", "Пароль: ", "비밀번호: ", "contraseña: ", "mot de passe : ", "Passwort: ", "Kennwort: ", "senha: ", "wachtwoord: ", "hasło: ", "şifre: ",
        "new_password=", "passwordConfirm: ", "confirmPassword=", "oldPassword: ", "secret: ", "SECRET_KEY_BASE=", "otp_secret=", "mnemonic: ",
    ):  # fmt: skip
        add(name.strip(), name + "{}", some(DIGITS, 6) if name.startswith("暗証") else password())
    for name in (
        "api_key=", "API_KEY: ", "X-API-Key: ", "apikey=", "api-key: ", "client_secret=", "CLIENT_SECRET: ", "access_token=", "refresh_token: ", "auth_token=", "AWS_SECRET_ACCESS_KEY=",
        "aws_session_token = ", "TWILIO_AUTH_TOKEN=", "DATADOG_API_KEY=", "DD-API-KEY: ", "HEROKU_API_KEY=", "CLOUDFLARE_API_TOKEN=", "VERCEL_TOKEN=", "private_token: ", "signing_key=", "encryption_key: ",
        "consumer_secret=", "webhook_secret=", "session_id=", "JWT_SECRET=", "ACCOUNT_KEY=", "subscription-key: ", "Ocp-Apim-Subscription-Key: ", "license_key: ", "_authToken=", "MAPS_KEY_TOKEN: ", "bot_token=",
    ):  # fmt: skip
        add(name.strip(), name + "{}", a(32))
    add("Heroku", "HEROKU_API_KEY={}", uid())
    add("Snyk", "snyk_token: {}", uid())
    add("code", 'api_key = "{}"', a(40))
    add("code, single quotes", "const apiKey = '{}';", a(40))
    add("code, typed", 'password: str = "{}"', password())
    add("code, compared", 'if token == "{}":', a(24))
    add("code, wrapped", ['SecretStr("{}")  ', 'password=SecretStr("{}")'][1], password())
    add("code, Ruby", ":password => '{}'", password())
    add("code, Go", 'password := "{}"', password())
    add("code, keyword", 'connect(host="db", password="{}")', password())
    add("code, environment", 'os.environ["API_KEY"] = "{}"', a(30))
    add("PowerShell", '$env:TOKEN = "{}"', a(30))
    add("Java property", "-Dapp.password={}", password())
    add("Terraform", 'secret_key = "{}"', a(40))
    add("JSON", '{"user": "ana", "password": "{}"}', password())
    add("JSON in JSON", '{\\"user\\": \\"ana\\", \\"password\\": \\"{}\\"}', a(14))
    add("JSON twice in JSON", '\\\\\\"api_key\\\\\\": \\\\\\"{}\\\\\\"', a(24))
    add("log", "2026-01-02 12:00:00 INFO connecting with token={} to eu-1", a(32))
    add("query string", "GET /v1/users?api_key={}&page=2 HTTP/1.1", a(32))
    add("query string, token", "https://api.example.test/x?access_token={}", a(32))
    add("query string, key", "https://maps.example.test/js?key={}", a(32))
    add("form body", "grant_type=password&username=ana&password={}", a(12))
    add("encoded", "password%3D{}", a(12))
    add("multipart", 'Content-Disposition: form-data; name="password"\r\n\r\n{}\r\n--x', password())
    add("XML", "<password>{}</password>", password())
    add("XML attribute", '<add key="ApiKey" value="{}" />', a(32))
    add(
        "XML property",
        '<property name="hibernate.connection.password">{}</property>'.replace(">{}", ' value="{}">'),
        password(),
    )
    add("HTML form", '<input type="hidden" name="csrf_token" value="{}">', a(32))
    add("YAML list", "- name: DB_PASSWORD\n  value: {}", password())
    add("YAML block", "password: |\n  {}", password())
    add("TOML", 'token = "{}"', a(32))
    add(".npmrc", "//npm.example.test/:_authToken={}", uid())
    add(".pypirc", "[pypi]\nusername = ana\npassword = {}", password())
    add(".netrc", "machine api.example.test login ana password {}", password())
    add(".netrc in lines", "machine api.example.test\n  login ana\n  password {}", password())
    add(".pgpass", "db.example.test:5432:shop:ana:{}", a(16))
    add("htpasswd", "ana:{}", "$apr1$" + a(8) + "$" + some(ALNUM + "./", 22))
    add("shadow", "ana:{}:19000:0:99999:7:::", f"$6${a(16)}${some(ALNUM + './', 86)}")
    add("Docker configuration", '{"auths": {"r.example.test": {"auth": "{}"}}}', b64("ana:" + password()))
    add("kubeconfig", "    client-key-data: {}", b64(pem())[:120])
    add("Kubernetes secret", "kind: Secret\nmetadata:\n  name: db\ndata:\n  db: {}", b64(password()))
    add("WireGuard", "PrivateKey = {}", some(BASE64, 43) + "=")
    add("curl -u", "curl -u ana:{} https://api.example.test/v1", password().replace("!", "x"))
    add("curl --user", 'curl -s --user "ana:{}" https://api.example.test', password())
    add("curl header", 'curl -H "Authorization: Bearer {}" https://api.example.test', a(40))
    add("curl key header", "curl -H 'X-Api-Key: {}' https://api.example.test", a(32))
    add("curl PRIVATE-TOKEN", 'curl --header "PRIVATE-TOKEN: {}" https://git.example.test', a(20))
    add("wget", "wget --user=ana --password={} https://example.test/x", a(12))
    add("mysql -p", "mysql -u root -p{} shop", a(12))
    add("mysqldump -p", "mysqldump --host db -uroot -p'{}' shop > x.sql", password())
    add("mysql --password", "mysql --password={} shop", a(12))
    add("psql", "PGPASSWORD={} psql -h db shop", a(12))
    add("sshpass", "sshpass -p {} ssh root@host", a(12))
    add("sshpass, quoted", "sshpass -p '{}' scp x root@host:", password())
    add("redis-cli", "redis-cli -h cache -a {} ping", a(20))
    add("mongosh", "mongosh -u admin -p {} --authenticationDatabase admin", a(14))
    add("docker login", "docker login -u ana -p {} r.example.test", a(14))
    add("az login", "az login --service-principal -u x --password {}", a(30))
    add("aws configure", "aws configure set aws_secret_access_key {}", some(ALNUM, 40))
    add("vault login", "vault login {}", "hvs." + a(40))
    add("npm config", "npm config set //npm.example.test/:_authToken {}", a(36))
    add("ldapsearch", "ldapsearch -x -D cn=admin -w {} -b dc=x", a(12))
    add("sqlcmd", "sqlcmd -S db -U sa -P {}", a(12))
    add("openssl", "openssl rsa -in k.pem -passin pass:{}", a(12))
    add("keytool", "keytool -list -keystore k.jks -storepass {}", a(12))
    add("zip", "zip -P {} x.zip x.txt", a(12))
    add("7z", "7z x a.7z -p{}", a(12))
    add("gpg", "gpg --batch --passphrase {} -d x.gpg", a(14))
    add("htpasswd -b", "htpasswd -b .htpasswd ana {}", a(12))
    add("sudo -S", "echo {} | sudo -S apt update", a(12))
    add("chpasswd", 'echo "ana:{}" | chpasswd', a(12))
    add("smbclient", "smbclient //srv/share -U ana%{}", a(12))
    add("plink", "plink -ssh root@host -pw {}", a(12))
    add("mosquitto", "mosquitto_pub -u ana -P {} -t x -m y", a(12))
    add("rabbitmqctl", "rabbitmqctl add_user ana {}", a(12))
    add("option", "deploy --api-token {} --env prod", a(24))
    add("option with =", "deploy --token={} --env prod", a(24))
    add("SQL create", "CREATE USER ana IDENTIFIED BY '{}'", password())
    add("SQL alter", "ALTER ROLE ana WITH PASSWORD '{}';", password())
    add("bearer", "Authorization: Bearer {}", a(40))
    add("bearer, lower case", "authorization: bearer {}", a(40))
    add("basic", "Authorization: Basic {}", b64("ana:" + password()))
    add("token header", "Authorization: token {}", h(40))
    add("proxy header", "Proxy-Authorization: Basic {}", b64("ana:" + password()))
    add("cookie", "Cookie: theme=dark; session={}", a(32))
    add("set-cookie", "Set-Cookie: connect.sid=s%3A{}; Path=/; HttpOnly", a(40))
    add("PHP session", "PHPSESSID={}", some(LOWNUM, 26))
    add("Splunk", "Authorization: Splunk {}", uid())
    add("SSH password", "root@203.0.113.7 password: {}", password())
    add("sentence", "The password is {}.", password())
    add("sentence, my", "my password is {}, please log in for me", password())
    add("sentence, set to", "I changed the database password to {}", password()) if False else add(
        "sentence, set to", "The admin password was changed to {}", password()
    )
    add("sentence, key", "Use the API key {} for now", a(32))
    add("sentence, token", "your token is {}", a(32))
    add("sentence, PIN", "the PIN is {}", "4821")
    add("sentence, OTP", "Your verification code is {}.", "482910")
    add("sentence, login", "log in as admin / {}", password())
    add("sentence, user and password", "username: ana, password: {}", password())
    add("sentence, user password", "user ana password {}", password())
    add("Japanese sentence", "パスワードは{}です。", a(12))
    add("Japanese sentence, quoted", "パスワードは「{}」です", a(12))
    add("Chinese sentence", "密码是{}", a(12))
    add("Russian sentence", "Мой пароль: {}", password())
    add("Markdown", "**Password:** `{}`", password())
    add("Markdown key", "- API key: `{}`", a(32))
    add("CVV", "cvv: {}", "737")
    add("card", "card number: {}", luhn("4", 16))
    add("vendor, no word", "SENTRY = '{}'", h(64))
    add("vendor, key", "datadog: {}", h(40))
    add("in quotes after a newline", '"secret":\n    "{}"', a(24))
    add("a terminal's colours", "\x1b[32m{}\x1b[0m", github("ghp"))
    add("after an escape", "first line\\n{}", github("ghp"))
    add("percent-encoded", "?next=%2Fx%3D{}", github("ghp"))
    add("in Japanese text", "鍵は{}です", "sk-proj-" + a(48))
    add("Telegram call", "https://api.telegram.org/bot{}/getMe", f"{some('123456789', 10)}:AA{some(URLSAFE, 33)}")
    return rows


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
    for label, value in (
        ("nested", {"config": {"db": {"password": "{}"}}}),
        ("list below a key", {"passwords": ["{}", "second"]}),
        ("object below a key", {"credentials": {"username": "ana", "value": "{}"}}),
        ("name and value", {"name": "password", "value": "{}"}),
        ("key and value", {"key": "API_KEY", "value": "{}"}),
        ("environment", [{"name": "DB_PASSWORD", "value": "{}"}]),
        ("header and value", {"header": "Authorization", "value": "{}"}),
        ("field and content", {"field": "token", "content": "{}"}),
        ("AWS parameter", {"ParameterKey": "DbPassword", "ParameterValue": "{}"}),
        ("pair", ["password", "{}"]),
        ("pairs", [["user", "ana"], ["token", "{}"]]),
        ("headers as pairs", {"headers": [["content-type", "json"], ["authorization", "Bearer {}"]]}),
        ("headers as bytes", [["b'authorization'", "b'Bearer {}'"]]),
        ("arguments", ["deploy", "--password", "{}"]),
        ("arguments, token", {"args": ["deploy", "--api-token", "{}", "--verbose"]}),
        ("arguments with =", ["deploy", "--token={}"]),
        ("arguments, mysql", ["mysql", "-u", "root", "-p{}", "shop"]),
        ("arguments, mysql with a path", ["/usr/bin/mysqldump", "-p{}"]),
        ("arguments, curl", ["curl", "-u", "ana:{}", "https://example.test"]),
        ("arguments, curl header", ["curl", "-H", "X-Api-Key: {}"]),
        ("arguments, sshpass", ["sshpass", "-p", "{}", "ssh", "host"]),
        ("arguments, redis-cli", ["redis-cli", "-a", "{}"]),
        ("arguments, docker", ["docker", "login", "-u", "ana", "-p", "{}"]),
        ("JSON in a text", {"body": '{"password": "{}"}'}),
        ("JSON in JSON in a text", {"body": '{"data": "{\\"password\\": \\"{}\\"}"}'}),
        ("query string in a text", {"url": "https://x.example.test/?token={}&a=1"}),
        ("command in a text", {"cmd": "mysql -uroot -p{} shop"}),
        ("form in a text", {"data": "user=ana&password={}"}),
        ("header in a text", {"raw": "GET / HTTP/1.1\r\nAuthorization: Bearer {}\r\n"}),
        ("YAML in a text", {"file": "db:\n  password: {}\n"}),
        ("key in a key", {"Bearer {}": 1}),
        ("bytes", {"payload": "b'password={}'"}),
    ):  # fmt: skip
        secret = a(24)
        rows.append((label, json.loads(json.dumps(value).replace("{}", secret)), secret))
    return rows


TOKENS = tokens()
CONTEXTS = contexts()
STRUCTURES = structures()
# Identifiers with check digits, and their types.
IDENTIFIERS = [
    (luhn("4", 16), "card"), (luhn("5212", 16), "card"), (luhn("37", 15), "card"), (luhn("6011", 16), "card"), (luhn("3530", 16), "card"),
    *((f"{card[:4]} {card[4:8]} {card[8:12]} {card[12:]}", "card") for card in [luhn("4", 16), luhn("2221", 16)]),
    *((f"{card[:4]}-{card[4:8]}-{card[8:12]}-{card[12:]}", "card") for card in [luhn("5500", 16)]),
    (iban("DE", some(DIGITS, 18)), "iban"), (iban("GB", "NWBK" + some(DIGITS, 14)), "iban"), (iban("FR", some(DIGITS, 23)), "iban"), (iban("NL", "ABNA" + some(DIGITS, 10)), "iban"),
    ("DE" + " ".join([(number := iban("DE", some(DIGITS, 18)))[2:4], *(number[place : place + 4] for place in range(4, 22, 4))]), "iban"),
    ("536-90-4399", "ssn"), ("219-09-9998", "ssn"),
]  # fmt: skip
