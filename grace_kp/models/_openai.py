"""Any endpoint in OpenAI's form (OpenAI, vLLM, Ollama, gateways) as a judge and as an embedder, over httpx (extra `openai`).

The key goes to the configured address alone: redirects are not followed. The key in the environment belongs to the address in the
environment, so another endpoint never receives OpenAI's key.
"""

from __future__ import annotations

import math
import os
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from grace_kp.errors import JudgeError, MissingExtra, SettingsError
from grace_kp.models import _gemini
from grace_kp.models._memory import REMEMBERED, RemoteEmbedder
from grace_kp.protocols import JudgeReply

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST, KEY_VARIABLE = "api.openai.com", "OPENAI_API_KEY"
VERDICT = "is_correct"


class OpenAIJudge(_gemini.ServiceJudge):
    """Asks a model behind an OpenAI-compatible endpoint. Retries, errors and the other arguments are those of `GeminiJudge`.

    The reply is requested by its JSON schema, with the probabilities of tokens. Options that the endpoint refuses are left out later.

    Args:
        model: the model's name at the endpoint.
        api_key: the key. None takes OPENAI_API_KEY, if the address is OPENAI_BASE_URL or OpenAI's; another address gets no key then.
        base_url: the address, such as `http://localhost:11434/v1`; None takes OPENAI_BASE_URL, or else OpenAI's.

    Raises:
        SettingsError: there is no key for OpenAI's address, or the address or the key cannot be used.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = _gemini.TIMEOUT,
        attempts: int = _gemini.ATTEMPTS,
    ) -> None:
        self._caller: _Caller
        super().__init__(model, _Caller(api_key, base_url, timeout, attempts))
        self._refused: frozenset[str] = frozenset()

    def _question(self, prompt: str, vary: bool, fields: Sequence[str]) -> tuple[Any, Any, Any]:
        refused = self._refused
        body = {"model": self.model, "messages": [{"role": "user", "content": prompt}]}
        options: dict[str, Any] = {"temperature": _gemini.VARIED if vary else 0.0}
        if fields:
            # The verdict follows the scores, so it cannot influence them: only the probabilities of its token are of interest.
            schema = {**_gemini.reply_schema(fields, **{VERDICT: {"type": "boolean"}}), "additionalProperties": False}
            form = {"name": "judgement", "strict": True, "schema": schema}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
            options |= {"logprobs": True, "top_logprobs": 5}

        def send(client: Any, seconds: float) -> Any:
            wanted = {name: value for name, value in options.items() if name not in refused}
            return self._caller.post(client, seconds, "chat/completions", body | wanted)

        def read(response: Any) -> Any:
            nonlocal refused
            left = options.keys() - refused
            if response.status_code in {400, 422} and left:
                refused |= {name for name in left if name.removeprefix("top_") in response.text[:10_000]} or left
                raise _gemini.Reworded("the endpoint refuses every form of the request") from _Refusal(response)
            answer = _read(response)
            self._refused |= refused  # only now: the endpoint may have refused the prompt itself
            return answer

        return send, read, lambda answer, attempts: _reply(answer, attempts, self.model)


def _reply(answer: Any, attempts: int, model: str) -> JudgeReply:
    counts = [_dig(answer, "usage", name) for name in ("prompt_tokens", "completion_tokens")]
    tokens_in, tokens_out = (count if type(count) is int else None for count in counts)
    choice, named = _dig(answer, "choices", 0), _dig(answer, "model")
    text = _dig(choice, "message", "content")
    if not isinstance(text, str) or not text:
        reason = "refusal" if _dig(choice, "message", "refusal") else _dig(choice, "finish_reason")
        raise _gemini.no_text(reason, attempts=attempts, tokens_in=tokens_in, tokens_out=tokens_out)
    text, p_true = read_verdict(text, _dig(choice, "logprobs", "content"))
    model = named if isinstance(named, str) and named else model
    return JudgeReply(text, model=model, tokens_in=tokens_in, tokens_out=tokens_out, attempts=attempts, p_true=p_true)


_VERDICT = re.compile(rf'\s*,\s*"{VERDICT}"\s*:\s*(true|false)(?=\s*\}}\s*\Z)')


def read_verdict(text: str, tokens: Any) -> tuple[str, float | None]:
    """Return a reply without the verdict at its end, behind which a copied object would not be recognised, and the probability of `true`.

    The probability is None unless the last tokens are exactly the end of the reply and one of them is the verdict.
    """
    found = _VERDICT.search(text, max(0, len(text) - 200))  # models may end in a flood of blanks
    if found is None or text.count(f'"{VERDICT}"') != 1:
        return text, None
    rest = text[: found.start()] + text[found.end() :]
    shares = {"true": 0.0, "false": 0.0}
    end, token = "", {"token": ""}
    try:
        for token in reversed(tokens):
            end = token["token"] + end
            if len(end) >= len(text) - found.start(1):
                break
        if not text.endswith(end) or token["token"].strip() != found[1]:
            return rest, None
        for item in {each["token"]: each for each in (*(token.get("top_logprobs") or ()), token)}.values():
            name = item["token"].strip()
            shares[name] = shares.get(name, 0.0) + math.exp(item["logprob"])
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return rest, None
    true, false = shares["true"], shares["false"]
    # Where the other value is not among the listed tokens, all other tokens count as the other value.
    p_true = true / (true + false) if true and false else true or 1.0 - false
    return rest, p_true if 0.0 <= p_true <= 1.0 else None


class OpenAIEmbedder(RemoteEmbedder):
    """Embeds redacted texts by an OpenAI-compatible endpoint, up to 100 in one request.

    `dimensions` requests vectors of this length, `remember` is the number of texts whose vectors are kept, and `service` holds `api_key`,
    `base_url`, `timeout` and `attempts` of `OpenAIJudge`.
    """

    _max_chars = 4_000  # models refuse more than 8,192 tokens, and a Japanese character may take two

    def __init__(
        self, model: str, *, dimensions: int | None = None, remember: int = REMEMBERED, **service: Any
    ) -> None:
        super().__init__(self._batch, dimensions=dimensions, remember=remember)
        judge = OpenAIJudge(model, **service)
        self.model, self.base_url, self._caller = model, judge.base_url, judge._caller
        self._body = {"model": model, "encoding_format": "float"} | ({"dimensions": dimensions} if dimensions else {})

    def _batch(self, texts: list[str]) -> list[Any]:
        body = {**self._body, "input": texts}
        answer, _ = self._caller.call(lambda client, wait: self._caller.post(client, wait, "embeddings", body), _read)
        data = [_dig(answer, "data", number) for number in range(len(texts))]
        rows = {str(_dig(item, "index")): _dig(item, "embedding") for item in data}
        return [rows.get(str(number)) or [] for number in range(len(texts))]


class _Caller(_gemini.ServiceCaller):
    """Sends requests to one address, with its key."""

    def __init__(self, api_key: str | None, base_url: str | None, timeout: float, attempts: int) -> None:
        stated = (os.environ.get("OPENAI_BASE_URL") or f"https://{HOST}/v1").rstrip("/")
        address = (base_url or stated).rstrip("/")
        parts = re.fullmatch(
            r"https?://([\w.-]+|\[[\da-f:.]+\])(:\d{1,5})?(/[!-~]*)?", address, re.IGNORECASE | re.ASCII
        )
        if parts is None or re.search("[?#@]", address):  # the address is not shown, because it may hold a key
            raise SettingsError(
                "base_url (or OPENAI_BASE_URL) must be an http or https address without user, query and fragment"
            )
        key = ((os.environ.get(KEY_VARIABLE) if api_key is None and address == stated else api_key) or "").strip()
        if not key and parts[1].lower() == HOST:
            raise SettingsError(f"no API key for {HOST}: set {KEY_VARIABLE}, or pass api_key, or another base_url")
        if re.search("[^!-~]", key):
            raise SettingsError(f"the key ({KEY_VARIABLE}, or api_key) must be printable ASCII without spaces")
        if find_spec("httpx") is None:
            raise MissingExtra("an OpenAI-compatible model", "openai")
        super().__init__(api_key=key, base_url=address, timeout=timeout, attempts=attempts)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        # A proxy in the environment is not for this machine, and would receive the key unencrypted.
        self._trust_env = parts[1].lower() not in {"localhost", "127.0.0.1", "[::1]"}

    def post(self, client: Any, seconds: float, path: str, body: dict[str, Any]) -> Any:
        return client.post(f"{self.base_url}/{path}", json=body, headers=self._headers, timeout=seconds)


class _Refusal(Exception):
    """A response other than 200, with the attributes that `ServiceCaller` reads in Google's errors."""

    def __init__(self, response: Any) -> None:
        found = re.search(r'"(?:message|detail|error)"\s*:\s*"((?:[^"\\]|\\.){1,2000})"', response.text[:10_000])
        self.message = found[1] if found else response.text[:500]
        self.code, self.response = response.status_code, response


def _read(response: Any) -> Any:
    if response.status_code != 200:
        raise _Refusal(response)
    try:
        return response.json()
    except ValueError:
        raise JudgeError("the response of the endpoint is not JSON", status=200) from None


def _dig(value: Any, *path: str | int) -> Any:
    """Return the part of a JSON value at this path; None where it has another form."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value
