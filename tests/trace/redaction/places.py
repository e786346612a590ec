"""Secrets named by the column, group or place that holds them, and harmless text in the same formats.

Written without looking at the rules. Every case is built from a format, a name and a value; the values are made up by
a seeded generator, so that both functions give the same cases on every run.
"""

from __future__ import annotations

import base64
import html
import json
import random
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

# A table reads better with a form a line.
# fmt: off
SEED = 20240611
Pairs = list[tuple[str, str]]
Rows = list[list[str]]
Table = Callable[[list[str], Rows], str]


@dataclass(frozen=True)
class Case:
    """A recorded value, the secrets that must go from it and the neighbours that must stay."""

    family: str
    value: object
    secrets: tuple[str, ...]
    keep: tuple[str, ...]


@dataclass(frozen=True)
class Form:
    """How one format writes names and values, or the header and the rows of a table.

    `level` says which values fit: "any", "word" (no blanks) or "plain" (letters, digits, "-", "_" and "." only).
    `keeps` is false where a neighbour may be taken for a secret too.
    """

    style: str
    level: str
    render: Callable[..., object]
    encode: Callable[[str], str] = str
    keeps: bool = True


NAMES = {
    "password": "password", "passwd": "password", "db_password": "password", "user_password": "password", "smtp_password": "password",
    "admin_pwd": "password", "passphrase": "phrase", "key_passphrase": "phrase", "api_key": "token", "secret_key": "token",
    "client_secret": "token", "access_token": "token", "auth_token": "token", "webhook_secret": "token", "pin": "pin",
}  # fmt: skip
GROUPS = {
    "passwords": "password", "user_passwords": "password", "db_passwords": "password", "passphrases": "phrase", "api_keys": "token",
    "access_tokens": "token", "client_secrets": "token", "secrets": "token",
}  # fmt: skip
WORDS = [
    "dragonfly", "walnut", "kestrel", "marzipan", "sommer", "winter", "kaffee", "tomate", "glacier", "bramble", "saffron", "otter", "thistle",
    "pepper", "juniper", "velvet", "cobalt", "lantern", "hedgehog", "cinnamon", "papillon", "cerise", "montagne", "girasol", "naranja", "tulipan",
    "zomer", "fietser", "pumpkin", "meteor", "quartz", "violin",
]  # fmt: skip
USERS = ["mlefevre", "jnowak", "tobrien", "akhan", "priyan", "hschmidt", "ogarcia", "rjensen", "ymorita", "dkowal", "ecosta", "bwagner"]
HOSTS = ["db01.internal", "mail.example.org", "vpn.example.net", "git.example.com", "ldap.internal", "cache02.internal"]
CITIES = ["Lisbon", "Oslo", "Turin", "Ghent", "Porto", "Graz", "Lyon", "Bergen", "Malmo", "Tartu"]
TEAMS = ["billing", "logistics", "research", "payroll", "support", "platform"]
ALPHABET = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789"


