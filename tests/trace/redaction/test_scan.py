"""The scans in front of the rules: both leave out only rules that match nothing, so that the result is the same with either."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grace_kp.trace import redact, redact_value
from grace_kp.trace.redaction import _scan
from grace_kp.trace.redaction._identifiers import IDENTIFIERS
from grace_kp.trace.redaction._scan import SECRETS, compiled_scan, pure_scan
from tests.exhaustive import examples
from tests.trace.redaction.contexts import CONTEXTS
from tests.trace.redaction.corpus import TOKENS
from tests.trace.redaction.harmless import HARMLESS

RULES = [
    rule for rule in SECRETS + IDENTIFIERS if "A3T" not in rule.pattern
]  # its lookahead is too much for a generator
# google-re2 has no wheels for free-threaded Python, and none for a new Python at first.
BUILDS = (pure_scan, compiled_scan) if find_spec("re2") else (pure_scan,)
SCANS = [build(True) for build in BUILDS]


@given(st.data())
@settings(examples(120), suppress_health_check=list(HealthCheck))
def test_no_scan_leaves_out_a_rule_that_matches(data):
    """Texts are generated from the rules' own patterns."""
    rule = data.draw(st.sampled_from(RULES))
    text = data.draw(st.from_regex(re.compile(rule.pattern, rule.flags)))
    if rule.sub(text, None) != text:
        assert all(any(found is rule for found in scan(text)) for scan in SCANS)


PIECES = st.sampled_from(
    [text for _, text, _ in CONTEXTS]
    + [secret for _, secret in TOKENS]
    + HARMLESS
    + ["\n", " ", "\\n", "%3D", "\ud800", "İ", "="]
)


@given(st.lists(PIECES | st.text(max_size=6), max_size=4).map("".join))
@examples(60)
def test_both_scans_give_the_same_text(text):
    """With google-re2 and without it; half a surrogate pair included."""
    results = [
        [(rule.vendor, after) for rule in scan(text) if (after := rule.sub(text, None)) != text] for scan in SCANS
    ]
    assert [results[0]] * len(SCANS) == results


MARK_AS_NAME = [
    "AGE-SECRET-KEY-PQ-1" + "VEW59BSSI7ZMGQU79QXBE09Q38CBB55YD6e=120029626x=",
    ".y5\nxkeysib-" + "36a7e52c4b39e3f3b319efa17c008e193fd43760f68aa-m9sPI1vO69NocBiIvEdu=7:f6fb:5259::9",
    "lftp\t -A=')5dCXMG, d72cK4lFo2Gzr36GFjnRjEdZA64G=CCIPRJ_" + "Yt_87-2cAOCM1dcBT9E2ZBxW7V;",
]


@pytest.mark.parametrize("text", MARK_AS_NAME)
def test_what_a_rule_leaves_behind_is_scanned_again(monkeypatch, text):
    """A rule can make a later one match or miss; the result does not depend on what a scan let through before that."""
    results = []
    for build in (*BUILDS, lambda identifiers: lambda text: SECRETS + IDENTIFIERS):
        monkeypatch.setattr(_scan, "_SCANS", {True: build(True)})
        results.append(redact(text * 3).text)
    assert [results[0]] * (len(BUILDS) + 1) == results


ADVERSARIAL = """
import sys
from grace_kp.trace import redact_text, redact_value
from grace_kp.trace.redaction import _scan
scans = [scan for scan in (_scan.compiled_scan(True), _scan.pure_scan(True)) if scan is not None]
for piece in {pieces!r}:
    tried = set()
    for scan in scans:
        rules = set(map(id, scan(piece * 100)))
        if rules - tried or scan is scans[0]:
            _scan._SCANS[True] = scan
            redact_text(piece * ({size} // len(piece)), identifiers=True)
        else:  # each of its rules has already been tried on this text
            list(scan(piece * ({size} // len(piece))))
        tried |= rules
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
    "<td>password</td>", "insert into t (password) values (", '["password"], [', "password <<E\\n", "password=a\\\\\\n", "password -> ", "password [a] ", "<input name=password ", "a  password  b",
    "authorization: ", "cnonce=", "[REDACTED:api_key]='a", "Ab1/", "AKIAIOSFODNN7EXAMPLE",
]  # fmt: skip
VALUES = [
    ")",
    "[",
    "a[b",
    "Optional[",
    "1",
    "a",
    "a1",
    "a.",
    "a_",
    "a/",
    "/",
    ":",
    "http://:",
    "\\",
    "->",
    "x)",
    "(",
    "{",
    "your ",
]


def test_time_is_linear_in_hostile_texts():
    """100 kB of the beginnings of secrets, and values of 100 kB after a secret's name, within a budget of processor time.

    What is quadratic takes at least ten times as long as the budget allows; what is linear, a tenth of it.
    """
    limit = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (45, 45))\n" if os.name == "posix" else ""
    script = limit + ADVERSARIAL.format(pieces=REPEATED, values=VALUES, size=100_000)
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


def test_without_google_re2_the_pure_scan_is_used(monkeypatch):
    """The extra is optional."""
    monkeypatch.setitem(sys.modules, "re2", None)
    monkeypatch.setattr(_scan, "_SCANS", {})
    assert compiled_scan(False) is None
    assert "password=[REDACTED:password]" == redact("password=hunter2secret", "private").text


def test_a_vertical_tab_is_a_blank_for_both_scans():
    """RE2's class of blanks lacks it, Python's does not."""
    text = "auth\x0b=\x0b('bob', 'hunter2secret')"
    for build in BUILDS:
        scan = build(False)
        assert any(rule.vendor == "a pair of user and password in code" for rule in scan(text))


NEEDED = sorted({need for rule in SECRETS + IDENTIFIERS for need in rule.needs} - _scan.VAGUE)


def finder():
    """Return the search for all substrings, each with its own bit."""
    needles = _scan._Needles()
    for bit, need in enumerate(NEEDED):
        needles.add(need, 1 << bit)
    return needles.compiled()


FIND = finder()


@given(st.lists(st.sampled_from(NEEDED) | st.text("abk-_. \n", max_size=6), max_size=6).map("".join))
@examples(60)
def test_the_memory_of_harmless_words_hides_no_substring(text):
    """Whatever words have occurred before, every substring of a rule is found, over several words, too."""
    expected = sum(1 << bit for bit, need in enumerate(NEEDED) if need in text)
    assert [expected] * 2 == [FIND(text), FIND(text)]
