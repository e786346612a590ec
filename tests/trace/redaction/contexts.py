"""Synthetic secrets in commands, configuration, logs, headers, addresses and sentences."""

from __future__ import annotations

import json
from pathlib import Path

from tests.trace.redaction.corpus import (
    ALNUM,
    BASE64,
    DIGITS,
    HEX,
    LOWNUM,
    URLSAFE,
    b64,
    github,
    luhn,
    password,
    pem,
    some,
    uid,
)


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
    for template in MORE:
        add(template, template, some(ALNUM, 12))
    return rows


# Further contexts of one secret; then secrets named by their column, their group or their label, and values over several lines.
MORE = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]
CONTEXTS = contexts()
