"""Gemini as a judge (structured output at temperature 0) and as an embedder (batched), both retried within one deadline (extra `gemini`).

Texts leave the machine redacted. There is one Google client per process and event loop. It uses httpx clients, so that proxies,
certificates and tests work as users of httpx expect. It is created on the first call: importing it takes most of a second. Its own retry
options are not used: they bound the number of attempts but not their total time, and ignore how long the service asks to wait.
`ServiceCaller` does that for every service that is called over httpx.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from grace_kp.background import DeadlineExceeded, call_within, retry_after, running_loop, to_thread
from grace_kp.errors import JudgeError, MissingExtra, check_whole
from grace_kp.models._memory import REMEMBERED, RemoteEmbedder
from grace_kp.protocols import JudgeReply

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence


MODEL = "gemini-3.8-flash"
TIMEOUT = 20.0
ATTEMPTS = 5
VARIED = 0.7
"""Temperature for several judgements of the same texts; a single one is asked for at 0."""


class ServiceJudge:
    """What the judges of services share."""

    _question: Callable[[str, bool, Sequence[str]], tuple[Any, Any, Callable[..., JudgeReply]]]
    """Returns how to send a prompt, how to read the response, and how to get the reply from that; see `ServiceCaller.call`."""

    def __init__(self, model: str, caller: ServiceCaller) -> None:
        if not isinstance(model, str) or not model:
            raise ValueError(f"model must be a non-empty string (got {model!r})")
        self.model, self.base_url, self.timeout = model, caller.base_url, caller.timeout
        self._caller = caller

    def __call__(self, prompt: str) -> JudgeReply:
        """Return the model's reply to a prompt.

        Raises:
            JudgeError: there was no reply; it holds the number of attempts and the last HTTP status.
            MissingExtra: the extra of the service is not installed.
        """
        return self.ask(prompt)

    def ask(self, prompt: str, *, vary: bool = False, fields: Sequence[str] = ("score",)) -> JudgeReply:
        """Reply as a call does.

        Args:
            prompt: the prompt.
            vary: True: ask at a higher temperature, for independent judgements.
            fields: names of the scores in the JSON reply; without any, the prompt alone describes the reply.
        """
        send, read, reply = self._question(prompt, vary, fields)
        return reply(*self._caller.call(send, read))

    async def aask(self, prompt: str, *, vary: bool = False, fields: Sequence[str] = ("score",)) -> JudgeReply:
        """Reply as `ask` does, without blocking the event loop."""
        send, read, reply = self._question(prompt, vary, fields)
        return reply(*await self._caller.acall(send, read))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, base_url={self.base_url!r}, timeout={self.timeout:g})"


class GeminiJudge(ServiceJudge):
    """Asks Gemini for judgements. Pass it to `LLMSelfEvaluator`, or to `Grace(evaluator=…)`. Safe to share between threads.

    The statuses 408, 429, 500, 502, 503 and 504, lost connections and timeouts are retried, after exponentially growing waits with
    jitter, or after the wait that the service asks for. Other failures, such as 400, 401, 403 and 404, are final.

    Args:
        model: the model's name.
        api_key: the key; None takes GEMINI_API_KEY, or else GOOGLE_API_KEY, from the environment at the first call.
        base_url: another address of the service, such as that of a gateway.
        timeout: seconds for a judgement with all its attempts.
        attempts: number of attempts at most.
    """

    def __init__(
        self,
        model: str = MODEL,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
    ) -> None:
        super().__init__(model, GoogleCaller(api_key=api_key, base_url=base_url, timeout=timeout, attempts=attempts))

    def _question(self, prompt: str, vary: bool, fields: Sequence[str]) -> tuple[Any, Any, Any]:
        def send(client: Any, options: Any) -> Any:
            config = _config(vary, fields, options)
            return client.models.generate_content(model=self.model, contents=prompt, config=config)

        return send, lambda response: response, lambda response, attempts: _reply(response, attempts, self.model)


def _config(vary: bool, fields: Sequence[str], options: Any) -> Any:
    from google.genai import types

    return types.GenerateContentConfig(
        temperature=VARIED if vary else 0.0,
        response_mime_type="application/json",
        response_json_schema=reply_schema(fields) if fields else None,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        http_options=options,
    )


def reply_schema(fields: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return the JSON schema of a reply with these scores, their reasons, and `more` properties at its end."""
    properties: dict[str, Any] = {}
    for name in fields:
        properties[name] = {"type": "number", "minimum": 0, "maximum": 1}
        properties["reason" if name == "score" else f"{name}_reason"] = {"type": "string"}
    properties.update(more)
    return {"type": "object", "properties": properties, "required": list(properties)}


