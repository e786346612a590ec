"""Which traces may leave, and what leaves of them: the request to the byte, without secrets and identifiers."""

from __future__ import annotations

import copy
import hashlib
import json
import re

import pytest
import respx
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.integrations.knowledgepulse import KnowledgePulse
from tests.integrations.knowledgepulse.registry import URL, trace
from tests.trace.redaction.corpus import IDENTIFIER_FORMS, SECRET_FORMS

FULL = {
    "@context": "https://openknowledgepulse.org/schema/v1",
    "@type": "ReasoningTrace",
    "id": "kp:trace:x",
    "source_skill": "kp:skill:s",
    "metadata": {
        "created_at": "2026-01-02T03:04:05.000Z", "agent_id": "kp:agent:x", "framework": "f", "task_domain": "d", "success": True,
        "quality_score": 0.9, "visibility": "network", "privacy_level": "private", "validated_by": ["kp:agent:v"], "own": "x",
    },
    "task": {"objective": "o", "input_schema": {"a": "b"}},
    "steps": [
        {
            "step_id": 0, "type": "tool_call", "content": "c", "tool": {"name": "t", "mcp_server": "m"},
            "input": {"q": ["r", {"s": "t"}]}, "output_summary": "u", "own": {"k": "v"},
        },
    ],
    "outcome": {"result_summary": "r", "confidence": 0.9},
    "knowledge_graph_delta": {"entities": [{"name": "n", "type": "t"}], "relationships": [{"fact": "f", "valid_from": "v"}]},
    "grace": {"status": "completed", "k": {"l": "m"}},
}  # fmt: skip


# Their values are given by the schema.
FIXED = {
    ("@context",), ("@type",), ("metadata", "created_at"), ("metadata", "visibility"), ("metadata", "privacy_level"),
    ("steps", 0, "type"), ("grace", "status"),
}  # fmt: skip


KEYS = [("task", "input_schema", "a"), ("steps", 0, "input", "q"), ("steps", 0, "input", "q", 1, "s"), ("steps", 0, "own", "k"), ("metadata", "own"), ("grace", "k", "l")]  # fmt: skip


AROUND = st.sampled_from(["{}", "before {} after", "({})", "前 {} 後", "x\n{}\ny", '"{}"'])


# What must be found, as the tests of the redaction have it: a text, and the part of it that must not be left.
FORMS = [*SECRET_FORMS, *((text, text) for text, _ in IDENTIFIER_FORMS)]


def places(value, path=()):
    """Where a document has texts."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))
    elif isinstance(value, str) and path not in FIXED:
        yield path


PLACES = [*((path, False) for path in places(FULL)), *((path, True) for path in KEYS)]


def put(document, place, text):
    """A copy of the document with the text as a value, or as a key."""
    (*path, last), as_key = place
    whole = inner = copy.deepcopy(document)
    for key in path:
        inner = inner[key]
    if as_key:
        inner[text] = inner.pop(last)
    else:
        begins = re.match(r"kp:\w+:", str(inner[last]))
        inner[last] = (begins[0] if begins else "") + text
    return whole


class TestWhatLeaves:
    def test_a_trace_without_secrets_and_identifiers(self, registry):
        prepared = registry.prepare(trace())
        body = json.loads(prepared.body)
        assert prepared.eligible
        assert ("POST", f"{URL}/v1/knowledge") == (prepared.method, prepared.url)
        assert "Ask [REDACTED:email]" == body["task"]["objective"]
        assert "from [REDACTED:ip] with [REDACTED:api_key]" == body["steps"][0]["content"]
        assert "aggregated" == body["metadata"]["privacy_level"]
        assert "grace" not in body
        assert gk.ReasoningTrace.model_validate(body).id == trace().id
        assert "Bearer ***" == prepared.headers["Authorization"]
        assert (
            hashlib.sha256(prepared.body).hexdigest() == prepared.idempotency_key == prepared.headers["Idempotency-Key"]
        )
        assert "top-secret-key" not in str(prepared)

    def test_the_same_trace_is_the_same_bytes(self, registry):
        shuffled = dict(reversed(trace().to_dict().items()))
        assert registry.prepare(trace()) == registry.prepare(shuffled) == KnowledgePulse(URL, "other").prepare(trace())

    def test_what_is_ours_leaves_only_when_asked_to(self):
        own = trace(grace={"status": "completed", "name": "mail bob@example.com"}, other={"a": 1})
        body = json.loads(KnowledgePulse(URL, "k", include_grace=True).prepare(own).body)
        assert "mail [REDACTED:email]" == body["grace"]["name"]
        assert "other" not in body

    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ({"visibility": "private"}, "visibility is private"),
            ({"score": 0.7499}, "below 0.75"),
            ({"grace": {"status": "suspended"}}, "suspended"),
            ({"grace": {"status": "interrupted"}}, "interrupted"),
        ],
    )
    def test_what_stays(self, registry, given, why):
        prepared = registry.prepare(trace(**given))
        assert (False, b"") == (prepared.eligible, prepared.body)
        assert why in prepared.reason
        with respx.mock:  # which fails at any request
            assert "not_eligible" == registry.contribute(trace(**given)).status

    @pytest.mark.parametrize("visibility", ["org", "network"])
    def test_the_threshold_is_met_exactly(self, registry, visibility):
        assert registry.prepare(trace(0.75, visibility)).eligible

    @given(form=st.sampled_from(FORMS), place=st.sampled_from(PLACES), around=AROUND)
    def test_no_secret_and_no_identifier_leaves_wherever_it_stands(self, form, place, around):
        """Every text and every key of a full trace, what is beyond the schema included; the rest of the body stays as it is."""
        text, secret = form
        registry = KnowledgePulse(URL, "k", include_grace=True)
        body = registry.prepare(put(FULL, place, around.format(text))).body.decode()
        assert secret not in body
        assert json.dumps(secret, ensure_ascii=False)[1:-1] not in body
        assert gk.ReasoningTrace.model_validate_json(body).outcome.confidence == 0.9

    def test_what_json_cannot_hold_is_an_invalid_trace(self, registry):
        given = trace()
        given.steps[0].input = {"x": float("nan")}
        with pytest.raises(gk.InvalidTrace, match="x"):
            registry.prepare(given)

    def test_a_score_that_is_no_number_stays(self, registry):
        given = trace()
        given.metadata.quality_score = float("nan")
        assert not registry.prepare(given).eligible
