"""JSON values keep their shape; keys, pairs and argument lists say which of their texts are secrets."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.trace import redact_value, redacted_arguments
from tests.trace.redaction.corpus import JSON


@given(JSON)
def test_values_keep_their_shape(value):
    """A JSON value stays one; numbers stay, and secrets under a telling key go."""
    cleaned = redact_value(value, identifiers=True)
    assert type(value) is type(cleaned)
    json.dumps(cleaned)
    assert cleaned == redact_value(cleaned, identifiers=True)
    wrapped = redact_value({"client_secret": {"inner": ["hunter2", 5]}, "token": 512, "ok": "fine"}, identifiers=False)
    assert {"client_secret": {"inner": ["[REDACTED:password]", 5]}, "token": 512, "ok": "fine"} == wrapped


def test_a_deep_value_needs_no_deep_stack():
    """Five thousand levels."""
    deep: object = "password=hunter2secret"
    for _ in range(5_000):
        deep = [deep]
    cleaned = redact_value(deep, identifiers=True)
    while isinstance(cleaned, list):
        cleaned = cleaned[0]
    assert "password=[REDACTED:password]" == cleaned


def test_keys_that_become_the_same_lose_no_value():
    """Two addresses as keys are two entries afterwards."""
    value = {"a@example.com": 1, "b@example.com": 2, "c@example.com": 3}
    assert [1, 2, 3] == sorted(redact_value(value, identifiers=True).values())


def test_keys_that_look_alike_get_numbers():
    """Every value is kept under a key of its own."""
    value = {f"user{number}@example.com": number for number in range(50)}
    cleaned = redact_value(value, identifiers=True)
    assert ["[REDACTED:email]", "[REDACTED:email] (2)", "[REDACTED:email] (3)"] == list(cleaned)[:3]
    assert list(range(50)) == list(cleaned.values())


@given(text=st.text(), name=st.sampled_from(["a", "password"]), nested=st.booleans())
def test_counts_are_of_what_is_gone(text, name, nested):
    """A count stands exactly where the stored form differs, and never exceeds what there was."""
    value = {"k": [text]} if nested else text
    after, hidden = redacted_arguments({name: value}, identifiers=True)
    changed = list(after.values()) != [value]
    assert changed == bool(hidden)
    assert sum(hidden.values()) <= len(json.dumps(value, ensure_ascii=False))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"name": "password", "value": "hunter2x"}, {"name": "password", "value": "[REDACTED:password]"}),
        ({"selector": "#password", "text": "hunter2x"}, {"selector": "#password", "text": "[REDACTED:password]"}),
        (["authorization", "hunter2x"], ["authorization", "[REDACTED:password]"]),
        (["login", "--token", "hunter2x"], ["login", "--token", "[REDACTED:password]"]),
        (["docker", "login", "-p", "hunter2x"], ["docker", "login", "-p", "[REDACTED:password]"]),
        ({"SENDGRID_KEY": "Ab1Cd2Ef3Gh4Ij5K"}, {"SENDGRID_KEY": "[REDACTED:password]"}),
        ([["user", "pin"], ["ana", 4821]], [["user", "pin"], ["ana", "[REDACTED:password]"]]),
        (
            {"columns": ["user", "password"], "rows": [["ana", "hunter2x"], ["bob", None]]},
            {"columns": ["user", "password"], "rows": [["ana", "[REDACTED:password]"], ["bob", None]]},
        ),
        (
            {"sql": "UPDATE users SET password = ? WHERE id = ?", "params": ["hunter2x", 7]},
            {"sql": "UPDATE users SET password = ? WHERE id = ?", "params": ["[REDACTED:password]", 7]},
        ),
        (
            {"secrets": {"db": "hunter2x", "path": "kv/app"}},
            {"secrets": {"db": "[REDACTED:password]", "path": "kv/app"}},
        ),
        ({"pin": 4821, "retries": 4821}, {"pin": "[REDACTED:password]", "retries": 4821}),
    ],
    ids=str,
)
def test_a_name_makes_its_value_a_secret(value, expected):
    """A key, a pair, a field of a form, an option, and a number under a name such as `pin`."""
    assert expected == redact_value(value, identifiers=False)


@pytest.mark.parametrize(
    "value",
    [
        ["password", "email"],
        ["docker", "-p", "8080:80"],
        {"cache_key": "Ab1Cd2Ef3Gh4Ij5K"},
        {"name": "city", "value": "Oslo"},
    ],
    ids=str,
)
def test_a_value_without_a_secret_is_the_same_object(value):
    """Names of fields, ports, and generated names of other things stay."""
    assert value is redact_value(value, identifiers=True)


@pytest.mark.parametrize("key", ["default", "value", "text"])
@pytest.mark.parametrize("kind", [["string", "null"], {"enum": ["x"]}], ids=str)
def test_a_type_need_not_be_a_text(kind, key):
    """As in JSON Schema: such a value is no field of a form, and is stored as it is; a name still makes it a secret."""
    value = {"type": kind, key: "x"}
    with gk.Grace(store="memory:", evaluator=None, embedder=None) as grace:
        describe = grace.tool(lambda schema: {"schema": schema}, name="describe")
        with grace.run("x"):
            describe(value)
        grace.flush()
        (trace,) = grace.store.query()
    assert [value] * 2 == [redact_value(value, identifiers=True), trace.steps[0].input["schema"]]
    assert {"schema": value} == json.loads(trace.steps[1].content)
    assert json.dumps(value) == gk.redact(json.dumps(value)).text
    named = {"name": "password", **value, key: "hunter2x"}
    assert {**named, key: "[REDACTED:password]"} == redact_value(named, identifiers=True)


def test_arguments_say_how_much_they_hide():
    """By name, and only where something is gone; marks that the caller wrote do not count."""
    arguments = {"city": "Oslo", "password": "hunter2", "note": "see [REDACTED:email]"}
    assert (
        {"city": "Oslo", "password": "[REDACTED:password]", "note": "see [REDACTED:email]"},
        {"password": 7},
    ) == redacted_arguments(arguments, identifiers=True)