def _reply(response: Any, attempts: int, model: str) -> JudgeReply:
    candidates = response.candidates or []
    content = candidates[0].content if candidates else None
    parts = (content.parts or []) if content is not None else []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    usage = response.usage_metadata
    counts = [getattr(usage, name, None) for name in ("candidates_token_count", "thoughts_token_count")]
    known = [count for count in counts if count is not None]
    tokens_in, tokens_out = getattr(usage, "prompt_token_count", None), sum(known) if known else None
    if not text:
        reason = candidates[0].finish_reason if candidates else getattr(response.prompt_feedback, "block_reason", None)
        raise no_text(getattr(reason, "value", reason), attempts=attempts, tokens_in=tokens_in, tokens_out=tokens_out)
    model = response.model_version or model
    return JudgeReply(text, model=model, tokens_in=tokens_in, tokens_out=tokens_out, attempts=attempts)


def no_text(reason: object, **cost: Any) -> JudgeError:
    """Return the error for a reply without text, which may have cost tokens all the same."""
    return JudgeError(f"the model returned no text ({reason or 'no reason stated'})", **cost)


EMBEDDING_MODEL = "gemini-embedding-001"


class GeminiEmbedder(RemoteEmbedder):
    """Embeds texts by Gemini, up to 100 in one request. Secrets and identifiers are redacted before they are sent.

    Args:
        model: the model's name.
        dimensions: length of the vectors to request.
        api_key: the key; None takes GEMINI_API_KEY, or else GOOGLE_API_KEY, from the environment at the first call.
        base_url: another address of the service.
        timeout: seconds for a request with all its attempts.
        attempts: number of attempts of a request at most.
        remember: number of texts whose vectors are kept in memory.
    """

    def __init__(
        self,
        model: str = EMBEDDING_MODEL,
        *,
        dimensions: int = 768,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
        remember: int = REMEMBERED,
    ) -> None:
        super().__init__(self._batch, dimensions=dimensions, remember=remember)
        self.model = model
        self._caller = GoogleCaller(api_key=api_key, base_url=base_url, timeout=timeout, attempts=attempts)

    def _batch(self, texts: list[str]) -> list[Any]:
        def work(client: Any, options: Any) -> Any:
            from google.genai import types

            # Separate contents: to some models a list of plain texts is one text of several parts.
            contents = [types.Content(parts=[types.Part(text=text)]) for text in texts]
            config = types.EmbedContentConfig(output_dimensionality=self._dimensions, http_options=options)
            return client.models.embed_content(model=self.model, contents=contents, config=config)

        answer, _ = self._caller.call(work, lambda response: response)
        return [embedding.values or [] for embedding in answer.embeddings or []]

    def __repr__(self) -> str:
        return f"GeminiEmbedder(model={self.model!r}, dimensions={self._dimensions})"


KEY_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
RETRIED = frozenset({408, 429, 500, 502, 503, 504})
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
MAX_REPLY_BYTES = 32 << 20


def find_api_key() -> str | None:
    """Return the API key in the environment: GEMINI_API_KEY, else GOOGLE_API_KEY."""
    return next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), None)


