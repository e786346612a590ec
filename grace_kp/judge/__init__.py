"""Ask a model for judgements: prompts, fences, reading of replies, spending limits, and the evaluators built on them."""

from grace_kp.judge._budget import SpendingLimit
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
