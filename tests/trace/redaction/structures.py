"""Synthetic secrets in JSON values: below keys, in pairs, in lists of arguments, in texts of their own."""

from __future__ import annotations

import json
from typing import Any

from tests.trace.redaction.corpus import (
    ALNUM,
    luhn,
    some,
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
        ('auth', {"auth": ["ana", "{}"]}),
        ('basic_auth', {"basic_auth": "ana:{}"}),
        ('env', {"env": ["A=b", "PASSWORD={}"]}),
        ('env', {"env": {"SENDGRID_KEY": "{}{}"}}),
        ('selector', {"selector": "#password", "text": "{}"}),
        ('element', {"element": "Password field", "text": "{}", "ref": "e5"}),
        ('type', {"type": "password", "value": "{}"}),
        ('kwargs', {"kwargs": {"passwd": "{}"}}),
        ('args', {"args": ["--password={}"]}),
        ('argv', {"argv": ["mysqldump", "-p{}"]}),
        ('sh', ["sh", "-c", "mysql -p{}"]),
        ('command', {"command": ["psql", "postgres://a:{}@h/d"]}),
        ('headers', {"headers": {"X-Auth-Token": "{}"}}),
        ('headers', {"headers": {"api-token": "{}"}}),
        ('Authorization', {"Authorization": "Bearer {}"}),
        ('authorization', {"authorization": "{}"}),
        ('login', {"login": {"user": "a", "pass": "{}"}}),
        ('pw', {"pw": "{}"}),
        ('psw', {"psw": "{}"}),
        ('pass_word', {"pass_word": "{}"}),
        ('passw', {"passw": "{}"}),
        ('user_password', {"user_password": "{}"}),
        ('pwdHash', {"pwdHash": "{}"}),
        ('password_hash', {"password_hash": "{}"}),
        ('password2', {"password2": "{}"}),
        ('repeatPassword', {"repeatPassword": "{}"}),
        ('retype_password', {"retype_password": "{}"}),
        ('accountKey', {"accountKey": "{}"}),
        ('AccountKey', {"AccountKey": "{}"}),
        ('access-token', {"access-token": "{}"}),
        ('oauth_token', {"oauth_token": "{}"}),
        ('oauth', {"oauth": {"token_secret": "{}"}}),
        ('x', {"x": {"y": [{"Key": "Password", "Value": "{}"}]}}),
        ('Parameters', {"Parameters": [{"ParameterKey": "DBPassword", "ParameterValue": "{}"}]}),
        ('form', {"form": [["user", "a"], ["password", "{}"]]}),
        ('pairs', {"pairs": [["X-Api-Key", "{}"]]}),
        ('cookies', {"cookies": {"session": "{}", "sid": "{}"}}),
        ('cookies', {"cookies": {"sessionid": "{}"}}),
        ('mfaToken', {"mfaToken": "{}"}),
        ('secret_answer', {"secret_answer": "{}"}),
        ('security_answer', {"security_answer": "{}"}),
        ('private_key_pem', {"private_key_pem": "{}"}),
        ('ssh_private_key', {"ssh_private_key": "{}"}),
        ('keystorePassword', {"keystorePassword": "{}"}),
        ('truststore_pass', {"truststore_pass": "{}"}),
        ('ldap_bind_password', {"ldap_bind_password": "{}"}),
        ('smtp_pass', {"smtp_pass": "{}"}),
        ('ftp_pw', {"ftp_pw": "{}"}),
        ('db', {"db": {"uri": "mysql://a:{}@h"}}),
        ('dsn', {"dsn": "{}"}),
        ('conn_str', {"conn_str": "{}"}),
        ('sas', {"sas": "?sv=x&sig={}{}{}"}),
        ('client', {"client": {"id": "x", "secret": "{}"}}),
        ('tokens', {"tokens": {"access": "{}", "refresh": "{}"}}),
        ('jwtToken', {"jwtToken": "{}"}),
        ('id_token', {"id_token": "{}"}),
        ('bearerToken', {"bearerToken": "{}"}),
        ('apiKeys', {"apiKeys": ["{}"]}),
        ('API_KEYS', {"API_KEYS": {"x": "{}"}}),
        ('githubToken', {"githubToken": "{}"}),
        ('slack_webhook', {"slack_webhook": "https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/{}{}"}),
        ('密码', {"密码": "{}"}),
        ('パスワード', {"パスワード": "{}"}),
        ('пароль', {"пароль": "{}"}),
        ('비밀번호', {"비밀번호": "{}"}),
        ('mot_de_passe', {"mot_de_passe": "{}"}),
        ('contrasena', {"contrasena": "{}"}),
        ('clave', {"clave": "{}"}),
        ('kennwort', {"kennwort": "{}"}),
    ):  # fmt: skip
        secret = a(24)
        rows.append((label, json.loads(json.dumps(value).replace("{}", secret)), secret))
    return rows


STRUCTURES = structures()