class ServiceCaller:
    """Makes calls of a service over httpx, sync and async, with all attempts within one deadline. The arguments are those of `GeminiJudge`."""

    def __init__(self, *, api_key: str | None, base_url: str | None, timeout: float, attempts: int) -> None:
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
            raise ValueError(f"timeout must be a positive number of seconds (got {timeout!r})")
        check_whole("attempts", attempts)
        self._api_key = api_key
        self.base_url = base_url
        self.timeout = float(timeout)
        self.attempts = attempts
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._trust: Any = None
        self._trust_env = True
        self._kept: WeakKeyDictionary[object, tuple[Any, Any]] = WeakKeyDictionary()

    def call(self, work: Callable[[Any, Any], Any], read: Callable[[Any], Any]) -> tuple[Any, int]:
        """Run `read(work(client, options))` with retries, and return its result and the number of attempts."""
        from tenacity import Retrying

        client, _ = self._clients(None)
        deadline = time.monotonic() + self.timeout
        attempts = 0

        def attempt() -> Any:
            nonlocal attempts
            attempts += 1
            return read(work(client, self._options(deadline)))

        try:
            # httpx bounds each read, not the whole reply. This bounds everything.
            reply: Any = call_within(
                self.timeout + 0.05,
                lambda: Retrying(**self._retrying(deadline))(attempt),
                name="model request",
                or_inline=True,
            )
        except Exception as error:
            raise self._failure(error, attempts) from error
        return reply, attempts

    async def acall(self, work: Callable[[Any, Any], Any], read: Callable[[Any], Any]) -> tuple[Any, int]:
        """Run as `call` does, without blocking the event loop."""
        import anyio
        from tenacity import AsyncRetrying

        _, client = await to_thread(self._clients, running_loop())
        deadline = time.monotonic() + self.timeout
        attempts = 0

        async def attempt() -> Any:
            nonlocal attempts
            attempts += 1
            return read(await work(client, self._options(deadline)))

        try:
            # asyncio.timeout would also interrupt the closing of a connection, which httpcore shields by scopes of anyio.
            with anyio.fail_after(self.timeout + 0.05):
                reply: Any = await AsyncRetrying(**self._retrying(deadline))(attempt)
        except Exception as error:
            raise self._failure(error, attempts) from error
        return reply, attempts

    def _options(self, deadline: float) -> Any:
        """Return the seconds of one attempt, at most half of the timeout: a hanging one leaves time for another."""
        return max(0.001, min(deadline - time.monotonic(), self.timeout / 2))

    def _retrying(self, deadline: float) -> dict[str, Any]:
        from tenacity import retry_if_exception, wait_exponential, wait_random

        backoff = wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + wait_random(0, FIRST_WAIT)

        def wait(state: Any) -> float:
            requested = requested_pause(state.outcome.exception())
            return float(backoff(state)) if requested is None else requested

        def stop(state: Any) -> bool:
            is_last = state.attempt_number >= self.attempts and not isinstance(state.outcome.exception(), Reworded)
            return bool(is_last or time.monotonic() + state.upcoming_sleep >= deadline)

        return {"retry": retry_if_exception(is_transient), "wait": wait, "stop": stop, "reraise": True}

    def _failure(self, error: Exception, attempts: int) -> JudgeError | MissingExtra:
        """Return any error of a call as one of ours, without secrets, in particular the API key."""
        from grace_kp.trace import describe_error, redact_text  # not above, as in `_batch`

        attempts = max(1, attempts)
        if isinstance(error, JudgeError):
            error.attempts = max(error.attempts, attempts) if error.attempts else 0
            return error
        if isinstance(error, MissingExtra):
            return error
        if isinstance(error, TimeoutError | DeadlineExceeded):
            return JudgeError(f"the model did not answer within {self.timeout:g} s", attempts=attempts)
        status = status_of(error)
        if status is None:
            message = ": ".join(describe_error(error, 300))
        else:
            detail = getattr(error, "message", None)
            message = f"HTTP {status} {getattr(error, 'status', None) or ''}".rstrip() + (
                f": {detail}" if detail else ""
            )
        if api_key := self._find_key():
            message = message.replace(api_key, "[REDACTED:api_key]")
        return JudgeError(redact_text(message, identifiers=True)[:500], attempts=attempts, status=status)

    def _find_key(self) -> str | None:
        return self._api_key

    def _clients(self, loop: asyncio.AbstractEventLoop | None) -> tuple[Any, Any]:
        """Return the clients, sync and async, for plain calls or for an event loop."""
        # Connections that were open before a fork are the parent's, and the lock may be held.
        if self._pid != os.getpid():
            self._lock, self._pid, self._kept = threading.Lock(), os.getpid(), WeakKeyDictionary()
        with self._lock:
            clients = self._kept.get(loop or self)
            if clients is None:
                clients = self._kept[loop or self] = self._new_clients()
            return clients

    def _new_clients(self) -> tuple[Any, Any]:
        import httpx

        if self._trust is None:
            self._trust = httpx.create_ssl_context()  # reads all certificates, so it is shared

        def bound(response: Any) -> None:
            response.stream = _bounded_stream(response)

        async def abound(response: Any) -> None:
            response.stream = _bounded_stream(response)

        sync_client = httpx.Client(verify=self._trust, trust_env=self._trust_env, event_hooks={"response": [bound]})
        weakref.finalize(self, sync_client.close)
        return sync_client, httpx.AsyncClient(
            verify=self._trust,
            trust_env=self._trust_env,
            event_hooks={"response": [abound]},
            # No connection is kept open: it would belong to an event loop that may end without notice.
            limits=httpx.Limits(max_connections=100, max_keepalive_connections=0),
        )