class Pool:
    """Makes up values from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def password(self, plain: bool = False) -> str:
        """Return a password a person might choose, or one from a password manager."""
        rng = self.rng
        first, second = rng.sample(WORDS, 2)
        joint = rng.choice("-_." if plain else "-_.#&@+!")
        end = str(rng.randrange(2, 99)) if plain else rng.choice("!#?&@") + rng.choice(["", "1", "42", "7x"])
        year, number = rng.randrange(1968, 2026), rng.randrange(3, 99)
        shapes = (
            f"{first}{year}{end}",
            f"{first.capitalize()}{joint}{year}",
            f"{first}{joint}{second}{number}",
            first.capitalize().translate(str.maketrans("aeio", "4310")) + f"{joint}{number}x",
            first + second,
            second.capitalize() + first.capitalize() + end,
            rng.choice(ALPHABET[:48]) + "".join(rng.choices(ALPHABET + ("-_." if plain else "!#&@+?"), k=rng.randrange(8, 15))) + "9",
        )
        return rng.choice(shapes)

    def token(self, plain: bool = False) -> str:
        """Return a random key: hexadecimal, base64, URL-safe base64 or alphanumeric."""
        rng = self.rng
        shape = rng.randrange(4)
        if shape == 0:
            return rng.randbytes(rng.choice([16, 20, 32])).hex()
        if shape == 1 and not plain:
            return base64.b64encode(rng.randbytes(rng.choice([24, 32, 40]))).decode()
        if shape == 2:
            return "k" + base64.urlsafe_b64encode(rng.randbytes(rng.choice([24, 30, 36]))).decode() + "3"
        return "".join(rng.choices(ALPHABET, k=rng.randrange(16, 65)))

    def secret(self, kind: str, level: str = "any") -> str:
        """Return a secret of a kind that can be written at a level."""
        if kind == "password":
            return self.password(level == "plain")
        if kind == "token":
            return self.token(level == "plain")
        if kind == "pin":
            return str(self.rng.choice([self.rng.randrange(6100, 9990), self.rng.randrange(610_000, 999_000)]))
        return (" " if level == "any" else "-").join(self.rng.sample(WORDS, self.rng.choice([4, 5])))

    def date(self) -> str:
        """Return a date."""
        return f"202{self.rng.randrange(1, 6)}-{self.rng.randrange(1, 13):02}-{self.rng.randrange(1, 29):02}"


def styled(name: str, style: str) -> str:
    """Return a name in snake case written in another style."""
    words = name.split("_")
    pascal = "".join(word.capitalize() for word in words)
    styles = {
        "upper": name.upper(), "pascal": pascal, "camel": words[0] + pascal[len(words[0]) :], "kebab": "-".join(words),
        "title": " ".join(words).capitalize(), "dotted": "app." + ".".join(words), "kube": "-".join(words).upper(),
    }  # fmt: skip
    return styles.get(style, name)


def encoded(text: str) -> str:
    """Encode a text in base64."""
    return base64.b64encode(text.encode()).decode()


def boxed(rules: Sequence[str], bar: Sequence[str], just: str = "<", every: bool = False, foot: str = "") -> Table:
    """Return a renderer of tables with rules ("left, fill, joint, right" each) above, below the header and at the end."""

    def render(head: list[str], rows: Rows) -> str:
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        left, middle, right = bar
        pad = 2 if middle.strip() else 0
        drawn = [r and (r[0] + r[2].center(len(middle) - pad).join(r[1] * (w + pad) for w in widths) + r[3:]).strip() for r in rules]
        lines = [left + middle.join(f"{c:{just}{w}}" for c, w in zip(row, widths, strict=True)) + right for row in [head, *rows]]
        body = (f"\n{drawn[2]}\n" if every else "\n").join(lines[1:])
        return "\n".join(part.rstrip() for part in [drawn[0], lines[0], drawn[1], body, drawn[2], foot] if part)

    return render


def separated(sep: str, cell: str = "%s") -> Table:
    """Return a renderer that writes a line for the header and one for each row."""
    return lambda head, rows: "\n".join(sep.join(cell % c for c in row) for row in [head, *rows])


def blocks(title: str, line: str) -> Table:
    """Return a renderer that writes a block for each row and a line for each cell."""
    return lambda head, rows: "\n".join("\n".join([title % n, *map(line.__mod__, zip(head, row, strict=True))]) for n, row in enumerate(rows, 1))


def html_table(head: list[str], rows: Rows) -> str:
    """Write a table with a header row."""
    top = "".join(f'<th scope="col">{c}</th>' for c in head)
    body = "\n".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def html_sheet(head: list[str], rows: Rows) -> str:
    """Write a table with row headers."""
    lines = ("".join(f"<td>{row[i]}</td>" for row in rows) for i in range(len(head)))
    return "<table>\n" + "\n".join(f'<tr><th scope="row">{h}</th>{line}</tr>' for h, line in zip(head, lines, strict=True)) + "\n</table>"


def polars(head: list[str], rows: Rows) -> str:
    """Write a table as polars prints a frame."""
    full = [["---"] * len(head), ["str"] * len(head), *rows]
    lines = boxed(["┌─┬┐", "", "└─┴┘"], ["│ ", " ┆ ", " │"])(head, full).split("\n")
    rule = lines[0].translate(str.maketrans("┌─┬┐", "╞═╪╡"))
    return "\n".join([f"shape: ({len(rows)}, {len(head)})", *lines[:4], rule, *lines[4:]])


def insert(names: list[str], rows: Rows, name: str = "%s", sep: str = ",\n") -> str:
    """Write an INSERT."""
    values = sep.join("(" + ", ".join(f"'{c}'" for c in row) + ")" for row in rows)
    return f"INSERT INTO accounts ({', '.join(name % n for n in names)}) VALUES {values};"


def dicts(head: list[str], rows: Rows) -> list[dict[str, str]]:
    """Return the rows as objects."""
    return [dict(zip(head, row, strict=True)) for row in rows]


def each(line: str, sep: str = "\n", before: str = "", after: str = "") -> Callable[[Pairs], str]:
    """Return a renderer that writes a line for each name and value."""
    return lambda pairs: before + sep.join(line % pair for pair in pairs) + after


def named(name: str, value: str, **more: str) -> Callable[[Pairs], object]:
    """Return a renderer that makes an object with the name and the value in fields of their own."""
    return lambda pairs: [{name: k, value: v, **more} for k, v in pairs]


GRIDS = {
    "csv": Form("mixed", "any", separated(",")), "csv quoted": Form("mixed", "any", separated(",", '"%s"')),
    "csv with semicolons": Form("mixed", "any", separated(";")), "csv with bars": Form("mixed", "any", separated("|")),
    "tsv": Form("mixed", "any", separated("\t")), "markdown table": Form("mixed", "any", boxed(["", "|-||", ""], ["| ", " | ", " |"])),
    "psql": Form("snake", "any", boxed(["", " -+ ", ""], [" ", " | ", ""], foot="(3 rows)")),
    "psql expanded": Form("snake", "any", blocks("-[ RECORD %d ]----------", "%-19s | %s")), "polars": Form("snake", "any", polars),
    "mysql box": Form("snake", "any", boxed(["+-++", "+-++", "+-++"], ["| ", " | ", " |"], foot="3 rows in set (0.00 sec)")),
    "mysql vertical": Form("snake", "any", blocks("*************************** %d. row ***************************", "%19s: %s")),
    "aligned columns": Form("kube", "any", boxed(["", "", ""], ["", "   ", ""])), "html table": Form("mixed", "any", html_table, html.escape),
    "sqlite columns": Form("snake", "any", boxed(["", " -  ", ""], ["", "  ", ""])),
    "unicode box": Form("mixed", "any", boxed(["┌─┬┐", "├─┼┤", "└─┴┘"], ["│ ", " │ ", " │"])),
    "rest grid": Form("mixed", "any", boxed(["+-++", "+=++", "+-++"], ["| ", " | ", " |"], every=True)),
    "html row headers": Form("mixed", "any", html_sheet, html.escape), "list of rows": Form("mixed", "any", lambda h, r: [h, *r]),
    "pandas": Form("snake", "word", lambda h, r: boxed([""] * 3, ["", "  ", ""], ">")(["", *h], [[str(i), *x] for i, x in enumerate(r)])),
    "sheet values": Form("mixed", "any", lambda h, r: {"range": "Sheet1!A1:E4", "majorDimension": "ROWS", "values": [h, *r]}),
    "columns and rows": Form("snake", "any", lambda h, r: {"columns": h, "rows": r, "rowCount": 3}), "records": Form("camel", "any", dicts),
    "columns and data": Form("snake", "any", lambda h, r: {"columns": h, "index": list(range(len(r))), "data": r}),
    "column objects": Form("snake", "any", lambda h, r: {"columns": [{"name": c, "type": "text"} for c in h], "rows": r}),
    "schema and data": Form("snake", "any", lambda h, r: {"schema": {"fields": [{"name": c, "type": "string"} for c in h]}, "data": dicts(h, r)}),
    "cells": Form("snake", "any", lambda h, r: {"schema": {"fields": [{"name": c} for c in h]}, "rows": [{"f": [{"v": c} for c in x]} for x in r]}),
    "dict of columns": Form("snake", "any", lambda h, r: {c: [row[i] for row in r] for i, c in enumerate(h)}),
    "json lines": Form("snake", "any", lambda h, r: "\n".join(json.dumps(d) for d in dicts(h, r))),
    "columns in json": Form("snake", "any", lambda h, r: {"result": json.dumps({"columns": h, "rows": r})}),
    "insert of many rows": Form("snake", "any", insert), "org table": Form("mixed", "any", boxed(["", "|-+|", ""], ["| ", " | ", " |"])),
    "inserts": Form("snake", "any", lambda h, r: "\n".join(insert(h, [row], "`%s`") for row in r)),
    "copy": Form("snake", "any", lambda h, r: f"COPY public.accounts ({', '.join(h)}) FROM stdin;\n" + "\n".join(map("\t".join, r)) + "\n\\."),
    "asciidoc table": Form("title", "any", lambda h, r: "|===\n" + separated(" ", "|%s")(h, r) + "\n|==="),
    "wiki table": Form("title", "any", lambda h, r: "|| " + " || ".join(h) + " ||\n" + "\n".join("| " + " | ".join(row) + " |" for row in r)),
}  # fmt: skip
PLIST = '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0">\n<dict>\n'
SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app-env\n"
POD = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: app\n    image: example/app:1.4\n    env:\n"
MERGE = "MERGE INTO accounts AS t USING staging AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "
FORMS = {
    "env file": Form("upper", "plain", each("%s=%s")), "env file quoted": Form("upper", "any", each('%s="%s"')),
    "shell exports": Form("upper", "any", each("export %s='%s'")), "yaml": Form("snake", "any", each("  %s: %s", before="service:\n")),
    "yaml quoted": Form("camel", "any", each('%s: "%s"')), "toml": Form("snake", "any", each('%s = "%s"', before="[server]\n")),
    "helm values": Form("camel", "any", each("    %s: %s", before="replicaCount: 2\npostgresql:\n  auth:\n")),
    "ansible vars": Form("snake", "any", each('    app_%s: "%s"', before="- hosts: web\n  become: true\n  vars:\n")),
    "compose list": Form("upper", "word", each("      - %s=%s", before="services:\n  app:\n    image: example/app:1.4\n    environment:\n")),
    "compose map": Form("upper", "any", each('      %s: "%s"', before="services:\n  app:\n    image: example/app:1.4\n    environment:\n")),
    "kubernetes env": Form("upper", "any", each('    - name: %s\n      value: "%s"', before=POD)),
    "kubernetes stringData": Form("kebab", "any", each("  %s: %s", before=SECRET + "type: Opaque\nstringData:\n"), keeps=False),
    "kubernetes data": Form("kebab", "any", each("  %s: %s", before=SECRET + "type: Opaque\ndata:\n"), encoded, keeps=False),
    "ini": Form("snake", "any", each("%s = %s", before="[server]\n")), "properties": Form("dotted", "any", each("%s=%s")),
    "hcl": Form("snake", "any", each('  %s = "%s"', before='resource "example_database" "main" {\n', after="\n}")),
    "json text": Form("snake", "any", each('  "%s": "%s"', ",\n", "{\n", "\n}")), "python assignments": Form("upper", "any", each('%s = "%s"')),
    "json minified": Form("camel", "any", each('"%s":"%s"', ",", '{"ok":true,"item":{', "}}")),
    "json escaped": Form("snake", "any", each('\\"%s\\": \\"%s\\"', ", ", '{"body": "{', '}"}')),
    "json in field": Form("camel", "any", lambda p: {"status": 200, "body": json.dumps(dict(p))}),
    "nested objects": Form("camel", "any", lambda p: {"items": [{"settings": dict(p)}], "total": 1}),
    "python dict": Form("snake", "any", each("    '%s': '%s'", ",\n", "CONFIG = {\n", ",\n}")),
    "python keywords": Form("snake", "any", each('%s="%s"', ", ", "client = connect(", ")")),
    "javascript object": Form("camel", "any", each("  %s: '%s'", ",\n", "module.exports = {\n", ",\n};")),
    "javascript constants": Form("camel", "any", each('const %s = "%s";')), "java setters": Form("pascal", "any", each('config.set%s("%s");')),
    "go struct": Form("pascal", "any", each('\t%s: "%s"', ",\n", "cfg := &Config{\n", ",\n}")),
    "java fields": Form("camel", "any", each('    private static final String %s = "%s";', before="class Settings {\n", after="\n}")),
    "csharp": Form("pascal", "any", each('    public string %s { get; set; } = "%s";', before="public class Settings\n{\n", after="\n}")),
    "php array": Form("snake", "any", each("    '%s' => '%s'", ",\n", "<?php\nreturn [\n", ",\n];")),
    "ruby hash": Form("snake", "any", each('  %s: "%s"', ",\n", "Service.configure(\n", "\n)")),
    "powershell": Form("pascal", "any", each('$%s = "%s"')), "batch": Form("upper", "plain", each("set %s=%s", "\r\n", "@echo off\r\n")),
    "dockerfile": Form("upper", "any", each('ENV %s="%s"', before="FROM debian:12\n")),
    "systemd": Form("upper", "any", each('Environment="%s=%s"', before="[Service]\nExecStart=/usr/bin/app\n")),
    "command options": Form("kebab", "plain", each("--%s %s", " ", "app deploy ")),
    "argument list": Form("kebab", "any", lambda p: {"cmd": ["app", "login", *[part for k, v in p for part in ("--" + k, v)]]}),
    "xml elements": Form("camel", "any", lambda p: "<config>\n" + "\n".join(f"  <{k}>{v}</{k}>" for k, v in p) + "\n</config>", html.escape),
    "xml attributes": Form("camel", "any", each('%s="%s"', " ", "<connection ", "/>"), html.escape),
    "xml settings": Form("pascal", "any", each('  <add key="%s" value="%s" />', before="<appSettings>\n", after="\n</appSettings>"), html.escape),
    "plist": Form("pascal", "any", each("\t<key>%s</key>\n\t<string>%s</string>", before=PLIST, after="\n</dict>\n</plist>"), html.escape),
    "registry": Form("pascal", "any", each('"%s"="%s"', "\r\n", "REGEDIT4\r\n\r\n[HKEY_LOCAL_MACHINE\\SOFTWARE\\App]\r\n")),
    "html inputs": Form("snake", "any", each('<input name="%s" value="%s">', before="<form>\n", after="\n</form>"), html.escape),
    "urlencoded": Form("snake", "any", each("%s=%s", "&"), quote_plus), "markdown definitions": Form("title", "any", each("%s\n: %s", "\n\n")),
    "multipart": Form("snake", "any", each('Content-Disposition: form-data; name="%s"\r\n\r\n%s', "\r\n--x7b\r\n", "--x7b\r\n", "\r\n--x7b--\r\n")),
    "curl form": Form("snake", "any", each("-F '%s=%s'", " ", "curl https://api.example.com/upload ")),
    "html definitions": Form("title", "any", each("<dt>%s</dt><dd>%s</dd>", "\n", "<dl>\n", "\n</dl>"), html.escape),
    "markdown bullets": Form("title", "any", each("- **%s:** %s")), "pairs": Form("snake", "any", lambda p: [[k, v] for k, v in p]),
    "label lines": Form("title", "any", each("%s: %s", before="Access for the new server\n\n")),
    "key and value rows": Form("snake", "any", lambda p: [["key", "value"], *[[k, v] for k, v in p]]),
    "key and value table": Form("title", "any", each("| %s | %s |", before="| Setting | Value |\n|---|---|\n")),
    "name and value objects": Form("snake", "any", named("name", "value")), "merge": Form("snake", "any", each("t.%s = '%s'", ", ", MERGE, ";")),
    "key and value objects": Form("upper", "any", named("key", "value", type="text")),
    "field objects": Form("title", "any", named("label", "value", section="login")),
    "insert": Form("snake", "any", lambda p: insert([k for k, _ in p], [[v for _, v in p]])),
    "positional": Form("snake", "any", lambda p: {"sql": insert([k for k, _ in p], [["?"] * 4]).replace("'", ""), "params": [v for _, v in p]}),
    "named parameters": Form("snake", "any", lambda p: {"sql": "UPDATE accounts SET " + ", ".join(f"{k} = :{k}" for k, _ in p), "params": dict(p)}),
    "update": Form("snake", "any", each("%s = '%s'", ", ", "UPDATE accounts SET ", " WHERE id = 17;")),
    "mongo shell": Form("camel", "any", each('%s: "%s"', ", ", "db.accounts.insertOne({ ", " })")),
}  # fmt: skip

# Parts after "===". Families after "§", their templates between "¦": <<x>> stands for a made-up value or a form of the name, and ⟦…⟧ for a neighbour to keep.
PARTS = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").removeprefix("=== ").split("\n=== ")
NAMED, GROUPED, FIXED, HARMLESS = (part.partition("\n")[2] for part in PARTS)
TONGUES = {
    "de": ("Benutzer", "Passwort", "Ihr vorläufiges Passwort lautet <<p>>"), "at": ("Anwender", "Kennwort", "Das Kennwort für <<h>> ist <<p>>"),
    "fr": ("Utilisateur", "Mot de passe", "Votre mot de passe provisoire est <<p>>"), "cs": ("Uživatel", "Heslo", "Vaše dočasné heslo je <<p>>"),
    "es": ("Usuario", "Contraseña", "Su contraseña temporal es <<p>>"), "pt": ("Utilizador", "Senha", "A sua senha provisória é <<p>>"),
    "br": ("Conta", "Palavra-passe", "A palavra-passe de <<h>> é <<p>>"), "it": ("Utente", "Parola d'ordine", "La parola d'ordine è <<p>>"),
    "nl": ("Gebruiker", "Wachtwoord", "Uw tijdelijke wachtwoord is <<p>>"), "pl": ("Użytkownik", "Hasło", "Twoje hasło tymczasowe to <<p>>"),
    "ru": ("Пользователь", "Пароль", "Ваш временный пароль: <<p>>"), "sv": ("Användare", "Lösenord", "Ditt tillfälliga lösenord är <<p>>"),
    "tr": ("Kullanıcı", "Şifre", "Geçici şifreniz: <<p>>"), "fi": ("Käyttäjä", "Salasana", "Väliaikainen salasanasi on <<p>>"),
    "zh": ("用户名", "密码", "您的临时密码是 <<p>>"), "ja": ("ユーザー名", "パスワード", "仮パスワードは <<p>> です"),
    "ko": ("사용자", "비밀번호", "임시 비밀번호: <<p>>"),
}  # fmt: skip
FOREIGN = {
    "foreign labels": "{user}: <<u>>\n{label}: <<p>>", "foreign keys": 'json:{{"{user}": "<<u>>", "{label}": "<<p>>"}}',
    "foreign columns": "{user};{label}\n<<u1>>;<<p1>>\n<<u2>>;<<p2>>", "foreign tables": "| {user} | {label} |\n|---|---|\n| <<u>> | <<p>> |",
    "foreign prose": "{prose}\n",
}  # fmt: skip
SETTINGS = [
    ("max_tokens", "4096"), ("password_min_length", "12"), ("key_size", "2048"), ("secret_name", "billing-db"), ("pass_rate", "97.5"),
    ("keyboard_layout", "qwerty"), ("password_expiry_days", "90"), ("tokenizer", "wordpiece"), ("primary_key", "order_id"), ("auth_method", "oidc"),
    ("sort_key", "created_at"), ("password_required", "true"), ("token_ttl", "3600"), ("passenger", "Moreau"), ("keywords", "travel"),
]  # fmt: skip
FACTS = {
    "product": ["lamp", "bicycle", "teapot"], "price": ["12.50", "349.00", "18.90"], "pass_rate": ["97.1", "88.4", "91.0"],
    "password_changed_at": ["2024-03-02", "2023-11-19", "2024-01-30"], "has_password": ["true", "false", "true"], "note": ["", "late", ""],
    "tokens_used": ["912", "120", "77"], "city": ["Lisbon", "Oslo", "Ghent"], "keyword": ["travel", "garden", "art"], "passed": ["yes", "no", "no"],
    "primary_key": ["id", "sku", "code"], "secretary": ["Moreau", "Nowak", "Rossi"], "commit": ["a41c09e", "b7720fd", "c3e91ab"],
}  # fmt: skip


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the families of a text with their templates."""
    escapes = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
    for section in text.strip("\n").removeprefix("§ ").split("\n§ "):
        family, _, body = section.partition(": ")
        templates = re.split(r"\s¦\s", body)
        yield family, [re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[0]), template) for template in templates]


