"""Ask a model for judgements: prompts, fences, reading of replies, spending limits, and the evaluators built on them.

The names are resolved on first use: most runs are scored without a judge.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.judge._agreement import SourceAgreementCalculator, agreement_of
    from grace_kp.judge._budget import SpendingLimit, Spent
    from grace_kp.judge._cache import JudgementCache
    from grace_kp.judge._calls import acall_judge, call_judge
    from grace_kp.judge._evaluators import LLMSelfEvaluator, QueryCoverageCalculator, StepJudge
    from grace_kp.judge._fence import INVISIBLE, MAX_CHARS, RULES, Prompt, fence_texts, language_of
    from grace_kp.judge._prompts import build_prompt
    from grace_kp.judge._reply import parse_reply

_MODULES = {
    "INVISIBLE": "_fence",
    "MAX_CHARS": "_fence",
    "RULES": "_fence",
    "JudgementCache": "_cache",
    "LLMSelfEvaluator": "_evaluators",
    "Prompt": "_fence",
    "QueryCoverageCalculator": "_evaluators",
    "SourceAgreementCalculator": "_agreement",
    "SpendingLimit": "_budget",
    "Spent": "_budget",
    "StepJudge": "_evaluators",
    "acall_judge": "_calls",
    "agreement_of": "_agreement",
    "build_prompt": "_prompts",
    "call_judge": "_calls",
    "fence_texts": "_fence",
    "language_of": "_fence",
    "parse_reply": "_reply",
}

__all__ = [
    "INVISIBLE",
    "MAX_CHARS",
    "RULES",
    "JudgementCache",
    "LLMSelfEvaluator",
    "Prompt",
    "QueryCoverageCalculator",
    "SourceAgreementCalculator",
    "SpendingLimit",
    "Spent",
    "StepJudge",
    "acall_judge",
    "agreement_of",
    "build_prompt",
    "call_judge",
    "fence_texts",
    "language_of",
    "parse_reply",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
