"""Asking a judge for judgements: fenced prompt, cache, one call for identical requests, spending limit, strict reading, fallback.

The one place where a judge is called. Sync and async share everything but the call itself.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.confidence import Evaluation
from grace_kp.errors import EvaluationFailed, GraceError
from grace_kp.judge._budget import JudgementCache
from grace_kp.judge._calls import acall_judge, call_judge
from grace_kp.judge._echo import MAX_SOURCES, build, echoed
from grace_kp.judge._fence import LANGUAGES, MAX_CHARS, Prompt, language_of
from grace_kp.judge._reply import COVERAGE_NAMES, SCORE_NAMES, Parsed, parse_reply
from grace_kp.trace import describe_error, redact_text, render_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grace_kp.judge._budget import SpendingLimit

OnFailure = Literal["fallback", "raise"]
_LONGEST_ERROR = 300
_NAMES = {"score": SCORE_NAMES, "coverage": COVERAGE_NAMES}


class Asker:
    """A judge with the ways in which it is asked; what the evaluators share."""

    def __init__(
        self,
        judge: Any,
        *,
        samples: int = 1,
        language: str = "auto",
        cache: JudgementCache | None = None,
        limit: SpendingLimit | None = None,
        on_failure: OnFailure = "fallback",
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
        self._flights: dict[str, Future[dict[str, Evaluation]]] = {}
        self._lock = threading.Lock()

    @property
    def model(self) -> str | None:
        """The name of the model behind the judge, where it has one."""
        named = getattr(self.judge, "model", None)
        return named if isinstance(named, str) else getattr(self.judge, "__name__", None)

    def prompt(self, kind: str, texts: Iterable[tuple[str, Any]], *, question: Any) -> Prompt:
        """The fenced prompt over these titled texts."""
        language = self.language if self.language != "auto" else language_of(_text(question))
        return build(kind, language, [(title, _text(text)) for title, text in texts], max_chars=self.max_chars)

    def ask(self, prompt: Prompt, wanted: Sequence[str], run: str | None = None) -> dict[str, Evaluation]:
        """The judgements of these names (`score`, `coverage`) by one call per sample."""
        return self._ended([self._one(prompt, wanted, run, number) for number in range(self.samples)], wanted)

    async def aask(self, prompt: Prompt, wanted: Sequence[str], run: str | None = None) -> dict[str, Evaluation]:
        """The same without blocking the event loop; samples are asked side by side."""
        import asyncio

        tasks = [self._aone(prompt, wanted, run, number) for number in range(self.samples)]
        return self._ended(list(await asyncio.gather(*tasks)), wanted)

    def _one(self, prompt: Prompt, wanted: Sequence[str], run: str | None, number: int) -> dict[str, Evaluation]:
        started = time.perf_counter()
        ready, key, flight = self._begin(prompt, wanted, run, number)
        if ready is not None:
            return ready
        if key is None:
            return _shared(flight.result(), started)
        try:
            reply = call_judge(self.judge, prompt.text, vary=self.samples > 1, fields=wanted, timeout=self.timeout)
            made = self._read(prompt, wanted, reply, started)
        except Exception as error:  # noqa: BLE001 — whatever a judge does, it ends in a fallback
            made = self._failed(wanted, error, started)
        except BaseException as error:
            self._land(prompt, run, key, flight, self._failed(wanted, error, started))
            raise
        return self._land(prompt, run, key, flight, made)

    async def _aone(self, prompt: Prompt, wanted: Sequence[str], run: str | None, number: int) -> dict[str, Evaluation]:
        import asyncio

        started = time.perf_counter()
        # A cache on disk may wait for another process.
        ready, key, flight = await asyncio.to_thread(self._begin, prompt, wanted, run, number)
        if ready is not None:
            return ready
        if key is None:
            return _shared(await asyncio.shield(asyncio.wrap_future(flight)), started)
        try:
            reply = await acall_judge(
                self.judge, prompt.text, vary=self.samples > 1, fields=wanted, timeout=self.timeout
            )
            made = self._read(prompt, wanted, reply, started)
        except Exception as error:  # noqa: BLE001
            made = self._failed(wanted, error, started)
        except BaseException as error:
            self._land(prompt, run, key, flight, self._failed(wanted, error, started))
            raise
        return await asyncio.to_thread(self._land, prompt, run, key, flight, made)

    def _begin(
        self, prompt: Prompt, wanted: Sequence[str], run: str | None, number: int
    ) -> tuple[dict[str, Evaluation] | None, str | None, Future[dict[str, Evaluation]]]:
        """What is there already; or the key of a call to make; or, without a key, the call of somebody else to wait for."""
        flight: Future[dict[str, Evaluation]] = Future()
        if self.judge is None:
            failed = Evaluation.failed("no judge", attempts=0)
            return dict.fromkeys(wanted, failed), None, flight
        key = f"{self.model or ''}\n{prompt.key}\n{number if self.samples > 1 else 0}"
        with self._lock:
            flying = self._flights.get(key)
            if flying is not None:
                return None, None, flying
            self._flights[key] = flight
        ready = self._kept(key, wanted)
        if ready is None and self.limit is not None:
            refused = self.limit.reserve(run, len(prompt.text))
            if refused is not None:
                ready = dict.fromkeys(wanted, Evaluation.failed(refused, attempts=0, model=self.model))
        if ready is None:
            return None, key, flight
        with self._lock:
            self._flights.pop(key, None)
        flight.set_result(ready)
        return ready, None, flight

    def _kept(self, key: str, wanted: Sequence[str]) -> dict[str, Evaluation] | None:
        found: dict[str, Evaluation] = {}
        for name in wanted:
            kept = self.cache.get(f"{key}\n{name}")
            if kept is None:
                return None
            found[name] = Evaluation(
                score=kept["score"],
                reason=str(kept.get("reason", "")),
                attempts=0,
                latency_ms=0.0,
                model=kept.get("model"),
                cached=True,
            )
        return found

    def _read(self, prompt: Prompt, wanted: Sequence[str], reply: Any, started: float) -> dict[str, Evaluation]:
        told: dict[str, Any] = {
            "attempts": getattr(reply, "attempts", 1),
            "latency_ms": _since(started),
            "model": getattr(reply, "model", None) or self.model,
        }
        tokens: dict[str, Any] = {
            "tokens_in": getattr(reply, "tokens_in", None),
            "tokens_out": getattr(reply, "tokens_out", None),
        }
        made: dict[str, Evaluation] = {}
        for place, name in enumerate(wanted):
            parsed = parse_reply(reply, _NAMES[name])
            if len(wanted) > 1 and parsed.score is not None and not _is_named(parsed):
                parsed = Parsed(None, error="the reply does not say which of the questions its score answers")
            if parsed.score is not None and echoed(parsed, prompt):
                parsed = Parsed(None, error="the reply merely repeats the text under judgement")
            # What one call has cost is told once, with the first of its judgements.
            cost = tokens if place == 0 else {}
            if parsed.score is None:
                made[name] = Evaluation.failed(parsed.error or "the reply is unparsable", **told, **cost)
            else:
                reason = redact_text(parsed.reason, identifiers=True)
                made[name] = Evaluation(score=parsed.score, reason=reason, **told, **cost)
        return made

    def _failed(self, wanted: Sequence[str], error: BaseException, started: float) -> dict[str, Evaluation]:
        told = str(error) if isinstance(error, GraceError) else ": ".join(describe_error(error, _LONGEST_ERROR))
        said = redact_text(told, identifiers=True)
        attempts = getattr(error, "attempts", 1)
        failed = Evaluation.failed(
            said, attempts=attempts if isinstance(attempts, int) else 1, latency_ms=_since(started), model=self.model
        )
        return dict.fromkeys(wanted, failed)

    def _land(
        self,
        prompt: Prompt,
        run: str | None,
        key: str,
        flight: Future[dict[str, Evaluation]],
        made: dict[str, Evaluation],
    ) -> dict[str, Evaluation]:
        first = next(iter(made.values()))
        if self.limit is not None:
            told = [first.tokens_in, first.tokens_out]
            tokens = None if told == [None, None] else sum(count or 0 for count in told)
            self.limit.settle(run, len(prompt.text), max(1, first.attempts), tokens)
        for name, evaluation in made.items():
            if not evaluation.fallback:
                kept = {"score": evaluation.score, "reason": evaluation.reason, "model": evaluation.model}
                self.cache.put(f"{key}\n{name}", kept)
        with self._lock:
            self._flights.pop(key, None)
        flight.set_result(made)
        return made

    def _ended(self, samples: list[dict[str, Evaluation]], wanted: Sequence[str]) -> dict[str, Evaluation]:
        ended = {name: _mean([sample[name] for sample in samples]) for name in wanted}
        if self.on_failure == "raise":
            for evaluation in ended.values():
                if evaluation.fallback:
                    raise EvaluationFailed(evaluation.error or "not evaluated", evaluation=evaluation)
        return ended


def _is_named(parsed: Parsed) -> bool:
    """Whether the score stands beside its name, in an object or after a label, and is no lone figure."""
    pieces = [parsed.text[start:end].strip("`*_\"' ") for start, end in parsed.places]
    return any(piece[:1].isalpha() or "{" in piece for piece in pieces)


def _mean(made: list[Evaluation]) -> Evaluation:
    """Several judgements of the same thing as one."""
    if len(made) == 1:
        return made[0]
    from statistics import fmean, pstdev

    good = [one for one in made if not one.fallback]
    cost: dict[str, Any] = {
        "attempts": sum(one.attempts for one in made),
        "latency_ms": max((one.latency_ms for one in made if one.latency_ms is not None), default=None),
        "tokens_in": _total([one.tokens_in for one in made]),
        "tokens_out": _total([one.tokens_out for one in made]),
    }
    if not good:
        return replace(made[0], samples=len(made), **cost)
    scores = [one.score for one in good]
    missing = "" if len(good) == len(made) else f"{len(made) - len(good)} of {len(made)} judgements failed: "
    return Evaluation(
        score=min(1.0, max(0.0, fmean(scores))),
        reason=missing + good[0].reason,
        model=good[0].model,
        samples=len(good),
        spread=pstdev(scores),
        cached=all(one.cached for one in good),
        **cost,
    )


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _shared(made: dict[str, Evaluation], started: float) -> dict[str, Evaluation]:
    """A judgement that somebody else paid for."""
    free: dict[str, Any] = {"attempts": 0, "latency_ms": _since(started), "tokens_in": None, "tokens_out": None}
    return {name: replace(one, cached=not one.fallback, **free) for name, one in made.items()}


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1e3, 3)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else render_text(value, MAX_CHARS)


def titled(question: Any, answer: Any, sources: Any) -> list[tuple[str, Any]]:
    """Question, answer and sources as titled texts; sources may be one text, or any collection of them."""
    texts: list[tuple[str, Any]] = [("question", question), ("answer", answer)]
    if sources is None:
        return texts
    listed = [sources] if isinstance(sources, str | bytes) or not hasattr(sources, "__iter__") else list(sources)
    return texts + [("source", source) for source in listed[:MAX_SOURCES]]
