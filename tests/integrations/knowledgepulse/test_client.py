"""The client of a registry: addresses, keys and numbers that it takes."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import httpx
import pytest
import respx

import grace_kp as gk
from grace_kp.integrations.knowledgepulse import KEY, KnowledgePulse
from tests.integrations.knowledgepulse.registry import URL, trace


class TestAddresses:
    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("http://registry.example", "in the clear"),
            ("ftp://registry.example", "must be an address"),
            ("registry.example", "must be an address"),
            ("https://user:pass@registry.example", "no user and no password"),
            ("https://registry.example/?a=1", "must be an address"),
            ("https://registry.example/#a", "must be an address"),
            ("https://registry.example:99999", "must be an address"),
            ("https://registry.example:port", "must be an address"),
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
            with respx.mock, pytest.raises(gk.SettingsError, match="must be ASCII without blanks") as caught:
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
