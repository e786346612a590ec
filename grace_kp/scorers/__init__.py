"""Scorers (SPEC §8): each measures one aspect of what an agent did, from 0 to 1, and explains its score."""

from grace_kp.scorers._cases import Case, CaseError, evaluate_cases, html_report, junit_report, read_cases
from grace_kp.scorers._edits import (
    Block,
    EditExpectation,
    EditResult,
    Operation,
    Scorer,
    as_result,
    operations_from_trace,
    result_from_trace,
)
from grace_kp.scorers._entry import Entry, Result, SuiteError, register
from grace_kp.scorers._hallucination import AntiHallucination
from grace_kp.scorers._on_traces import OnTraces
from grace_kp.scorers._operations import OperationAccuracy, TargetBlockPrecision
from grace_kp.scorers._outcome import ContentQuality, OperationResult, ResponseTime
from grace_kp.scorers._patterns import PatternError
from grace_kp.scorers._suite import Suite, SuiteReport, assert_passes

__all__ = [
    "AntiHallucination", "Block", "Case", "CaseError", "ContentQuality", "EditExpectation", "EditResult", "Entry",
    "OnTraces", "Operation", "OperationAccuracy", "OperationResult", "PatternError", "ResponseTime", "Result",
    "Scorer", "Suite", "SuiteError", "SuiteReport", "TargetBlockPrecision", "as_result", "assert_passes",
    "evaluate_cases", "html_report", "junit_report", "operations_from_trace", "read_cases", "register",
    "result_from_trace",
]  # fmt: skip