class GoogleCaller(ServiceCaller):
    """Makes calls with the Google client."""

    def _options(self, deadline: float) -> Any:
        from google.genai import types

        return types.HttpOptions(timeout=max(1, int(super()._options(deadline) * 1_000)))

    def _find_key(self) -> str | None:
        return self._api_key or find_api_key()

    def _new_clients(self) -> tuple[Any, Any]:
        api_key = self._find_key()
        if not api_key:
            raise JudgeError(f"no API key: set {' or '.join(KEY_VARIABLES)}, or pass api_key", attempts=0)
        try:
            from google import genai
            from google.genai import types

            sync, aio = super()._new_clients()
        except ImportError:
            raise MissingExtra("Gemini", "gemini") from None
        options = types.HttpOptions(base_url=self.base_url, httpx_client=sync, httpx_async_client=aio)
        client = genai.Client(api_key=api_key, vertexai=False, http_options=options)
        return client, client.aio


def _bounded_stream(response: Any) -> Any:
    """Return the stream of a response, sync or async, bounded in size and total time: httpx bounds the time of each read only."""
    import httpx

    seconds = (response.request.extensions.get("timeout") or {}).get("read")
    deadline = time.monotonic() + (3_600.0 if seconds is None else seconds)
    stream, left = response.stream, MAX_REPLY_BYTES

    def checked(chunk: bytes) -> bytes:
        nonlocal left
        left -= len(chunk)
        if left < 0:
            raise httpx.DecodingError(f"the reply is larger than {MAX_REPLY_BYTES >> 20} MB")
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the reply took too long")
        return chunk

    class Bounded(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self) -> Any:
            return map(checked, stream)

        async def __aiter__(self) -> Any:
            async for chunk in stream:
                yield checked(chunk)

        def close(self) -> None:
            stream.close()

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


_TRANSIENT = frozenset({"TimeoutException", "NetworkError", "RemoteProtocolError", "ProxyError"})
_HTTPX = frozenset({"httpx", "httpx2", "httpcore", "httpcore2"})  # httpx, or the fork that the client may use


class Reworded(Exception):
    """A service refused a form of the request; the next attempt follows at once and asks in another form."""


def is_transient(error: BaseException) -> bool:
    """Return whether trying again may help: after some statuses, lost connections, and timeouts."""
    return (
        status_of(error) in RETRIED
        or isinstance(error, Reworded | ConnectionError)
        or any(
            base.__name__ in _TRANSIENT and base.__module__.partition(".")[0] in _HTTPX for base in type(error).__mro__
        )
    )


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status in an error of a service's client; None where there is none."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def requested_pause(error: BaseException | None) -> float | None:
    """Return the seconds that the service asks to wait: its Retry-After header, or RetryInfo in the body."""
    if isinstance(error, Reworded):
        return 0.0
    headers = getattr(getattr(error, "response", None), "headers", None)
    seconds = retry_after(headers.get("retry-after")) if headers is not None else None
    if seconds is not None:
        return seconds
    details = getattr(error, "details", None)
    inner = details.get("error") if isinstance(details, dict) else None
    listed = inner.get("details") if isinstance(inner, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        delay = entry.get("retryDelay") if isinstance(entry, dict) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return retry_after(delay[:-1])
    return None
