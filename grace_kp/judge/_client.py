"""A judge with everything around a call to it: cache, spending limit, one call for identical requests, and the fallback.

It decides neither what is asked (`_prompts`) nor what a reply means (`_reply`). Sync and async differ in the call alone.
"""

from __future__ import annotations

import inspect
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from grace_kp.background import DeadlineExceeded, await_within, call_within, finish, in_thread, running_loop, to_thread
from grace_kp.confidence import Evaluation
from grace_kp.errors import EvaluationFailed, GraceError, JudgeError
from grace_kp.judge._cache import JudgementCache
from grace_kp.judge._prompts import LANGUAGES, MAX_CHARS, Prompt, build_prompt, is_echo, language_of
from grace_kp.judge._reply import COVERAGE_NAMES, SCORE_NAMES, Parsed, parse_reply
from grace_kp.trace import describe_error, redact_text, render_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from grace_kp.judge._budget import SpendingLimit
    from grace_kp.protocols import JudgeLike


THREAD = "judge"


def call_judge(
    judge: JudgeLike | None, prompt: str, *, vary: bool, fields: Sequence[str], timeout: float | None
) -> Any:
    """Return one reply, from a plain call.

    Raises:
        JudgeError: the judge took longer than `timeout` seconds. Its own exceptions are raised as they are.
    """
    ask = _question(judge, vary, fields)
    try:
        return call_within(timeout, lambda: finish(ask(prompt)), name=THREAD, or_inline=True)
    except DeadlineExceeded:
        raise JudgeError(f"the judge did not answer within {timeout:g} s") from None


async def acall_judge(
    judge: JudgeLike | None,
    prompt: str,
    *,
    vary: bool,
    fields: Sequence[str],
    timeout: float | None,  # noqa: ASYNC109
) -> Any:
    """Return one reply, without blocking the event loop; errors as for `call_judge`."""
    try:
        return await await_within(timeout, _reply(judge, prompt, vary, fields))
    except DeadlineExceeded:
        raise JudgeError(f"the judge did not answer within {timeout:g} s") from None


async def _reply(judge: JudgeLike | None, prompt: str, vary: bool, fields: Sequence[str]) -> Any:
    ask_async = getattr(judge, "aask", None)
    if callable(ask_async):
        reply: Awaitable[Any] = ask_async(prompt, vary=vary, fields=fields)
    else:
        ask = _question(judge, vary, fields)
        call = getattr(ask, "__call__", None)  # noqa: B004 — the method of an object that is called like a function
        is_async = inspect.iscoroutinefunction(ask) or inspect.iscoroutinefunction(call)
        reply = ask(prompt) if is_async else in_thread(lambda: ask(prompt), name=THREAD)
    found = await reply
    return await found if inspect.isawaitable(found) else found


def _question(judge: JudgeLike | None, vary: bool, fields: Sequence[str]) -> Callable[[str], Any]:
    ask = getattr(judge, "ask", None)
    if callable(ask):
        return lambda prompt: ask(prompt, vary=vary, fields=fields)
    return cast("Callable[[str], Any]", judge)


Judgements: TypeAlias = dict[str, Evaluation]
"""Evaluations by the name of what was judged: `score`, `coverage`."""
_LONGEST_ERROR = 300
_NAMES = {"score": SCORE_NAMES, "coverage": COVERAGE_NAMES}


@dataclass(slots=True)
class _Request:
    """One question to the judge. Identical requests at the same moment share the future of the first."""

    prompt: Prompt
    names: Sequence[str]
    run: str | None
    cache_key: str
    future: Future[Judgements] = field(default_factory=Future)
    is_first: bool = True
    started: float = field(default_factory=time.perf_counter)


