"""Ask a model for judgements: prompts, fences, reading of replies, spending limits, and the evaluators built on them.

The names are resolved on first use: most runs are scored without a judge.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.judge._agreement import SourceAgreementCalculator, agreement_of
    from grace_kp.judge._budget import JudgementCache, SpendingLimit, Spent
    from grace_kp.judge._calls import acall_judge, call_judge
    from grace_kp.judge._coverage import QueryCoverageCalculator
    from grace_kp.judge._fence import CUT, END, INVISIBLE, LANGUAGES, MAX_CHARS, RULES, Prompt, fenced, language_of
    from grace_kp.judge._overall import StepJudge
    from grace_kp.judge._reply import parse_reply
    from grace_kp.judge._self_evaluation import LLMSelfEvaluator

__all__ = [
    "CUT",
    "END",
    "INVISIBLE",
    "LANGUAGES",
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
    "call_judge",
    "fenced",
    "language_of",
    "parse_reply",
]

_MODULES = {
    "CUT": "_fence",
    "END": "_fence",
    "INVISIBLE": "_fence",
    "JudgementCache": "_budget",
    "LANGUAGES": "_fence",
    "LLMSelfEvaluator": "_self_evaluation",
    "MAX_CHARS": "_fence",
    "Prompt": "_fence",
    "QueryCoverageCalculator": "_coverage",
    "RULES": "_fence",
    "SourceAgreementCalculator": "_agreement",
    "SpendingLimit": "_budget",
    "Spent": "_budget",
    "StepJudge": "_overall",
    "acall_judge": "_calls",
    "agreement_of": "_agreement",
    "call_judge": "_calls",
    "fenced": "_fence",
    "language_of": "_fence",
    "parse_reply": "_reply",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
