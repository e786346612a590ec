"""All texts of a document are scanned together, and the result is the same as text by text."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grace_kp.trace import Redactor, redact_text, redact_value, storable, texts_in
from grace_kp.trace.redaction import _scan
from grace_kp.trace.redaction._patterns import IDENTIFIERS
from grace_kp.trace.redaction._scan import SECRETS, Scan
from tests.exhaustive import examples
from tests.trace.redaction.contexts import CONTEXTS
from tests.trace.redaction.corpus import TOKENS
from tests.trace.redaction.forms import JSON
from tests.trace.redaction.harmless import HARMLESS
from tests.trace.redaction.structures import structures

RULES = [rule for rule in SECRETS + IDENTIFIERS if "A3T" not in rule.pattern]
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
def scan(monkeypatch):
    """A scan with an empty memory."""
    found = Scan(identifiers=True)
    monkeypatch.setattr(_scan, "_SCANS", {True: found})
    return found


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
        assert text not in scan.expect([before, text, after])


@given(st.lists(JSON, max_size=3))
@examples(100)
def test_values_are_redacted_as_without_a_scan_of_their_texts(values):
    """Names, pairs and lists of arguments mean the same."""
    assert alone(values) == together(values)


@pytest.mark.parametrize(("label", "value", "secret"), structures())
def test_no_secret_in_a_value_is_passed_over(label, value, secret):
    """Neither those that only their names give away."""
    assert alone([value]) == together([value]), label


def test_a_secret_that_only_its_name_gives_away_is_removed_though_its_text_is_harmless():
    """The same text stays under another name."""
    values = [{"password": "correct horse", "q": "correct horse"}]
    assert [{"password": "[REDACTED:password]", "q": "correct horse"}] == together(values)[0]


def test_no_text_is_scanned_twice(scan, monkeypatch):
    """The rules for a suspicious text are kept until it is redacted, and no longer than the document."""
    texts, scanned = ["the password of the room", "a harmless text"], []
    candidates = Scan._candidates
    monkeypatch.setattr(Scan, "_candidates", lambda self, new: scanned.extend(new) or candidates(self, new))
    redactor = Redactor(identifiers=True)
    redactor.expect(texts)
    assert texts == [redactor.text(text) for text in texts]
    assert sorted(texts) == sorted(scanned)
    redactor.expect(["another password"])
    redactor.forget()
    assert not scan._expected
