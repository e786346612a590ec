"""The Gemini service for tests: answers and refusals in its form, and judgements over them."""

from __future__ import annotations

import asyncio

import httpx
import pytest

import grace_kp as gk

KEY = "a-key-that-nobody-may-see-42"
SCORE = '{"score": 0.8, "reason": "right"}'


def answer(text=SCORE, **more):
    return {
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 120, "candidatesTokenCount": 12, "thoughtsTokenCount": 3},
        "modelVersion": "gemini-x-001",
        **more,
    }


def refusal(code, status="UNAVAILABLE", message="not now", headers=None, details=()):
    return httpx.Response(
        code,
        headers=headers,
        json={"error": {"code": code, "status": status, "message": message, "details": list(details)}},
    )


def judged(*, sync=True, kind=gk.GeminiJudge, **options):
    """One judgement by a judge of its own."""
    evaluator = gk.LLMSelfEvaluator(kind("gemini-x", api_key=KEY, **options))
    if sync:
        return evaluator.evaluate_detailed("q", "a")
    return asyncio.run(evaluator.aevaluate_detailed("q", "a"))


BOTH = pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
