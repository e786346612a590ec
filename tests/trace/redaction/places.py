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

# Families after "§", their templates between "¦": <<x>> stands for a made-up value or a form of the name, and ⟦…⟧ for a neighbour to keep.
NAMED = r'''
§ yaml block scalar: <<k>>: |\n  <<s>>\n⟦replicas: 3⟧\n ¦ auth:\n  ⟦realm: staff⟧\n  <<c>>: >-\n    <<s>>\n
§ multi-line string: <<k>> = """\n<<s>>\n"""\n⟦retries = 5⟧ ¦ <<c>> := `\n<<s>>\n`\n⟦retries := 5⟧
§ adjacent strings: <<k>> = (\n    "<<s1>>"\n    "<<s2>>"\n)\n⟦retries = 5⟧ ¦ char *<<k>> = "<<s1>>"\n    "<<s2>>";\n⟦int retries = 5;⟧
§ concatenation: const <<c>> = '<<s1>>' +\n  '<<s2>>';\n⟦const retries = 5;⟧ ¦ String <<c>> = "<<s1>>" + "<<s2>>";\n⟦int retries = 5;⟧
§ template literal: const <<c>> = `<<s>>`;\n⟦const retries = 5;⟧ ¦ let <<c>> = String.raw`\n<<s>>\n`.trim();\n⟦let retries = 5;⟧
§ heredoc: <<K>>=$(cat <<'EOF'\n<<s>>\nEOF\n)\n⟦RETRIES=5⟧ ¦ <?php\n$<<c>> = <<<'TXT'\n<<s>>\nTXT;\n⟦$retries = 5;⟧
¦ cat > /etc/app/<<k>> <<EOF\n<<s>>\nEOF\n⟦chmod 600⟧ /etc/app/<<k>>
§ line continuation: <<k>> = \\\n    '<<s>>'\n⟦retries = 5⟧ ¦ app login \\\n  --user <<u>> \\\n  --<<d>> \\\n  "<<s>>"\n
¦ app.<<k>>=\\\n    <<r>>\n⟦app.retries=5⟧
§ default of a lookup: <<k>> = os.environ.get("<<K>>", "<<s>>") ¦ <<K>>="${<<K>>:-<<r>>}" ¦ const <<c>> = process.env.<<K>> || '<<s>>';
§ attributes and subscripts: self._<<k>> = "<<s>>"\n⟦self.retries = 5⟧ ¦ config["<<k>>"] = "<<s>>"\n⟦config["retries"] = 5⟧
¦ settings.<<k>> = '<<s>>' ¦ $config['<<k>>'] = '<<s>>'; ¦ os.environ["<<K>>"] = "<<s>>" ¦ os.Setenv("<<K>>", "<<s>>")
§ typed declarations: <<k>>: str = "<<s>>" ¦ private <<c>>: string = '<<s>>'; ¦ var <<c>> string = "<<s>>" ¦ let <<k>>: String = "<<s>>".into();
§ comparisons: if request.form["<<k>>"] == "<<s>>":\n    ⟦grant(user)⟧ ¦ if (<<c>> === '<<s>>') {\n  ⟦return next();⟧\n}
§ secret stores: vault kv put ⟦secret/apps/billing⟧ <<k>>="<<s>>" ¦ kubectl create secret generic ⟦billing-env⟧ --from-literal=<<d>>='<<s>>'
¦ gh secret set <<K>> --body "<<s>>" ¦ echo -n "<<s>>" | docker secret create <<k>> - ¦ heroku config:set <<K>>="<<s>>" --app ⟦billing-prod⟧
¦ aws ssm put-parameter --name ⟦/billing/prod⟧/<<k>> --type SecureString --value "<<s>>"
§ diffs: @@ -4,3 +4,3 @@\n ⟦retries: 5⟧\n-<<k>>: <<s1>>\n+<<k>>: <<s2>>\n ¦ +++ b/settings.py\n+<<K>> = '<<s>>'\n ⟦RETRIES = 5⟧
§ comments: # <<k>>: <<s>>\n⟦def main() -> None:⟧\n    run() ¦ // <<c>> = "<<s>>"\n⟦int main(void);⟧ ¦ <!-- <<c>>: <<e>> -->\n<p>⟦Welcome back⟧</p>
§ grep output: config/prod.yml:12:  <<k>>: "<<s>>"\n⟦config/prod.yml:13:  retries: 5⟧ ¦ settings.py:8:<<K>> = '<<s>>'
§ log lines: ⟦2024-03-02 10:11:12 DEBUG⟧ login request user=<<u>> <<k>>=<<r>> ⟦status=200⟧ ¦ ⟦[auth] trying⟧ {'user': '<<u>>', '<<k>>': '<<s>>'}
¦ ⟦time="2024-03-02T10:11:12Z" level=info⟧ <<k>>="<<s>>" user=<<u>>
§ form filling: json:{"action": "fill", "selector": "#<<k>>", "text": "<<s>>"} ¦ await page.fill("#<<k>>", "<<s>>");\nawait ⟦page.click("#submit")⟧;
¦ json:{"tool": "type_text", "arguments": {"element": "<<L>> field", "text": "<<s>>"}} ¦ page.get_by_label("<<L>>").fill("<<s>>")
¦ driver.find_element(By.NAME, "<<k>>").send_keys("<<s>>") ¦ cy.get('input[name="<<k>>"]').type("<<s>>")
§ prose with a name: The <<l>> for <<h>> is <<s>> ¦ Please use <<s>> as the <<l>> on <<h>>. ¦ New <<l>>: <<s>>
¦ I have changed the <<l>> of <<u>> to `<<s>>`; ⟦it is valid until Friday⟧.
'''
GROUPED = r"""
§ yaml map of a group: <<k>>:\n  <<u1>>: <<s1>>\n  <<u2>>: <<s2>>\n⟦replicas: 3⟧
§ yaml list of a group: <<c>>:\n  - <<s1>>\n  - <<s2>>\n⟦replicas: 3⟧
§ toml section of a group: [<<k>>]\n<<u1>> = "<<s1>>"\n<<u2>> = "<<s2>>"\n\n[server]\n⟦port = 8080⟧
§ ini section of a group: [<<k>>]\n<<u1>> = <<s1>>\n<<u2>> = <<s2>>\n\n[server]\n⟦port = 8080⟧
§ toml array of a group: <<k>> = [\n  "<<s1>>",\n  "<<s2>>",\n]\n⟦port = 8080⟧
§ map of a group: json:{"<<k>>": {"<<u1>>": "<<s1>>", "<<u2>>": "<<s2>>"}, "region": "⟦eu-west-1⟧"}
§ list of a group: json:{"<<c>>": ["<<s1>>", "<<s2>>"], "region": "⟦eu-west-1⟧"}
§ objects of a group: json:{"<<k>>": [{"owner": "<<u1>>", "value": "<<s1>>"}, {"owner": "<<u2>>", "value": "<<s2>>"}]}
§ python group: <<K>> = {\n    "<<u1>>": "<<s1>>",\n    "<<u2>>": "<<s2>>",\n}\n⟦RETRIES = 5⟧
§ javascript group: const <<c>> = ['<<s1>>', '<<s2>>'];\n⟦const retries = 5;⟧
§ markdown group: ### <<L>>\n\n- <<u1>>: <<s1>>\n- <<u2>>: <<s2>>\n\n### Contacts\n\n⟦Ask the help desk.⟧
§ text group: <<L>>:\n    <<u1>>    <<s1>>\n    <<u2>>    <<s2>>\n\n⟦Ask the help desk.⟧
§ env list of a group: <<K>>=<<r1>>,<<r2>>\n⟦RETRIES=5⟧
§ hcl group: <<k>> = {\n  <<u1>> = "<<s1>>"\n  <<u2>> = "<<s2>>"\n}\n⟦retries = 5⟧
§ xml group: <<<c>>>\n  <entry user="<<u1>>"><<e1>></entry>\n  <entry user="<<u2>>"><<e2>></entry>\n</<<c>>>
§ html group: <h3><<L>></h3>\n<ul>\n<li><<u1>>: <<e1>></li>\n<li><<u2>>: <<e2>></li>\n</ul>
"""
FIXED = r'''
§ emails: Hi <<u>>,\n\nyour temporary password is <<p>>\n\n⟦Please change it after your first login.⟧ ¦ The passphrase for the archive is: <<f>>
¦ Dear <<u>>, we have reset your password. Your new password: <<p>>\n⟦Kind regards, the help desk⟧ ¦ Your one-time PIN is <<n>>. ⟦Do not share it.⟧
¦ Your account is ready.\nLog in with the password "<<p>>" ⟦at https://portal.example.com⟧. ¦ Use the password <<p>> to open the attached PDF.
¦ Hello,\nthe Wi-Fi password for guests is <<p>>\n⟦See you on Sunday⟧ ¦ Username: <<u>>\nTemporary password: <<p>>\n⟦Expires in 24 hours⟧
¦ The PIN of your new card is <<n>>. ⟦Destroy this letter.⟧ ¦ Your API key is <<t>>\n⟦It has read access only.⟧
§ tickets: Steps: 1. ⟦open the console⟧ 2. log in as <<u>> with password <<p>>\n3. ⟦press Export⟧ ¦ ⟦Reset done.⟧ The new password is '<<p>>'.
¦ root password on <<h>>: <<p>> ¦ Test account: <<u>>, password: <<p>>\n⟦Role: viewer⟧ ¦ I set the admin password to <<p>> for now
¦ login: <<u>>\npassword: <<p>> ¦ Credentials for <<h>>: <<u>> / <<p>> ¦ User <<u>> with pw <<p>> ⟦cannot see the report⟧
§ chat logs: [10:02] <<u1>>: what's the db password?\n[10:03] <<u2>>: <<p>>\n[10:03] <<u1>>: ⟦thanks⟧ ¦ <<u1>> [09:14]: new api token is <<t>>
¦ <<u1>>: can you send me the vpn password\n<<u2>>: sure, it's <<p>> ¦ <<u1>>: the password for staging is <<p>>\n<<u2>>: ⟦don't tell the interns⟧
¦ json:[{"role": "assistant", "content": "⟦What is the database password?⟧"}, {"role": "user", "content": "<<p>>"}] ¦ <<u1>>: pw is <<p>>
¦ json:[{"from": "<<u1>>", "text": "⟦PIN for the door?⟧"}, {"from": "<<u2>>", "text": "The PIN is <<n>>"}] ¦ <<u1>>: password: <<p>>
§ dialogs: Q: What is the admin password?\nA: <<p>>\nQ: ⟦Which port is used?⟧\nA: 8443 ¦ Enter your API token: <<t>>\n⟦Token saved.⟧
¦ ? Database user: <<u>>\n? Database password: <<p>>\n? ⟦Use TLS: yes⟧ ¦ Enter passphrase for key '/home/<<u>>/.ssh/id_rsa': <<f>>\n⟦Identity added⟧
¦ json:{"question": "What is your password?", "answer": "<<p>>"} ¦ json:{"prompt": "Enter PIN:", "response": "<<n>>"}
¦ New password: <<p>>\nRetype new password: <<p>>\n⟦passwd: password updated successfully⟧
¦ json:[{"title": "VPN password", "answer": "<<p>>"}, {"title": "Office", "answer": "⟦Lisbon⟧"}]
§ shell commands: mysql -u <<u>> -p<<q>> ⟦inventory⟧ ¦ sshpass -p '<<p>>' ssh <<u>>@<<h>> ¦ PGPASSWORD='<<p>>' psql -h <<h>> -U <<u>>
¦ curl -u '<<u>>:<<p>>' ⟦https://api.example.com/v1/items⟧ ¦ echo '<<p>>' | sudo -S ⟦systemctl restart nginx⟧ ¦ echo "<<u>>:<<p>>" | chpasswd
¦ docker login -u <<u>> -p '<<p>>' <<h>> ¦ openssl enc ⟦-aes-256-cbc⟧ -pass pass:<<q>> ⟦-in backup.tar⟧ ¦ redis-cli -h <<h>> -a '<<p>>' ⟦ping⟧
¦ zip -P '<<p>>' ⟦archive.zip report.csv⟧ ¦ net user <<u>> <<q>> /add ¦ smbclient //<<h>>/share -U <<u>>%<<q>>
¦ mongosh --host <<h>> -u <<u>> -p '<<p>>' ¦ wget --user=<<u>> --password='<<p>>' ⟦https://files.example.com/a.iso⟧
§ shell sessions: $ sudo apt update\n[sudo] password for <<u>>: <<p>>\n⟦Hit:1 http://deb.debian.org/debian bookworm InRelease⟧
¦ $ ssh <<u>>@<<h>>\n<<u>>@<<h>>'s password: <<p>>\n⟦Last login: Mon Mar 4⟧ ¦ $ su -\nPassword: <<p>>\n⟦root@web:~#⟧
¦ login: <<u>>\nPassword: <<p>>\n⟦Welcome to Ubuntu 22.04⟧ ¦ $ psql -h <<h>>\nPassword for user <<u>>: <<p>>\n⟦psql (15.4)⟧
¦ Username for 'https://git.example.com': <<u>>\nPassword for 'https://<<u>>@git.example.com': <<t>> ¦ $ echo $DB_PASSWORD\n<<p>>\n$ ⟦whoami⟧
¦ $ vault kv get -field=password ⟦apps/billing⟧\n<<p>> ¦ $ export TOKEN=<<x>>\n$ ⟦make deploy⟧
§ expect scripts: spawn ssh <<u>>@<<h>>\nexpect "password:"\nsend "<<p>>\\r"\n⟦interact⟧ ¦ json:{"expect": "Password: ", "send": "<<p>>"}
¦ expect {\n  "assword:" { send "<<p>>\\r" }\n  ⟦timeout { exit 1 }⟧\n} ¦ tn.read_until(b"Password: ")\ntn.write(b"<<p>>\\n")\n⟦tn.write(b"exit\\n")⟧
§ http headers: ⟦GET /v1/items HTTP/1.1⟧\nHost: <<h>>\nAuthorization: Bearer <<t>>\n⟦Accept: */*⟧ ¦ Authorization: Basic <<b>>\n⟦Accept: text/html⟧
¦ X-API-Key: <<t>>\n⟦Content-Type: application/json⟧ ¦ curl -H 'X-Auth-Token: <<t>>' ⟦https://api.example.com/v1/items⟧ ¦ PRIVATE-TOKEN: <<x>>
¦ Proxy-Authorization: Basic <<b>> ¦ json:{"headers": {"Authorization": "Bearer <<t>>", "Accept": "⟦text/html⟧"}}
¦ json:{"headers": [["x-api-key", "<<t>>"], ["accept", "⟦text/html⟧"]]} ¦ Authorization: Token <<x>>\n⟦User-Agent: curl/8.1⟧
¦ requests.get(url, auth=("<<u>>", "<<p>>"), ⟦timeout=10⟧) ¦ X-Vault-Token: <<x>>\n⟦Accept: */*⟧
§ auth dialogs: ⟦220 ftp.example.org ready⟧\nUSER <<u>>\n331 Password required\nPASS <<p>>\n⟦230 Logged in⟧ ¦ 127.0.0.1:6379> AUTH <<u>> <<q>>\n⟦OK⟧
¦ 127.0.0.1:6379> AUTH <<q>>\n⟦OK⟧\n127.0.0.1:6379> ⟦GET greeting⟧ ¦ a1 LOGIN <<u>> "<<p>>"\n⟦a1 OK LOGIN completed⟧ ¦ CONFIG SET requirepass "<<p>>"
¦ C: ⟦EHLO client⟧\nC: AUTH LOGIN\nS: 334 VXNlcm5hbWU6\nC: YWxpY2U=\nS: 334 UGFzc3dvcmQ6\nC: <<b>>\nS: ⟦235 Authentication successful⟧
¦ requirepass <<q>>\n⟦maxmemory 256mb⟧ ¦ C: AUTH PLAIN <<b>>\nS: ⟦235 Authentication successful⟧
§ connection urls: postgresql://<<u>>:<<m>>@<<h>>:5432/⟦inventory⟧ ¦ DATABASE_URL=mysql://<<u>>:<<m>>@<<h>>/⟦inventory⟧ ¦ redis://:<<m>>@<<h>>:6379/0
¦ mongodb+srv://<<u>>:<<m>>@<<h>>/?⟦retryWrites=true⟧ ¦ amqp://<<u>>:<<m>>@<<h>>:5672/⟦%2Fvhost⟧ ¦ git clone https://<<u>>:<<x>>@<<h>>/⟦team/app.git⟧
¦ ftp://<<u>>:<<m>>@<<h>>/⟦pub⟧ ¦ https://oauth2:<<x>>@<<h>>/⟦team/app.git⟧ ¦ json:{"url": "postgresql://<<u>>:<<m>>@<<h>>/⟦inventory⟧"}
¦ create_engine("mssql+pyodbc://<<u>>:<<m>>@<<h>>/⟦inventory⟧")
§ connection strings: Server=<<h>>;Database=⟦inventory⟧;User Id=<<u>>;Password=<<p>>;⟦Encrypt=true⟧ ¦ <<u>>:<<q>>@tcp(<<h>>:3306)/⟦inventory⟧
¦ Data Source=<<h>>;Initial Catalog=⟦inventory⟧;uid=<<u>>;pwd=<<p>> ¦ host=<<h>> dbname=⟦inventory⟧ user=<<u>> password=<<q>> ⟦sslmode=require⟧
¦ jdbc:mysql://<<h>>/⟦inventory⟧?user=<<u>>&password=<<m>>&⟦useSSL=true⟧ ¦ sqlplus <<u>>/<<q>>@<<h>>/⟦ORCL⟧
¦ DRIVER={PostgreSQL};SERVER=<<h>>;UID=<<u>>;PWD={<<p>>}; ¦ DriverManager.getConnection(⟦url⟧, "<<u>>", "<<p>>")
¦ mysqli_connect('<<h>>', '<<u>>', '<<p>>', ⟦'inventory'⟧) ¦ psycopg2.connect("host=<<h>> user=<<u>> password='<<p>>'")
§ hash calls: SELECT crypt('<<p>>', gen_salt('bf')) AS ⟦digest⟧ ¦ bcrypt.hashpw(b"<<p>>", bcrypt.gensalt()) ¦ BCrypt::Password.create("<<p>>")
¦ UPDATE accounts SET password = MD5('<<p>>') WHERE login = '<<u>>' ¦ password_hash('<<p>>', ⟦PASSWORD_DEFAULT⟧) ¦ openssl passwd -6 '<<p>>'
¦ generate_password_hash("<<p>>", ⟦method="scrypt"⟧) ¦ user.set_password("<<p>>")\n⟦user.save()⟧ ¦ htpasswd -bB /etc/nginx/users <<u>> '<<p>>'
¦ INSERT INTO accounts (login, password) VALUES ('<<u>>', crypt('<<p>>', gen_salt('bf'))) ¦ check_password("<<p>>", ⟦user.digest⟧)
§ sql users: CREATE USER <<u>> WITH PASSWORD '<<p>>' ⟦CREATEDB⟧; ¦ CREATE USER '<<u>>'@'%' IDENTIFIED BY '<<p>>';
¦ ALTER ROLE <<u>> PASSWORD '<<p>>' ⟦VALID UNTIL 'infinity'⟧; ¦ ALTER USER <<u>> IDENTIFIED BY "<<p>>" ⟦ACCOUNT UNLOCK⟧;
¦ SET PASSWORD FOR '<<u>>'@'localhost' = PASSWORD('<<p>>'); ¦ CREATE LOGIN <<u>> WITH PASSWORD = '<<p>>', ⟦CHECK_POLICY = OFF⟧;
¦ GRANT ALL ON inventory.* TO '<<u>>'@'%' IDENTIFIED BY '<<p>>'; ¦ SELECT * FROM accounts WHERE login = '<<u>>' AND password = '<<p>>' ⟦LIMIT 1⟧
§ ldap: dn: uid=<<u>>,ou=people,dc=example\n⟦objectClass: inetOrgPerson⟧\nuserPassword: <<p>>\n⟦loginShell: /bin/bash⟧
¦ userPassword:: <<b>>\n⟦cn: Reader⟧ ¦ rootdn "⟦cn=admin,dc=example,dc=org⟧"\nrootpw <<q>> ¦ bindpw <<q>>\n⟦base dc=example,dc=org⟧
¦ changetype: modify\nreplace: userPassword\nuserPassword: <<p>> ¦ conn.simple_bind_s("⟦cn=admin,dc=example⟧", "<<p>>")
¦ json:{"dn": "uid=<<u>>,ou=people", "attributes": {"userPassword": ["<<p>>"], "cn": ["⟦Reader⟧"]}}
§ router configs: ⟦hostname edge-1⟧\nenable secret <<q>>\n⟦ip domain-name example.org⟧ ¦ enable password <<q>> ¦ username <<u>> password 0 <<q>>
¦ username <<u>> ⟦privilege 15⟧ secret <<q>> ¦ line vty 0 4\n password <<q>>\n ⟦login⟧ ¦ snmp-server community <<q>> ⟦RO⟧ ¦ tacacs-server key <<q>>
¦ crypto isakmp key <<q>> ⟦address 198.51.100.7⟧ ¦ radius-server host 198.51.100.7 key <<q>> ¦ neighbor 198.51.100.7 password <<q>>
¦ set system root-authentication plain-text-password-value "<<p>>" ¦ /user add name=<<u>> ⟦group=full⟧ password="<<p>>"
§ wireless: network={\n  ssid="⟦CafeNet⟧"\n  psk="<<p>>"\n} ¦ ssid=⟦CafeNet⟧\nwpa_passphrase=<<q>>\n⟦channel=6⟧ ¦ WIFI:T:WPA;S:⟦CafeNet⟧;P:<<q>>;;
¦ [wifi-security]\n⟦key-mgmt=wpa-psk⟧\npsk=<<p>> ¦ nmcli dev wifi connect ⟦CafeNet⟧ password '<<p>>' ¦ wpa_passphrase ⟦CafeNet⟧ '<<p>>'
¦ SSID: ⟦CafeNet⟧\nKey Content : <<p>> ¦ WiFi.begin("⟦CafeNet⟧", "<<p>>"); ¦ <keyMaterial><<e>></keyMaterial>
§ unattended installs: <AutoLogon>\n  <Password>\n    <Value><<e>></Value>\n  </Password>\n  <Username><<u>></Username>\n</AutoLogon>
¦ <AdministratorPassword>\n  <Value><<e>></Value>\n  <PlainText>⟦true⟧</PlainText>\n</AdministratorPassword>
¦ rootpw --plaintext <<q>>\n⟦timezone Europe/Lisbon⟧ ¦ d-i passwd/user-password password <<q>>\n⟦d-i passwd/username string⟧ <<u>>
¦ user --name=<<u>> --password=<<q>> ⟦--groups=wheel⟧ ¦ chpasswd:\n  list: |\n    <<u>>:<<p>>\n⟦hostname: web1⟧
¦ "DefaultUserName"="<<u>>"\r\n"DefaultPassword"="<<p>>"\r\n⟦"AutoAdminLogon"="1"⟧
§ credential files: machine <<h>> login <<u>> password <<q>> ¦ machine <<h>>\n  login <<u>>\n  password <<p>>
¦ //registry.example.com/:_authToken=<<x>>\n⟦save-exact=true⟧ ¦ [pypi]\nusername = <<u>>\npassword = <<p>> ¦ [client]\nuser=<<u>>\npassword="<<p>>"
¦ [default]\n⟦region = eu-west-1⟧\naws_secret_access_key = <<t>> ¦ json:{"auths": {"<<h>>": {"auth": "<<b>>"}}}
¦ <server>\n  <id>⟦releases⟧</id>\n  <username><<u>></username>\n  <password><<e>></password>\n</server>
§ awkward characters: password: 'it''s <<p>>' ¦ json:{"user": "<<u>>", "password": "a b: <<p>>, {x}"} ¦ PASSWORD="<<p>> \"quoted\" <<q>>"
¦ id,password,city\n1,"<<p>>, ""<<q>>""",⟦Lisbon⟧ ¦ <password><![CDATA[<<p>>]]></password> ¦ password = r'<<p>>' ¦ PASSWORD=$'<<p>>\\n'
¦ password: !!str <<p>>\n⟦retries: 5⟧ ¦ "password" : "<<p>>" ,\n⟦"retries" : 5⟧
§ numeric values: json:{"pin": <<n>>, "city": "⟦Lisbon⟧"} ¦ json:{"user": "<<u>>", "password": <<n>>} ¦ pin: <<n>>\n⟦city: Lisbon⟧ ¦ <pin><<n>></pin>
¦ INSERT INTO cards (holder, pin) VALUES ('<<u>>', <<n>>); ¦ UPDATE cards SET pin = <<n>> ⟦WHERE id = 17⟧; ¦ holder,pin,city\n<<u>>,<<n>>,⟦Lisbon⟧
¦ json:[["holder", "pin"], ["<<u>>", <<n>>]] ¦ SIM PIN: <<n>>\n⟦Carrier: Example Mobile⟧
§ html forms: <label for="pw">Password</label>\n<input id="pw" type="password" value="<<e>>">\n<button>⟦Sign in⟧</button>
¦ <input type="password" name="j_pass" value="<<e>>" ⟦autocomplete="off"⟧> ¦ <p>Your password is <strong><<e>></strong></p>
¦ <tr><td>Password:</td><td><<e>></td></tr>\n<tr><td>City:</td><td>⟦Lisbon⟧</td></tr> ¦ <input type="hidden" name="api_key" value="<<x>>">
¦ <b>Password:</b> <code><<e>></code> ¦ <div class="label">Password</div><div class="value"><<e>></div>
§ tool calls: json:{"tool": "login", "arguments": {"user": "<<u>>", "password": "<<p>>"}}
¦ json:{"function": {"name": "login", "arguments": "{\"user\": \"<<u>>\", \"password\": \"<<p>>\"}"}}
¦ json:{"stdout": "user: <<u>>\\npassword: <<p>>\\n", "exit_code": 0} ¦ json:{"input": {"command": "export DB_PASSWORD='<<p>>' && ⟦make run⟧"}}
¦ json:{"fields": [{"id": "username", "value": "<<u>>"}, {"id": "password", "value": "<<p>>"}]}
¦ json:{"SecretString": "{\"username\": \"<<u>>\", \"password\": \"<<p>>\"}", "Name": "⟦prod/billing⟧"}
'''
HARMLESS = r"""
§ documentation: The password is stored as an Argon2 digest and never leaves the server.
¦ Set the `password` option to the password of the database user. ¦ Tokens expire after <<N>> seconds; request a new token with the refresh endpoint.
¦ An API key identifies the calling project. Keep your API key secret and rotate it every 90 days.
¦ `api_key` (string, required): the key used to sign requests. ¦ Pass the token in the `Authorization` header of each request.
¦ Never commit passwords, tokens or private keys to the repository. ¦ :param password: the password of the user, or None to be prompted for it
¦ Secrets are mounted below /run/secrets and read when the process starts. ¦ --password-file FILE   read the password from FILE (default: prompt)
¦ | Option | Meaning |\n|---|---|\n| password | The password of the account |\n| timeout | Seconds to wait |
§ policies: Passwords must have at least 12 characters and contain a digit. ¦ password:\n  min_length: 12\n  require_digit: true\n  max_age_days: 90
¦ minlen = 14\ndcredit = -1\nucredit = -1 ¦ PASS_MAX_DAYS   90\nPASS_MIN_DAYS   1\nPASS_WARN_AGE   7 ¦ security passwords min-length 10
¦ json:{"passwordPolicy": {"minimumLength": 12, "requireSymbols": true, "historySize": 5}} ¦ json:{"token": {"lifetime": 3600, "rotate": true}}
¦ Password rules: no dictionary words, no reuse of the last five passwords. ¦ Your password must not contain your user name.
§ token counts: Used <<N>> prompt tokens and 128 completion tokens ¦ max_tokens=4096, temperature=0.2 ¦ tokens/s: 48.2, time to first token: 310 ms
¦ json:{"usage": {"prompt_tokens": 1243, "completion_tokens": 310, "total_tokens": 1553}} ¦ The token budget of the planner is 32000 tokens per task.
¦ vocab_size: 32000\npad_token_id: 0\neos_token_id: 2 ¦ tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
¦ Truncated the input: <<N>> tokens exceed the limit of 8192 ¦ json:{"token_count": 912, "truncated": false}
§ code that reads secrets: password = os.environ["DB_PASSWORD"] ¦ const apiKey = process.env.API_KEY; ¦ token := os.Getenv("GITHUB_TOKEN")
¦ String password = System.getenv("DB_PASSWORD"); ¦ password = getpass.getpass("Password: ") ¦ secret = vault.read("secret/data/billing")["data"]
¦ $password = $_POST['password']; ¦ password: ${{ secrets.DB_PASSWORD }} ¦ api_key = settings.api_key ¦ PASSWORD=$(cat /run/secrets/db_password)
¦ def login(username: str, password: str) -> bool:\n    return verify(username, password) ¦ var password = builder.Configuration["Db:Password"];
¦ if not password:\n    raise ValueError("password must not be empty") ¦ password = Column(String(255), nullable=False) ¦ this.password = password;
¦ read -s -p "Password: " password ¦ secretKeyRef:\n  name: billing-db\n  key: password
§ placeholders in text: curl -H "Authorization: Bearer $TOKEN" https://api.example.com/v1/items ¦ postgresql://user:${DB_PASSWORD}@localhost/app
¦ mysql -u <<u>> -p inventory ¦ Authorization: Bearer <token> ¦ psql "postgresql://<user>:<password>@<host>/<database>" ¦ Password: ********
¦ [sudo] password for <<u>>: ¦ login: <<u>>\nPassword:\nLast login: Mon Mar 4 ¦ PASSWORD=\nRETRIES=5 ¦ password: "{{ lookup('env', 'DB_PASSWORD') }}"
¦ docker login -u <<u>> --password-stdin registry.example.com ¦ sshpass -p "$SSH_PASSWORD" ssh <<u>>@<<h>>
§ git: commit <<G>>\nAuthor: <<u>>\nDate:   Mon Mar 4 10:02:11 2024 +0100\n\n    Fix the token refresh ¦ Merge commit '<<G>>' into main
¦ <<D>> Rename the password field\n<<D1>> Add a test of the login form ¦ index <<D>>..<<D1>> 100644\n--- a/auth/password.py\n+++ b/auth/password.py
¦ HEAD is now at <<D>> Remove the unused secret ¦ <<G>>\trefs/heads/main\n<<G1>>\trefs/tags/v1.4.0 ¦ uses: actions/checkout@<<G>>
¦  auth/token.py | 12 ++++++------\n 1 file changed, 6 insertions(+), 6 deletions(-)
¦ On branch password-reset\nnothing to commit, working tree clean ¦ json:{"sha": "<<G>>", "message": "Rotate keys", "parents": ["<<G1>>"]}
§ checksums and identifiers: <<H>>  release-1.4.tar.gz\n<<H1>>  release-1.5.tar.gz ¦ sha256:<<H>> ¦ request <<U>> took <<N>> ms
¦ json:{"id": "<<U>>", "digest": "sha256:<<H>>", "size": 1843} ¦ ETag: "<<D>>"\nContent-Length: <<N>> ¦ FROM debian@sha256:<<H>>
¦ SHA256SUMS verified: <<H>> ¦ order_id,customer_id\n<<U>>,<<U1>> ¦ trace_id=<<U>> span=17 status=ok ¦ example.com/lib v1.2.0 // commit <<G>>
§ other senses: The secret of success is patience. ¦ Show your boarding pass at gate 14. ¦ The primary key of the table is order_id.
¦ Press any key to continue. ¦ As a token of our gratitude, you receive a voucher. ¦ The key findings are in section 4.
¦ It is no secret: the bakery opens at six. ¦ The mountain pass is closed until May. ¦ The song is in the key of G minor.
¦ All tests pass: 214 passed, 3 skipped. ¦ Her secretary will pass the message on. ¦ Secret Santa: draw a name by Friday.
¦ Victor Hugo is the key witness; Agatha wrote The Secret Adversary. ¦ The pin on the map marks the office; a pin header has 40 pins.
§ log lines: 2024-03-02 10:11:12 WARN login failed for <<u>>: invalid password ¦ 2024-03-02 10:11:12 INFO password changed for user <<u>>
¦ Mar  4 10:02:11 web sshd[812]: Failed password for <<u>> from 198.51.100.7 port 50122 ssh2 ¦ token refreshed, expires in <<N>> s
¦ ERROR: password authentication failed for user "<<u>>" ¦ [auth] secret rotation finished in <<N>> ms ¦ passwd: password updated successfully
¦ json:{"level": "error", "msg": "token expired", "attempt": 3} ¦ HTTP/1.1 401 Unauthorized\nWWW-Authenticate: Basic realm="staff"
§ translations: json:{"login.password": "Passwort", "login.username": "Benutzername", "login.submit": "Anmelden"}
¦ json:{"password": "Mot de passe", "forgotPassword": "Mot de passe oublié ?"} ¦ msgid "Password"\nmsgstr "Wachtwoord"
¦ <string name="password">Contraseña</string>\n<string name="cancel">Cancelar</string> ¦ "Password" = "Lösenord";\n"Cancel" = "Avbryt";
¦ login.password=Hasło\nlogin.username=Nazwa użytkownika ¦ de:\n  password: Passwort\n  username: Benutzername
¦ json:{"PASSWORD_LABEL": "Пароль", "USERNAME_LABEL": "Имя пользователя"} ¦ passwordLabel: 'パスワード',\nuserLabel: 'ユーザー名',
§ test names: tests/test_auth.py::test_wrong_password_is_refused PASSED ¦ def test_password_reset_sends_mail() -> None:
¦ it('rejects an expired token', async () => { ¦ ok 12 - secret is not logged ¦ --- PASS: TestTokenRefresh (0.02s)
¦ describe("PasswordField", () => { ¦ ✓ shows an error for an empty password (12 ms) ¦ @pytest.mark.parametrize("field", ["username", "password"])
¦ FAILED tests/test_keys.py::test_api_key_is_required - AssertionError ¦ Scenario: A user resets a forgotten password
§ schemas: CREATE TABLE accounts (id bigint PRIMARY KEY, login text NOT NULL, password varchar(255) NOT NULL);
¦ ALTER TABLE accounts ADD COLUMN api_key text; ¦ password: String! @auth(requires: ADMIN) ¦ password = models.CharField(max_length=128)
¦ json:{"type": "object", "properties": {"password": {"type": "string", "minLength": 12}}, "required": ["password"]}
¦ type Credentials struct {\n\tUser     string `json:"user"`\n\tPassword string `json:"password"`\n}
¦ interface Login {\n  username: string;\n  password: string;\n} ¦ message LoginRequest {\n  string username = 1;\n  string password = 2;\n}
¦ json:{"columns": ["id", "login", "password"], "rows": []} ¦ variable "db_password" {\n  type      = string\n  sensitive = true\n}
¦ <xs:element name="password" type="xs:string" minOccurs="1"/> ¦ CREATE INDEX accounts_token_idx ON accounts (token);
¦ Column | Type | Modifiers\n--------+------+-----------\n login | text | not null\n password | text | not null
¦ password:\n  type: string\n  format: password\n  description: The password of the account
§ paths and links: /home/<<u>>/.password-store/README.md ¦ src/auth/password_reset/token.py ¦ https://example.com/account/reset-password
¦ https://docs.example.com/api/tokens#rotation ¦ ./scripts/rotate-secrets.sh ¦ https://git.example.com/team/key-value-store/-/issues/<<N>>
¦ ls -l /etc/passwd\n-rw-r--r-- 1 root root 2107 Mar  4 10:02 /etc/passwd ¦ s3://example-reports/2024/03/pass-rates.parquet
¦ file:///usr/share/doc/passwd/changelog.gz ¦ import { PasswordField } from "./components/PasswordField"; ¦ postgresql://<<h>>:5432/inventory
§ forms: <input type="password" name="password" placeholder="Password" required> ¦ <button type="submit">Change password</button>
¦ <label for="password">Password</label>\n<input id="password" type="password" value=""> ¦ <a href="/reset">Forgot your password?</a>
¦ <td>Password</td><td>Required, at least 12 characters</td> ¦ json:{"role": "textbox", "name": "Password", "value": ""}
¦ await page.click("#password"); ¦ - textbox "Username"\n- textbox "Password"\n- button "Sign in"
¦ <h2>Passwords</h2>\n<p>Ask the help desk to reset it.</p>
§ files and directories: root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
¦ NAME          TYPE     DATA   AGE\nbilling-db    Opaque   3      41d\nregistry      Opaque   1      12d
¦ passlib==1.7.4\ncryptography==42.0.5\nkeyring==24.3.1 ¦ ID   NAME        CREATED\nk3   db_password  2 weeks ago
¦ -rw------- 1 <<u>> staff 1704 <<Y>> token.json ¦ added 3 packages: jsonwebtoken, password-validator, keyv
¦ path "secret/data/billing/*" {\n  capabilities = ["read"]\n} ¦     "jsonwebtoken": "^9.0.2",\n    "keytar": "^7.9.0"
§ numbers and dates: json:{"pass": 118, "fail": 4, "skipped": 0} ¦ json:{"key": "Lisbon", "value": 24} ¦ 2024-03-02,2024-03-03,2024-03-04
¦ epoch 12: loss=0.183 pass@1=0.72 tokens=<<N>> ¦ json:{"metric": "password_resets_total", "value": 31} ¦ keys: 12, values: 12, misses: 0
¦ http_requests_total{handler="/token",code="200"} <<N>> ¦ token_refresh_seconds_bucket{le="0.5"} <<N>>
"""
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
