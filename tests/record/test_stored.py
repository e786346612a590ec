"""Attributes and gate entries are stored without secrets, bounded, and without contents that are not captured."""

from __future__ import annotations

import pytest

from grace_kp.record._stored import merged_entries, named_secrets, stored_entry, without

ENTRY = {
    "id": "1",
    "action": "login",
    "outcome": "failed",
    "arguments": {"user": "bob", "password": "hunter2hunter2"},
    "error": "ValueError: bad password hunter2hunter2",
    "response": {"action": "proceed", "user_input": "use hunter2hunter2", "modified": {"password": "swordfish99"}},
    "evaluation": {"reason": "it quotes bob"},
}


def test_an_argument_that_is_secret_by_its_name_is_removed_everywhere():
    """Also where a reviewer's words or an error repeat it."""
    secrets = named_secrets([ENTRY])
    assert ["hunter2hunter2", "swordfish99"] == secrets
    document = without({"decisions": [stored_entry(ENTRY, identifiers=False)]}, secrets)
    assert "hunter2" not in str(document)
    assert "swordfish" not in str(document)
    assert "bob" == document["decisions"][0]["arguments"]["user"]


def test_short_arguments_are_too_common_to_be_removed_everywhere():
    assert [] == named_secrets([{"arguments": {"password": "abc"}}])


def test_without_secrets_a_document_is_the_same_object():
    document = {"steps": [1]}
    assert without(document, []) is document


@pytest.mark.parametrize(
    ("capture", "arguments", "user_input"),
    [
        ({"capture_input": False}, "[not captured]", "[not captured]"),
        ({"capture_output": False}, "bob", "[not captured]"),
    ],
)
def test_without_captured_contents_structure_stays(capture, arguments, user_input):
    """Names of arguments, outcomes and types of errors stay; values and words of people do not."""
    stored = stored_entry(ENTRY, identifiers=False, **capture)
    assert ("login", "failed", "ValueError") == (stored["action"], stored["outcome"], stored["error"])
    assert (arguments, user_input) == (stored["arguments"]["user"], stored["response"]["user_input"])
    assert "[not captured]" == stored["evaluation"]["reason"]


@pytest.mark.parametrize(
    ("earlier", "later", "merged"),
    [
        ("waiting", "executed", ["executed"]),
        ("executed", "executed_before", ["executed"]),
        ("waiting", "executed_before", ["executed_before"]),
        ("failed", "executed", ["executed"]),
    ],
)
def test_each_decision_has_one_entry_after_a_resume(earlier, later, merged):
    """The later outcome counts, unless it states merely that the action ran before."""
    found = merged_entries([{"id": "1", "outcome": earlier}], [{"id": "1", "outcome": later}])
    assert merged == [entry["outcome"] for entry in found]