def filled(family: str, template: str, pool: Pool, name: str = "password", kind: str = "password") -> Case:
    """Fill in a template."""
    rng = pool.rng
    made: dict[str, str] = {}
    hidden: set[str] = set()
    forms = {"k": "snake", "K": "upper", "c": "camel", "d": "kebab", "L": "title"}
    secret: dict[str, Callable[[], str]] = {
        "p": pool.password, "q": lambda: pool.password(plain=True), "m": lambda: quote(pool.password(), safe=""), "t": pool.token,
        "x": lambda: pool.token(plain=True), "f": lambda: pool.secret("phrase"), "n": lambda: pool.secret("pin"),
        "s": lambda: pool.secret(kind), "r": lambda: pool.secret(kind, "plain"), "e": lambda: html.escape(pool.secret(kind)),
        "b": lambda: encoded(f"svc:{pool.password()}"),
    }  # fmt: skip
    shown: dict[str, Callable[[], str]] = {
        "u": lambda: rng.choice([user for user in USERS if user not in made.values()]), "h": lambda: rng.choice(HOSTS), "Y": pool.date,
        "G": lambda: rng.randbytes(20).hex(), "H": lambda: rng.randbytes(32).hex(), "D": lambda: "a" + rng.randbytes(3).hex(),
        "U": lambda: str(uuid.UUID(bytes=rng.randbytes(16), version=4)), "N": lambda: str(rng.randrange(100, 90_000)),
    }  # fmt: skip

    def replace(match: re.Match[str]) -> str:
        key, letter = match[0], match[1]
        if letter in forms or letter == "l":
            return styled(name, forms[letter]) if letter in forms else name.replace("_", " ")
        if key not in made:
            made[key] = secret[letter]() if letter in secret else shown[letter]()
            if letter in secret:
                hidden.add(made[key])
        return made[key]

    text = re.sub(r"<<([a-zA-Z])\d?>>", replace, template)
    keep = [value for value in made.values() if value not in hidden] + re.findall("⟦(.*?)⟧", text)
    text = re.sub("[⟦⟧]", "", text)
    return Case(family, json.loads(text[5:]) if text.startswith("json:") else text, tuple(sorted(hidden)), tuple(keep))


