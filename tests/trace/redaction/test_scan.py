"""The scan in front of the rules leaves out only rules that match nothing: the result is the same as without it, alone and together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grace_kp.trace import Redactor, redact, redact_text, redact_value, storable, texts_in
from grace_kp.trace.redaction import _scan
from grace_kp.trace.redaction._patterns import IDENTIFIERS
from grace_kp.trace.redaction._scan import SECRETS, Scan
from tests.exhaustive import examples
from tests.trace.redaction.contexts import CONTEXTS
from tests.trace.redaction.corpus import HARMLESS, JSON, TOKENS

RULES = [
    rule for rule in SECRETS + IDENTIFIERS if "A3T" not in rule.pattern
]  # its lookahead is too much for a generator
SCAN = Scan(identifiers=True)


PIECES = st.sampled_from(
    [text for _, text, _ in CONTEXTS]
    + [secret for _, secret in TOKENS]
    + HARMLESS
    + ["\n", " ", "\\n", "%3D", "\ud800", "İ", "="]
)


@given(st.lists(PIECES | st.text(max_size=6), max_size=4).map("".join))
@examples(60)
def test_the_scan_selects_every_rule_that_changes_a_text(text):
    """Half a surrogate pair included."""
    selected = {id(rule) for rule in SCAN.rules(text)}
    assert [] == [
        rule.vendor for rule in SECRETS + IDENTIFIERS if id(rule) not in selected and rule.sub(text, None) != text
    ]


@pytest.mark.parametrize("blank", ["\x1c", "\x85", "\u3000"])
def test_a_key_may_have_a_rare_blank_in_it(blank):
    """It ends a word, but it is no blank to the rule."""
    assert "[REDACTED:api_key]" == redact(f"django-insecure-a8{blank}k2%z#l5q!w9e(r3t_y7u)i0p&x4c-v6b", "private").text


MARK_AS_NAME = [
    "AGE-SECRET-KEY-PQ-1" + "VEW59BSSI7ZMGQU79QXBE09Q38CBB55YD6e=120029626x=",
    ".y5\nxkeysib-" + "36a7e52c4b39e3f3b319efa17c008e193fd43760f68aa-m9sPI1vO69NocBiIvEdu=7:f6fb:5259::9",
    "lftp\t -A=')5dCXMG, d72cK4lFo2Gzr36GFjnRjEdZA64G=CCIPRJ_" + "Yt_87-2cAOCM1dcBT9E2ZBxW7V;",
]


@pytest.mark.parametrize("text", MARK_AS_NAME)
def test_what_a_rule_leaves_behind_is_scanned_again(monkeypatch, text):
    """A rule can make a later one match or miss; the result does not depend on what a scan let through before that."""
    expected = redact(text * 3).text
    monkeypatch.setattr(Scan, "rules", lambda self, text: SECRETS + IDENTIFIERS)
    assert expected == redact(text * 3).text


ADVERSARIAL = """
import sys
from grace_kp.trace import redact_text, redact_value
for piece in {pieces!r}:
    redact_text(piece * ({size} // len(piece)), identifiers=True)
for piece in {values!r}:
    text = piece * ({size} // len(piece))
    for name in ("password=x", "token=", "password == ", "token = 'x", "key: "):
        redact_text(name + text + "~b", identifiers=False)
    redact_value({{"password": text + "b", "token": [text, "1" + text]}}, identifiers=False)
for length in (25, 200, 400):
    for piece in {values!r}:
        for other in {values!r}:
            redact_text(f"token = {{piece * length}}{{other * length}}~ password == {{piece * length}}{{other * length}}! ", identifiers=False)
print("done")
"""
REPEATED = [
    "AKIA", "sk-", "kp_", "eyJ", "password=", "password: ", "token=\\\\'", '"', "a:", "::", "0-", "a@", "/home/", "-----BEGIN PRIVATE KEY-----",
    "http://a:", "curl -u a", "mysql -p", "docker -p ", "PuTTY-User-Key-File-2", 'name="password" ', "my password is x ", "Cookie: a=",
    "Server=x;", "kind: Secret\n", "machine a login b ", "Bearer abcdefgh1 ", "4111 ", "DE00 ", "key", "[REDACTED:password]", "パスワードは",
    "password|", "password,user\\n", "| password |\\n|--|\\n", "password\\n", "password:\\n  - a", "password: |\\n", "passwords = [", "secrets: {{", "[secrets]\\n", 'password = "a\\n',
    "<td>password</td>", "insert into t (password) values (", '["password"], [', "password <<E\\n", "password=a\\\\\\n", "password -> ", "password [a] ", "<input name=password ", "a  password  b", "<passwords><a>x</a>", "|| password ",
    "authorization: ", "cnonce=", "[REDACTED:api_key]='a", "Ab1/", "AKIAIOSFODNN7EXAMPLE",
]  # fmt: skip
VALUES = [
    *[")", "[", "a[b", "Optional[", "1", "a", "a1", "a.", "a_", "a/", "/", ":", "http://:", "\\", "->", "x)", "(", "{"],
    "your ",
]


def test_time_is_linear_in_hostile_texts():
    """50 kB of the beginnings of secrets, and values of 50 kB after a secret's name, within a budget of processor time.

    Linear work takes a sixth of the budget on a current machine; quadratic work takes several times the budget.
    """
    limit = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (45, 45))\n" if os.name == "posix" else ""
    script = limit + ADVERSARIAL.format(pieces=REPEATED, values=VALUES, size=50_000)
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ("done\n", 0) == (finished.stdout, finished.returncode), finished.stderr


def lines_run(work, argument):
    """Return how many lines of Python a function runs."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work(argument)
    finally:
        sys.settrace(before)
    return count


def test_the_work_is_linear_in_the_number_of_keys_that_become_equal():
    """Each gets a number of its own, and the free number is not looked for from the beginning."""
    objects = [{f"user{key}@{count}.example.com": key for key in range(count)} for count in (500, 1_000)]
    few, more = (lines_run(lambda value: redact_value(value, identifiers=True), value) for value in objects)
    assert more < 2.5 * few


TEXTS = st.lists(
    st.sampled_from(
        [text for _, text, _ in CONTEXTS]
        + [secret for _, secret in TOKENS]
        + HARMLESS
        + ["", "password", ": hunter2secret", "docker", " -p hunter2secret", "\ud800", "Σ", "İ", "x" * 40, "=\n"]
    )
    | st.text(max_size=8),
    max_size=8,
)


@pytest.fixture
def scan():
    """A scan with an empty memory."""
    _scan._SCANS.clear()
    return _scan.scanner(True)


def alone(values):
    """Return values redacted one by one, and the counts."""
    counts = Counter()
    done = [
        redact_text(storable(value), identifiers=True, counts=counts)
        if isinstance(value, str)
        else redact_value(value, identifiers=True, counts=counts)
        for value in values
    ]
    return done, counts


def together(values):
    """Return values redacted after a scan of all their texts, and the counts."""
    redactor, texts = Redactor(identifiers=True), []
    texts_in(list(values), texts)
    redactor.expect(texts)
    done = [redactor.text(value) if isinstance(value, str) else redactor.value(value) for value in values]
    return done, redactor.counts


@given(TEXTS)
@settings(examples(150), suppress_health_check=list(HealthCheck))
def test_texts_scanned_together_are_redacted_as_texts_scanned_alone(scan, texts):
    """Secrets among harmless texts, parts of a secret in neighbouring texts, and half surrogate pairs; known texts and new ones."""
    scan.known.clear()
    expected = alone(texts)
    scan.known.clear()
    assert [expected] * 2 == [together(texts), together(texts)]


@given(st.data())
@settings(examples(120), suppress_health_check=list(HealthCheck))
def test_no_text_that_a_rule_matches_is_unaffected(scan, data):
    """Texts are generated from the rules' own patterns, and stand between other texts."""
    rule = data.draw(st.sampled_from(RULES))
    # Not as ASCII: older versions of hypothesis refuse a pattern whose own letters lie outside. Such texts count only if the rule matches.
    text = data.draw(st.from_regex(re.compile(rule.pattern, rule.flags & ~re.ASCII)))
    before, after = data.draw(st.sampled_from(HARMLESS)), data.draw(st.text(max_size=4))
    if rule.sub(text, None) != text:
        assert any(found is rule for found in SCAN.rules(text))
        assert text not in scan.expect([before, text, after])


@given(st.lists(JSON, max_size=3))
@examples(100)
def test_values_are_redacted_as_without_a_scan_of_their_texts(values):
    """Names, pairs and lists of arguments mean the same."""
    assert alone(values) == together(values)


def test_a_secret_that_only_its_name_gives_away_is_removed_though_its_text_is_harmless():
    """The same text stays under another name."""
    values = [{"password": "correct horse", "q": "correct horse"}]
    assert [{"password": "[REDACTED:password]", "q": "correct horse"}] == together(values)[0]
