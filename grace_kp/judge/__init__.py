"""Ask a model for judgements: prompts, fences, reading of replies, spending limits, and the evaluators built on them.

The names are resolved on first use: most runs are scored without a judge.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.judge._budget import JudgeSpending, SpendingLimit
    from grace_kp.judge._cache import JudgementCache
    from grace_kp.judge._client import acall_judge, call_judge
    from grace_kp.judge._evaluators import (
        LLMSelfEvaluator,
        QueryCoverageCalculator,
        SourceAgreementCalculator,
        StepJudge,
        agreement_of,
    )
    from grace_kp.judge._prompts import INVISIBLE, MAX_CHARS, RULES, Prompt, build_prompt, fence_texts, language_of
    from grace_kp.judge._reply import parse_reply

__all__ = [
    "INVISIBLE",
    "MAX_CHARS",
    "RULES",
    "JudgeSpending",
    "JudgementCache",
    "LLMSelfEvaluator",
    "Prompt",
    "QueryCoverageCalculator",
    "SourceAgreementCalculator",
    "SpendingLimit",
    "StepJudge",
    "acall_judge",
    "agreement_of",
    "build_prompt",
    "call_judge",
    "fence_texts",
    "language_of",
    "parse_reply",
]

_NAMES = {
    "_budget": "JudgeSpending SpendingLimit",
    "_cache": "JudgementCache",
    "_client": "acall_judge call_judge",
    "_evaluators": "LLMSelfEvaluator QueryCoverageCalculator SourceAgreementCalculator StepJudge agreement_of",
    "_prompts": "INVISIBLE MAX_CHARS RULES Prompt build_prompt fence_texts language_of",
    "_reply": "parse_reply",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