def choose(names: dict[str, str], count: int, pool: Pool) -> list[str]:
    """Return some of the names, the first before the others."""
    first, *rest = names
    return [first, *pool.rng.sample(rest, count - 1)]


def table(form: Form, pool: Pool, columns: list[list[str]]) -> tuple[list[str], Rows]:
    """Return the header and the rows of a table as a format writes them."""
    style = pool.rng.choice(["snake", "title", "camel", "upper"]) if form.style == "mixed" else form.style
    head, *rows = zip(*columns, strict=True)
    return [styled(name, style) for name in head], [[form.encode(cell) for cell in row] for row in rows]


def accounts(pool: Pool, place: int, column: list[str]) -> list[list[str]]:
    """Return the columns of a table of accounts, with one more at a place."""
    users, cities = pool.rng.sample(USERS, 3), pool.rng.sample(CITIES, 3)
    columns = [["id", "11", "12", "13"], ["username", *users], ["city", *cities], ["last_login", *(pool.date() for _ in range(3))]]
    return [*columns[:place], column, *columns[place:]]


def settings(form: Form, pool: Pool, pairs: Pairs) -> tuple[object, list[str]]:
    """Return some pairs with others around them as a format writes them, and the values of the others."""
    rng = pool.rng
    others = [("username", rng.choice(USERS)), ("host", rng.choice(HOSTS)), ("region", "eu-west-1"), ("timeout", "30"), ("team", rng.choice(TEAMS))]
    around = rng.sample(others, 4 - len(pairs))
    place = rng.randrange(len(around) + 1)
    written = [(styled(name, form.style), form.encode(value)) for name, value in [*around[:place], *pairs, *around[place:]]]
    return form.render(written), [form.encode(value) for _, value in around if len(value) > 2 and form.keeps]