class JudgeClient:
    """Asks a judge for evaluations; the base of the evaluators, which document the arguments."""

    def __init__(
        self,
        judge: JudgeLike | None,
        *,
        samples: int = 1,
        language: str = "auto",
        cache: JudgementCache | None = None,
        limit: SpendingLimit | None = None,
        on_failure: Literal["fallback", "raise"] = "fallback",
        timeout: float | None = None,
        max_chars: int = MAX_CHARS,
    ) -> None:
        if judge is not None and not callable(judge) and not callable(getattr(judge, "ask", None)):
            raise TypeError(f"a judge is a callable from prompt to text (got {type(judge).__name__})")
        if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= 100:
            raise ValueError(f"samples must be a whole number from 1 to 100 (got {samples!r})")
        if language != "auto" and language not in LANGUAGES:
            raise ValueError(f"language must be one of auto, {', '.join(LANGUAGES)} (got {language!r})")
        if on_failure not in {"fallback", "raise"}:
            raise ValueError(f"on_failure must be 'fallback' or 'raise' (got {on_failure!r})")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, or None (got {timeout!r})")
        self.judge = judge
        self.samples = samples
        self.language = language
        self.cache = cache if cache is not None else JudgementCache(max_entries=1_000)
        self.limit = limit
        self.on_failure = on_failure
        self.timeout = timeout
        self.max_chars = max_chars
        self._pending: dict[str, Future[Judgements]] = {}
        self._lock = threading.Lock()

    @property
    def model(self) -> str | None:
        """The name of the model behind the judge, or of the judge itself; None where neither has a name."""
        names = (getattr(self.judge, name, None) for name in ("model", "__name__"))
        name = next((name for name in names if isinstance(name, str)), None)
        return None if name is None else redact_text(name, identifiers=False)

    def prompt(self, kind: str, texts: Iterable[tuple[str, object]], *, query: object) -> Prompt:
        """Build the fenced prompt over titled texts, in the language of the query unless one is set."""
        language = self.language if self.language != "auto" else language_of(_text(query))
        return build_prompt(kind, language, [(title, _text(text)) for title, text in texts], max_chars=self.max_chars)

    def ask(self, prompt: Prompt, names: Sequence[str], run: str | None = None) -> Judgements:
        """Return the judgements of these names (`score`, `coverage`), by one call per sample."""
        return self._summary([self._sample(prompt, names, run, number) for number in range(self.samples)])

    async def aask(self, prompt: Prompt, names: Sequence[str], run: str | None = None) -> Judgements:
        """Return the same without blocking the event loop; the samples are asked for side by side."""
        import asyncio

        running_loop()
        samples = (self._asample(prompt, names, run, number) for number in range(self.samples))
        return self._summary(await asyncio.gather(*samples))

    def _sample(self, prompt: Prompt, names: Sequence[str], run: str | None, number: int) -> Judgements:
        request = self._join(prompt, names, run, number)
        if not request.is_first:
            return _without_cost(request.future.result(), request.started)
        with self._answering(request):
            judgements = self._lookup(request)
            if judgements is None:
                reply = call_judge(self.judge, prompt.text, vary=self.samples > 1, fields=names, timeout=self.timeout)
                judgements = self._store(request, self._read(request, reply))
            self._release(request, judgements)
        return request.future.result()

    async def _asample(self, prompt: Prompt, names: Sequence[str], run: str | None, number: int) -> Judgements:
        import asyncio

        request = self._join(prompt, names, run, number)
        if not request.is_first:
            return _without_cost(await asyncio.shield(asyncio.wrap_future(request.future)), request.started)
        with self._answering(request):
            # In threads, because a cache on disk may wait for another process.
            judgements = await to_thread(self._lookup, request)
            if judgements is None:
                reply = await acall_judge(
                    self.judge, prompt.text, vary=self.samples > 1, fields=names, timeout=self.timeout
                )
                judgements = await to_thread(self._store, request, self._read(request, reply))
            self._release(request, judgements)
        return request.future.result()

    @contextmanager
    def _answering(self, request: _Request) -> Iterator[None]:
        """Answer the request with the fallback where asking fails, whatever the judge does."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 — a failure of a judge is a fallback
            self._fail(request, error)
        except BaseException as error:
            self._fail(request, error)
            raise

    def _join(self, prompt: Prompt, names: Sequence[str], run: str | None, number: int) -> _Request:
        cache_key = f"{self.model or ''}\n{prompt.key}\n{number if self.samples > 1 else 0}"
        request = _Request(prompt, names, run, cache_key)
        with self._lock:
            pending = self._pending.setdefault(cache_key, request.future)
        request.is_first, request.future = pending is request.future, pending
        return request

    def _release(self, request: _Request, judgements: Judgements) -> None:
        with self._lock:
            self._pending.pop(request.cache_key, None)
        request.future.set_result(judgements)

    def _lookup(self, request: _Request) -> Judgements | None:
        """Return cached judgements, or the fallback where the judge may not be asked; None: the judge is to be asked."""
        if self.judge is None:
            return dict.fromkeys(request.names, Evaluation.failed("no judge", attempts=0))
        entries = {name: self.cache.get(f"{request.cache_key}\n{name}") for name in request.names}
        cached = {
            name: Evaluation(
                score=entry["score"],
                reason=str(entry.get("reason", "")),
                model=entry.get("model"),
                attempts=0,
                latency_ms=0.0,
                cached=True,
                p_true=entry.get("p_true"),
            )
            for name, entry in entries.items()
            if entry is not None
        }
        if len(cached) == len(entries):
            return cached
        refusal = None if self.limit is None else self.limit.reserve(request.run, len(request.prompt.text))
        if refusal is None:
            return None
        return dict.fromkeys(request.names, Evaluation.failed(refusal, attempts=0, model=self.model))

    def _store(self, request: _Request, judgements: Judgements) -> Judgements:
        """Settle what the call has cost, and cache what was judged."""
        first = next(iter(judgements.values()))
        if self.limit is not None:
            tokens = _total([first.tokens_in, first.tokens_out])
            self.limit.settle(request.run, len(request.prompt.text), max(1, first.attempts), tokens)
        for name, evaluation in judgements.items():
            if not evaluation.fallback:
                entry = {name: getattr(evaluation, name) for name in ("score", "reason", "model", "p_true")}
                self.cache.put(f"{request.cache_key}\n{name}", entry)
        return judgements

    def _read(self, request: _Request, reply: object) -> Judgements:
        call: dict[str, Any] = {
            "attempts": getattr(reply, "attempts", 1),
            "latency_ms": elapsed_ms(request.started),
            "model": getattr(reply, "model", None) or self.model,
            "tokens_in": getattr(reply, "tokens_in", None),
            "tokens_out": getattr(reply, "tokens_out", None),
        }
        judgements: Judgements = {}
        for name in request.names:
            parsed = parse_reply(reply, _NAMES[name])
            stated = [parsed.text[start:end].strip("`*_\"' ") for start, end in parsed.places]
            is_named = any(piece[:1].isalpha() or "{" in piece for piece in stated)  # in an object or after a label
            if len(request.names) > 1 and parsed.score is not None and not is_named:
                parsed = Parsed(None, error="the reply does not say which of the questions its score answers")
            if parsed.score is not None and is_echo(parsed, request.prompt):
                parsed = Parsed(None, error="the reply only repeats the judged content")
            if parsed.score is None:
                judgements[name] = Evaluation.failed(parsed.error or "the reply is unparsable", **call)
            else:
                reason = redact_text(parsed.reason, identifiers=True)
                p_true = getattr(reply, "p_true", None) if name == "score" else None
                judgements[name] = Evaluation(score=parsed.score, reason=reason, p_true=p_true, **call)
            call["tokens_in"] = call["tokens_out"] = None  # counted once, with the first judgement of the call
        return judgements

    def _fail(self, request: _Request, error: BaseException) -> None:
        message = str(error) if isinstance(error, GraceError) else ": ".join(describe_error(error, _LONGEST_ERROR))
        cost = {name: vars(error).get(name) for name in ("attempts", "tokens_in", "tokens_out")}
        known = {name: count for name, count in cost.items() if isinstance(count, int)}
        failed = Evaluation.failed(
            redact_text(message, identifiers=True), latency_ms=elapsed_ms(request.started), model=self.model, **known
        )
        judgements = dict.fromkeys(request.names, replace(failed, tokens_in=None, tokens_out=None))
        judgements[request.names[0]] = failed  # the cost is counted once, as in `_read`
        self._release(request, self._store(request, judgements))

    def _summary(self, samples: Sequence[Judgements]) -> Judgements:
        summary = {name: _mean([sample[name] for sample in samples]) for name in samples[0]}
        if self.on_failure == "raise":
            for evaluation in summary.values():
                if evaluation.fallback:
                    raise EvaluationFailed(evaluation.error or "not evaluated", evaluation=evaluation)
        return summary


def _without_cost(judgements: Judgements, started: float) -> Judgements:
    """Return the judgements of an identical request, which bears their cost."""
    free: dict[str, Any] = {"attempts": 0, "latency_ms": elapsed_ms(started), "tokens_in": None, "tokens_out": None}
    return {name: replace(item, cached=not item.fallback, **free) for name, item in judgements.items()}


def _mean(samples: list[Evaluation]) -> Evaluation:
    if len(samples) == 1:
        return samples[0]
    from statistics import fmean, pstdev

    judged = [sample for sample in samples if not sample.fallback]
    cost: dict[str, Any] = {
        "attempts": sum(sample.attempts for sample in samples),
        "latency_ms": max((sample.latency_ms for sample in samples if sample.latency_ms is not None), default=None),
        "tokens_in": _total([sample.tokens_in for sample in samples]),
        "tokens_out": _total([sample.tokens_out for sample in samples]),
    }
    if not judged:
        return replace(samples[0], samples=len(samples), **cost)
    scores = [sample.score for sample in judged]
    verdicts = [sample.p_true for sample in judged if sample.p_true is not None]
    failures = len(samples) - len(judged)
    note = f"{failures} of {len(samples)} judgements failed: " if failures else ""
    return Evaluation(
        score=min(1.0, max(0.0, fmean(scores))),
        reason=note + judged[0].reason,
        model=judged[0].model,
        samples=len(judged),
        spread=pstdev(scores),
        cached=all(sample.cached for sample in judged),
        p_true=fmean(verdicts) if verdicts else None,
        **cost,
    )


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def elapsed_ms(started: float) -> float:
    """Return the milliseconds since a reading of the performance counter."""
    return round((time.perf_counter() - started) * 1e3, 3)


def _text(value: object) -> str:
    return value if isinstance(value, str) else render_text(value, MAX_CHARS)
