"""The client of a registry: addresses, keys and numbers that it takes, which traces may leave, and with which contents."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import re
import subprocess
import sys

import httpx
import pytest
import respx
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.integrations.knowledgepulse import KEY, KnowledgePulse
from tests.integrations.knowledgepulse.conftest import URL, trace
from tests.trace.redaction.corpus import IDENTIFIER_FORMS, SECRET_FORMS


class TestAddresses:
    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("http://registry.example", "in the clear"),
            ("registry.example", "must be an address"),
            ("https://user:pass@registry.example", "must not contain a user, a password or @"),
            ("https://registry.example/?a=1", "must be an address"),
            ("https://registry.example:99999", "must be an address"),
            ("https://[::1", "must be an address"),
            ("https://registry.example/\n", "must be an address"),
            ("https://registry example", "must be an address"),
            ("", "no registry"),
        ],
    )
    def test_one_that_cannot_be_used(self, url, problem):
        with pytest.raises(gk.SettingsError, match=problem):
            KnowledgePulse(url, "k")

    @pytest.mark.parametrize(
        "url",
        [
            "https://user:hunter2hunter2@registry.example/?a=1",
            "user:hunter2hunter2@registry.example",
            "https://registry.example/?key=hunter2hunter2",
            "https://registry.example/#hunter2hunter2",
        ],
    )
    def test_a_secret_in_one_is_not_shown(self, url):
        with pytest.raises(gk.SettingsError) as caught:
            KnowledgePulse(url, "k")
        assert "hunter2" not in str(caught.value)

    @pytest.mark.parametrize("key", ["two words", "a\nb", "schlüssel", "…"])
    def test_a_key_that_cannot_be_sent_is_not_shown(self, key):
        registry = KnowledgePulse(URL, key)
        for ask in (registry.check, lambda: registry.contribute(trace())):
            with respx.mock, pytest.raises(gk.SettingsError, match="must be printable ASCII without spaces") as caught:
                ask()
            assert key not in str(caught.value)

    def test_blanks_around_a_key_do_not_count(self):
        with respx.mock:
            route = respx.post(f"{URL}/v1/knowledge").mock(return_value=httpx.Response(201))
            assert "sent" == KnowledgePulse(URL, " secret\n").contribute(trace()).status
        assert "Bearer secret" == route.calls.last.request.headers["authorization"]

    @pytest.mark.parametrize(
        "url", ["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1", "https://r.example/base/"]
    )
    def test_one_that_can(self, url):
        assert not KnowledgePulse(url, "k").url.endswith("/")

    def test_the_settings_name_it(self, monkeypatch):
        monkeypatch.setenv("GRACE_KP_REGISTRY_URL", URL)
        assert URL == KnowledgePulse(key="k").url

    def test_without_a_key_nothing_is_sent(self, monkeypatch):
        with respx.mock, pytest.raises(gk.SettingsError, match=KEY):
            KnowledgePulse(URL).contribute(trace())

    def test_the_key_is_not_shown(self, registry):
        assert "top-secret-key" not in repr(registry) + str(registry.status())

    @pytest.mark.parametrize(
        "given",
        [
            {"threshold": 2},
            {"timeout": "x"},
            {"deadline": -1},
            {"threshold": float("nan")},
            {"timeout": 0},
            {"deadline": 0.0},
            {"max_waiting": 0},
            {"max_waiting": True},
        ],
    )
    def test_numbers_are_checked(self, given):
        with pytest.raises(gk.SettingsError, match=next(iter(given))):
            KnowledgePulse(URL, "k", **given)


def test_coroutines_do_not_wait_for_each_other(server):
    registry = KnowledgePulse(server.url, "k")

    async def many():
        return await asyncio.gather(*(registry.acontribute(trace()) for _ in range(5)))

    assert ["sent"] * 5 == [done.status for done in asyncio.run(many())]


def test_without_httpx_the_error_names_the_command(tmp_path):
    code = "import sys; sys.modules['httpx'] = None\nfrom grace_kp.integrations.knowledgepulse import KnowledgePulse\nKnowledgePulse('https://r.example', 'k').check()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "pip install 'grace-kp[knowledgepulse]'" in ran.stderr.splitlines()[-1]


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