def leaves(value: object) -> list[str]:
    """Return the texts in a nested value."""
    if isinstance(value, dict | list):
        return [text for item in (value.values() if isinstance(value, dict) else value) for text in leaves(item)]
    return [value] if isinstance(value, str) and value else []


def secrets() -> Iterator[Case]:
    """Yield the cases with secrets."""
    pool = Pool(SEED)
    for family, form in GRIDS.items():
        for name in choose(NAMES, 10, pool):
            place = pool.rng.randrange(1, 5)
            head, rows = table(form, pool, accounts(pool, place, [name, *(pool.secret(NAMES[name], form.level) for _ in range(3))]))
            keep = [cell for row in rows for number, cell in enumerate(row) if number not in (0, place)]
            yield Case(family, form.render(head, rows), tuple(row[place] for row in rows), tuple(keep))
    for family, form in FORMS.items():
        for name in choose(NAMES, 7, pool):
            secret = pool.secret(NAMES[name], form.level)
            value, keep = settings(form, pool, [(name, secret)])
            yield Case(family, value, (form.encode(secret),), tuple(keep))
    for family, templates in sections(NAMED):
        for number, name in enumerate(choose(NAMES, 10, pool)):
            template = templates[number % len(templates)]
            halves = "<<s2>>" in template and family != "diffs"
            name = pool.rng.choice([key for key, kind in NAMES.items() if kind == "token"]) if halves else name
            yield filled(family, template, pool, name, NAMES[name])
    for family, templates in sections(GROUPED):
        for name in choose(GROUPS, 6, pool):
            yield filled(family, templates[0], pool, name, GROUPS[name])
    for family, templates in sections(FIXED):
        yield from (filled(family, template, pool) for template in templates)
    for family, pattern in FOREIGN.items():
        for user, label, prose in TONGUES.values():
            yield filled(family, pattern.format(user=user, label=label, prose=prose), pool)


def harmless() -> Iterator[Case]:
    """Yield the cases without secrets, of which all must stay."""
    pool = Pool(SEED + 1)
    rng = pool.rng

    def whole(family: str, value: object) -> Case:
        return Case(family, value, (), tuple(leaves(value)))

    for family, form in GRIDS.items():
        for _ in range(3):
            yield whole(f"facts: {family}", form.render(*table(form, pool, [[name, *FACTS[name]] for name in rng.sample(list(FACTS), 4)])))
        if family.startswith(("insert", "copy")):
            continue
        for name in choose(NAMES, 2, pool):
            columns = [["column_name", "id", name, "city"], ["data_type", "bigint", "varchar(255)", "text"], ["is_nullable", "NO", "NO", "YES"]]
            yield whole(f"schema: {family}", form.render(*table(form, pool, columns)))
        blank = rng.choice(["NULL", "********"]) if family.startswith(("psql", "mysql", "sqlite")) else "********"
        yield whole("tables with masked cells", form.render(*table(form, pool, accounts(pool, 3, ["password", blank, blank, blank]))))
    for family, form in FORMS.items():
        for _ in range(2 if form.keeps else 0):
            yield whole(f"settings: {family}", settings(form, pool, rng.sample(SETTINGS, 3))[0])
        if form.encode in (str, html.escape) and form.keeps:
            for name in choose(NAMES, 3, pool):
                marks = ["********", f"${{{name.upper()}}}", f"<{styled(name, 'kebab')}>", f"{{{{ {name} }}}}", ""]
                yield whole(f"placeholders: {family}", settings(form, pool, [(name, rng.choice(marks if form.level == "any" else marks[1:2]))])[0])
    for family, templates in sections(HARMLESS):
        yield from (whole(family, filled(family, template, pool).value) for template in templates)
